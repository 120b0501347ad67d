// Catches what another module throws, by types that each module has its own copy of.
#include "throws.h"
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <variant>
static void (*throw_one)(int);
static Base *(*make_one)();
extern "C" __attribute__((visibility("default"))) void accept(void *(*find)(const char *))
{
    throw_one = reinterpret_cast<void (*)(int)>(find("throw_one"));
    make_one = reinterpret_cast<Base *(*)()>(find("make_one"));
}
static int caught(int which)
{
    try {
        throw_one(which);
    } catch (const std::filesystem::filesystem_error &error) {
        return error.path1() == "a" ? 1 : -1;
    } catch (const std::runtime_error &error) {
        return std::string(error.what()) == "runtime" ? 0 : -1;
    } catch (const std::bad_variant_access &) {
        return 2;
    } catch (const std::bad_array_new_length &) {
        return 3;
    } catch (const Own &own) {
        return own.number;
    } catch (int number) {
        return number;
    }
    return -1;
}
RUN
{
    if (!throw_one)
        return 0; // alone
    for (int which = 0; which <= 5; which++)
        EXPECT(caught(which) == which);
    std::exception_ptr kept;
    try {
        throw_one(1);
    } catch (...) {
        kept = std::current_exception();
    }
    bool again = false;
    try {
        std::rethrow_exception(kept);
    } catch (const std::filesystem::filesystem_error &) {
        again = true;
    }
    EXPECT(again);
    Base *base = make_one();
    EXPECT(dynamic_cast<Derived *>(base) && dynamic_cast<Derived *>(base)->value == 9);
    delete base;
    return 0;
}
