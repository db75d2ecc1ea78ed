#include "daemon/loop_threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define POOL_DEFAULT 4 /* libuv's, unless UV_THREADPOOL_SIZE says otherwise */
#define POOL_MAX     1024
#define STACK_BYTES  (8u << 20) /* of its threads */
#define TURNS        1000
#define TURN_US      1000

static unsigned pool_size(void)
{
    const char *text = getenv("UV_THREADPOOL_SIZE");
    const int size = text ? atoi(text) : POOL_DEFAULT;
    return size < 1 ? 1 : size > POOL_MAX ? POOL_MAX : (unsigned)size;
}

/* Threads of this process, and two. */
static unsigned long tasks(void)
{
    struct stat about;
    return stat("/proc/self/task", &about) == 0 ? (unsigned long)about.st_nlink : 0;
}

static void *await(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* All of them at a time. */
static int make_some(pthread_t *threads, unsigned count, unsigned *made)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t like_its;
    int rc = pthread_attr_init(&like_its);
    if (rc == 0)
        rc = pthread_attr_setstacksize(&like_its, STACK_BYTES);
    pthread_mutex_lock(&gate);
    for (*made = 0; rc == 0 && *made < count;)
        if ((rc = pthread_create(&threads[*made], &like_its, await, &gate)) == 0)
            ++*made;
    pthread_mutex_unlock(&gate);
    for (unsigned i = 0; i < *made; i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&like_its);
    return -rc;
}

static void nothing(uv_work_t *work)
{
    (void)work;
}

int rm_loop_threads_start(uv_loop_t *loop, unsigned more, struct rm_error *error)
{
    static uv_work_t first;
    const unsigned count = pool_size() + more;
    const unsigned long before = tasks();
    unsigned made = 0;
    pthread_t *threads = calloc(count, sizeof *threads);
    int rc = threads ? make_some(threads, count, &made) : -ENOMEM;
    free(threads);
    if (rc < 0)
        return rm_fail(error, rc,
                       "only %u of the %u threads that the daemon needs can be made: %s; raise "
                       "ulimit -u (processes) or ulimit -v (memory)",
                       made, count, strerror(-rc));
    /* One that was joined counts as long as the kernel has not finished with it. */
    for (int turn = 0; tasks() > before && turn < TURNS; turn++)
        usleep(TURN_US);
    return uv_queue_work(loop, &first, nothing, NULL);
}
