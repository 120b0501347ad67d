#include "expect.h"
#include <atomic>
#include <chrono>
#include <thread>
static void (*wait_for)(std::atomic<int> *);
extern "C" __attribute__((visibility("default"))) void accept(void *(*find)(const char *))
{
    wait_for = reinterpret_cast<void (*)(std::atomic<int> *)>(find("wait_for"));
}
static std::atomic<int> number, woken;
RUN
{
    if (!wait_for)
        return 0; // alone
    std::thread waiter([] { wait_for(&number); woken = 1; });
    // Long enough that the waiter no longer spins.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    number = 1;
    number.notify_all();
    for (int i = 0; i < 300 && !woken; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!woken) {
        waiter.detach();
        return __LINE__;
    }
    waiter.join();
    return 0;
}
