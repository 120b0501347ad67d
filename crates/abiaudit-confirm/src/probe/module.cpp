// Makes an extension module of what it is linked with: built with -DABIAUDIT_MODULE=name. The part of Python's stable ABI
// that a module needs is declared here (PEP 384; not for free-threaded builds), so that no header of Python is needed.

#include <cstddef>

extern "C" {
struct PyObject;
struct ModuleDefinition {
    std::ptrdiff_t references;
    void *type;
    PyObject *(*initialise)();
    std::ptrdiff_t index;
    PyObject *copy;
    const char *name;
    const char *documentation;
    std::ptrdiff_t size;
    void *methods, *slots, *traverse, *clear, *free;
};
PyObject *PyModule_Create2(ModuleDefinition *, int abi);
}

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

static ModuleDefinition definition = {1,       nullptr, nullptr, 0,       nullptr, TEXT(ABIAUDIT_MODULE), nullptr,
                                      -1,      nullptr, nullptr, nullptr, nullptr, nullptr};

extern "C" __attribute__((visibility("default"))) PyObject *JOINED(PyInit_, ABIAUDIT_MODULE)() { return PyModule_Create2(&definition, 3); }
