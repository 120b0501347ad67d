// A module that uses what C++ runtimes keep in one place for the whole process: facets and their ids, streams, the
// thread-local variables of call_once, exceptions, error categories.
#include <fstream>
#include <future>
#include <iostream>
#include <locale>
#include <mutex>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

static std::once_flag once;

extern "C" int probe(int number) {
    std::ostringstream stream;
    stream << number << ' ' << 1.5 << ' ' << std::boolalpha << true;
    std::call_once(once, [] { std::cout << std::flush; });
    std::thread([&stream] { stream << "thread"; }).join();
    auto later = std::async(std::launch::async, [number] { return number + 1; });
    try {
        std::ifstream file("/nonexistent");
        file.exceptions(std::ios::failbit);
        throw std::system_error(std::make_error_code(std::errc::invalid_argument));
    } catch (const std::exception &error) {
        stream << error.what();
    }
    const auto &facet = std::use_facet<std::ctype<char>>(std::locale::classic());
    return std::regex_search(stream.str(), std::regex("[0-9]+")) + facet.is(std::ctype_base::alpha, 'a') + later.get();
}
