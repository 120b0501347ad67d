/* copy_file_range (glibc 2.27): kernels before 4.5 answer ENOSYS. */
#include "shim.h"
ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned int flags)
{
    return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, size, flags);
}
