/* math: elementary functions of kernels: CUDA's own where the CPU has others (isa_math.h), and
 * those of series.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_MATH_H
#define RM_LEARNER_BACKEND_CUDA_MATH_H

#include "learner/backend/cuda/cuda.h"

#include <math.h>

#define RM_FMA(a, b, c) fmaf(a, b, c)
#include "learner/backend/series.h"

#define RM_INLINE static __device__ __forceinline__

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
