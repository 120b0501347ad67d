/* __isoc23_scanf, __isoc23_wscanf (glibc 2.38), in terms of the __isoc99_ ones (glibc 2.7). */
#include "shim.h"
int OLD(const CHARACTER *format, va_list arguments);
int VARIADIC(const CHARACTER *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = OLD(format, arguments);
    va_end(arguments);
    return count;
}
int FUNCTION(const CHARACTER *format, va_list arguments) { return OLD(format, arguments); }
