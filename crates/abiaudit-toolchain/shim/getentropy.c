/* getentropy (glibc 2.25): at most 256 bytes. */
#include "random_bytes.h"
int getentropy(void *buffer, size_t size)
{
    if (size > 256) {
        errno = EIO;
        return -1;
    }
    return random_bytes(buffer, size);
}
