// A module that uses what copies of libstdc++ share: call_once, streams, facets, exceptions, error categories.
#include <future>
#include <iostream>
#include <locale>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <system_error>

static std::once_flag flag;

extern "C" int PyInit_m(int n) {
    std::call_once(flag, [] {});
    std::ostringstream out;
    out << n << 1.5 << std::use_facet<std::numpunct<char>>(std::locale::classic()).decimal_point();
    std::cout << out.str();
    auto later = std::async(std::launch::deferred, [] { return 1; });
    try {
        if (n > 100) throw std::system_error(std::make_error_code(std::errc::io_error));
    } catch (const std::exception &) {
        return 1;
    }
    return static_cast<int>(out.str().size()) + later.get();
}
