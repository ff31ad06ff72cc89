/* A server's fast mutex, waited for by one thread while another one holds it. Prints its random state afterwards. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* my_pthread.h of MySQL 5.1 to 5.6 */
typedef struct {
    pthread_mutex_t mutex;
    unsigned spins, rng_state;
} my_pthread_fastmutex_t;

static my_pthread_fastmutex_t fast = {PTHREAD_MUTEX_INITIALIZER, 5, 1};
static atomic_int waiter;

/* What replaces it must find room for a jump. As it is, it does not spin. */
__attribute__((noinline)) int my_pthread_fastmutex_lock(my_pthread_fastmutex_t *given)
{
    __asm__ volatile(".rept 16\n\tnop\n\t.endr");
    return pthread_mutex_lock(&given->mutex);
}

static void *waiting(void *argument)
{
    waiter = syscall(SYS_gettid);
    my_pthread_fastmutex_lock(&fast);
    pthread_mutex_unlock(&fast.mutex);
    return argument;
}

int main(void)
{
    pthread_t thread;
    char path[64], state = 0;
    my_pthread_fastmutex_lock(&fast);
    pthread_create(&thread, NULL, waiting, NULL);
    while (waiter == 0)
        usleep(1000);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", waiter);
    while (state != 'S') { /* it sleeps nowhere but in the lock */
        FILE *stat = fopen(path, "r");
        if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
            abort();
        fclose(stat);
        usleep(1000);
    }
    pthread_mutex_unlock(&fast.mutex);
    pthread_join(thread, NULL);
    printf("%u\n", fast.rng_state);
    return 0;
}
