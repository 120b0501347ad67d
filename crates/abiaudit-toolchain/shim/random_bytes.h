/* Bytes from the kernel's generator (getrandom, Linux 3.17), or from the device where the kernel is older. */
#include "shim.h"
#include <fcntl.h>
#include <unistd.h>
#ifndef SYS_getrandom
#error "the kernel headers do not know getrandom"
#endif

/* 0, or -1 with errno. */
static inline int random_bytes(void *buffer, size_t size)
{
    unsigned char *at = buffer;
    int device = -1;
    while (size > 0) {
        ssize_t got = device < 0 ? syscall(SYS_getrandom, at, size, 0) : read(device, at, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == ENOSYS && device < 0) {
            device = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
            if (device < 0)
                return -1;
            continue;
        }
        if (got <= 0)
            break;
        at += got;
        size -= (size_t)got;
    }
    if (device >= 0)
        close(device);
    return size == 0 ? 0 : -1;
}
