/* close_range (glibc 2.34): kernels before 5.9 answer ENOSYS, as the function of glibc does there. */
#include "shim.h"
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
int close_range(unsigned int first, unsigned int last, int flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}
