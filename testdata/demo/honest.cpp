// An extension module that asks the C library for nothing newer than glibc 2.17.

#include <cstring>

extern "C" {
void *PyModule_Create2(void *definition, int api_version);

__attribute__((visibility("default"))) unsigned long demo_length(const char *text) {
    return std::strlen(text);
}

__attribute__((visibility("default"))) void *PyInit_honest() {
    static char definition[104];
    return PyModule_Create2(definition, 1013);
}
}
