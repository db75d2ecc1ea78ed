#include "tests/support/op_cases.h"

#include "learner/backend/device.h"
#include "shm/base/float_word.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers near which kernels change what they do. */
static const uint32_t edges[] = {1,   2,   3,   4,   7,   8,   15,   16,   17,   31,   32,
                                 33,  63,  64,  65,  100, 127, 128,  129,  255,  256,  257,
                                 511, 512, 513, 600, 768, 999, 1000, 1023, 1025, 2049, 4096};
#define EDGES (sizeof edges / sizeof *edges)

uint32_t op_below(struct op_run *r, uint32_t n)
{
    return rm_rng_below(&r->rng, n);
}

uint32_t op_size(struct op_run *r, uint32_t most)
{
    uint32_t usable = 0;
    while (usable < EDGES && edges[usable] <= most)
        usable++;
    const uint32_t which = op_below(r, 4), other = 1 + op_below(r, most);
    return which ? edges[op_below(r, usable)] : other;
}

static float normal(struct rm_rng *rng)
{
    const double u = 1.0 - rm_rng_double(rng), v = rm_rng_double(rng);
    return (float)(sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v));
}

/* A copy of `from` in the backend's memory; NULL when there is none. */
static void *take(struct op_run *r, const void *from, size_t words, double scale)
{
    float *p = r->array_count < OP_ARRAYS ? r->b->ops->alloc(r->b, words ? words : 1) : NULL;
    if (!p) {
        r->failed = true;
        return NULL;
    }
    if (words)
        r->b->ops->upload(r->b, p, from, words);
    r->arrays[r->array_count].memory = p;
    r->arrays[r->array_count].words = words;
    r->arrays[r->array_count++].scale = scale;
    return p;
}

static float *draw(struct op_run *r, size_t n, float scale, double output)
{
    float *host = malloc((n ? n : 1) * sizeof *host), *p;
    if (!host) {
        r->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        host[i] = scale * normal(&r->rng);
    p = take(r, host, n, output);
    free(host);
    return p;
}

float *op_in(struct op_run *r, size_t n, float scale)
{
    return draw(r, n, scale, 0.0);
}

float *op_inout(struct op_run *r, size_t n, float scale)
{
    return draw(r, n, scale, scale);
}

void *op_words(struct op_run *r, const void *from, size_t words)
{
    return take(r, from, words, 0.0);
}

float *op_out(struct op_run *r, size_t n, double scale)
{
    float *host = calloc(n ? n : 1, sizeof *host), *p;
    if (!host) {
        r->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < n && r->b->device; i++)
        host[i] = NAN;
    p = take(r, host, n, scale);
    free(host);
    return p;
}

void op_compare(struct op_run *r, float *x, double scale)
{
    for (uint32_t i = 0; i < r->array_count; i++)
        if (r->arrays[i].memory == x)
            r->arrays[i].scale = scale;
}

double op_tolerance(const struct op_case *c, enum rm_compute compute)
{
    static const double of[RM_COMPUTE_COUNT] = {[RM_COMPUTE_FP32] = 1e-5,
                                                [RM_COMPUTE_TF32] = 2e-3,
                                                [RM_COMPUTE_BF16] = 1.6e-2,
                                                [RM_COMPUTE_FP16] = 2e-3};
    return of[c->product ? compute : RM_COMPUTE_FP32];
}

static uint64_t hash(uint64_t bits, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) /* FNV-1a, by words */
        bits = (bits ^ (uint32_t)rm_word_of_float(x[i])) * 0x100000001b3u;
    return bits;
}

static double deviation(const float *want, const float *got, size_t n, double scale)
{
    double most = 0.0;
    for (size_t i = 0; i < n; i++)
        scale = fmax(scale, fabs((double)want[i]));
    for (size_t i = 0; i < n; i++) {
        if (isnan(want[i]) && isnan(got[i]))
            continue;
        const double d = fabs((double)want[i] - (double)got[i]) / scale;
        most = d >= 0.0 ? fmax(most, d) : INFINITY;
    }
    return most;
}

/* Array i of both runs, if it is an output. */
static void compare(const struct op_run *cpu, const struct op_run *device, uint32_t i,
                    struct op_result *result)
{
    const size_t n = cpu->arrays[i].words;
    float *want = malloc((n ? n : 1) * sizeof *want), *got = malloc((n ? n : 1) * sizeof *got);
    if (!want || !got) {
        result->failed = true;
    } else {
        cpu->b->ops->download(cpu->b, want, cpu->arrays[i].memory, n);
        device->b->ops->download(device->b, got, device->arrays[i].memory, n);
        result->deviation = fmax(result->deviation, deviation(want, got, n, cpu->arrays[i].scale));
        result->bits = hash(result->bits, got, n);
    }
    free(want);
    free(got);
}

static void release(struct op_run *r)
{
    for (uint32_t i = 0; i < r->array_count; i++)
        r->b->ops->release(r->b, r->arrays[i].memory);
}

struct op_result op_check(const struct op_case *c, struct rm_backend *cpu,
                          struct rm_backend *device, uint32_t draws, size_t most, uint64_t seed)
{
    struct op_result result = {.bits = 0xcbf29ce484222325u};
    struct rm_error error;
    for (uint32_t i = 0; i < draws && !result.failed; i++) {
        struct op_run on[2] = {{.b = cpu}, {.b = device}};
        for (int k = 0; k < 2; k++) {
            on[k].rng = rm_rng_at(seed, RM_STREAM_TEST, i, 0);
            on[k].most = most;
            c->run(&on[k]);
        }
        result.failed = on[0].failed || on[1].failed || on[0].array_count != on[1].array_count ||
                        (device->device && device->ops->failed(device, &error));
        for (uint32_t k = 0; k < on[0].array_count && !result.failed; k++)
            if (on[0].arrays[k].scale > 0.0)
                compare(&on[0], &on[1], k, &result);
        release(&on[0]);
        release(&on[1]);
    }
    return result;
}
