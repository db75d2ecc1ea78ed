/* isa_math: elementary functions of one float, written so that loops over them vectorise: no
 * branches, no calls. For *.isa.c files only. Each function's comment states the largest error on
 * any level (v2 has no FMA). */
#ifndef RM_LEARNER_BACKEND_ISA_MATH_H
#define RM_LEARNER_BACKEND_ISA_MATH_H

#include "learner/backend/isa.h"
#include "learner/backend/series.h"

static inline float abs_of(float x)
{
    return rm_float_of_word(rm_word_of_float(x) & 0x7fffffff);
}

static inline float with_sign_of(float magnitude, float sign)
{
    return rm_float_of_word(rm_word_of_float(magnitude) | (rm_word_of_float(sign) & INT32_MIN));
}

/* exp(x) for x <= 88: 2 ulp. Below -87 the result is 0; NaN stays NaN. Above 88 the result is
 * undefined: attention computes it for keys that a query does not see, and ignores it. The series
 * is that of e^r to r^6 on |r| <= ln2/2, with coefficients fitted for the least relative error. */
static inline float exp_of(float x)
{
    float clamped = x < -87.0f ? -87.0f : x; /* NaN passes */
    float k = RM_FMA(clamped, 1.44269504f, 12582912.0f);
    int32_t n = rm_word_of_float(k);
    k -= 12582912.0f;
    float r = RM_FMA(k, -0.693359375f, clamped);
    r = RM_FMA(k, 2.12194440e-4f, r);
    float p = RM_FMA(1.98756915e-4f, r, 1.39819995e-3f);
    p = RM_FMA(p, r, 8.33345205e-3f);
    p = RM_FMA(p, r, 4.16657962e-2f);
    p = RM_FMA(p, r, 1.66666654e-1f);
    p = RM_FMA(p, r, 5.00000012e-1f);
    p = RM_FMA(p * r, r, r) + 1.0f;
    float e = p * rm_float_of_word((int32_t)(((uint32_t)n << 23) + 0x3f800000));
    return x < -87.0f ? 0.0f : e;
}

/* tanh(x): 4e-7 relative, 7 ulp, and never beyond 1. A fraction of two polynomials of x^2, fitted
 * for the least relative error on |x| <= 8. For |x| > 8 the result is that for 8 or -8. NaN stays
 * NaN. */
static inline float tanh_of(float x)
{
    float c = x < -8.0f ? -8.0f : x;
    c = c > 8.0f ? 8.0f : c;
    float s = c * c;
    float p = RM_FMA(1.52304285e-8f, s, 2.18946698e-5f);
    p = RM_FMA(p, s, 3.57159832e-3f);
    p = RM_FMA(p, s, 1.34444982e-1f);
    p = RM_FMA(p, s, 1.0f);
    float q = RM_FMA(8.52245080e-7f, s, 3.41129256e-4f);
    q = RM_FMA(q, s, 2.61644442e-2f);
    q = RM_FMA(q, s, 4.67778265e-1f);
    q = RM_FMA(q, s, 1.0f);
    return c * p / q;
}

/* erf(x): 3e-7 absolute. A series for |x| < 0.92, and 1 - (polynomial of 1/(1 + p|x|)) e^(-x^2) for
 * other x (Abramowitz and Stegun 7.1.26, whose 1.5e-7 is for exact arithmetic). */
static inline float erf_of(float x)
{
    float a = abs_of(x);
    float s = x * x;
    float p = RM_FMA(8.3997778e-5f, s, -8.1500505e-4f);
    p = RM_FMA(p, s, 5.2017146e-3f);
    p = RM_FMA(p, s, -2.6859691e-2f);
    p = RM_FMA(p, s, 1.12837012e-1f);
    p = RM_FMA(p, s, -3.76126343e-1f);
    float small = x * RM_FMA(p, s, 1.12837917f);
    float t = 1.0f / RM_FMA(0.3275911f, a, 1.0f);
    float q = RM_FMA(1.061405429f, t, -1.453152027f);
    q = RM_FMA(q, t, 1.421413741f);
    q = RM_FMA(q, t, -0.284496736f);
    q = RM_FMA(q, t, 0.254829592f);
    float large = with_sign_of(RM_FMA(-q * t, exp_of(-s), 1.0f), x);
    return a < 0.92f ? small : large;
}

#endif
