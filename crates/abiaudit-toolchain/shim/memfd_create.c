/* memfd_create (glibc 2.27). */
#include "shim.h"
int memfd_create(const char *name, unsigned int flags) { return (int)syscall(SYS_memfd_create, name, flags); }
