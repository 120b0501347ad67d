// Throws what another module catches.
#include "throws.h"
#include <filesystem>
#include <new>
#include <stdexcept>
#include <variant>
extern "C" __attribute__((visibility("default"))) void throw_one(int which)
{
    switch (which) {
    case 0: throw std::runtime_error("runtime");
    case 1: throw std::filesystem::filesystem_error("fs", "a", std::make_error_code(std::errc::timed_out));
    case 2: std::get<1>(std::variant<int, long>(1)); break;
    case 3: throw std::bad_array_new_length();
    case 4: throw Own(4);
    case 5: throw 5;
    }
}
extern "C" __attribute__((visibility("default"))) Base *make_one() { return new Derived; }
RUN { return 0; }
