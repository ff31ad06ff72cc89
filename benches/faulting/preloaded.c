/* Fails, logs or ends at a call that writes below a directory, and sets the calendar clock: for `faults.py`.
 *
 * Preloaded into a process, where it does nothing before `fault_begin`, which reads the environment:
 *
 *     FAULT_BELOW   the directory; calls that lead elsewhere are left alone
 *     FAULT_CALL    which calls count: write, fsync, rename, create, or any
 *     FAULT_AT      the number of the call that is struck, from 1
 *     FAULT_ERRNO   what it fails with; 0 kills the process right before it
 *     FAULT_LASTS   1: every later call of its kind fails, too, as on a disk that stays full
 *     FAULT_MARK    a file that is made when a call is struck
 *     FAULT_LOG     a file that gets every call, in order, with what it wrote
 *     FAULT_CLOCK   "AFTER BY", seconds: so long after `fault_begin` the calendar clock jumps
 *
 * A write that is struck first comes through by half, as one does that fills a disk. A call and its line in the log are
 * one step: the order of the log is that of the calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))next(#name))

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char below[PATH_MAX];
static char struck_call[16];
static char mark[PATH_MAX];
static long at, seen;
static int number, lasts;
static int record = -1; /* the log */
static double clock_after_s, clock_by_s;
static struct timespec began;

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

static const char *given(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

void fault_begin(void) {
    snprintf(below, sizeof below, "%s", given("FAULT_BELOW", ""));
    snprintf(struck_call, sizeof struck_call, "%s", given("FAULT_CALL", "any"));
    at = atol(given("FAULT_AT", "0"));
    number = atoi(given("FAULT_ERRNO", "0"));
    lasts = atoi(given("FAULT_LASTS", "0"));
    snprintf(mark, sizeof mark, "%s", given("FAULT_MARK", ""));
    if (*given("FAULT_LOG", "")) {
        record = (int)syscall(SYS_openat, AT_FDCWD, getenv("FAULT_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &began);
    sscanf(given("FAULT_CLOCK", "0 0"), "%lf %lf", &clock_after_s, &clock_by_s);
}

__attribute__((constructor)) static void inherited(void) {
    if (getenv("FAULT_CLOCK")) fault_begin(); /* what a process starts has its clock */
}

/* Whether a path is below the directory. */
static int concerns(const char *path) {
    size_t length = strlen(below);
    return length && !strncmp(path, below, length) && (path[length] == '/' || !path[length]);
}

static int path_of(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

/* A name as the kernel would find it, absolute; whether it is below the directory. */
static int found(int directory, const char *name, char *path) {
    char start[PATH_MAX];
    int saved = errno, is_below = 0;
    if (!*below || !name) return 0;
    if (*name == '/') {
        is_below = snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && concerns(path);
    } else if (directory == AT_FDCWD ? getcwd(start, sizeof start) != NULL : path_of(directory, start)) {
        is_below = snprintf(path, PATH_MAX, "%s/%s", start, name) < PATH_MAX && concerns(path);
    }
    errno = saved;
    return is_below;
}

static int is_concerned(int descriptor, char *path) {
    int saved = errno;
    int is_below = *below && path_of(descriptor, path) && concerns(path);
    errno = saved;
    return is_below;
}

/* What the next call of a kind fails with; 0 if it is not struck. `first`: whether it is the first that is. */
static int struck(const char *call, int *first) {
    *first = 0;
    if (!at || (strcmp(struck_call, "any") && strcmp(struck_call, call))) return 0;
    seen++;
    *first = seen == at;
    if (seen < at || (seen > at && !lasts)) return 0;
    if (*first && *mark) {
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    if (!number) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    return number;
}

static void whole(const void *data, size_t bytes) {
    const char *left = data;
    while (bytes) {
        ssize_t done = syscall(SYS_write, record, left, bytes);
        if (done <= 0) abort();
        left += done, bytes -= (size_t)done;
    }
}

/* "KIND OFFSET LENGTH PATH-LENGTH OTHER-LENGTH\n", then path, other path and data. */
static void log_call(char kind, const char *path, const char *other, long long offset, const void *data, size_t bytes) {
    char head[128];
    if (record < 0) return;
    int length = snprintf(head, sizeof head, "%c %lld %zu %zu %zu\n", kind, offset, bytes, strlen(path), strlen(other));
    whole(head, (size_t)length);
    whole(path, strlen(path));
    whole(other, strlen(other));
    if (data) whole(data, bytes);
}

static off_t offset_of(int descriptor) {
    struct stat status;
    int flags = fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_APPEND) && !fstat(descriptor, &status)) return status.st_size;
    return lseek(descriptor, 0, SEEK_CUR);
}

static ssize_t written(int descriptor, const char *path, const void *data, size_t bytes, off_t position) {
    int first, error;
    ssize_t done = -1;
    pthread_mutex_lock(&turn);
    off_t offset = position < 0 ? offset_of(descriptor) : position;
    error = struck("write", &first);
    size_t most = error && first && number == ENOSPC ? bytes / 2 : bytes;
    if (!error || most < bytes) {
        errno = 0;
        done = most == 0 && error ? -1
               : position < 0     ? syscall(SYS_write, descriptor, data, most)
                                  : syscall(SYS_pwrite64, descriptor, data, most, position);
        if (done > 0) log_call('w', path, "", offset, data, (size_t)done);
        if (done >= 0 || errno) error = errno;
        if (done < 0 && !error) error = number;
    }
    pthread_mutex_unlock(&turn);
    if (done < 0) errno = error;
    return done;
}

ssize_t write(int descriptor, const void *data, size_t bytes) {
    char path[PATH_MAX];
    if (!is_concerned(descriptor, path)) return REAL(write)(descriptor, data, bytes);
    return written(descriptor, path, data, bytes, -1);
}

ssize_t pwrite64(int descriptor, const void *data, size_t bytes, off64_t position) {
    char path[PATH_MAX];
    if (!is_concerned(descriptor, path)) return REAL(pwrite64)(descriptor, data, bytes, position);
    return written(descriptor, path, data, bytes, position);
}

ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t position) {
    return pwrite64(descriptor, data, bytes, position);
}

/* A vector comes through by its first part: whoever writes one must go on after less than all of it. */
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (!is_concerned(descriptor, path)) return REAL(writev)(descriptor, parts, count);
    for (int part = 0; part < count; part++) {
        if (parts[part].iov_len) return written(descriptor, path, parts[part].iov_base, parts[part].iov_len, -1);
    }
    return 0;
}

ssize_t sendfile64(int to, int from, off64_t *position, size_t bytes) {
    char path[PATH_MAX];
    if (!is_concerned(to, path)) return REAL(sendfile64)(to, from, position, bytes);
    errno = ENOSYS; /* whoever copies writes then */
    return -1;
}

ssize_t sendfile(int to, int from, off_t *position, size_t bytes) {
    return sendfile64(to, from, position, bytes);
}

ssize_t copy_file_range(int from, off64_t *out, int to, off64_t *in, size_t bytes, unsigned flags) {
    char path[PATH_MAX];
    if (!is_concerned(to, path)) return REAL(copy_file_range)(from, out, to, in, bytes, flags);
    errno = ENOSYS;
    return -1;
}

#define STEP(kind, call, path, other, act)                    \
    int first_, done_ = -1;                                   \
    pthread_mutex_lock(&turn);                                \
    int error_ = struck(call, &first_);                       \
    if (error_) {                                             \
        errno = error_;                                       \
    } else {                                                  \
        done_ = (int)(act);                                   \
        int saved_ = errno;                                   \
        if (done_ >= 0) log_call(kind, path, other, 0, 0, 0); \
        errno = saved_;                                       \
    }                                                         \
    pthread_mutex_unlock(&turn);                              \
    return done_

int fsync(int descriptor) {
    char path[PATH_MAX];
    if (!is_concerned(descriptor, path)) return REAL(fsync)(descriptor);
    STEP('s', "fsync", path, "", syscall(SYS_fsync, descriptor));
}

int fdatasync(int descriptor) {
    char path[PATH_MAX];
    if (!is_concerned(descriptor, path)) return REAL(fdatasync)(descriptor);
    STEP('s', "fsync", path, "", syscall(SYS_fdatasync, descriptor));
}

int renameat2(int from, const char *name, int to, const char *other, unsigned flags) {
    char path[PATH_MAX], target[PATH_MAX];
    if (!found(from, name, path) || !found(to, other, target)) return (int)syscall(SYS_renameat2, from, name, to, other, flags);
    STEP('r', "rename", path, target, syscall(SYS_renameat2, from, name, to, other, flags));
}

int renameat(int from, const char *name, int to, const char *other) { return renameat2(from, name, to, other, 0); }

int rename(const char *name, const char *other) { return renameat2(AT_FDCWD, name, AT_FDCWD, other, 0); }

int mkdirat(int directory, const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (!found(directory, name, path)) return REAL(mkdirat)(directory, name, mode);
    STEP('d', "create", path, "", syscall(SYS_mkdirat, directory, name, mode));
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int unlinkat(int directory, const char *name, int flags) {
    char path[PATH_MAX];
    if (!found(directory, name, path)) return REAL(unlinkat)(directory, name, flags);
    STEP('u', "unlink", path, "", syscall(SYS_unlinkat, directory, name, flags));
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int ftruncate64(int descriptor, off64_t length) {
    char path[PATH_MAX];
    if (!is_concerned(descriptor, path)) return REAL(ftruncate64)(descriptor, length);
    pthread_mutex_lock(&turn);
    int done = (int)syscall(SYS_ftruncate, descriptor, length), saved = errno;
    if (!done) log_call('t', path, "", length, 0, 0);
    pthread_mutex_unlock(&turn);
    errno = saved;
    return done;
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

static int opened(int directory, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    struct stat status;
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !found(directory, name, path)) {
        return (int)syscall(SYS_openat, directory, name, flags, mode);
    }
    int is_there = !fstatat(directory, name, &status, 0);
    if (is_there && !(flags & O_TRUNC)) return (int)syscall(SYS_openat, directory, name, flags, mode);
    STEP(is_there ? 't' : 'c', "create", path, "", syscall(SYS_openat, directory, name, flags, mode));
}

static mode_t mode_of(int flags, va_list arguments) {
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

int openat64(int directory, const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(directory, name, flags, mode);
}

int openat(int directory, const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(directory, name, flags, mode);
}

int open64(const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(AT_FDCWD, name, flags, mode);
}

int open(const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(AT_FDCWD, name, flags, mode);
}

static double jump_s(void) {
    struct timespec now;
    if (clock_by_s == 0) return 0;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    double since_s = (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9;
    return since_s < clock_after_s ? 0 : clock_by_s;
}

int clock_gettime(clockid_t which, struct timespec *time) {
    int done = (int)syscall(SYS_clock_gettime, which, time);
    if (!done && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) time->tv_sec += (time_t)jump_s();
    return done;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *into, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return 0;
}
