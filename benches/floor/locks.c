/* How long taking and giving back a mutex takes: `locks THREADS TIMES [ENTRIES]`, nanoseconds per acquisition of all
 * threads together on standard output. Each holds it for ENTRIES writes and stays away for ten times as many. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin;
static volatile long shared[64];
static long times, entries;

static void *body(void *argument)
{
    volatile long own[64] = {0};
    pthread_barrier_wait(&begin);
    for (long i = 0; i < times; i++) {
        pthread_mutex_lock(&mutex);
        for (long each = 0; each < entries; each++)
            shared[each & 63]++;
        pthread_mutex_unlock(&mutex);
        for (long each = 0; each < 10 * entries; each++)
            own[each & 63]++;
    }
    return argument;
}

int main(int count, char **words)
{
    struct timespec began, ended;
    int threads = atoi(words[1]);
    pthread_t *started = calloc(threads, sizeof *started);
    times = atol(words[2]);
    entries = count > 3 ? atol(words[3]) : 0;
    pthread_barrier_init(&begin, NULL, threads + 1);
    for (int i = 0; i < threads; i++)
        pthread_create(&started[i], NULL, body, NULL);
    clock_gettime(CLOCK_MONOTONIC, &began);
    pthread_barrier_wait(&begin);
    for (int i = 0; i < threads; i++)
        pthread_join(started[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%f\n", ((ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec)) / times / threads);
    return 0;
}
