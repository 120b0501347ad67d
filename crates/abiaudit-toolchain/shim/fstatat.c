/* fstatat, fstatat64: functions since glibc 2.33. */
#include "shim.h"
#include "stat_version.h"
int __fxstatat(int version, int directory, const char *path, void *status, int flags);
int fstatat(int directory, const char *path, void *status, int flags)
{
    return __fxstatat(STAT_VERSION, directory, path, status, flags);
}
int fstatat64(int directory, const char *path, void *status, int flags)
{
    return __fxstatat(STAT_VERSION, directory, path, status, flags);
}
