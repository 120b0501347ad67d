#include "expect.h"
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
static std::string text(double value)
{
    char buffer[64];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    return std::string(buffer, end);
}
RUN
{
    EXPECT(text(0.1) == "0.1");
    EXPECT(text(1e300) == "1e+300");
    EXPECT(text(-123456.789) == "-123456.789");
    char buffer[64];
    auto end = std::to_chars(buffer, buffer + 64, 3.25L, std::chars_format::fixed, 3).ptr;
    EXPECT(std::string_view(buffer, end - buffer) == "3.250");
    end = std::to_chars(buffer, buffer + 64, 1.5f, std::chars_format::hex).ptr;
    EXPECT(std::string_view(buffer, end - buffer) == "1.8p+0");
    double value = 0;
    std::string_view number = "2.5e-3x";
    auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    EXPECT(value == 2.5e-3 && *read.ptr == 'x');
    float small = 0;
    number = "1e-46";
    EXPECT(std::from_chars(number.data(), number.data() + number.size(), small).ec == std::errc::result_out_of_range);
    return 0;
}
