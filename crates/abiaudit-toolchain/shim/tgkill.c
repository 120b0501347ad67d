/* tgkill (glibc 2.30). */
#include "shim.h"
int tgkill(pid_t process, pid_t thread, int signal) { return (int)syscall(SYS_tgkill, process, thread, signal); }
