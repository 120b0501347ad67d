#include "expect.h"
#include <new>
#include <random>
#include <regex>
#include <string>
#include <system_error>
#include <variant>
#include <vector>
RUN
{
    std::string text(1000, 'x');
    text.reserve(5000);
    text.shrink_to_fit();
    text.insert(3, "abc").erase(0, 1).replace(1, 2, "--");
    EXPECT(text.substr(0, 4) == "x--b" || text.substr(0, 3) == "x--");
    EXPECT(std::to_string(-12.5).substr(0, 5) == "-12.5" && std::stoi("42x") == 42 && std::stod("1e3") == 1000);
    std::regex pattern("(\\w+)-(\\d+)", std::regex::icase);
    std::smatch match;
    std::string subject = "see Ab-12 there";
    EXPECT(std::regex_search(subject, match, pattern) && match[1] == "Ab" && match[2] == "12");
    EXPECT(std::regex_replace(subject, pattern, "$2") == "see 12 there");
    std::random_device device;
    std::mt19937 engine(device());
    EXPECT(std::uniform_int_distribution<int>(1, 6)(engine) <= 6 && device.entropy() >= 0);
    std::variant<int, std::string> value = 3;
    int caught = 0;
    try {
        (void)std::get<std::string>(value);
    } catch (const std::bad_variant_access &) {
        caught++;
    }
    try {
        volatile int size = -1;
        delete[] new int[static_cast<size_t>(size)];
    } catch (const std::bad_array_new_length &) {
        caught++;
    } catch (const std::bad_alloc &) {
        caught++;
    }
    try {
        std::vector<int>().at(1);
    } catch (const std::out_of_range &) {
        caught++;
    }
    EXPECT(caught == 3);
    EXPECT(std::make_error_code(std::errc::timed_out).default_error_condition() == std::errc::timed_out);
    struct alignas(64) Wide { char bytes[64]; };
    auto wide = new Wide;
    EXPECT(reinterpret_cast<size_t>(wide) % 64 == 0);
    delete wide;
    return 0;
}
