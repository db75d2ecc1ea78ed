#include "learner/backend/pool.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

/* Long enough for the scalar work between two products, and far shorter than a waiting learner's
 * nap, so that an idle helper's spinning is not measurable. */
#define SPIN_NS 50000u

/* Pauses before taking another thread's tiles, which may begin a little later: tiles that a thread
 * runs itself stay in its cache. About a microsecond. */
#define PATIENCE 100u

/* Tiles of a job are dealt to threads in equal stretches, the same stretch to the same thread every
 * time: what it wrote in one job is still in its own cache for the next. Who is done with his own
 * stretch takes from the others'.
 *
 * A stretch's `ticket` is (job number << 32 | next tile). A thread takes a tile by compare-and-swap
 * on it: that fails if the job has changed, and while a tile of a job is untaken or not reported
 * done the job cannot end, so what was read of it before a successful swap was that job's. Every
 * access has its place in one order (T0): these are a few operations per tile of thousands of
 * multiply-adds. */
struct stretch {
    _Atomic uint64_t ticket;
    char pad[120];
};

struct rm_pool {
    _Atomic uint64_t job;
    char pad0[120];
    _Atomic uint32_t done;
    char pad1[124];
    _Atomic(rm_pool_fn) fn;
    _Atomic(void *) work;
    _Atomic uint32_t tiles;
    char pad2[104];
    _Atomic bool stop;
    _Atomic uint32_t sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    uint32_t threads, started;
    struct helper *helpers;
    struct stretch *stretches; /* (threads) */
};

struct helper {
    struct rm_pool *pool;
    pthread_t thread;
    uint32_t index; /* 0 is the owner's */
};

static void pause_cpu(void)
{
    __builtin_ia32_pause();
}

static uint32_t end_of(uint32_t tiles, uint32_t stretch, uint32_t threads)
{
    return (uint32_t)((uint64_t)tiles * (stretch + 1) / threads);
}

/* Runs the remaining tiles of one stretch. Returns their number. */
static uint32_t take_stretch(struct rm_pool *pool, uint32_t stretch, uint64_t job)
{
    _Atomic uint64_t *word = &pool->stretches[stretch].ticket;
    uint64_t ticket = RM_TOTAL_LOAD(word);
    uint32_t taken = 0;
    while (ticket >> 32 == (job & UINT32_MAX)) {
        rm_pool_fn fn = RM_TOTAL_LOAD(&pool->fn);
        void *work = RM_TOTAL_LOAD(&pool->work);
        uint32_t tile = (uint32_t)ticket;
        if (tile >= end_of(RM_TOTAL_LOAD(&pool->tiles), stretch, pool->threads))
            break;
        if (!RM_TOTAL_SWAP(word, &ticket, ticket + 1))
            continue;
        fn(work, tile);
        taken++;
        ticket = RM_TOTAL_LOAD(word);
    }
    return taken;
}

/* Runs tiles until the current job has none left, the thread's own first. Returns the job's
 * number. */
static uint64_t take_tiles(struct rm_pool *pool, uint32_t own)
{
    uint64_t job = RM_TOTAL_LOAD(&pool->job);
    const uint32_t tiles = RM_TOTAL_LOAD(&pool->tiles);
    uint32_t taken = take_stretch(pool, own, job);
    if (taken)
        RM_TOTAL_ADD(&pool->done, taken);
    for (uint32_t spins = 0; spins < PATIENCE && RM_TOTAL_LOAD(&pool->job) == job; spins++) {
        if (RM_TOTAL_LOAD(&pool->done) >= tiles)
            return job;
        pause_cpu();
    }
    taken = 0;
    for (uint32_t i = 1; i < pool->threads; i++)
        taken += take_stretch(pool, (own + i) % pool->threads, job);
    if (taken)
        RM_TOTAL_ADD(&pool->done, taken);
    return job;
}

static void *helper_main(void *user)
{
    const struct helper *self = user;
    struct rm_pool *pool = self->pool;
    uint64_t seen = 0;
    while (!RM_TOTAL_LOAD(&pool->stop)) {
        seen = take_tiles(pool, self->index);
        uint64_t until = rm_now_ns() + SPIN_NS;
        while (RM_TOTAL_LOAD(&pool->job) == seen && !RM_TOTAL_LOAD(&pool->stop)) {
            if (rm_now_ns() < until) {
                pause_cpu();
                continue;
            }
            pthread_mutex_lock(&pool->mutex);
            RM_TOTAL_ADD(&pool->sleepers, 1);
            while (RM_TOTAL_LOAD(&pool->job) == seen && !RM_TOTAL_LOAD(&pool->stop))
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
    /* Every tile of the last job is done; its number with so high a tile gives no thread a tile
     * while the job's description changes. */
    uint64_t job = RM_TOTAL_LOAD(&pool->job) + 1;
    for (uint32_t i = 0; i < pool->threads; i++)
        RM_TOTAL_STORE(&pool->stretches[i].ticket, (job - 1) << 32 | UINT32_MAX);
    RM_TOTAL_STORE(&pool->fn, fn);
    RM_TOTAL_STORE(&pool->work, work);
    RM_TOTAL_STORE(&pool->tiles, tiles);
    RM_TOTAL_STORE(&pool->done, 0);
    for (uint32_t i = 0; i < pool->threads; i++)
        RM_TOTAL_STORE(&pool->stretches[i].ticket,
                       job << 32 | (i ? end_of(tiles, i - 1, pool->threads) : 0));
    RM_TOTAL_STORE(&pool->job, job);
    wake_sleepers(pool);
    take_tiles(pool, 0);
    /* Helpers run the remaining tiles: that takes at most the time of one tile. */
    for (uint32_t spins = 0; RM_TOTAL_LOAD(&pool->done) < tiles; spins++) {
        if (spins < 4096)
            pause_cpu();
        else
            sched_yield(); /* more threads than cores: let it run */
    }
}

/* Helpers block all signals, because the duty's thread handles them. */
static int start_helper(struct rm_pool *pool, uint32_t index)
{
    struct helper *h = &pool->helpers[index - 1];
    *h = (struct helper){.pool = pool, .index = index};
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&h->thread, NULL, helper_main, h);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

int rm_pool_create(struct rm_pool **out, uint32_t threads, struct rm_error *error)
{
    *out = NULL;
    if (threads == 0 || threads > 1024)
        return rm_fail(error, -EINVAL, "backend: %u threads; 1 to 1024 are possible", threads);
    struct rm_pool *pool = calloc(1, sizeof *pool);
    struct helper *helpers = calloc(threads, sizeof *helpers);
    struct stretch *stretches = calloc(threads, sizeof *stretches);
    if (!pool || !helpers || !stretches) {
        free(pool);
        free(helpers);
        free(stretches);
        return rm_fail(error, -ENOMEM, "backend: no memory for %u threads", threads);
    }
    pool->threads = threads;
    pool->helpers = helpers;
    pool->stretches = stretches;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    for (; pool->started + 1 < threads; pool->started++) {
        int code = start_helper(pool, pool->started + 1);
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
        pthread_join(pool->helpers[i].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->helpers);
    free(pool->stretches);
    free(pool);
}

uint32_t rm_pool_threads(const struct rm_pool *pool)
{
    return pool->threads;
}
