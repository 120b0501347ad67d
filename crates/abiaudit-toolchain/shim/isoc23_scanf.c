/* __isoc23_sscanf, __isoc23_fscanf and their kind (glibc 2.38), in terms of the __isoc99_ ones (glibc 2.7). */
#include "shim.h"
int OLD(SOURCE source, const CHARACTER *format, va_list arguments);
int VARIADIC(SOURCE source, const CHARACTER *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = OLD(source, format, arguments);
    va_end(arguments);
    return count;
}
int FUNCTION(SOURCE source, const CHARACTER *format, va_list arguments) { return OLD(source, format, arguments); }
