#include "learner/prepared.h"

#include "shm/base/rng.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (RM_PREPARED_AHEAD + 1) /* and the one that is learned from */

struct rm_prepared {
    struct rm_prepared_spec spec;
    struct rm_batch slot[SLOTS], held_out;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    bool running; /* the thread is */
    /* By the mutex. Batches [used, made) are ready, `number` in slot `number % SLOTS`. */
    uint64_t used, made;
    bool busy, stop; /* busy: the thread writes batch `made` */
};

static int alloc(struct rm_batch *b, const struct rm_prepared_spec *spec, struct rm_error *error)
{
    const struct rm_batch_extras none = {0};
    b->size = spec->batch;
    b->inputs = spec->shape.inputs;
    b->actions = spec->shape.actions;
    b->queries = spec->shape.history.queries;
    return rm_batch_alloc(b, &none, error);
}

static void put(const struct rm_prepared *p, struct rm_batch *b, uint32_t at,
                enum rm_histories_part part, uint64_t pair)
{
    rm_histories_pair(p->spec.histories, part, pair, b->obs + (size_t)at * b->inputs,
                      b->action + (size_t)at * b->queries);
}

static void draw(const struct rm_prepared *p, struct rm_batch *b, uint64_t number)
{
    const uint64_t pairs = rm_histories_count(p->spec.histories, RM_HISTORIES_TRAINED).pairs;
    struct rm_rng rng = rm_rng_at(p->spec.seed, RM_STREAM_SAMPLE, p->spec.policy, number);
    for (uint32_t i = 0; i < b->size; i++)
        put(p, b, i, RM_HISTORIES_TRAINED, rm_rng_below(&rng, (uint32_t)pairs));
}

static void *work(void *user)
{
    struct rm_prepared *p = user;
    pthread_mutex_lock(&p->mutex);
    while (!p->stop) {
        if (p->made >= p->used + SLOTS) {
            pthread_cond_wait(&p->changed, &p->mutex);
            continue;
        }
        const uint64_t number = p->made;
        p->busy = true;
        pthread_mutex_unlock(&p->mutex);
        draw(p, &p->slot[number % SLOTS], number);
        pthread_mutex_lock(&p->mutex);
        p->busy = false;
        p->made++;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* The thread blocks all signals, because the duty's thread handles them. */
static int start(struct rm_prepared *p, struct rm_error *error)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int code = pthread_create(&p->thread, NULL, work, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    p->running = code == 0;
    return code ? rm_fail(error, -code, "cannot start the thread that prepares batches: %s",
                          strerror(code))
                : 0;
}

int rm_prepared_create(struct rm_prepared **prepared, const struct rm_prepared_spec *spec,
                       struct rm_error *error)
{
    struct rm_prepared *p = calloc(1, sizeof *p);
    *prepared = NULL;
    if (!p)
        return rm_fail(error, -ENOMEM, "no memory for batches");
    p->spec = *spec;
    p->used = p->made = 1;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, NULL);
    int rc = alloc(&p->held_out, spec, error);
    for (uint32_t i = 0; i < SLOTS && rc == 0; i++)
        rc = alloc(&p->slot[i], spec, error);
    rc = rc < 0 ? rc : start(p, error);
    if (rc < 0) {
        rm_prepared_destroy(p);
        return rc;
    }
    *prepared = p;
    return 0;
}

void rm_prepared_destroy(struct rm_prepared *p)
{
    if (!p)
        return;
    if (p->running) {
        pthread_mutex_lock(&p->mutex);
        p->stop = true;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->mutex);
        pthread_join(p->thread, NULL);
    }
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    for (uint32_t i = 0; i < SLOTS; i++)
        rm_batch_free(&p->slot[i]);
    rm_batch_free(&p->held_out);
    free(p);
}

struct rm_batch *rm_prepared_batch(struct rm_prepared *p, uint64_t number)
{
    pthread_mutex_lock(&p->mutex);
    if (number < p->used || number > p->made) { /* a resumed run begins there */
        while (p->busy)
            pthread_cond_wait(&p->changed, &p->mutex);
        p->made = number;
    }
    p->used = number;
    pthread_cond_broadcast(&p->changed);
    while (p->made <= number)
        pthread_cond_wait(&p->changed, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    return &p->slot[number % SLOTS];
}

struct rm_batch *rm_prepared_held_out(struct rm_prepared *p, uint64_t from)
{
    const uint64_t pairs = rm_histories_count(p->spec.histories, RM_HISTORIES_HELD_OUT).pairs;
    struct rm_batch *b = &p->held_out;
    if (from >= pairs)
        return NULL;
    b->size = pairs - from < p->spec.batch ? (uint32_t)(pairs - from) : p->spec.batch;
    for (uint32_t i = 0; i < b->size; i++)
        put(p, b, i, RM_HISTORIES_HELD_OUT, from + i);
    return b;
}
