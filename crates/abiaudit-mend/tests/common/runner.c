/* Loads two modules as Python would, calls their self tests, and lets exceptions cross between them.
   usage: runner FIRST SECOND MODE; MODE has one letter for each: l local, g global
   Prints one line: ok, or what failed; and, after it, which identities the two share. */
#include <dlfcn.h>
#include <stdio.h>

static const char *const tests[] = {"mend_once",   "mend_streams", "mend_facets",     "mend_regex",
                                    "mend_future", "mend_thread",  "mend_exceptions", "mend_types"};

typedef void (*thrower)(int);

static void *symbol(void *module, const char *name) {
    void *found = dlsym(module, name);
    if (!found) fprintf(stderr, "%s\n", dlerror());
    return found;
}

int main(int argc, char **argv) {
    static const int kinds[] = {1, 2, 3, 4};
    void *modules[2];
    if (argc < 4) return 2;
    for (int i = 0; i < 2; i++) {
        modules[i] = dlopen(argv[1 + i], RTLD_NOW | (argv[3][i] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL));
        if (!modules[i]) {
            fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
    }
    for (int i = 0; i < 2; i++) {
        for (unsigned t = 0; t < sizeof tests / sizeof *tests; t++) {
            int (*test)(void) = (int (*)(void))symbol(modules[i], tests[t]);
            if (!test || !test()) {
                printf("%s of module %d\n", tests[t], i + 1);
                return 1;
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        int (*catcher)(thrower, int) = (int (*)(thrower, int))symbol(modules[i], "mend_catch");
        thrower throws = (thrower)symbol(modules[1 - i], "mend_throw");
        for (int kind = 0; kind < 4; kind++) {
            int caught = catcher(throws, kind);
            if (caught != kinds[kind]) {
                printf("exception %d of module %d was caught as %d\n", kind, 2 - i, caught);
                return 1;
            }
        }
    }
    printf("ok");
    for (int kind = 0; kind < 4; kind++) {
        const void *(*first)(int) = (const void *(*)(int))symbol(modules[0], "mend_identity");
        const void *(*second)(int) = (const void *(*)(int))symbol(modules[1], "mend_identity");
        printf(" %s", first(kind) == second(kind) ? "same" : "two");
    }
    printf("\n");
    return 0;
}
