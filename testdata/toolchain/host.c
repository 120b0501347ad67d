/* Loads modules as a Python does (RTLD_LOCAL), and runs them in turn. A module with `accept` is given a way to find the
 * functions of the modules before it. Options: -r N opens, runs and closes each module N times. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int constructed;
__attribute__((constructor)) static void construct(void) { constructed = 1; }

static void *modules[64];
static int count;

static void *find(const char *name)
{
    for (int i = 0; i < count; i++) {
        void *found = dlsym(modules[i], name);
        if (found)
            return found;
    }
    return NULL;
}

static int run(const char *path, int keep)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        printf("%s: %s\n", path, dlerror());
        return 1;
    }
    if (keep)
        modules[count++] = module;
    void (*accept)(void *(*)(const char *)) = (void (*)(void *(*)(const char *)))dlsym(module, "accept");
    if (accept)
        accept(find);
    int (*test)(void) = (int (*)(void))dlsym(module, "run");
    int line = test ? test() : 0;
    if (line)
        printf("%s: the expectation in line %d does not hold\n", path, line);
    if (!keep)
        dlclose(module);
    return line != 0;
}

int main(int argc, char **argv)
{
    int rounds = 0, failures = 0;
    if (!constructed) {
        printf("the constructors of the executable did not run\n");
        return 99;
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-r") == 0 && i + 1 < argc) {
            rounds = atoi(argv[++i]);
            continue;
        }
        for (int round = 0; round < rounds; round++)
            failures += run(argv[i], 0);
        if (count < 64)
            failures += run(argv[i], 1);
    }
    fflush(stdout);
    return failures ? 1 : 0;
}
