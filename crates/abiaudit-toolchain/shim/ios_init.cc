// std::ios_base_library_init (GCC 13.2, GLIBCXX_3.4.32). A translation unit compiled by GCC 13 or newer initialises no
// streams; it refers to this symbol, and the library does the rest. An older library waits for an ios_base::Init in every
// module that uses streams: here it is, counted like all others, so that the streams stay those of the library.
#include <ios>
namespace std {
void ios_base_library_init() {}
}
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
static std::ios_base::Init streams __attribute__((init_priority(90)));
