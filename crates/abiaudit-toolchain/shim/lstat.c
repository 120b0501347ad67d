/* lstat, lstat64: functions since glibc 2.33. */
#include "shim.h"
#include "stat_version.h"
int __lxstat(int version, const char *path, void *status);
int lstat(const char *path, void *status) { return __lxstat(STAT_VERSION, path, status); }
int lstat64(const char *path, void *status) { return __lxstat(STAT_VERSION, path, status); }
