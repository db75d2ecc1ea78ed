/* isa_math: elementary functions of one float, written so that loops over them vectorise: no
 * branches, no calls. For *.isa.c files only. Each states the error that tests hold it to. */
#ifndef RM_LEARNER_BACKEND_ISA_MATH_H
#define RM_LEARNER_BACKEND_ISA_MATH_H

#include "learner/backend/isa.h"

#include <stdint.h>
#include <string.h>

static inline int32_t bits_of(float x)
{
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

static inline float float_of(int32_t i)
{
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}

static inline float abs_of(float x)
{
    return float_of(bits_of(x) & 0x7fffffff);
}

static inline float with_sign_of(float magnitude, float sign)
{
    return float_of(bits_of(magnitude) | (bits_of(sign) & INT32_MIN));
}

/* exp(x) for x <= 0 (and up to 88): 2 ulp. Below -87 it is 0; NaN stays NaN; above 88 (attention
 * asks for keys that a query does not see, and drops what it gets) any number. The series is that
 * of e^r to r^6 on |r| <= ln2/2 with coefficients fitted for least relative error. */
static inline float exp_of(float x)
{
    float clamped = x < -87.0f ? -87.0f : x; /* NaN passes */
    float k = RM_FMA(clamped, 1.44269504f, 12582912.0f);
    int32_t n = bits_of(k);
    k -= 12582912.0f;
    float r = RM_FMA(k, -0.693359375f, clamped);
    r = RM_FMA(k, 2.12194440e-4f, r);
    float p = RM_FMA(1.98756915e-4f, r, 1.39819995e-3f);
    p = RM_FMA(p, r, 8.33345205e-3f);
    p = RM_FMA(p, r, 4.16657962e-2f);
    p = RM_FMA(p, r, 1.66666654e-1f);
    p = RM_FMA(p, r, 5.00000012e-1f);
    p = RM_FMA(p * r, r, r) + 1.0f;
    float e = p * float_of((int32_t)(((uint32_t)n << 23) + 0x3f800000));
    return x < -87.0f ? 0.0f : e;
}

/* tanh(x): 3e-7 relative, 5 ulp, and never beyond 1. A fraction of two polynomials of x^2, fitted
 * for least relative error on |x| <= 8; beyond, the value there. NaN stays NaN. */
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

/* erf(x): 3e-7 absolute. Series below 0.92; beyond, 1 - (polynomial of 1/(1 + p|x|)) e^(-x^2)
 * (Abramowitz and Stegun 7.1.26, whose 1.5e-7 is for exact arithmetic). */
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

/* ln(x) for normal positive x: 2 ulp. Mantissa in [sqrt 1/2, sqrt 2) by exponent bits, then the
 * series of ln(1 + r) to r^9, economised. */
static inline float log_of(float x)
{
    int32_t i = bits_of(x);
    int32_t e = (i - 0x3f3504f3) >> 23;
    float k = (float)e;
    float r = float_of((int32_t)((uint32_t)i - ((uint32_t)e << 23))) - 1.0f;
    float s = r * r;
    float p = RM_FMA(7.0376836292e-2f, r, -1.1514610310e-1f);
    p = RM_FMA(p, r, 1.1676998740e-1f);
    p = RM_FMA(p, r, -1.2420140846e-1f);
    p = RM_FMA(p, r, 1.4249322787e-1f);
    p = RM_FMA(p, r, -1.6668057665e-1f);
    p = RM_FMA(p, r, 2.0000714765e-1f);
    p = RM_FMA(p, r, -2.4999993993e-1f);
    p = RM_FMA(p, r, 3.3333331174e-1f);
    float y = RM_FMA(p * r, s, k * -2.12194440e-4f);
    y = RM_FMA(s, -0.5f, y);
    return RM_FMA(k, 0.693359375f, r + y);
}

/* sin and cos of an angle given as a fraction of a turn in 32 bits (word / 2^32 turns): 1 ulp of
 * the largest. The nearest quadrant comes off exactly; series on |a| <= pi/4. */
static inline void sincos_of_turn(uint32_t word, float *sine, float *cosine)
{
    uint32_t quadrant = (word + 0x20000000u) >> 30;
    float a = (float)(int32_t)(word - (quadrant << 30)) * 1.46291807926715968e-9f; /* pi / 2^31 */
    float s = a * a;
    float p = RM_FMA(-1.9515295891e-4f, s, 8.3321608736e-3f);
    p = RM_FMA(p, s, -1.6666654611e-1f);
    float sn = RM_FMA(p * s, a, a);
    float q = RM_FMA(2.443315711809948e-5f, s, -1.388731625493765e-3f);
    q = RM_FMA(q, s, 4.166664568298827e-2f);
    float cs = RM_FMA(q * s, s, RM_FMA(-0.5f, s, 1.0f));
    int32_t swap = -(int32_t)(quadrant & 1u);
    int32_t u = (bits_of(sn) & ~swap) | (bits_of(cs) & swap);
    int32_t v = (bits_of(cs) & ~swap) | (bits_of(sn) & swap);
    *sine = float_of(u ^ (int32_t)((quadrant & 2u) << 30));
    *cosine = float_of(v ^ (int32_t)(((quadrant + 1u) & 2u) << 30));
}

#endif
