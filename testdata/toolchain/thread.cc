// Nothing but a thread: the object refers to no function of libpthread, libstdc++ does.
#include "expect.h"
#include <thread>
RUN
{
    int number = 1;
    std::thread([&] { number = 0; }).join();
    EXPECT(number == 0);
    return 0;
}
