/* Operations on flat arrays, cut into fixed chunks. */
#include "learner/backend/cpu.h"
#include "learner/backend/pieces.h"

#include <math.h>
#include <string.h>

struct flat_work {
    struct rm_cpu *cpu;
    const float *x, *y, *z;
    float *out, *m, *v;
    size_t n;
    enum rm_activation act;
    void (*pairs)(const float *x, const float *y, size_t n, float *z);
    const struct rm_adam_factors *adam;
    const struct rm_rmsprop *rmsprop;
    float scalar, a, c;
};

struct chunk {
    size_t at, n;
};

static struct chunk chunk_of(size_t n, uint32_t index)
{
    size_t at = (size_t)index * RM_CPU_CHUNK;
    return (struct chunk){at, n - at < RM_CPU_CHUNK ? n - at : RM_CPU_CHUNK};
}

static uint32_t chunks(size_t n)
{
    return (uint32_t)((n + RM_CPU_CHUNK - 1) / RM_CPU_CHUNK);
}

/* `cost`: of an element, see rm_cpu_run(). */
static void run_costly(struct flat_work *w, rm_pool_fn fn, double cost)
{
    rm_cpu_run(w->cpu, fn, w, chunks(w->n), (double)w->n * cost);
}

static void run_flat(struct flat_work *w, rm_pool_fn fn)
{
    run_costly(w, fn, 1.0);
}

static void activate_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    w->cpu->kernels->activate(w->act, w->x + c.at, c.n, w->out + c.at);
}

void rm_cpu_activate(struct rm_backend *b, enum rm_activation act, const float *x, size_t n,
                     float *y)
{
    struct flat_work w = {.cpu = rm_cpu_of(b), .x = x, .out = y, .n = n, .act = act};
    run_flat(&w, activate_chunk);
}

static void activate_dx_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    /* Only GELU and SiLU read x. */
    w->cpu->kernels->activate_dx(w->act, w->x ? w->x + c.at : NULL, w->y ? w->y + c.at : NULL,
                                 w->z + c.at, c.n, w->out + c.at);
}

void rm_cpu_activate_dx(struct rm_backend *b, enum rm_activation act, const float *x,
                        const float *y, const float *dy, size_t n, float *dx)
{
    struct flat_work w = {
        .cpu = rm_cpu_of(b), .x = x, .y = y, .z = dy, .out = dx, .n = n, .act = act};
    run_flat(&w, activate_dx_chunk);
}

static void noisy_weights_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    w->cpu->kernels->noisy_weights(w->x + c.at, w->y + c.at, w->z + c.at, c.n, w->out + c.at);
}

void rm_cpu_noisy_weights(struct rm_backend *b, const float *mu, const float *sigma,
                          const float *eps, size_t n, float *weights)
{
    struct flat_work w = {
        .cpu = rm_cpu_of(b), .x = mu, .y = sigma, .z = eps, .out = weights, .n = n};
    run_flat(&w, noisy_weights_chunk);
}

static void pairs_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    w->pairs(w->x + c.at, w->y + c.at, c.n, w->out + c.at);
}

void rm_cpu_multiply(struct rm_backend *b, const float *x, const float *y, size_t n, float *z)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct flat_work w = {
        .cpu = cpu, .x = x, .y = y, .out = z, .n = n, .pairs = cpu->kernels->multiply};
    run_flat(&w, pairs_chunk);
}

void rm_cpu_add(struct rm_backend *b, const float *x, const float *y, size_t n, float *z)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct flat_work w = {.cpu = cpu, .x = x, .y = y, .out = z, .n = n, .pairs = cpu->kernels->add};
    run_flat(&w, pairs_chunk);
}

/* --- random numbers -------------------------------------------------------------------------- */

struct random_work {
    void (*fill)(uint64_t key, uint32_t a, uint64_t c, uint32_t group, uint32_t groups, float *out);
    uint64_t key, c;
    uint32_t a;
    size_t n;
    float *out;
};

static void random_chunk(void *work, uint32_t index)
{
    const struct random_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    uint32_t first = (uint32_t)(c.at / RM_RANDOM_GROUP), groups = (uint32_t)(c.n / RM_RANDOM_GROUP);
    w->fill(w->key, w->a, w->c, first, groups, w->out + c.at);
    uint32_t rest = (uint32_t)(c.n % RM_RANDOM_GROUP);
    if (rest) {
        float last[RM_RANDOM_GROUP];
        w->fill(w->key, w->a, w->c, first + groups, 1, last);
        memcpy(w->out + c.at + (size_t)groups * RM_RANDOM_GROUP, last, rest * sizeof *last);
    }
}

/* Two streams of one key never share numbers (splitmix64's finalizer; Steele et al., 2014). */
static uint64_t key_of(uint64_t key, uint32_t stream)
{
    uint64_t z = key + 0x9E3779B97F4A7C15u * (stream + 1ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void run_random(struct rm_cpu *cpu, struct random_work *w)
{
    rm_cpu_run(cpu, random_chunk, w, chunks(w->n), 4.0 * (double)w->n);
}

void rm_cpu_normals(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                    size_t n, float *out)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct random_work w = {cpu->kernels->normals, key_of(key, stream), c, a, n, out};
    run_random(cpu, &w);
}

void rm_cpu_uniforms(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                     size_t n, float *out)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    /* Another key than that of the normals with equal coordinates. */
    struct random_work w = {cpu->kernels->uniforms, ~key_of(key, stream), c, a, n, out};
    run_random(cpu, &w);
}

struct dropout_work {
    const struct rm_kernels *kernels;
    const struct rm_dropout *d;
    size_t first, n;
    const float *x;
    float *y;
};

/* Of 2^32 numbers each there is a key. */
static void dropout_chunk(void *work, uint32_t index)
{
    const struct dropout_work *w = work;
    const struct chunk c = chunk_of(w->n, index);
    for (size_t i = c.at, n; i < c.at + c.n; i += n) {
        const uint64_t element = w->first + i,
                       left = ((element >> 32) + 1) * (1ull << 32) - element;
        n = c.at + c.n - i < left ? c.at + c.n - i : (size_t)left;
        w->kernels->dropout(rm_dropout_part(w->d, element >> 32), (uint32_t)element, w->d->below,
                            w->d->scale, w->x + i, n, w->y + i);
    }
}

void rm_cpu_dropout(struct rm_backend *b, const struct rm_dropout *d, size_t first, size_t n,
                    const float *x, float *y)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct dropout_work w = {cpu->kernels, d, first, n, x, y};
    rm_cpu_run(cpu, dropout_chunk, &w, chunks(n), (double)n);
}

/* --- sums ------------------------------------------------------------------------------------ */

static void sum_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    const struct rm_kernels *k = w->cpu->kernels;
    w->cpu->partials[index] = w->y ? k->sum_squares_diff(w->x + c.at, w->y + c.at, c.n)
                                   : k->sum_squares(w->x + c.at, c.n);
}

/* The sum of squares of x, or unless y is NULL of x - y. */
static double sum_all(struct rm_backend *b, const float *x, const float *y, size_t n)
{
    const size_t round = (size_t)RM_CPU_CHUNK * RM_CPU_PARTIALS;
    struct rm_cpu *cpu = rm_cpu_of(b);
    double total = 0.0;
    for (size_t at = 0; at < n; at += round) {
        struct flat_work w = {
            .cpu = cpu, .x = x + at, .y = y ? y + at : NULL, .n = n - at < round ? n - at : round};
        run_costly(&w, sum_chunk, 4.0); /* most of the data comes from another core's cache */
        for (size_t i = 0; i * RM_CPU_CHUNK < w.n; i++)
            total += cpu->partials[i];
    }
    return total;
}

double rm_cpu_sum_squares(struct rm_backend *b, const float *x, size_t n)
{
    return sum_all(b, x, NULL, n);
}

void rm_cpu_change(struct rm_backend *b, const float *x, const float *y, size_t n, double out[2])
{
    out[0] = sum_all(b, x, y, n);
    out[1] = sum_all(b, y, NULL, n);
}

/* --- optimizer ------------------------------------------------------------------------------- */

static void adam_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    w->cpu->kernels->adam(w->adam, w->x + c.at, c.n, w->out + c.at, w->m + c.at, w->v + c.at);
}

static struct rm_adam_factors factors_of(const struct rm_adam *adam, float scale)
{
    const double t = (double)adam->step;
    return (struct rm_adam_factors){
        .step = (float)(adam->learning_rate / (1.0 - pow(adam->beta1, t))),
        .root = (float)(1.0 / sqrt(1.0 - pow(adam->beta2, t))),
        .beta1 = adam->beta1,
        .beta2 = adam->beta2,
        .epsilon = adam->epsilon,
        .scale = scale,
        .decay = adam->learning_rate * adam->weight_decay,
    };
}

void rm_cpu_adam(struct rm_backend *b, const struct rm_adam *adam, float scale, const float *grads,
                 size_t n, float *params, float *m, float *v)
{
    const struct rm_adam_factors f = factors_of(adam, scale);
    struct flat_work w = {
        .cpu = rm_cpu_of(b), .x = grads, .out = params, .m = m, .v = v, .n = n, .adam = &f};
    run_costly(&w, adam_chunk, 8.0);
}

/* --- touched rows of tables ------------------------------------------------------------------- */

#define TOUCHED_PER_TILE 16u

struct touched_work {
    struct rm_cpu *cpu;
    const struct rm_touched *touched;
    const struct rm_adam_factors *adam;
    const float *grads;
    float *x, *m, *v;
    uint32_t from; /* the first of these rows */
};

static struct rm_piece some_touched(const struct touched_work *w, uint32_t index)
{
    struct rm_piece s = rm_piece(w->touched->count - w->from, TOUCHED_PER_TILE, index);
    s.from += w->from;
    return s;
}

static void run_touched(struct touched_work *w, rm_pool_fn fn, uint32_t count, double cost)
{
    rm_cpu_run(w->cpu, fn, w, rm_pieces(count, TOUCHED_PER_TILE),
               (double)count * w->touched->units * cost);
}

static void clear_tile(void *work, uint32_t index)
{
    const struct touched_work *w = work;
    const struct rm_touched *t = w->touched;
    const struct rm_piece s = some_touched(w, index);
    for (uint32_t i = s.from; i < s.from + s.n; i++) {
        memset(w->x + (size_t)t->rows[i] * t->units, 0, t->units * sizeof *w->x);
        t->has[t->rows[i]] = false;
    }
}

void rm_cpu_clear_touched(struct rm_cpu *cpu, struct rm_touched *touched, float *x)
{
    struct touched_work w = {.cpu = cpu, .touched = touched, .x = x};
    run_touched(&w, clear_tile, touched->count, 1.0);
    touched->count = 0;
}

static void squares_tile(void *work, uint32_t index)
{
    const struct touched_work *w = work;
    const struct rm_touched *t = w->touched;
    const struct rm_piece s = some_touched(w, index);
    double sum = 0.0;
    for (uint32_t i = s.from; i < s.from + s.n; i++)
        sum += w->cpu->kernels->sum_squares(w->grads + (size_t)t->rows[i] * t->units, t->units);
    w->cpu->partials[index] = sum;
}

double rm_cpu_touched_squares(struct rm_backend *b, const struct rm_touched *touched,
                              const float *x)
{
    const uint32_t round = TOUCHED_PER_TILE * RM_CPU_PARTIALS;
    struct touched_work w = {.cpu = rm_cpu_of(b), .touched = touched, .grads = x};
    double total = 0.0;
    for (; w.from < touched->count; w.from += round) {
        const uint32_t count = rm_least(touched->count - w.from, round);
        run_touched(&w, squares_tile, count, 4.0);
        for (uint32_t i = 0; i < rm_pieces(count, TOUCHED_PER_TILE); i++)
            total += w.cpu->partials[i];
    }
    return total;
}

static void touched_adam_tile(void *work, uint32_t index)
{
    const struct touched_work *w = work;
    const struct rm_touched *t = w->touched;
    const struct rm_piece s = some_touched(w, index);
    for (uint32_t i = s.from; i < s.from + s.n; i++) {
        const size_t at = (size_t)t->rows[i] * t->units;
        if (w->cpu->kernels->sum_squares(w->grads + at, t->units) != 0.0)
            w->cpu->kernels->adam(w->adam, w->grads + at, t->units, w->x + at, w->m + at,
                                  w->v + at);
    }
}

void rm_cpu_touched_adam(struct rm_backend *b, const struct rm_adam *adam, float scale,
                         const struct rm_touched *touched, const float *grads, float *params,
                         float *m, float *v)
{
    const struct rm_adam_factors f = factors_of(adam, scale);
    struct touched_work w = {.cpu = rm_cpu_of(b),
                             .touched = touched,
                             .adam = &f,
                             .grads = grads,
                             .x = params,
                             .m = m,
                             .v = v};
    run_touched(&w, touched_adam_tile, touched->count, 8.0);
}

static void rmsprop_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    w->cpu->kernels->rmsprop(w->rmsprop, w->scalar, w->x + c.at, c.n, w->out + c.at,
                             w->m ? w->m + c.at : NULL, w->v + c.at);
}

void rm_cpu_rmsprop(struct rm_backend *b, const struct rm_rmsprop *rmsprop, float scale,
                    const float *grads, size_t n, float *params, float *m, float *v)
{
    struct flat_work w = {.cpu = rm_cpu_of(b),
                          .x = grads,
                          .out = params,
                          .m = m,
                          .v = v,
                          .n = n,
                          .rmsprop = rmsprop,
                          .scalar = scale};
    run_costly(&w, rmsprop_chunk, 8.0);
}

static void combine_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    w->cpu->kernels->combine(w->a, w->x + c.at, w->c, w->y + c.at, c.n, w->out + c.at);
}

void rm_cpu_combine(struct rm_backend *b, float a, const float *x, float c, const float *y,
                    size_t n, float *out)
{
    struct flat_work w = {.cpu = rm_cpu_of(b), .x = x, .y = y, .out = out, .n = n, .a = a, .c = c};
    run_flat(&w, combine_chunk);
}

static void lerp_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    w->cpu->kernels->lerp(w->scalar, w->x + c.at, c.n, w->out + c.at);
}

void rm_cpu_lerp(struct rm_backend *b, float tau, const float *params, size_t n, float *target)
{
    struct flat_work w = {.cpu = rm_cpu_of(b), .x = params, .out = target, .n = n, .scalar = tau};
    run_flat(&w, lerp_chunk);
}

static void fill_chunk(void *work, uint32_t index)
{
    const struct flat_work *w = work;
    const struct chunk c = chunk_of(w->n, index);
    for (size_t i = 0; i < c.n; i++)
        w->out[c.at + i] = w->scalar;
}

void rm_cpu_fill(struct rm_backend *b, float value, size_t n, float *x)
{
    struct flat_work w = {.cpu = rm_cpu_of(b), .out = x, .n = n, .scalar = value};
    run_flat(&w, fill_chunk);
}

/* --- sums of parts --------------------------------------------------------------------------- */

struct parts_work {
    const struct rm_kernels *kernels;
    const float *parts;
    uint32_t count;
    size_t stride, n;
    float *sum;
};

static void parts_chunk(void *work, uint32_t index)
{
    const struct parts_work *w = work;
    struct chunk c = chunk_of(w->n, index);
    w->kernels->sum_parts(w->parts + c.at, w->count, w->stride, c.n, w->sum + c.at);
}

void rm_cpu_sum_parts(struct rm_backend *b, const float *parts, uint32_t count, size_t stride,
                      size_t n, float *sum)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct parts_work w = {cpu->kernels, parts, count, stride, n, sum};
    rm_cpu_run(cpu, parts_chunk, &w, chunks(n), (double)n * count);
}
