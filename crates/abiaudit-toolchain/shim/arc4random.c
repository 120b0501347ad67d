/* arc4random, arc4random_buf, arc4random_uniform (glibc 2.36). They cannot fail, so that without any source of
 * randomness the process ends, as in glibc (stdlib/arc4random.c). */
#include "random_bytes.h"
#include <stdint.h>
void abort(void) __attribute__((noreturn));
void arc4random_buf(void *buffer, size_t size)
{
    if (random_bytes(buffer, size) != 0)
        abort();
}
uint32_t arc4random(void)
{
    uint32_t number;
    arc4random_buf(&number, sizeof number);
    return number;
}
uint32_t arc4random_uniform(uint32_t bound)
{
    if (bound < 2)
        return 0;
    /* 2^32 mod bound: numbers below would make small results more likely. */
    uint32_t least = -bound % bound;
    uint32_t number;
    do
        number = arc4random();
    while (number < least);
    return number % bound;
}
