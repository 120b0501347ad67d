/* getrandom (glibc 2.25). */
#include "shim.h"
ssize_t getrandom(void *buffer, size_t size, unsigned int flags) { return syscall(SYS_getrandom, buffer, size, flags); }
