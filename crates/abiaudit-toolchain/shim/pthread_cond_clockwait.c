/* pthread_cond_clockwait (glibc 2.30). A slice that ends early must not look like a wake-up for nothing to callers that
 * count them, so only the last one reports the timeout. */
#include "clock_slice.h"
int pthread_cond_timedwait(void *condition, void *mutex, const struct timespec *until);
int pthread_cond_clockwait(void *condition, void *mutex, clockid_t clock, const struct timespec *until)
{
    if (clock == CLOCK_REALTIME)
        return pthread_cond_timedwait(condition, mutex, until);
    if (clock != CLOCK_MONOTONIC || !is_time(until))
        return EINVAL;
    for (;;) {
        struct timespec end;
        int last = next_slice(until, &end);
        int result = pthread_cond_timedwait(condition, mutex, &end);
        if (result != ETIMEDOUT || last)
            return result;
    }
}
