/* mknod: a function since glibc 2.33. */
#include "shim.h"
#include "stat_version.h"
int __xmknod(int version, const char *path, mode_t mode, dev_t *device);
int mknod(const char *path, mode_t mode, dev_t device) { return __xmknod(MKNOD_VERSION, path, mode, &device); }
