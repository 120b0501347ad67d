// Uses what a C++ runtime keeps once for a whole process, and says whether each works: streams, facets and their ids,
// the thread-local variables of call_once, threads, exceptions, error categories.
//
// Built on the spot with the machine's compiler, and loaded beside the modules under test. All is asked through
// functions in C, so that no header of Python is needed and so that any module that exports them can be asked
// (abiaudit_probe_*). Texts that they return live until the next call. Each question is asked in a process of its own.

#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <future>
#include <iostream>
#include <locale>
#include <mutex>
#include <new>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <unistd.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

char answer[512];

// What was seen instead of what was expected; a null pointer is "as it should be".
const char *unless(bool right, const char *seen) {
    if (right) return nullptr;
    std::snprintf(answer, sizeof answer, "%s", seen);
    return answer;
}

const char *unless_equal(const std::string &seen, const char *expected) {
    if (seen == expected) return nullptr;
    std::snprintf(answer, sizeof answer, "\"%s\" instead of \"%s\"", seen.c_str(), expected);
    return answer;
}

std::once_flag static_flag;

const char *call_once() {
    int calls = 0;
    std::once_flag flag;
    for (int i = 0; i < 2; ++i) {
        std::call_once(static_flag, [&calls] { ++calls; });
        std::call_once(flag, [&calls] { ++calls; });
    }
    return unless(calls == 2, "not called once");
}

const char *ostringstream() {
    std::ostringstream out;
    out << 42L << ' ' << 3.25 << ' ' << std::hex << 255 << ' ' << std::boolalpha << true;
    return unless_equal(out.str(), "42 3.25 ff true");
}

const char *istringstream() {
    std::istringstream in("17 2.5 word");
    int number = 0;
    double fraction = 0;
    std::string word;
    in >> number >> fraction >> word;
    return unless(number == 17 && fraction == 2.5 && word == "word", "values are not read");
}

// Standard output goes through a pipe for the moment: a stream that prints nothing may not say so.
const char *cout() {
    int ends[2];
    const int saved = dup(1);
    if (saved < 0 || pipe(ends) != 0 || dup2(ends[1], 1) < 0) return unless(false, "no pipe for the test");
    std::cout << "cout " << 123L << ' ' << 2.5 << std::flush;
    const bool good = std::cout.good();
    dup2(saved, 1);
    close(ends[1]);
    char text[64] = {};
    const ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    close(saved);
    const char *wrong = unless_equal(std::string(text, length > 0 ? length : 0), "cout 123 2.5");
    return wrong ? wrong : unless(good, "std::cout is not good()");
}

const char *facets() {
    const std::locale current;
    if (!std::has_facet<std::num_put<char>>(current)) return unless(false, "no num_put");
    if (!std::has_facet<std::num_get<char>>(current)) return unless(false, "no num_get");
    if (!std::has_facet<std::ctype<char>>(current)) return unless(false, "no ctype");
    if (!std::has_facet<std::codecvt<char, char, std::mbstate_t>>(current)) return unless(false, "no codecvt");
    if (!std::has_facet<std::collate<char>>(current)) return unless(false, "no collate");
    if (!std::has_facet<std::money_put<char>>(current)) return unless(false, "no money_put");
    if (!std::has_facet<std::time_put<char>>(current)) return unless(false, "no time_put");
    const char point = std::use_facet<std::numpunct<char>>(current).decimal_point();
    return unless(point == '.', "the decimal point is another");
}

const char *named_locale() {
    const std::locale named("C.UTF-8");
    std::ostringstream out;
    out.imbue(named);
    out << 1234567 << ' ' << 0.5;
    return unless_equal(out.str(), "1234567 0.5");
}

const char *exception() {
    try {
        throw std::runtime_error("thrown");
    } catch (const std::exception &error) {
        return unless_equal(error.what(), "thrown");
    }
}

const char *thread() {
    int value = 0;
    std::thread worker([&value] { value = 7; });
    worker.join();
    return unless(value == 7, "the thread did not run");
}

const char *async() {
    return unless(std::async(std::launch::async, [] { return 5; }).get() == 5, "another value came back");
}

const char *regex() {
    const std::regex pattern("[a-z]+[[:digit:]]*", std::regex::icase);
    return unless(std::regex_match("ABC12", pattern), "no match");
}

const char *ios_failure() {
    std::istringstream in("word");
    in.exceptions(std::ios::failbit);
    int number = 0;
    try {
        in >> number;
    } catch (const std::ios_base::failure &) {
        return nullptr;
    }
    return unless(false, "nothing was thrown");
}

const char *filesystem() {
    std::error_code error;
    const bool there = std::filesystem::is_directory("/", error);
    return unless(there && std::filesystem::path("/a/b.c").extension() == ".c", "paths are wrong");
}

const char *system_error() {
    try {
        throw std::system_error(std::make_error_code(std::errc::io_error), "probe");
    } catch (const std::system_error &error) {
        return unless(error.code() == std::errc::io_error, "the error code is another");
    }
}

struct Test {
    const char *name;
    const char *(*run)();
};

const Test tests[] = {
    {"call_once", call_once},
    {"ostringstream", ostringstream},
    {"istringstream", istringstream},
    {"cout", cout},
    {"facets", facets},
    {"named_locale", named_locale},
    {"exception", exception},
    {"thread", thread},
    {"async", async},
    {"regex", regex},
    {"ios_failure", ios_failure},
    {"filesystem", filesystem},
    {"system_error", system_error},
};

// What is thrown, and the handler that has to see it.
const char *const thrown[] = {
    "runtime_error", "out_of_range", "out_of_range", "int", "system_error", "system_error", "bad_alloc",
};

}  // namespace

#ifdef __GLIBCXX__
extern "C" void __once_proxy();
namespace std {
extern __thread void *__once_callable;
}
#endif

namespace {

const void *address(int number) {
    switch (number) {
    case 0: return &std::generic_category();
    case 1: return &std::cout;
    case 2: return &std::num_put<char>::id;
    case 3: return &std::locale::classic();
#ifdef __GLIBCXX__
    case 4: return reinterpret_cast<const void *>(&__once_proxy);
    case 5: return &std::__once_callable;
#endif
    default: return nullptr;
    }
}

const char *const addresses[] = {
    "generic_category", "cout", "num_put id", "locale::classic", "__once_proxy", "&__once_callable",
};

template <typename T, int N> const char *name_at(T (&names)[N], int number) {
    return number >= 0 && number < N ? names[number] : nullptr;
}

}  // namespace

// The name of a test; null after the last.
EXPORTED const char *abiaudit_probe_test(int number) {
    const int count = sizeof tests / sizeof *tests;
    return number >= 0 && number < count ? tests[number].name : nullptr;
}

// Runs a test: null, or what was wrong.
EXPORTED const char *abiaudit_probe_run(int number) {
    try {
        return tests[number].run();
    } catch (const std::exception &error) {
        std::snprintf(answer, sizeof answer, "exception: %s", error.what());
    } catch (...) {
        std::snprintf(answer, sizeof answer, "an exception that is no std::exception");
    }
    return answer;
}

// The name of something that is once in a process if there is one runtime; null after the last.
EXPORTED const char *abiaudit_probe_identity(int number) { return name_at(addresses, number); }

// Its address; null if this runtime has none.
EXPORTED const void *abiaudit_probe_address(int number) { return address(number); }

// The name of the handler that must catch an exception; null after the last.
EXPORTED const char *abiaudit_probe_thrown(int number) { return name_at(thrown, number); }

// Throws for another module.
EXPORTED void abiaudit_probe_throw(int number) {
    switch (number) {
    case 0: throw std::runtime_error("cross");
    case 1: throw std::out_of_range("cross");
    case 2: (void)std::vector<int>().at(3); break;
    case 3: throw 42;
    case 4: {
        std::istringstream in("word");
        in.exceptions(std::ios::failbit);
        int value = 0;
        in >> value;
        break;
    }
    case 5: throw std::system_error(std::make_error_code(std::errc::io_error));
    case 6: throw std::bad_alloc();
    default: break;
    }
}

// Catches what a function of another module throws: the name of the handler.
EXPORTED const char *abiaudit_probe_catch(void (*thrower)(int), int number) {
    try {
        thrower(number);
    } catch (const std::out_of_range &) {
        return "out_of_range";
    } catch (const std::system_error &) {
        return "system_error";
    } catch (const std::runtime_error &) {
        return "runtime_error";
    } catch (const std::bad_alloc &) {
        return "bad_alloc";
    } catch (const std::exception &) {
        return "exception";
    } catch (int) {
        return "int";
    } catch (...) {
        return "...";
    }
    return "nothing";
}

// Prints to a stream of another module.
EXPORTED void abiaudit_probe_print(std::ostream *out) { *out << 77L << ' ' << 1.5; }

// Lets a function of another module print to a stream of this one: null, or what was wrong.
EXPORTED const char *abiaudit_probe_stream(void (*printer)(std::ostream *)) {
    try {
        std::ostringstream out;
        printer(&out);
        return unless_equal(out.str(), "77 1.5");
    } catch (...) {
        return unless(false, "an exception");
    }
}
