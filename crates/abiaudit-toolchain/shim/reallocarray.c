/* reallocarray (glibc 2.26). */
#include "shim.h"
void *realloc(void *block, size_t size);
void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}
