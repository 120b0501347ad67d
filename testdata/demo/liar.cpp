// An extension module that needs the std::filesystem of GCC 9's libstdc++.so.6 (GLIBCXX_3.4.26).

#include <filesystem>

extern "C" {
void *PyModule_Create2(void *definition, int api_version);

__attribute__((visibility("default"))) bool demo_exists(const char *path) {
    return std::filesystem::exists(std::filesystem::path(path));
}

__attribute__((visibility("default"))) void *PyInit_liar() {
    static char definition[104];
    return PyModule_Create2(definition, 1013);
}
}
