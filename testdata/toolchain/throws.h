#include "expect.h"
#include <exception>
struct __attribute__((visibility("default"))) Own : std::exception {
    explicit Own(int number) : number(number) {}
    int number;
};
struct __attribute__((visibility("default"))) Base { virtual ~Base() = default; };
struct __attribute__((visibility("default"))) Derived : Base { int value = 9; };
