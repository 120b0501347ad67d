// What the newest standard brings, as far as the compiler has it.
#include "expect.h"
#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>
#if __has_include(<format>)
#include <format>
#endif
#if __has_include(<generator>) && __cplusplus > 202002L
#include <generator>
#endif
#if __has_include(<print>) && __cplusplus > 202002L
#include <print>
#endif
#if __has_include(<expected>) && __cplusplus > 202002L
#include <expected>
#endif
#if __has_include(<ranges>)
#include <ranges>
#endif
#if __cpp_lib_generator
static std::generator<int> squares() { for (int i = 1; ; i++) co_yield i * i; }
#endif
RUN
{
#if __cplusplus >= 202002L
    std::vector<int> numbers{3, 1, 2};
    std::ranges::sort(numbers);
    EXPECT(numbers.front() == 1);
    using namespace std::chrono;
    EXPECT(weekday(2000y / January / 1d) == Saturday);
#endif
#if __cpp_lib_expected
    std::expected<int, std::string> bad = std::unexpected("no");
    EXPECT(bad.value_or(5) == 5);
    bool caught = false;
    try {
        bad.value();
    } catch (const std::bad_expected_access<std::string> &error) {
        caught = error.error() == "no";
    }
    EXPECT(caught);
#endif
#if __cpp_lib_format
    EXPECT(std::format("{:>6.2f}|{:#x}", 3.14159, 255) == "  3.14|0xff");
#endif
#if __cpp_lib_generator
    int sum = 0;
    for (int square : squares() | std::views::take(3))
        sum += square;
    EXPECT(sum == 14);
#endif
#if __cpp_lib_print
    std::print(stderr, "{}", "");
#endif
#if __cpp_lib_chrono >= 201907L
    EXPECT(!std::chrono::get_tzdb().zones.empty() || true);
#endif
    return 0;
}
