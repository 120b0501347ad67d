/* stat, stat64: functions since glibc 2.33, before that in libc_nonshared.a over __xstat (glibc io/stat.c). On 64-bit
 * machines struct stat and struct stat64 are one. */
#include "shim.h"
#include "stat_version.h"
int __xstat(int version, const char *path, void *status);
int stat(const char *path, void *status) { return __xstat(STAT_VERSION, path, status); }
int stat64(const char *path, void *status) { return __xstat(STAT_VERSION, path, status); }
