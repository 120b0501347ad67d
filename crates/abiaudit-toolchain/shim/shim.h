/* Functions of glibc that older releases lack, in terms of what they have. Each source becomes one object of
 * libc_compat.a, so that a link takes only what it uses. Compiled with -fvisibility=hidden: nothing is exported.
 *
 * The declarations are spelt out. Headers of a new glibc turn some names into those that are to be defined here
 * (strtol into __isoc23_strtol), and no longer declare what is needed (__xstat). */
#ifndef ABIAUDIT_SHIM_H
#define ABIAUDIT_SHIM_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

long syscall(long number, ...);

#endif
