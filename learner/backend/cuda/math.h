/* math: elementary functions of kernels that the CPU's isa_math.h has too. Functions that draws
 * depend on (logarithm, sine and cosine of a turn) use the same series, so that draws agree to the
 * last bit or nearly; the others are CUDA's own. */
#ifndef RM_LEARNER_BACKEND_CUDA_MATH_H
#define RM_LEARNER_BACKEND_CUDA_MATH_H

#include "learner/backend/cuda/cuda.h"

#include <math.h>
#include <string.h>

#define RM_INLINE static __device__ __forceinline__

RM_INLINE int32_t rm_bits_of(float x)
{
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

RM_INLINE float rm_float_of(int32_t i)
{
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}

/* 1 / (1 + e^-x), by e^-|x|, which cannot overflow */
RM_INLINE float rm_logistic(float x)
{
    const float e = expf(-fabsf(x)), p = 1.0f / (1.0f + e);
    return x < 0.0f ? e * p : p;
}

RM_INLINE float rm_signed_root(float x)
{
    return copysignf(sqrtf(fabsf(x)), x);
}

/* ln(x) for normal positive x, as log_of() of isa_math.h. */
RM_INLINE float rm_log(float x)
{
    const int32_t i = rm_bits_of(x), e = (i - 0x3f3504f3) >> 23;
    const float k = (float)e;
    const float r = rm_float_of((int32_t)((uint32_t)i - ((uint32_t)e << 23))) - 1.0f;
    const float s = r * r;
    float p = fmaf(7.0376836292e-2f, r, -1.1514610310e-1f);
    p = fmaf(p, r, 1.1676998740e-1f);
    p = fmaf(p, r, -1.2420140846e-1f);
    p = fmaf(p, r, 1.4249322787e-1f);
    p = fmaf(p, r, -1.6668057665e-1f);
    p = fmaf(p, r, 2.0000714765e-1f);
    p = fmaf(p, r, -2.4999993993e-1f);
    p = fmaf(p, r, 3.3333331174e-1f);
    float y = fmaf(p * r, s, k * -2.12194440e-4f);
    y = fmaf(s, -0.5f, y);
    return fmaf(k, 0.693359375f, r + y);
}

/* sin and cos of word / 2^32 turns, as sincos_of_turn() of isa_math.h. */
RM_INLINE void rm_sincos_of_turn(uint32_t word, float *sine, float *cosine)
{
    const uint32_t quadrant = (word + 0x20000000u) >> 30;
    const float a = (float)(int32_t)(word - (quadrant << 30)) * 1.46291807926715968e-9f;
    const float s = a * a;
    float p = fmaf(-1.9515295891e-4f, s, 8.3321608736e-3f);
    p = fmaf(p, s, -1.6666654611e-1f);
    const float sn = fmaf(p * s, a, a);
    float q = fmaf(2.443315711809948e-5f, s, -1.388731625493765e-3f);
    q = fmaf(q, s, 4.166664568298827e-2f);
    const float cs = fmaf(q * s, s, fmaf(-0.5f, s, 1.0f));
    const float u = quadrant & 1u ? cs : sn, v = quadrant & 1u ? sn : cs;
    *sine = quadrant & 2u ? -u : u;
    *cosine = (quadrant + 1u) & 2u ? -v : v;
}

/* cos(pi t) for t >= 0 that is an exact product in double: as cos_pi() of rows.isa.c. */
RM_INLINE float rm_cos_pi(double t)
{
    const double whole = (t * 0.5 + 0x1.8p52) - 0x1.8p52;
    const float r = fabsf((float)(t - 2.0 * whole)), h = 0.5f - r, s = h * h;
    float p = fmaf(-7.0283039e-3f, s, 8.2050350e-2f);
    p = fmaf(p, s, -5.9925219e-1f);
    p = fmaf(p, s, 2.5501633f);
    p = fmaf(p, s, -5.1677128f);
    return h * fmaf(p, s, 3.14159265f);
}

/* --- activations ----------------------------------------------------------------------------- */

RM_INLINE float rm_activated(enum rm_activation act, float x)
{
    switch (act) {
    case RM_ACT_RELU:
        return x < 0.0f ? 0.0f : x; /* NaN stays NaN: a broken update must show */
    case RM_ACT_TANH:
        return tanhf(x);
    case RM_ACT_GELU: /* x Phi(x) */
        return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case RM_ACT_SILU:
        return x * rm_logistic(x);
    case RM_ACT_ELU:
        return x < 0.0f ? expm1f(x) : x;
    case RM_ACT_LEAKY_RELU:
        return x < 0.0f ? 0.01f * x : x;
    case RM_ACT_SIGMOID:
        return rm_logistic(x);
    default:
        return x;
    }
}

/* The slope of an activation, from the argument x (GELU and SiLU) or the result y (the others). */
RM_INLINE float rm_activation_slope(enum rm_activation act, float x, float y)
{
    switch (act) {
    case RM_ACT_RELU:
        return y > 0.0f ? 1.0f : 0.0f;
    case RM_ACT_TANH:
        return fmaf(-y, y, 1.0f);
    case RM_ACT_GELU: { /* Phi(x) + x phi(x) */
        const float density = 0.39894228f * expf(-0.5f * x * x);
        return fmaf(x, density, 0.5f * (1.0f + erff(x * 0.70710678f)));
    }
    case RM_ACT_SILU: {
        const float s = rm_logistic(x);
        return s * fmaf(x, 1.0f - s, 1.0f);
    }
    case RM_ACT_ELU:
        return y > 0.0f ? 1.0f : y + 1.0f;
    case RM_ACT_LEAKY_RELU:
        return y > 0.0f ? 1.0f : 0.01f;
    case RM_ACT_SIGMOID:
        return y * (1.0f - y);
    default:
        return 1.0f;
    }
}

static inline bool rm_slope_reads_input(enum rm_activation act)
{
    return act == RM_ACT_GELU || act == RM_ACT_SILU;
}

/* --- sums ------------------------------------------------------------------------------------ */

/* The sum over a warp, in one order; every lane gets it. */
template <class T>
RM_INLINE T rm_warp_sum(T x)
{
    for (int apart = 16; apart > 0; apart /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, apart);
    return x;
}

RM_INLINE float rm_warp_max(float x)
{
    for (int apart = 16; apart > 0; apart /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, apart));
    return x;
}

#endif
