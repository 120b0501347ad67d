/* strlcpy (glibc 2.38), and what _FORTIFY_SOURCE makes of it. */
#include "shim.h"
size_t strlen(const char *text);
void *memcpy(void *to, const void *from, size_t size);
void __chk_fail(void) __attribute__((noreturn));
size_t strlcpy(char *to, const char *from, size_t size)
{
    size_t length = strlen(from);
    if (size > 0) {
        size_t copied = length < size ? length : size - 1;
        memcpy(to, from, copied);
        to[copied] = 0;
    }
    return length;
}
size_t __strlcpy_chk(char *to, const char *from, size_t size, size_t capacity)
{
    if (size > capacity)
        __chk_fail();
    return strlcpy(to, from, size);
}
