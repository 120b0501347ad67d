/* __libc_single_threaded (glibc 2.32): true only if the process is known to have one thread. "Maybe more" is always a
 * right answer: reference counts are then changed by atomic instructions, as they were before. */
char __libc_single_threaded = 0;
