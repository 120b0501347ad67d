// A module's `run` returns the line of the first expectation that does not hold, and 0 if all do.
#define EXPECT(condition) do { if (!(condition)) return __LINE__; } while (0)
#define RUN extern "C" __attribute__((visibility("default"))) int run()
