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

void rm_init_fill(float *p, size_t n, double value)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)value;
}

double rm_init_normal(struct rm_rng *rng)
{
    double u = 1.0 - rm_rng_double(rng), v = rm_rng_double(rng);
    return sqrt(-2.0 * log(u)) * cos(2.0 * 3.14159265358979323846 * v);
}

static void fill_normal(float *p, size_t n, double deviation, struct rm_rng *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)(deviation * rm_init_normal(rng));
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
            va[i] = rm_init_normal(rng);
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

/* Weights and biases of the default are uniform within 1 / sqrt(fan_in). Xavier: Glorot and Bengio,
 * 2010; Kaiming: He et al., 2015, by fan-in. */
void rm_init_weights(const struct rm_net *net, float *p, uint32_t out, uint32_t in, uint32_t fan_in,
                     uint32_t fan_out, double gain, struct rm_rng *rng)
{
    size_t n = (size_t)out * in;
    double both = (double)fan_in + fan_out;
    switch (net->config.init) {
    case RM_INIT_ORTHOGONAL:
        fill_orthogonal(p, out, in, gain, rng);
        break;
    case RM_INIT_XAVIER_UNIFORM:
        fill_uniform(p, n, gain * sqrt(6.0 / both), rng);
        break;
    case RM_INIT_XAVIER_NORMAL:
        fill_normal(p, n, gain * sqrt(2.0 / both), rng);
        break;
    case RM_INIT_KAIMING_UNIFORM:
        fill_uniform(p, n, gain * sqrt(3.0 / fan_in), rng);
        break;
    case RM_INIT_KAIMING_NORMAL:
        fill_normal(p, n, gain / sqrt(fan_in), rng);
        break;
    default:
        fill_uniform(p, n, 1.0 / sqrt(fan_in), rng);
        break;
    }
}

void rm_init_biases(const struct rm_net *net, float *p, uint32_t n, uint32_t fan_in,
                    struct rm_rng *rng)
{
    if (net->config.init == RM_INIT_DEFAULT)
        fill_uniform(p, n, 1.0 / sqrt(fan_in), rng);
    else
        rm_init_fill(p, n, 0.0);
}

static void init_product(const struct rm_net *net, const struct rm_product *m, float *params,
                         struct rm_rng *rng)
{
    size_t weights = (size_t)m->in * m->out;
    if (!m->noisy) {
        rm_init_weights(net, params + m->weight, m->out, m->in, m->in, m->out, m->gain, rng);
        rm_init_biases(net, params + m->bias, m->out, m->in, rng);
        return;
    }
    double bound = sqrt(3.0 / m->in), sigma = net->config.sigma0;
    if (net->config.noise == RM_NOISE_FACTORISED)
        sigma /= sqrt(m->in);
    fill_uniform(params + m->weight, weights, bound, rng);
    fill_uniform(params + m->bias, m->out, bound, rng);
    rm_init_fill(params + m->sigma_weight, weights, sigma);
    rm_init_fill(params + m->sigma_bias, m->out, sigma);
}

void rm_net_init(const struct rm_net *net, float *params, struct rm_rng rng)
{
    for (uint32_t i = 0; i < net->step_count; i++) {
        const struct rm_step *s = &net->steps[i];
        for (uint32_t j = 0; j < s->product_count; j++)
            init_product(net, &s->product[j], params, &rng);
        if (rm_step_ops[s->kind]->init)
            rm_step_ops[s->kind]->init(net, s, params, &rng);
    }
}
