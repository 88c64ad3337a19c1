/* Preloaded into a process: counts the calls that change files below a folder, and at one of them kills the process,
   tears a write in two, fails as a full disk does, or writes less than it was given. Clocks may jump. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { NONE, KILL, TEAR, FULL, SHORT };
static char under[4096];
static int kind = NONE;
static long at, seen, jump;

void faults_arm(int what, long number, const char *folder) {
    snprintf(under, sizeof under, "%s", folder);
    at = number, seen = 0, kind = what;
}
long faults_seen(void) { return seen; }
void faults_jump(long seconds) { jump = seconds; }

static int named(const char *path) { return kind != NONE && path && strncmp(path, under, strlen(under)) == 0; }
static int opened(int handle) {
    char link[64], path[4096];
    if (kind == NONE) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = 0;
    return named(path);
}
static int placed(int folder, const char *path) { return folder == AT_FDCWD || *path == '/' ? named(path) : opened(folder); }
static void end(void) {
    kill(getpid(), SIGKILL);
    pause();
}
/* Whether this call, which concerns the folder, fails; `grows` if it needs room. */
static int hit(int concerned, int grows) {
    if (!concerned) return 0;
    long number = __atomic_fetch_add(&seen, 1, __ATOMIC_SEQ_CST);
    if (kind == KILL && number >= at) end();
    if (kind == FULL && number >= at && grows) {
        errno = ENOSPC;
        return 1;
    }
    return 0;
}
/* How much of a write is done: all, or half of the one that is torn or short. */
static size_t part(int handle, size_t size) {
    return (kind == TEAR || kind == SHORT) && size > 1 && opened(handle) && seen >= at ? size / 2 : size;
}
static void torn(int handle) {
    if (kind == TEAR && seen > at && opened(handle)) end();
}

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int handle, const void *data, size_t size) {
    NEXT(write);
    size_t wanted = part(handle, size);
    if (hit(opened(handle), 1)) return -1;
    ssize_t done = next(handle, data, wanted);
    torn(handle);
    return done;
}
#define PWRITE(name, offset_t)                                                     \
    ssize_t name(int handle, const void *data, size_t size, offset_t offset) {     \
        NEXT(name);                                                                \
        size_t wanted = part(handle, size);                                        \
        if (hit(opened(handle), 1)) return -1;                                     \
        ssize_t done = next(handle, data, wanted, offset);                         \
        torn(handle);                                                              \
        return done;                                                               \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
ssize_t writev(int handle, const struct iovec *parts, int count) {
    NEXT(writev);
    if (hit(opened(handle), 1)) return -1;
    ssize_t done = next(handle, parts, count);
    torn(handle);
    return done;
}

static int mode_of(va_list more, int flags) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0; }
#define OPEN(name)                                                                 \
    int name(const char *path, int flags, ...) {                                   \
        NEXT(name);                                                                \
        va_list more;                                                              \
        va_start(more, flags);                                                     \
        int mode = mode_of(more, flags);                                           \
        va_end(more);                                                              \
        if (flags & (O_CREAT | O_TRUNC) && hit(named(path), 1)) return -1;         \
        return next(path, flags, mode);                                            \
    }
OPEN(open)
OPEN(open64)
#define OPENAT(name)                                                               \
    int name(int folder, const char *path, int flags, ...) {                       \
        NEXT(name);                                                                \
        va_list more;                                                              \
        va_start(more, flags);                                                     \
        int mode = mode_of(more, flags);                                           \
        va_end(more);                                                              \
        if (flags & (O_CREAT | O_TRUNC) && hit(placed(folder, path), 1)) return -1; \
        return next(folder, path, flags, mode);                                    \
    }
OPENAT(openat)
OPENAT(openat64)

int rename(const char *from, const char *to) {
    NEXT(rename);
    return hit(named(to), 1) ? -1 : next(from, to);
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    NEXT(renameat);
    return hit(placed(to_folder, to), 1) ? -1 : next(from_folder, from, to_folder, to);
}
int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    return hit(named(path), 1) ? -1 : next(path, mode);
}
int mkdirat(int folder, const char *path, mode_t mode) {
    NEXT(mkdirat);
    return hit(placed(folder, path), 1) ? -1 : next(folder, path, mode);
}
int link(const char *from, const char *to) {
    NEXT(link);
    return hit(named(to), 1) ? -1 : next(from, to);
}
int unlink(const char *path) {
    NEXT(unlink);
    return hit(named(path), 0) ? -1 : next(path);
}
int unlinkat(int folder, const char *path, int flags) {
    NEXT(unlinkat);
    return hit(placed(folder, path), 0) ? -1 : next(folder, path, flags);
}
int rmdir(const char *path) {
    NEXT(rmdir);
    return hit(named(path), 0) ? -1 : next(path);
}
int fsync(int handle) {
    NEXT(fsync);
    return hit(opened(handle), 1) ? -1 : next(handle);
}
int ftruncate(int handle, off_t size) {
    NEXT(ftruncate);
    return hit(opened(handle), 0) ? -1 : next(handle, size);
}
int ftruncate64(int handle, off64_t size) {
    NEXT(ftruncate64);
    return hit(opened(handle), 0) ? -1 : next(handle, size);
}

int clock_gettime(clockid_t clock, struct timespec *found) {
    NEXT(clock_gettime);
    int done = next(clock, found);
    if (jump && clock == CLOCK_REALTIME) {
        found->tv_sec += jump;
        jump = -jump;
    }
    return done;
}
