/* series: elementary functions of one number, for draws and fractions of quantiles. Their results
 * have the same bits, or nearly, on every backend. Written so that loops over them vectorise: no
 * branches, no calls. Define RM_FMA(a, b, c), a * b + c, before including this header. */
#ifndef RM_LEARNER_BACKEND_SERIES_H
#define RM_LEARNER_BACKEND_SERIES_H

#include "shm/base/float_word.h"

/* ln(x) for normal positive x: 2 ulp. The exponent bits give a mantissa in [sqrt 1/2, sqrt 2); then
 * follows the series of ln(1 + r) to r^9, economised. */
RM_BOTH float rm_log_of(float x)
{
    int32_t i = rm_word_of_float(x);
    int32_t e = (i - 0x3f3504f3) >> 23;
    float k = (float)e;
    float r = rm_float_of_word((int32_t)((uint32_t)i - ((uint32_t)e << 23))) - 1.0f;
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

/* sin and cos of an angle of word / 2^32 turns: 1 ulp of the largest. The nearest quadrant is
 * subtracted exactly; series on |a| <= pi/4. */
RM_BOTH void rm_sincos_of_turn(uint32_t word, float *sine, float *cosine)
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
    int32_t u = (rm_word_of_float(sn) & ~swap) | (rm_word_of_float(cs) & swap);
    int32_t v = (rm_word_of_float(cs) & ~swap) | (rm_word_of_float(sn) & swap);
    *sine = rm_float_of_word(u ^ (int32_t)((quadrant & 2u) << 30));
    *cosine = rm_float_of_word(v ^ (int32_t)(((quadrant + 1u) & 2u) << 30));
}

/* cos(pi t) for t >= 0, with t the exact product in double: 1e-7 absolute. The nearest even
 * multiple is subtracted exactly, and the rest, in [-1, 1], is folded to [-1/2, 1/2]. */
RM_BOTH float rm_cos_pi(double t)
{
    double whole = (t * 0.5 + 0x1.8p52) - 0x1.8p52;
    float r =
        rm_float_of_word(rm_word_of_float((float)(t - 2.0 * whole)) & 0x7fffffff); /* [0, 1] */
    float h = 0.5f - r; /* cos(pi r) = sin(pi h), |h| <= 1/2 */
    float s = h * h;
    float p = RM_FMA(-7.0283039e-3f, s, 8.2050350e-2f);
    p = RM_FMA(p, s, -5.9925219e-1f);
    p = RM_FMA(p, s, 2.5501633f);
    p = RM_FMA(p, s, -5.1677128f);
    return h * RM_FMA(p, s, 3.14159265f);
}

#endif
