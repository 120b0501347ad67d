/* getdents64 (glibc 2.30). */
#include "shim.h"
ssize_t getdents64(int directory, void *buffer, size_t size) { return syscall(SYS_getdents64, directory, buffer, size); }
