/* fstat, fstat64: functions since glibc 2.33. */
#include "shim.h"
#include "stat_version.h"
int __fxstat(int version, int file, void *status);
int fstat(int file, void *status) { return __fxstat(STAT_VERSION, file, status); }
int fstat64(int file, void *status) { return __fxstat(STAT_VERSION, file, status); }
