/* mknodat: a function since glibc 2.33. */
#include "shim.h"
#include "stat_version.h"
int __xmknodat(int version, int directory, const char *path, mode_t mode, dev_t *device);
int mknodat(int directory, const char *path, mode_t mode, dev_t device)
{
    return __xmknodat(MKNOD_VERSION, directory, path, mode, &device);
}
