// Uses what of libstdc++ has state that must exist once, in functions that a test calls by name.
#include <future>
#include <iostream>
#include <locale>
#include <mutex>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

std::once_flag flag;

struct Base {
    virtual ~Base() = default;
    virtual int value() const { return 1; }
};

struct Derived : Base {
    int value() const override { return 2; }
};

}  // namespace

extern "C" {

int mend_once() {
    int value = 0;
    std::call_once(flag, [&] { value = 1; });
    std::once_flag again;
    std::call_once(again, [&] { value = 2; });
    return value == 2;
}

int mend_streams() {
    std::ostringstream out;
    out << 42L << ' ' << 3.25 << ' ' << std::hex << 255;
    std::istringstream in("17 2.5 abc");
    int a = 0;
    double b = 0;
    std::string c;
    in >> a >> b >> c;
    return out.str() == "42 3.25 ff" && a == 17 && b == 2.5 && c == "abc";
}

int mend_facets() {
    std::locale locale;
    std::ostringstream out;
    out.imbue(locale);
    out << 1234567;
    return std::has_facet<std::num_put<char>>(locale) && std::has_facet<std::money_put<char>>(locale) &&
           std::use_facet<std::numpunct<char>>(locale).decimal_point() == '.' && out.str() == "1234567";
}

int mend_regex() { return std::regex_match(std::string("abc12"), std::regex("[a-z]+[[:digit:]]*")); }

int mend_future() {
    return std::async(std::launch::async, [] { return 5; }).get() == 5;
}

int mend_thread() {
    int value = 0;
    std::thread thread([&] { value = 7; });
    thread.join();
    return value == 7;
}

int mend_exceptions() {
    try {
        throw std::runtime_error("x");
    } catch (const std::exception &error) {
        if (std::string(error.what()) != "x") return 0;
    }
    std::istringstream in("x");
    in.exceptions(std::ios::failbit);
    int a;
    try {
        in >> a;
        return 0;
    } catch (const std::ios_base::failure &) {
    }
    try {
        throw std::system_error(std::make_error_code(std::errc::io_error));
    } catch (const std::system_error &error) {
        return error.code() == std::errc::io_error;
    }
}

int mend_types() {
    Derived derived;
    Base *base = &derived;
    return dynamic_cast<Derived *>(base) != nullptr && base->value() == 2;
}

void mend_throw(int kind) {
    if (kind == 0) throw std::runtime_error("cross");
    if (kind == 1) throw 42;
    if (kind == 2) std::vector<int>().at(3);
    throw std::system_error(std::make_error_code(std::errc::io_error));
}

// What the other module throws, as it is seen here.
int mend_catch(void (*thrower)(int), int kind) {
    std::string cleaned_up_while_unwinding(100, 'x');
    try {
        thrower(kind);
    } catch (const std::out_of_range &) {
        return 3;
    } catch (const std::system_error &) {
        return 4;
    } catch (const std::runtime_error &) {
        return 1;
    } catch (int) {
        return 2;
    } catch (...) {
        return 100;
    }
    return 0;
}

// The process's one object of a kind, if there is one.
const void *mend_identity(int kind) {
    if (kind == 0) return &std::cout;
    if (kind == 1) return &std::locale::classic();
    if (kind == 2) return &std::num_put<char>::id;
    return &std::generic_category();
}

}  // extern "C"
