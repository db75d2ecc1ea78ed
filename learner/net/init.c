/* Initial parameters. Drawn in the arena's order, in double, with operations that every host rounds
 * alike (init_kernels.h), so that a seed gives the same network on every host. */
#include "shm/base/isa.h"
#include "learner/net/init_kernels.h"
#include "learner/net/orthogonal.h"
#include "learner/net/parts.h"

#include <math.h>

void rm_init_fill_uniform(float *p, size_t n, double bound, struct rm_rng *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)((2.0 * rm_rng_double(rng) - 1.0) * bound);
}

void rm_init_fill(float *p, size_t n, double value)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)value;
}

const struct rm_init_kernels *rm_init_kernels(void)
{
    static const struct rm_init_kernels *const of[] = {
        [RM_LEVEL_V2] = &rm_isa_v2_init,
        [RM_LEVEL_V3] = &rm_isa_v3_init,
        [RM_LEVEL_V4] = &rm_isa_v4_init,
    };
    return of[rm_isa_level()];
}

#define NORMALS 256u /* at a time */

void rm_init_normals(double *p, size_t n, struct rm_rng *rng)
{
    const struct rm_init_kernels *kernels = rm_init_kernels();
    uint32_t words[4 * NORMALS];
    while (n > 0) {
        const uint32_t count = n < NORMALS ? (uint32_t)n : NORMALS;
        rm_rng_fill_u32(rng, words, 4 * count);
        kernels->normals(words, count, p);
        p += count;
        n -= count;
    }
}

void rm_init_fill_normal(float *p, size_t n, double deviation, struct rm_rng *rng)
{
    double normal[NORMALS];
    for (size_t first = 0; first < n; first += NORMALS) {
        const size_t count = n - first < NORMALS ? n - first : NORMALS;
        rm_init_normals(normal, count, rng);
        for (size_t i = 0; i < count; i++)
            p[first + i] = (float)(deviation * normal[i]);
    }
}

static void fill_orthogonal(float *p, uint32_t rows, uint32_t cols, double gain, struct rm_rng *rng)
{
    /* Without memory (only at start-up): uniform values of the same variance make a usable
     * network. */
    if (rm_orthogonal(p, rows, cols, gain, rng))
        rm_init_fill_uniform(p, (size_t)rows * cols, gain * sqrt(3.0 / (rows < cols ? cols : rows)),
                             rng);
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
        rm_init_fill_uniform(p, n, gain * sqrt(6.0 / both), rng);
        break;
    case RM_INIT_XAVIER_NORMAL:
        rm_init_fill_normal(p, n, gain * sqrt(2.0 / both), rng);
        break;
    case RM_INIT_KAIMING_UNIFORM:
        rm_init_fill_uniform(p, n, gain * sqrt(3.0 / fan_in), rng);
        break;
    case RM_INIT_KAIMING_NORMAL:
        rm_init_fill_normal(p, n, gain / sqrt(fan_in), rng);
        break;
    default:
        rm_init_fill_uniform(p, n, 1.0 / sqrt(fan_in), rng);
        break;
    }
}

void rm_init_biases(const struct rm_net *net, float *p, uint32_t n, uint32_t fan_in,
                    struct rm_rng *rng)
{
    if (net->config.init == RM_INIT_DEFAULT)
        rm_init_fill_uniform(p, n, 1.0 / sqrt(fan_in), rng);
    else
        rm_init_fill(p, n, 0.0);
}

static void init_product(const struct rm_net *net, const struct rm_net_product *m, float *params,
                         struct rm_rng *rng)
{
    size_t weights = (size_t)m->in * m->out;
    if (!m->noisy) {
        rm_init_weights(net, params + m->weight, m->out, m->in, m->in, m->out, m->gain, rng);
        rm_init_biases(net, params + m->bias, m->out, m->in, rng);
        return;
    }
    /* Fortunato 2018, section 3.2 */
    const bool factorised = net->config.noise == RM_NOISE_FACTORISED;
    const double bound = sqrt((factorised ? 1.0 : 3.0) / m->in);
    const double sigma = net->config.sigma0 / (factorised ? sqrt(m->in) : 1.0);
    rm_init_fill_uniform(params + m->weight, weights, bound, rng);
    rm_init_fill_uniform(params + m->bias, m->out, bound, rng);
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
