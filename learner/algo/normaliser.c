#include "learner/algo/normaliser.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TINY       1e-8
#define BLOCK_ROWS 64u

static bool idle(const struct rm_normaliser *n)
{
    return n->mean_at == SIZE_MAX;
}

int rm_normaliser_create(struct rm_normaliser *n, struct rm_backend *backend, uint32_t inputs,
                         size_t mean_at, size_t scale_at, struct rm_error *error)
{
    *n = (struct rm_normaliser){
        .backend = backend, .inputs = inputs, .mean_at = mean_at, .scale_at = scale_at};
    if (idle(n))
        return 0;
    n->mean = calloc(inputs, sizeof *n->mean);
    n->m2 = calloc(inputs, sizeof *n->m2);
    n->block_mean = calloc(inputs, sizeof *n->block_mean);
    n->block_m2 = calloc(inputs, sizeof *n->block_m2);
    n->host = calloc(inputs, sizeof *n->host);
    if (!n->mean || !n->m2 || !n->block_mean || !n->block_m2 || !n->host)
        return rm_fail(error, -ENOMEM, "no memory for the moments of %u inputs", inputs);
    return 0;
}

void rm_normaliser_destroy(struct rm_normaliser *n)
{
    free(n->mean);
    free(n->m2);
    free(n->block_mean);
    free(n->block_m2);
    free(n->host);
    memset(n, 0, sizeof *n);
}

static bool all_finite(const double *x, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * 0.0;
    return sum == 0.0;
}

/* Merges a block of rows, all columns at once, as rm_moments_merge() does. */
static void add_block(struct rm_normaliser *n, const float *x, size_t rows)
{
    const uint32_t inputs = n->inputs;
    const double count = n->count + (double)rows, share = (double)rows / count;
    const double cross = n->count * (double)rows / count;
    memset(n->block_mean, 0, inputs * sizeof *n->block_mean);
    memset(n->block_m2, 0, inputs * sizeof *n->block_m2);
    for (size_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < inputs; i++)
            n->block_mean[i] += x[r * inputs + i];
    for (uint32_t i = 0; i < inputs; i++)
        n->block_mean[i] /= (double)rows;
    for (size_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < inputs; i++) {
            const double apart = x[r * inputs + i] - n->block_mean[i];
            n->block_m2[i] += apart * apart;
        }
    if (!all_finite(n->block_m2, inputs))
        return;
    for (uint32_t i = 0; i < inputs; i++) {
        const double apart = n->block_mean[i] - n->mean[i];
        n->mean[i] += apart * share;
        n->m2[i] += n->block_m2[i] + apart * apart * cross;
    }
    n->count = count;
}

void rm_normaliser_add(struct rm_normaliser *n, const float *x, size_t rows)
{
    if (idle(n))
        return;
    for (size_t at = 0; at < rows; at += BLOCK_ROWS)
        add_block(n, x + at * n->inputs, rows - at < BLOCK_ROWS ? rows - at : BLOCK_ROWS);
}

void rm_normaliser_write(const struct rm_normaliser *n, float *params)
{
    struct rm_backend *b = n->backend;
    if (idle(n) || n->count < 1)
        return;
    for (uint32_t i = 0; i < n->inputs; i++)
        n->host[i] = (float)n->mean[i];
    b->ops->upload(b, params + n->mean_at, n->host, n->inputs);
    for (uint32_t i = 0; i < n->inputs; i++)
        n->host[i] = (float)(1.0 / sqrt(n->m2[i] / n->count + TINY));
    b->ops->upload(b, params + n->scale_at, n->host, n->inputs);
}

void rm_normaliser_resume(struct rm_normaliser *n, const float *params, double count)
{
    if (idle(n))
        return;
    n->count = count;
    for (uint32_t i = 0; i < n->inputs; i++) {
        const double scale = params[n->scale_at + i];
        const double variance = 1.0 / (scale * scale) - TINY;
        n->mean[i] = params[n->mean_at + i];
        n->m2[i] = variance > 0 ? variance * count : 0.0;
    }
}
