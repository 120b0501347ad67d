#include "expect.h"
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <unistd.h>
extern "C" {
extern char **environ;
}
static timespec soon(clockid_t clock, long milliseconds)
{
    timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += milliseconds / 1000;
    time.tv_nsec += milliseconds % 1000 * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec += 1;
    }
    return time;
}
static void *nothing(void *argument) { return argument; }
RUN
{
    struct stat by_name, by_file, by_link;
    EXPECT(stat("/", &by_name) == 0 && lstat("/", &by_link) == 0 && S_ISDIR(by_name.st_mode));
    int file = open("/", O_RDONLY | O_DIRECTORY);
    EXPECT(file >= 0 && fstat(file, &by_file) == 0 && by_file.st_ino == by_name.st_ino);
    EXPECT(fstatat(file, ".", &by_file, 0) == 0 && by_file.st_dev == by_name.st_dev);
    EXPECT(by_file.st_mtime == by_name.st_mtime && by_file.st_size == by_link.st_size);
    EXPECT(fcntl(file, F_GETFD) >= 0);
    close(file);
    EXPECT(environ != nullptr);

    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    timespec until = soon(CLOCK_MONOTONIC, 30);
    EXPECT(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    EXPECT(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until) == 0);
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    until = soon(CLOCK_MONOTONIC, 1100);
    EXPECT(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until) == -1 && errno == ETIMEDOUT);
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    EXPECT(now.tv_sec > until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    EXPECT(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &until) == 0);
    pthread_t thread;
    EXPECT(pthread_create(&thread, nullptr, nothing, nullptr) == 0 && pthread_join(thread, nullptr) == 0);

    EXPECT(strtol("-17", nullptr, 10) == -17 && strtoull("ff", nullptr, 16) == 255 && strtoimax("5", nullptr, 0) == 5);
    int number = 0;
    char word[8];
    EXPECT(sscanf("12 ab", "%d %7s", &number, word) == 2 && number == 12 && strcmp(word, "ab") == 0);
    EXPECT(pow(2.0, 0.5) > 1.41 && exp(1.0) > 2.71 && log(2.0) < 0.7 && fmod(7.0, 4.0) == 3.0 && powf(2, 3) == 8);
    unsigned char bytes[300] = {0};
    EXPECT(getentropy(bytes, 256) == 0 && getentropy(bytes, 300) == -1);
    explicit_bzero(bytes, sizeof bytes);
    EXPECT(bytes[0] == 0 && gettid() == getpid());
    EXPECT(reallocarray(nullptr, SIZE_MAX, 16) == nullptr && errno == ENOMEM);
#if __GLIBC_PREREQ(2, 36)
    arc4random_buf(bytes, sizeof bytes);
    int zeros = 0;
    for (unsigned char byte : bytes)
        zeros += byte == 0;
    EXPECT(zeros < 50 && arc4random_uniform(6) < 6);
#endif
#if __GLIBC_PREREQ(2, 38)
    char small[4];
    EXPECT(strlcpy(small, "longer", sizeof small) == 6 && strcmp(small, "lon") == 0);
    EXPECT(strlcat(small, "x", sizeof small) == 4);
#endif
    return 0;
}
