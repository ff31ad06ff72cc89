/* Uses locks a known number of times, for the counting mode. With an argument it waits to be killed. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

__attribute__((noinline)) void plain(int times)
{
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    __asm__ volatile("");
}

__attribute__((noinline)) void left_alone(int times)
{
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&recursive);
        pthread_mutex_unlock(&recursive);
    }
    __asm__ volatile("");
}

static atomic_int waiter;

__attribute__((noinline)) static void *contended(void *argument)
{
    waiter = syscall(SYS_gettid);
    pthread_mutex_lock(&mutex); /* main holds it */
    pthread_mutex_unlock(&mutex);
    return argument;
}

/* Returns once the other thread sleeps, which it does nowhere but in the lock. */
static void await_sleep(void)
{
    char path[64], state = 0;
    while (waiter == 0)
        usleep(1000);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", waiter);
    while (state != 'S') {
        FILE *stat = fopen(path, "r");
        if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
            abort();
        fclose(stat);
        usleep(1000);
    }
}

static void wait_for_it(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&never, &mutex, &at);
    pthread_mutex_unlock(&mutex);
}

static void *in_vain(void *argument)
{
    struct timespec at = {1, 0};
    if (pthread_mutex_trylock(&mutex) != EBUSY || pthread_mutex_timedlock(&mutex, &at) != ETIMEDOUT)
        abort();
    return argument;
}

int main(int count, char **words)
{
    pthread_t thread;
    plain(1000);
    left_alone(70);
    wait_for_it();
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, contended, NULL);
    await_sleep();
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, in_vain, NULL);
    pthread_join(thread, NULL);
    pthread_mutex_unlock(&mutex);
    if (fork() == 0) {
        plain(10);
        _exit(0);
    }
    wait(NULL);
    puts("done");
    fflush(stdout);
    if (count > 1)
        pause();
    return words == NULL;
}
