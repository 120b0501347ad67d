#include "expect.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>
#if __cplusplus >= 202002L
#include <barrier>
#include <latch>
#include <semaphore>
#include <stop_token>
#endif
using namespace std::chrono_literals;
static thread_local int local = 1;
RUN
{
    std::atomic<int> sum{0};
    std::vector<std::thread> threads;
    for (int i = 1; i <= 4; i++)
        threads.emplace_back([&, i] { local = i; sum += local; });
    for (auto &thread : threads)
        thread.join();
    EXPECT(sum == 10 && local == 1);

    // No exception from within: pthread_once of glibc before 2.34 never returns after one (glibc bug 18435).
    std::once_flag flag;
    int calls = 0;
    std::call_once(flag, [&] { calls += 10; });
    std::call_once(flag, [&] { calls += 100; });
    EXPECT(calls == 10);

    std::mutex mutex;
    std::condition_variable condition;
    bool ready = false;
    std::thread waker([&] { std::lock_guard lock(mutex); ready = true; condition.notify_all(); });
    {
        std::unique_lock lock(mutex);
        condition.wait(lock, [&] { return ready; });
        auto start = std::chrono::steady_clock::now();
        EXPECT(condition.wait_for(lock, 50ms, [] { return false; }) == false);
        EXPECT(condition.wait_until(lock, start + 100ms, [] { return false; }) == false);
        EXPECT(std::chrono::steady_clock::now() - start >= 100ms);
    }
    waker.join();

    std::timed_mutex timed;
    timed.lock();
    bool taken = true;
    std::thread([&] { taken = timed.try_lock_for(20ms); }).join();
    EXPECT(!taken);
    std::shared_timed_mutex readers;
    readers.lock_shared();
    std::thread([&] { taken = readers.try_lock_until(std::chrono::steady_clock::now() + 20ms); }).join();
    EXPECT(!taken);

    std::promise<int> promise;
    auto future = promise.get_future();
    EXPECT(future.wait_for(10ms) == std::future_status::timeout);
    EXPECT(future.wait_until(std::chrono::steady_clock::now() + 10ms) == std::future_status::timeout);
    std::thread([&] { promise.set_value(7); }).join();
    EXPECT(future.get() == 7);
    auto failing = std::async(std::launch::async, []() -> int { throw std::logic_error("expected"); });
    bool caught = false;
    try {
        failing.get();
    } catch (const std::logic_error &) {
        caught = true;
    }
    EXPECT(caught);
#if __cplusplus >= 202002L
    std::latch latch(2);
    std::barrier barrier(2);
    std::counting_semaphore<4> semaphore(0);
    std::jthread worker([&](std::stop_token stop) {
        latch.count_down();
        barrier.arrive_and_wait();
        semaphore.release(2);
        while (!stop.stop_requested())
            std::this_thread::yield();
    });
    latch.arrive_and_wait();
    barrier.arrive_and_wait();
    semaphore.acquire();
    EXPECT(semaphore.try_acquire_for(5s));
    EXPECT(!semaphore.try_acquire_for(20ms));
    worker.request_stop();
#endif
    return 0;
}
