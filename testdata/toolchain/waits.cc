// Waits for an atomic that another module changes: both must use one pool of waiters.
#include "expect.h"
#include <atomic>
extern "C" __attribute__((visibility("default"))) void wait_for(std::atomic<int> *number)
{
    number->wait(0);
}
RUN { return 0; }
