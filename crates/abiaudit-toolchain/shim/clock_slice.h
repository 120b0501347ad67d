/* Waiting until a time of CLOCK_MONOTONIC with functions that know CLOCK_REALTIME only: in slices of at most one second,
 * so that a change of the system's time makes a wait wrong by no more than that. */
#include "shim.h"

#define NANOSECONDS 1000000000L

/* Writes the real time at which the slice ends that starts now; true if the deadline is reached with it. */
static inline int next_slice(const struct timespec *deadline, struct timespec *end)
{
    struct timespec now, real;
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_REALTIME, &real);
    time_t seconds = deadline->tv_sec - now.tv_sec;
    long nanoseconds = deadline->tv_nsec - now.tv_nsec;
    if (nanoseconds < 0) {
        nanoseconds += NANOSECONDS;
        seconds -= 1;
    }
    int last = 1;
    if (seconds < 0) {
        seconds = 0;
        nanoseconds = 0;
    } else if (seconds >= 1) {
        seconds = 1;
        nanoseconds = 0;
        last = 0;
    }
    end->tv_sec = real.tv_sec + seconds;
    end->tv_nsec = real.tv_nsec + nanoseconds;
    if (end->tv_nsec >= NANOSECONDS) {
        end->tv_nsec -= NANOSECONDS;
        end->tv_sec += 1;
    }
    return last;
}

static inline int is_time(const struct timespec *time)
{
    return time->tv_nsec >= 0 && time->tv_nsec < NANOSECONDS;
}
