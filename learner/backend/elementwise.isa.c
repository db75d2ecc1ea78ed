/* Elementwise operations: activations, noisy weights, optimizer. Plain loops, which the compiler
 * vectorises. */
#include "learner/backend/dropout.h"
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"

#include <math.h>

static inline float relu_of(float x)
{
    return x < 0.0f ? 0.0f : x; /* NaN stays NaN: a broken update must show */
}

/* x Phi(x) */
static inline float gelu_of(float x)
{
    return 0.5f * x * (1.0f + erf_of(x * 0.70710678f));
}

/* Phi(x) + x phi(x) */
static inline float gelu_slope_of(float x)
{
    float density = 0.39894228f * exp_of(-0.5f * x * x);
    return RM_FMA(x, density, 0.5f * (1.0f + erf_of(x * 0.70710678f)));
}

/* 1 / (1 + e^-x), by e^-|x|, which cannot overflow */
static inline float logistic_of(float x)
{
    float e = exp_of(-abs_of(x)), p = 1.0f / (1.0f + e);
    return x < 0.0f ? e * p : p;
}

static inline float silu_of(float x)
{
    return x * logistic_of(x);
}

static inline float silu_slope_of(float x)
{
    float s = logistic_of(x);
    return s * RM_FMA(x, 1.0f - s, 1.0f);
}

static inline float elu_of(float x)
{
    float below = exp_of(x < 0.0f ? x : 0.0f) - 1.0f;
    return x < 0.0f ? below : x;
}

static inline float leaky_of(float x)
{
    return x < 0.0f ? 0.01f * x : x;
}

/* Every activation: f of an argument v, and its slope from the argument x (where
 * rm_activation_reads_input() of learner/net says so) and the result y. */
#define ACTIVATIONS(EACH)                                                                          \
    EACH(RM_ACT_RELU, relu_of(v), y[i] > 0.0f ? 1.0f : 0.0f)                                       \
    EACH(RM_ACT_TANH, tanh_of(v), RM_FMA(-y[i], y[i], 1.0f))                                       \
    EACH(RM_ACT_GELU, gelu_of(v), gelu_slope_of(x[i]))                                             \
    EACH(RM_ACT_SILU, silu_of(v), silu_slope_of(x[i]))                                             \
    EACH(RM_ACT_ELU, elu_of(v), y[i] > 0.0f ? 1.0f : y[i] + 1.0f)                                  \
    EACH(RM_ACT_LEAKY_RELU, leaky_of(v), y[i] > 0.0f ? 1.0f : 0.01f)                               \
    EACH(RM_ACT_SIGMOID, logistic_of(v), y[i] * (1.0f - y[i]))

void RM_ISA_NAME(bias_act)(const float *c, size_t ldc, uint32_t rows, uint32_t cols,
                           const float *bias, enum rm_activation act, float *y, size_t ldy)
{
#define EACH(name, value, slope)                                                                   \
    case name:                                                                                     \
        for (uint32_t i = 0; i < cols; i++) {                                                      \
            float v = c[i] + bias[i];                                                              \
            y[i] = value;                                                                          \
        }                                                                                          \
        break;
    for (uint32_t r = 0; r < rows; r++, y += ldy, c += ldc)
        switch (act) {
            ACTIVATIONS(EACH)
        default:
            for (uint32_t i = 0; i < cols; i++)
                y[i] = c[i] + bias[i];
        }
#undef EACH
}

void RM_ISA_NAME(activate)(enum rm_activation act, const float *x, size_t n, float *y)
{
#define EACH(name, value, slope)                                                                   \
    case name:                                                                                     \
        for (size_t i = 0; i < n; i++) {                                                           \
            float v = x[i];                                                                        \
            y[i] = value;                                                                          \
        }                                                                                          \
        break;
    switch (act) {
        ACTIVATIONS(EACH)
    default:
        for (size_t i = 0; i < n; i++)
            y[i] = x[i];
    }
#undef EACH
}

void RM_ISA_NAME(activate_dx)(enum rm_activation act, const float *x, const float *y,
                              const float *dy, size_t n, float *dx)
{
#define EACH(name, value, slope)                                                                   \
    case name:                                                                                     \
        for (size_t i = 0; i < n; i++)                                                             \
            dx[i] = dy[i] * (slope);                                                               \
        break;
    switch (act) {
        ACTIVATIONS(EACH)
    default:
        for (size_t i = 0; i < n; i++)
            dx[i] = dy[i];
    }
#undef EACH
}

void RM_ISA_NAME(dropout)(uint32_t part_key, uint32_t at, uint32_t below, float scale,
                          const float *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * rm_dropout_kept(part_key, at + (uint32_t)i, below, scale);
}

void RM_ISA_NAME(noisy_weights)(const float *mu, const float *sigma, const float *eps, size_t n,
                                float *w)
{
    for (size_t i = 0; i < n; i++)
        w[i] = RM_FMA(sigma[i], eps[i], mu[i]);
}

void RM_ISA_NAME(multiply)(const float *x, const float *y, size_t n, float *z)
{
    for (size_t i = 0; i < n; i++)
        z[i] = x[i] * y[i];
}

void RM_ISA_NAME(normalize)(const float *x, const float *mean, const float *scale, float bound,
                            size_t rows, uint32_t n, float *y)
{
    for (size_t r = 0; r < rows; r++, x += n, y += n)
        for (uint32_t i = 0; i < n; i++) {
            float z = (x[i] - mean[i]) * scale[i]; /* NaN stays NaN */
            z = z < -bound ? -bound : z;
            y[i] = z > bound ? bound : z;
        }
}

void RM_ISA_NAME(signed_root)(const float *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = with_sign_of(sqrtf(abs_of(x[i])), x[i]);
}

void RM_ISA_NAME(noisy_outer)(const float *eps_in, const float *eps_out, uint32_t in, uint32_t from,
                              uint32_t to, float *eps_w)
{
    for (uint32_t o = from; o < to; o++) {
        float f = with_sign_of(sqrtf(abs_of(eps_out[o])), eps_out[o]);
        float *row = eps_w + (size_t)o * in;
        for (uint32_t i = 0; i < in; i++)
            row[i] = f * with_sign_of(sqrtf(abs_of(eps_in[i])), eps_in[i]);
    }
}

/* Prefetches lines that another core may have, all at once instead of one after another. */
static void fetch_to_write(const float *p, size_t n)
{
    for (size_t i = 0; i < n; i += 16)
        __builtin_prefetch(p + i, 1, 3);
}

static void fetch_to_read(const float *p, size_t n)
{
    for (size_t i = 0; i < n; i += 16)
        __builtin_prefetch(p + i, 0, 3);
}

/* Moments of weights without gradients shrink for ever: numbers too small to matter become 0 before
 * they are denormal, which is slow. */
static inline float flushed(float x)
{
    return abs_of(x) < 1e-35f ? 0.0f : x;
}

void RM_ISA_NAME(adam)(const struct rm_adam_factors *f, const float *grads, size_t n, float *params,
                       float *m, float *v)
{
    const float b1 = f->beta1, b2 = f->beta2, c1 = 1.0f - b1, c2 = 1.0f - b2;
    const float step = f->step, root = f->root, eps = f->epsilon, scale = f->scale;
    const float decay = f->decay;
    fetch_to_write(params, n);
    for (size_t i = 0; i < n; i++) {
        float g = grads[i] * scale;
        float mi = flushed(RM_FMA(c1, g, b1 * m[i]));
        float vi = flushed(RM_FMA(c2 * g, g, b2 * v[i]));
        m[i] = mi;
        v[i] = vi;
        /* Not (1 - decay) p: that factor's rounding error would be the same at every step. */
        float p = RM_FMA(-decay, params[i], params[i]);
        params[i] = RM_FMA(-step, mi / RM_FMA(sqrtf(vi), root, eps), p);
    }
}

void RM_ISA_NAME(rmsprop)(const struct rm_rmsprop *r, float scale, const float *grads, size_t n,
                          float *params, float *m, float *v)
{
    const float alpha = r->alpha, rest = 1.0f - alpha, eps = r->epsilon, step = r->learning_rate;
    const float momentum = r->momentum;
    for (size_t i = 0; i < n; i++) {
        float g = grads[i] * scale;
        float vi = RM_FMA(rest * g, g, alpha * v[i]);
        float d = g / (sqrtf(vi) + eps);
        v[i] = vi;
        if (m)
            m[i] = d = RM_FMA(momentum, m[i], d);
        params[i] = RM_FMA(-step, d, params[i]);
    }
}

void RM_ISA_NAME(combine)(float a, const float *x, float c, const float *y, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = RM_FMA(a, x[i], c * y[i]);
}

void RM_ISA_NAME(sum_parts)(const float *parts, uint32_t count, size_t stride, size_t n, float *sum)
{
    for (uint32_t p = 0; p < count; p++)
        fetch_to_read(parts + p * stride, n);
    for (size_t at = 0; at < n; at += 64) {
        size_t m = n - at < 64 ? n - at : 64;
        float acc[64];
        memcpy(acc, parts + at, m * sizeof *acc);
        for (uint32_t p = 1; p < count; p++) {
            const float *part = parts + p * stride + at;
            for (size_t i = 0; i < m; i++)
                acc[i] += part[i];
        }
        memcpy(sum + at, acc, m * sizeof *acc);
    }
}

void RM_ISA_NAME(lerp)(float tau, const float *params, size_t n, float *target)
{
    for (size_t i = 0; i < n; i++)
        target[i] = RM_FMA(tau, params[i] - target[i], target[i]);
}
