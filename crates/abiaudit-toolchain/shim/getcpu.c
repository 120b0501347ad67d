/* getcpu (glibc 2.29). */
#include "shim.h"
int getcpu(unsigned int *cpu, unsigned int *node) { return (int)syscall(SYS_getcpu, cpu, node, NULL); }
