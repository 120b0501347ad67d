/* pthread_mutex_clocklock, pthread_rwlock_clockrdlock, pthread_rwlock_clockwrlock (glibc 2.30): FUNCTION in terms of
 * TIMED. */
#include "clock_slice.h"
int TIMED(void *object, const struct timespec *until);
int FUNCTION(void *object, clockid_t clock, const struct timespec *until)
{
    if (clock == CLOCK_REALTIME)
        return TIMED(object, until);
    if (clock != CLOCK_MONOTONIC || !is_time(until))
        return EINVAL;
    for (;;) {
        struct timespec end;
        int last = next_slice(until, &end);
        int result = TIMED(object, &end);
        if (result != ETIMEDOUT || last)
            return result;
    }
}
