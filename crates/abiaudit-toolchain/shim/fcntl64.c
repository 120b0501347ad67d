/* fcntl64 (glibc 2.28): on 64-bit machines fcntl under another name. */
#include "shim.h"
int fcntl(int file, int command, ...);
int fcntl64(int file, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fcntl(file, command, argument);
}
