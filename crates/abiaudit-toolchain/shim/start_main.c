/* The start of an executable. Since glibc 2.34 crt1.o passes no init function to __libc_start_main, which then runs the
 * executable's constructors itself; an older one runs only the function that it is given (glibc csu/libc-start.c,
 * csu/elf-init.c). The toolchain's crt1.o calls this function in its place. */
#include "shim.h"
typedef void function(int count, char **arguments, char **environment);
extern function *__preinit_array_start[], *__preinit_array_end[], *__init_array_start[], *__init_array_end[];
extern void _init(void);
int __libc_start_main(int (*main)(int, char **, char **), int count, char **arguments, function *init,
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end);

static void run_constructors(int count, char **arguments, char **environment)
{
    for (function **f = __preinit_array_start; f < __preinit_array_end; f++)
        (*f)(count, arguments, environment);
    _init();
    for (function **f = __init_array_start; f < __init_array_end; f++)
        (*f)(count, arguments, environment);
}

int __abiaudit_libc_start_main(int (*main)(int, char **, char **), int count, char **arguments, function *init,
                               void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    return __libc_start_main(main, count, arguments, init ? init : run_constructors, fini, loader_fini, stack_end);
}
