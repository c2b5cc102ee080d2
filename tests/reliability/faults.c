/* Makes calls of the C library fail below SQLite, Python and compiled code; for LD_PRELOAD.
 *
 * FAULT_FOLDER   only files below this folder
 * FAULT_CALLS    which calls: w(rite) s(ync) t(runcate, allocate) r(ename) i(nput: read)
 * FAULT_ERRNO    the error
 * FAULT_AT       the first call that fails, from 1; 0 for none
 * FAULT_FOR      how many fail from there on; 0 for all
 * FAULT_COUNT    a file that gets the number of calls when the process ends
 * FAULT_CLOCK    seconds by which the clock jumps back ...
 * FAULT_CLOCK_AT ... after it was asked so many times
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls, asked;

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static int is_chosen(char call) {
    const char *chosen = getenv("FAULT_CALLS");
    return chosen && strchr(chosen, call);
}

static int is_below(const char *path) {
    const char *folder = getenv("FAULT_FOLDER");
    return folder && !strncmp(path, folder, strlen(folder));
}

static int fails(void) {
    long call = ++calls, at = number("FAULT_AT"), many = number("FAULT_FOR");
    if (!at || call < at || (many && call >= at + many))
        return 0;
    errno = (int)number("FAULT_ERRNO");
    return 1;
}

static int fails_at(char call, int file) {
    char link[64], path[4096];
    if (!is_chosen(call))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return is_below(path) && fails();
}

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("FAULT_COUNT");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%ld\n", (long)calls);
        fclose(file);
    }
}

#define CALL(type, name, call, parameters, arguments)                \
    type name parameters {                                           \
        static type(*real) parameters;                               \
        if (!real)                                                   \
            real = (type(*) parameters)dlsym(RTLD_NEXT, #name);      \
        if (fails_at(call, file))                                    \
            return -1;                                               \
        return real arguments;                                       \
    }

CALL(ssize_t, write, 'w', (int file, const void *data, size_t size), (file, data, size))
CALL(ssize_t, pwrite, 'w', (int file, const void *data, size_t size, off_t at),
     (file, data, size, at))
CALL(ssize_t, pwrite64, 'w', (int file, const void *data, size_t size, off64_t at),
     (file, data, size, at))
CALL(ssize_t, writev, 'w', (int file, const struct iovec *data, int count), (file, data, count))
CALL(ssize_t, sendfile, 'w', (int file, int from, off_t *at, size_t size), (file, from, at, size))
CALL(ssize_t, sendfile64, 'w', (int file, int from, off64_t *at, size_t size),
     (file, from, at, size))
CALL(ssize_t, read, 'i', (int file, void *data, size_t size), (file, data, size))
CALL(ssize_t, readv, 'i', (int file, const struct iovec *data, int count), (file, data, count))
CALL(ssize_t, pread, 'i', (int file, void *data, size_t size, off_t at), (file, data, size, at))
CALL(ssize_t, pread64, 'i', (int file, void *data, size_t size, off64_t at),
     (file, data, size, at))
CALL(int, fsync, 's', (int file), (file))
CALL(int, fdatasync, 's', (int file), (file))
CALL(int, ftruncate, 't', (int file, off_t size), (file, size))
CALL(int, ftruncate64, 't', (int file, off64_t size), (file, size))
CALL(int, fallocate, 't', (int file, int mode, off_t at, off_t size), (file, mode, at, size))

int posix_fallocate(int file, off_t at, off_t size) {
    static int (*real)(int, off_t, off_t);
    if (!real)
        real = (int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate");
    return fails_at('t', file) ? errno : real(file, at, size);
}

/* numpy writes arrays like this. */
size_t fwrite(const void *data, size_t size, size_t count, FILE *stream) {
    static size_t (*real)(const void *, size_t, size_t, FILE *);
    if (!real)
        real = (size_t(*)(const void *, size_t, size_t, FILE *))dlsym(RTLD_NEXT, "fwrite");
    return fails_at('w', fileno(stream)) ? 0 : real(data, size, count, stream);
}

int rename(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    if (!real)
        real = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    return is_chosen('r') && is_below(to) && fails() ? -1 : real(from, to);
}

static long jump(void) {
    long seconds = number("FAULT_CLOCK");
    return seconds && ++asked > number("FAULT_CLOCK_AT") ? seconds : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec -= jump();
    return done;
}

int gettimeofday(struct timeval *now, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real)
        real = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
    int done = real(now, zone);
    now->tv_sec -= jump();
    return done;
}

time_t time(time_t *result) {
    static time_t (*real)(time_t *);
    if (!real)
        real = (time_t(*)(time_t *))dlsym(RTLD_NEXT, "time");
    time_t now = real(NULL) - jump();
    if (result)
        *result = now;
    return now;
}
