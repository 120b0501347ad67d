/* The layout of struct stat that the kernel's newstat calls fill: _STAT_VER_LINUX of glibc's bits/stat.h before 2.33
 * (sysdeps/unix/sysv/linux/x86/bits/stat.h; sysdeps/unix/sysv/linux/generic/bits/stat.h for aarch64). */
#if defined __x86_64__
#define STAT_VERSION 1
#elif defined __aarch64__
#define STAT_VERSION 0
#else
#error "no version of struct stat is known for this machine"
#endif
/* _MKNOD_VER_LINUX */
#define MKNOD_VERSION 0
