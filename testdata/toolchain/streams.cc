#include "expect.h"
#include <fstream>
#include <iomanip>
#include <iostream>
#include <locale>
#include <sstream>
#include <string>
#if __cplusplus >= 202002L
#include <syncstream>
#endif
// Streams must be usable before main, in constructors of static objects.
struct Early {
    std::string text;
    Early()
    {
        std::ostringstream out;
        out << std::setw(4) << 42 << std::hex << 255;
        text = out.str();
        std::clog << std::flush;
    }
    ~Early() { std::cout << std::flush; }
};
static Early early;
struct Thousands : std::numpunct<char> {
    char do_thousands_sep() const override { return '\''; }
    std::string do_grouping() const override { return "\3"; }
};
RUN
{
    EXPECT(early.text == "  42ff");
    std::ostringstream out;
    out.imbue(std::locale(std::locale::classic(), new Thousands));
    out << 1234567 << ' ' << std::fixed << std::setprecision(2) << 1234.5;
    EXPECT(out.str() == "1'234'567 1'234.50");
    std::istringstream in("17 0x1f word 2.5");
    int decimal, hexadecimal;
    std::string word;
    double number;
    in >> decimal >> std::hex >> hexadecimal >> word >> number;
    EXPECT(in && decimal == 17 && hexadecimal == 31 && word == "word" && number == 2.5);
    auto &collate = std::use_facet<std::collate<char>>(std::locale());
    EXPECT(collate.compare("a", "a" + 1, "b", "b" + 1) < 0);
    EXPECT(std::use_facet<std::numpunct<wchar_t>>(std::locale::classic()).decimal_point() == L'.');
    std::wostringstream wide;
    wide << L"w" << 3;
    EXPECT(wide.str() == L"w3");
    bool caught = false;
    try {
        std::ifstream missing;
        missing.exceptions(std::ios::failbit);
        missing.open("/nonexistent");
    } catch (const std::ios_base::failure &failure) {
        caught = failure.code() == std::io_errc::stream;
    }
    EXPECT(caught);
#if __cplusplus >= 202002L
    std::ostringstream target;
    std::osyncstream(target) << "one" << 1;
    EXPECT(target.str() == "one1" && target.view() == "one1");
    EXPECT(std::move(target).str() == "one1");
#endif
    return 0;
}
