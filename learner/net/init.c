/* Initial parameters. Drawn in the arena's order, in double where it matters, so that a seed gives
 * the same network on every host. */
#include "learner/net/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void fill_uniform(float *p, size_t n, double bound, struct rm_rng *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)((2.0 * rm_rng_double(rng) - 1.0) * bound);
}

static void fill(float *p, size_t n, float value)
{
    for (size_t i = 0; i < n; i++)
        p[i] = value;
}

static double normal(struct rm_rng *rng)
{
    double u = 1.0 - rm_rng_double(rng), v = rm_rng_double(rng);
    return sqrt(-2.0 * log(u)) * cos(2.0 * 3.14159265358979323846 * v);
}

/* Rows (or columns, if there are more rows than columns) orthonormal, times gain: Gram-Schmidt,
 * twice, on a matrix of normals (Saxe et al., 2014). */
static void fill_orthogonal(float *p, uint32_t rows, uint32_t cols, double gain, struct rm_rng *rng)
{
    uint32_t count = rows < cols ? rows : cols, length = rows < cols ? cols : rows;
    double *v = malloc((size_t)count * length * sizeof *v);
    if (!v) { /* start-up only; uniform of the same variance is a usable network */
        fill_uniform(p, (size_t)rows * cols, gain * sqrt(3.0 / length), rng);
        return;
    }
    for (uint32_t a = 0; a < count; a++) {
        double *va = v + (size_t)a * length;
        for (uint32_t i = 0; i < length; i++)
            va[i] = normal(rng);
        for (int pass = 0; pass < 2; pass++)
            for (uint32_t b = 0; b < a; b++) {
                const double *vb = v + (size_t)b * length;
                double dot = 0.0;
                for (uint32_t i = 0; i < length; i++)
                    dot += va[i] * vb[i];
                for (uint32_t i = 0; i < length; i++)
                    va[i] -= dot * vb[i];
            }
        double norm = 0.0;
        for (uint32_t i = 0; i < length; i++)
            norm += va[i] * va[i];
        norm = 1.0 / sqrt(norm);
        for (uint32_t i = 0; i < length; i++)
            va[i] *= norm;
    }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            p[(size_t)r * cols + c] = (float)(gain * (rows < cols ? v[(size_t)r * length + c]
                                                                  : v[(size_t)c * length + r]));
    free(v);
}

static void init_product(const struct rm_net *net, const struct rm_step *s, bool head,
                         float *params, struct rm_rng *rng)
{
    uint32_t in = rm_step_weight_inputs(s);
    size_t weights = (size_t)in * s->out;
    if (s->noisy) {
        double bound = sqrt(3.0 / in);
        fill_uniform(params + s->weight, weights, bound, rng);
        fill_uniform(params + s->bias, s->out, bound, rng);
        double sigma = net->config.sigma0;
        if (net->config.noise == RM_NOISE_FACTORISED)
            sigma /= sqrt(in);
        fill(params + s->sigma_weight, weights, (float)sigma);
        fill(params + s->sigma_bias, s->out, (float)sigma);
    } else if (net->config.init == RM_INIT_ORTHOGONAL) {
        fill_orthogonal(params + s->weight, s->out, in, head ? 1.0 : sqrt(2.0), rng);
        fill(params + s->bias, s->out, 0.0f);
    } else {
        double bound = 1.0 / sqrt(in);
        fill_uniform(params + s->weight, weights, bound, rng);
        fill_uniform(params + s->bias, s->out, bound, rng);
    }
}

void rm_net_init(const struct rm_net *net, float *params, struct rm_rng rng)
{
    uint32_t products = net->step_count - (net->config.dueling ? 1 : 0);
    for (uint32_t i = 0; i < products; i++) {
        const struct rm_step *s = &net->steps[i];
        if (s->kind == RM_STEP_LINEAR || s->kind == RM_STEP_COSINE)
            init_product(net, s, i + 1 == products, params, &rng);
        else if (s->kind == RM_STEP_LAYER_NORM) {
            fill(params + s->weight, s->out, 1.0f);
            fill(params + s->bias, s->out, 0.0f);
        }
    }
}
