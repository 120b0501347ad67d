/* gettid (glibc 2.30). */
#include "shim.h"
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }
