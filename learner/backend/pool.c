#include "learner/backend/pool.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

/* Long enough to bridge the scalar work between two products, far shorter than a waiting learner's
 * nap: an idle helper is asleep before anybody can measure it. */
#define SPIN_NS 50000u

/* `ticket` is (job number << 32 | next tile). A thread takes a tile by compare-and-swap on it: that
 * fails if the job is another by now, and while a tile of a job is untaken the job cannot end, so
 * what was read of it before a successful swap was that job's. Every access has its place in one
 * order (T0): these are a few operations per tile of thousands of multiply-adds. */
struct rm_pool {
    _Atomic uint64_t ticket;
    char pad0[120];
    _Atomic uint32_t done;
    char pad1[124];
    _Atomic(rm_pool_fn) fn;
    _Atomic(void *) work;
    _Atomic uint32_t tiles;
    _Atomic bool stop;
    _Atomic uint32_t sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    uint32_t threads, started;
    pthread_t *helpers;
};

static void pause_cpu(void)
{
    __builtin_ia32_pause();
}

/* Takes and runs tiles until the current job has none left. Returns the job number seen last. */
static uint32_t take_tiles(struct rm_pool *pool)
{
    uint64_t ticket = RM_TOTAL_LOAD(&pool->ticket);
    for (;;) {
        rm_pool_fn fn = RM_TOTAL_LOAD(&pool->fn);
        void *work = RM_TOTAL_LOAD(&pool->work);
        uint32_t tiles = RM_TOTAL_LOAD(&pool->tiles);
        uint32_t tile = (uint32_t)ticket;
        if (tile >= tiles) {
            uint64_t now = RM_TOTAL_LOAD(&pool->ticket);
            if (now == ticket)
                return (uint32_t)(ticket >> 32);
            ticket = now;
            continue;
        }
        if (!RM_TOTAL_SWAP(&pool->ticket, &ticket, ticket + 1))
            continue;
        fn(work, tile);
        RM_TOTAL_ADD(&pool->done, 1);
        ticket = RM_TOTAL_LOAD(&pool->ticket);
    }
}

static uint32_t job_of(struct rm_pool *pool)
{
    return (uint32_t)(RM_TOTAL_LOAD(&pool->ticket) >> 32);
}

static void *helper_main(void *user)
{
    struct rm_pool *pool = user;
    uint32_t seen = 0;
    while (!RM_TOTAL_LOAD(&pool->stop)) {
        seen = take_tiles(pool);
        uint64_t until = rm_now_ns() + SPIN_NS;
        while (job_of(pool) == seen && !RM_TOTAL_LOAD(&pool->stop)) {
            if (rm_now_ns() < until) {
                pause_cpu();
                continue;
            }
            pthread_mutex_lock(&pool->mutex);
            RM_TOTAL_ADD(&pool->sleepers, 1);
            while (job_of(pool) == seen && !RM_TOTAL_LOAD(&pool->stop))
                pthread_cond_wait(&pool->wake, &pool->mutex);
            RM_TOTAL_SUB(&pool->sleepers, 1);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
    return NULL;
}

static void wake_sleepers(struct rm_pool *pool)
{
    if (!RM_TOTAL_LOAD(&pool->sleepers))
        return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

void rm_pool_run(struct rm_pool *pool, rm_pool_fn fn, void *work, uint32_t tiles)
{
    if (pool->threads == 1 || tiles <= 1) {
        for (uint32_t i = 0; i < tiles; i++)
            fn(work, i);
        return;
    }
    uint64_t job = (RM_TOTAL_LOAD(&pool->ticket) >> 32) + 1;
    /* No tile of the old job is left, so its number with this high a tile takes nobody anywhere
     * while the description changes. */
    RM_TOTAL_STORE(&pool->ticket, ((job - 1) << 32) | UINT32_MAX);
    RM_TOTAL_STORE(&pool->fn, fn);
    RM_TOTAL_STORE(&pool->work, work);
    RM_TOTAL_STORE(&pool->tiles, tiles);
    RM_TOTAL_STORE(&pool->done, 0);
    RM_TOTAL_STORE(&pool->ticket, (job & UINT32_MAX) << 32);
    wake_sleepers(pool);
    take_tiles(pool);
    /* What is left is being run by helpers now: at most one tile's time. */
    for (uint32_t spins = 0; RM_TOTAL_LOAD(&pool->done) < tiles; spins++) {
        if (spins < 4096)
            pause_cpu();
        else
            sched_yield(); /* more threads than cores: let it run */
    }
}

/* Signals are the duty's thread's business: helpers block all. */
static int start_helper(struct rm_pool *pool, pthread_t *thread)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(thread, NULL, helper_main, pool);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

int rm_pool_create(struct rm_pool **out, uint32_t threads, struct rm_error *error)
{
    *out = NULL;
    if (threads == 0 || threads > 1024)
        return rm_fail(error, -EINVAL, "backend: %u threads; 1 to 1024 are possible", threads);
    struct rm_pool *pool = calloc(1, sizeof *pool);
    pthread_t *helpers = calloc(threads, sizeof *helpers);
    if (!pool || !helpers) {
        free(pool);
        free(helpers);
        return rm_fail(error, -ENOMEM, "backend: no memory for %u threads", threads);
    }
    pool->threads = threads;
    pool->helpers = helpers;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    for (; pool->started + 1 < threads; pool->started++) {
        int code = start_helper(pool, &helpers[pool->started]);
        if (code) {
            rm_fail(error, -code, "backend: cannot start thread %u of %u", pool->started + 2,
                    threads);
            rm_pool_destroy(pool);
            return -code;
        }
    }
    *out = pool;
    return 0;
}

void rm_pool_destroy(struct rm_pool *pool)
{
    if (!pool)
        return;
    RM_TOTAL_STORE(&pool->stop, true);
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (uint32_t i = 0; i < pool->started; i++)
        pthread_join(pool->helpers[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->helpers);
    free(pool);
}

uint32_t rm_pool_threads(const struct rm_pool *pool)
{
    return pool->threads;
}
