/* __isoc23_strtol_l and its kind (glibc 2.38): FUNCTION in terms of OLD. */
#include "shim.h"
RESULT OLD(const CHARACTER *text, CHARACTER **end, int base, void *locale);
RESULT FUNCTION(const CHARACTER *text, CHARACTER **end, int base, void *locale) { return OLD(text, end, base, locale); }
