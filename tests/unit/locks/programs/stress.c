/* Uses mutexes in every way that a preloaded library could break. `stress WHAT [THREADS [TIMES]]` exits with 0, or says
 * what went wrong. Plain data is guarded by the locks, so that ThreadSanitizer sees a lock that does not exclude. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int threads = 4, times = 20000;

#ifdef __SANITIZE_THREAD__ /* it does not know the functions that name a clock, and takes their locks for none (GCC 12) */
#define pthread_mutex_clocklock(mutex, clock, at) (*(at) = soon(CLOCK_REALTIME, 1), pthread_mutex_timedlock(mutex, at))
#define pthread_cond_clockwait(condition, mutex, clock, at)                                                            \
    (*(at) = soon(CLOCK_REALTIME, 1), pthread_cond_timedwait(condition, mutex, at))
#endif

#ifdef WITHOUT_LOCKS /* what a library that breaks exclusion would make of it */
static int nothing(pthread_mutex_t *mutex) { return mutex == NULL; }
#define pthread_mutex_lock nothing
#define pthread_mutex_unlock nothing
#endif

#define CHECK(is, should)                                                                                              \
    do {                                                                                                               \
        int found_ = (is);                                                                                             \
        if (found_ != (should)) {                                                                                      \
            fprintf(stderr, "%s:%d: %s is %d, not %s\n", __FILE__, __LINE__, #is, found_, #should);                    \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

struct guarded {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    long sum, inside;
    int queue[8], length;
    int produced, consumed, done;
};

static struct guarded here = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};

static void all(int count, void *(*body)(void *), void *argument)
{
    pthread_t *started = calloc(count, sizeof *started);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    for (int i = 0; i < count; i++) {
        int failed = pthread_create(&started[i], count > 1000 ? &small : NULL, body, argument);
        if (failed) {
            fprintf(stderr, "only %d threads: %s\n", i, strerror(failed));
            _exit(77);
        }
    }
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(started[i], NULL), 0);
    free(started);
}

static void initialise(struct guarded *g, int kind, int shared, int robust)
{
    pthread_mutexattr_t attribute;
    pthread_mutexattr_init(&attribute);
    if (kind >= 0)
        CHECK(pthread_mutexattr_settype(&attribute, kind), 0);
    if (shared)
        CHECK(pthread_mutexattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED), 0);
    if (robust)
        CHECK(pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST), 0);
    CHECK(pthread_mutex_init(&g->mutex, &attribute), 0);
    pthread_mutexattr_destroy(&attribute);
    g->sum = 0;
}

static struct timespec soon(clockid_t clock, long milliseconds)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_nsec += milliseconds * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

/* One holder at a time, whichever way it came in. */
static void enter(struct guarded *g)
{
    g->inside++;
    CHECK((int)g->inside, 1);
    g->sum++;
    g->inside--;
}

static void *add(void *argument)
{
    struct guarded *g = argument;
    for (int i = 0; i < times; i++) {
        errno = 4711;
        CHECK(pthread_mutex_lock(&g->mutex), 0);
        CHECK(errno, 4711);
        enter(g);
        CHECK(pthread_mutex_unlock(&g->mutex), 0);
        CHECK(errno, 4711);
    }
    return NULL;
}

static void exclusion(void)
{
    int kinds[] = {-1, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE};
    all(threads, add, &here);
    CHECK((int)(here.sum == (long)threads * times), 1);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) { /* the same memory again and again */
        CHECK(pthread_mutex_destroy(&here.mutex), 0);
        initialise(&here, kinds[i], 0, 0);
        all(threads, add, &here);
        CHECK((int)(here.sum == (long)threads * times), 1);
    }
}

/* Every way to take it at once: ours, a try, with a time limit, at the end of a wait for a condition. */
static void *mixed(void *argument)
{
    struct guarded *g = argument;
    unsigned random = (unsigned)(size_t)pthread_self();
    for (int i = 0; i < times; i++) {
        struct timespec at;
        int answer = 0;
        random = random * 1103515245 + 12345;
        switch (random >> 16 & 7) {
        case 0:
            answer = pthread_mutex_trylock(&g->mutex);
            break;
        case 1:
            at = soon(CLOCK_REALTIME, 1);
            answer = pthread_mutex_timedlock(&g->mutex, &at);
            break;
        case 2:
            at = soon(CLOCK_MONOTONIC, 1);
            answer = pthread_mutex_clocklock(&g->mutex, CLOCK_MONOTONIC, &at);
            break;
        case 3:
            CHECK(pthread_mutex_lock(&g->mutex), 0);
            at = soon(CLOCK_REALTIME, 0);
            answer = pthread_cond_timedwait(&g->filled, &g->mutex, &at);
            CHECK(answer == 0 || answer == ETIMEDOUT, 1);
            answer = 0;
            break;
        default:
            answer = pthread_mutex_lock(&g->mutex);
        }
        if (answer == 0) {
            enter(g);
            CHECK(pthread_mutex_unlock(&g->mutex), 0);
        } else
            CHECK(answer == EBUSY || answer == ETIMEDOUT, 1);
    }
    return NULL;
}

static void mixture(void) { all(threads, mixed, &here); }

static void *produce(void *argument)
{
    struct guarded *g = argument;
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&g->mutex);
        while (g->length == 8)
            CHECK(pthread_cond_wait(&g->emptied, &g->mutex), 0);
        enter(g);
        g->queue[g->length++] = 1;
        g->produced++;
        pthread_cond_signal(&g->filled);
        pthread_mutex_unlock(&g->mutex);
    }
    return NULL;
}

static void *consume(void *argument)
{
    struct guarded *g = argument;
    for (;;) {
        pthread_mutex_lock(&g->mutex);
        while (g->length == 0 && !g->done)
            CHECK(pthread_cond_wait(&g->filled, &g->mutex), 0);
        if (g->length == 0)
            break;
        enter(g);
        g->consumed += g->queue[--g->length];
        pthread_cond_broadcast(&g->emptied);
        pthread_mutex_unlock(&g->mutex);
    }
    pthread_mutex_unlock(&g->mutex);
    return NULL;
}

static void conditions(void)
{
    pthread_t consumers[4];
    struct timespec at = soon(CLOCK_REALTIME, 5);
    for (int i = 0; i < 4; i++)
        pthread_create(&consumers[i], NULL, consume, &here);
    all(threads, produce, &here);
    pthread_mutex_lock(&here.mutex);
    here.done = 1;
    pthread_cond_broadcast(&here.filled);
    pthread_mutex_unlock(&here.mutex);
    for (int i = 0; i < 4; i++)
        pthread_join(consumers[i], NULL);
    CHECK(here.consumed, threads * times);
    CHECK(here.produced, threads * times);
    pthread_mutex_lock(&here.mutex); /* nobody signals */
    CHECK(pthread_cond_timedwait(&here.filled, &here.mutex, &at), ETIMEDOUT);
    at = soon(CLOCK_MONOTONIC, 5);
    CHECK(pthread_cond_clockwait(&here.filled, &here.mutex, CLOCK_MONOTONIC, &at), ETIMEDOUT);
    CHECK(pthread_mutex_trylock(&here.mutex), EBUSY);
    pthread_mutex_unlock(&here.mutex);
}

static void *try_in_vain(void *argument)
{
    struct guarded *g = argument;
    struct timespec at = soon(CLOCK_REALTIME, 20), began = soon(CLOCK_MONOTONIC, 0), ended;
    CHECK(pthread_mutex_timedlock(&g->mutex, &at), ETIMEDOUT);
    ended = soon(CLOCK_MONOTONIC, 0);
    CHECK((ended.tv_sec - began.tv_sec) * 1000 + (ended.tv_nsec - began.tv_nsec) / 1000000 >= 18, 1);
    at = soon(CLOCK_MONOTONIC, 5);
    CHECK(pthread_mutex_clocklock(&g->mutex, CLOCK_MONOTONIC, &at), ETIMEDOUT);
    CHECK(pthread_mutex_trylock(&g->mutex), EBUSY);
    at.tv_nsec = -1;
    CHECK(pthread_mutex_timedlock(&g->mutex, &at), EINVAL);
    return NULL;
}

static void timed(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 60000);
    pthread_mutex_lock(&here.mutex);
    all(threads, try_in_vain, &here);
    pthread_mutex_unlock(&here.mutex);
    CHECK(pthread_mutex_timedlock(&here.mutex, &at), 0);
    enter(&here);
    pthread_mutex_unlock(&here.mutex);
}

static void recursive(void)
{
    initialise(&here, PTHREAD_MUTEX_RECURSIVE, 0, 0);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_mutex_lock(&here.mutex), 0);
    CHECK(pthread_mutex_trylock(&here.mutex), 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_mutex_unlock(&here.mutex), 0);
    CHECK(pthread_mutex_unlock(&here.mutex), EPERM);
    initialise(&here, PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    CHECK(pthread_mutex_lock(&here.mutex), 0);
    CHECK(pthread_mutex_lock(&here.mutex), EDEADLK);
    CHECK(pthread_mutex_unlock(&here.mutex), 0);
    CHECK(pthread_mutex_unlock(&here.mutex), EPERM);
}

static void *die_holding(void *argument)
{
    struct guarded *g = argument;
    CHECK(pthread_mutex_lock(&g->mutex), 0);
    pthread_exit(NULL);
}

static void robust(void)
{
    pthread_t dies;
    initialise(&here, -1, 0, 1);
    for (int i = 0; i < 100; i++) {
        pthread_create(&dies, NULL, die_holding, &here);
        pthread_join(dies, NULL);
        CHECK(pthread_mutex_lock(&here.mutex), EOWNERDEAD);
        CHECK(pthread_mutex_consistent(&here.mutex), 0);
        CHECK(pthread_mutex_unlock(&here.mutex), 0);
    }
    pthread_create(&dies, NULL, die_holding, &here);
    pthread_join(dies, NULL);
    CHECK(pthread_mutex_lock(&here.mutex), EOWNERDEAD);
    CHECK(pthread_mutex_unlock(&here.mutex), 0);
    CHECK(pthread_mutex_lock(&here.mutex), ENOTRECOVERABLE);
}

static void shared(void)
{
    struct guarded *g = mmap(NULL, sizeof *g, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    initialise(g, -1, 1, 1);
    for (int i = 0; i < threads; i++)
        if (fork() == 0) {
            add(g);
            _exit(0);
        }
    while (wait(&status) > 0)
        CHECK(status, 0);
    if (fork() == 0) { /* and one dies holding it */
        pthread_mutex_lock(&g->mutex);
        _exit(0);
    }
    wait(&status);
    CHECK(pthread_mutex_lock(&g->mutex), EOWNERDEAD);
    CHECK((int)(g->sum == (long)threads * times), 1);
}

/* Threads wait for a lock while another forks holding it: the child has the lock and none of those that wait. */
static void hold(void) { pthread_mutex_lock(&here.mutex); }
static void release(void) { pthread_mutex_unlock(&here.mutex); }
static volatile int stop;

static void *add_until_stopped(void *argument)
{
    while (!stop) {
        hold();
        enter(&here);
        release();
    }
    return argument;
}

static void in_child(void)
{
    times = 200;
    here.sum = 0;
    all(4, add, &here);
    CHECK((int)here.sum, 800);
    if (fork() == 0) { /* and its own child */
        all(4, add, &here);
        _exit(0);
    }
    int status;
    wait(&status);
    _exit(status != 0);
}

static void forks(void)
{
    pthread_t *busy = calloc(threads, sizeof *busy);
    pthread_atfork(hold, release, release);
    for (int i = 0; i < threads; i++)
        pthread_create(&busy[i], NULL, add_until_stopped, NULL);
    for (int i = 0; i < times; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            in_child();
        CHECK(waitpid(child, &status, 0), child);
        CHECK(status, 0);
    }
    hold(); /* without glibc's handlers, as some runtimes do it */
    pid_t child = syscall(SYS_fork);
    if (child == 0) {
        release();
        hold();
        release();
        _exit(0);
    }
    release();
    int status;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
    stop = 1;
    for (int i = 0; i < threads; i++)
        pthread_join(busy[i], NULL);
}

static void *add_and_exit(void *argument)
{
    add(argument);
    pthread_exit(NULL);
}

static void exits(void)
{
    int rounds = times;
    times = 3;
    for (int i = 0; i < rounds; i++)
        all(threads, add_and_exit, &here);
    CHECK((int)(here.sum == 3L * threads * rounds), 1);
}

static void unlock_cancelled(void *argument)
{
    struct guarded *g = argument;
    g->sum = 1;
    pthread_mutex_unlock(&g->mutex);
}

static void *wait_for_ever(void *argument)
{
    struct guarded *g = argument;
    pthread_mutex_lock(&g->mutex);
    pthread_cleanup_push(unlock_cancelled, g);
    for (;;)
        pthread_cond_wait(&g->filled, &g->mutex);
    pthread_cleanup_pop(1);
    return NULL;
}

static void cancelled(void)
{
    for (int i = 0; i < times; i++) {
        pthread_t waits;
        void *ended;
        here.sum = 0;
        pthread_create(&waits, NULL, wait_for_ever, &here);
        pthread_cancel(waits);
        pthread_join(waits, &ended);
        CHECK(ended == PTHREAD_CANCELED, 1);
        CHECK(pthread_mutex_lock(&here.mutex), 0);
        CHECK(pthread_mutex_unlock(&here.mutex), 0);
    }
}

/* All are there before the first one gets the lock. */
static void many(void)
{
    pthread_t *started = calloc(threads, sizeof *started);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    pthread_mutex_lock(&here.mutex);
    for (int i = 0; i < threads; i++) {
        int failed = pthread_create(&started[i], &small, add, &here);
        if (failed) {
            fprintf(stderr, "only %d threads: %s\n", i, strerror(failed));
            _exit(77);
        }
    }
    usleep(200000);
    pthread_mutex_unlock(&here.mutex);
    for (int i = 0; i < threads; i++)
        pthread_join(started[i], NULL);
    CHECK((int)(here.sum == (long)threads * times), 1);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*body)(void);
    } known[] = {{"exclusion", exclusion}, {"mixture", mixture}, {"conditions", conditions}, {"timed", timed},
                 {"recursive", recursive}, {"robust", robust},   {"shared", shared},         {"forks", forks},
                 {"exits", exits},         {"many", many},       {"cancelled", cancelled}};
    if (count > 2)
        threads = atoi(words[2]);
    if (count > 3)
        times = atoi(words[3]);
    for (unsigned i = 0; count > 1 && i < sizeof known / sizeof *known; i++)
        if (strcmp(words[1], known[i].name) == 0) {
            known[i].body();
            return 0;
        }
    fprintf(stderr, "no such thing\n");
    return 2;
}
