/* renameat2 (glibc 2.28). */
#include "shim.h"
int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned int flags)
{
    return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
}
