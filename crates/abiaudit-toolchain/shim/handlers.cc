// std::get_terminate, std::get_unexpected, std::get_new_handler (GCC 4.9, GLIBCXX_3.4.20): the handlers are variables of the
// library, which an older one gives out only in exchange for another. Between the exchange and the return a second thread
// that fails would meet the stand-in, which ends the program as the default handlers do.
#include <cstdlib>
#include <exception>
#include <new>
namespace std {
terminate_handler get_terminate() noexcept
{
    terminate_handler handler = set_terminate(abort);
    set_terminate(handler);
    return handler;
}
unexpected_handler get_unexpected() noexcept
{
    unexpected_handler handler = set_unexpected(abort);
    set_unexpected(handler);
    return handler;
}
new_handler get_new_handler() noexcept
{
    new_handler handler = set_new_handler(nullptr);
    if (handler)
        set_new_handler(handler);
    return handler;
}
}
