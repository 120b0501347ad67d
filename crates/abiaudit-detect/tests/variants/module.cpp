// A module that uses most of libstdc++, so that a static link takes all of it: streams, locales, call_once, filesystem,
// regular expressions, exceptions.
#include <filesystem>
#include <fstream>
#include <future>
#include <iomanip>
#include <iostream>
#include <locale>
#include <mutex>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

static std::once_flag flag;

extern "C" int probe(int n) {
    std::call_once(flag, [] { std::cout << "once\n"; });
    std::ostringstream out;
    out << n << ' ' << 1.5 << ' ' << std::put_money(12L);
    std::vector<std::string> words{out.str(), std::filesystem::current_path().string()};
    if (std::regex_search(words[0], std::regex("[0-9]+"))) {
        n += static_cast<int>(words.size());
    }
    try {
        if (n > 100) {
            throw std::system_error(std::make_error_code(std::errc::io_error));
        }
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::locale("C").name();
    }
    auto later = std::async(std::launch::async, [n] { return n; });
    return later.get();
}
