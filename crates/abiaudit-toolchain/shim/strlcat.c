/* strlcat (glibc 2.38), and what _FORTIFY_SOURCE makes of it. */
#include "shim.h"
size_t strlen(const char *text);
size_t strnlen(const char *text, size_t limit);
void *memcpy(void *to, const void *from, size_t size);
void __chk_fail(void) __attribute__((noreturn));
size_t strlcat(char *to, const char *from, size_t size)
{
    size_t length = strnlen(to, size), added = strlen(from);
    if (length < size) {
        size_t room = size - length - 1, copied = added < room ? added : room;
        memcpy(to + length, from, copied);
        to[length + copied] = 0;
    }
    return length + added;
}
size_t __strlcat_chk(char *to, const char *from, size_t size, size_t capacity)
{
    if (size > capacity)
        __chk_fail();
    return strlcat(to, from, size);
}
