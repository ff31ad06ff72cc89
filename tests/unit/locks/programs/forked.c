/* Children of fork whose first locks are taken by four threads at the same moment. Prints how often each child locked. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 40, THREADS = 4, TIMES = 50 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int ready;

static void *together(void *argument)
{
    atomic_fetch_add(&ready, 1);
    while (ready < THREADS) /* no lock, and no sleep, before the one that counts */
        ;
    for (int i = 0; i < TIMES; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

int main(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            pthread_t threads[THREADS];
            for (int j = 0; j < THREADS; j++)
                pthread_create(&threads[j], NULL, together, NULL);
            for (int j = 0; j < THREADS; j++)
                pthread_join(threads[j], NULL);
            _exit(0);
        }
        wait(NULL);
    }
    printf("%d %d\n", CHILDREN, THREADS * TIMES);
    return 0;
}
