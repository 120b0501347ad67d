/* statx (glibc 2.28): kernels before 4.11 answer ENOSYS, where the function of glibc goes by fstatat. */
#include "shim.h"
#ifndef SYS_statx
#error "the kernel headers do not know statx"
#endif
int statx(int directory, const char *path, int flags, unsigned int mask, void *status)
{
    return (int)syscall(SYS_statx, directory, path, flags, mask, status);
}
