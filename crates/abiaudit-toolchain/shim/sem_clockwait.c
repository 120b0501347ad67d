/* sem_clockwait (glibc 2.30): returns -1 and sets errno, unlike the functions of POSIX threads. */
#include "clock_slice.h"
int sem_timedwait(void *semaphore, const struct timespec *until);
int sem_clockwait(void *semaphore, clockid_t clock, const struct timespec *until)
{
    if (clock == CLOCK_REALTIME)
        return sem_timedwait(semaphore, until);
    if (clock != CLOCK_MONOTONIC || !is_time(until)) {
        errno = EINVAL;
        return -1;
    }
    for (;;) {
        struct timespec end;
        int last = next_slice(until, &end);
        if (sem_timedwait(semaphore, &end) == 0)
            return 0;
        if (errno != ETIMEDOUT || last)
            return -1;
    }
}
