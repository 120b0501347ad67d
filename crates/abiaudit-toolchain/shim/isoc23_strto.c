/* __isoc23_strtol and its kind (glibc 2.38), what headers make of strtol under C2X: FUNCTION in terms of OLD. The new
 * ones accept "0b101" for base 0 and 2; the old ones stop after the 0, as programs built for C17 expect. */
#include "shim.h"
RESULT OLD(const CHARACTER *text, CHARACTER **end, int base);
RESULT FUNCTION(const CHARACTER *text, CHARACTER **end, int base) { return OLD(text, end, base); }
