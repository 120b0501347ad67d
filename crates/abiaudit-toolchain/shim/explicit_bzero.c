/* explicit_bzero (glibc 2.25): the compiler may not leave it out although nobody reads the bytes again. */
#include "shim.h"
void *memset(void *block, int byte, size_t size);
void __chk_fail(void) __attribute__((noreturn));
void explicit_bzero(void *block, size_t size)
{
    memset(block, 0, size);
    __asm__ volatile("" : : "r"(block) : "memory");
}
void __explicit_bzero_chk(void *block, size_t size, size_t capacity)
{
    if (size > capacity)
        __chk_fail();
    explicit_bzero(block, size);
}
