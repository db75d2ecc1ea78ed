/* trig: sine and cosine in double precision without branches or tables, so that the compiler can
 * vectorise around them and every instruction set gives the same bits. Within 1.5 units in the last
 * place of 1 (1.7e-16) of the true value for |x| < 1e5.
 *
 * Subtracts the nearest multiple of pi/2 in two parts, then uses Taylor series about 0 on [-pi/4,
 * pi/4], where the first omitted term is below 1e-18. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_TRIG_H
#define RM_ACTOR_WORLDS_BUILTIN_TRIG_H

#include "shm/base/both.h"

/* No fused multiply-adds: GCC makes none in ISO C; Clang needs a pragma. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* |x| <= pi/4 */
RM_BOTH double rm_sin_small(double x)
{
    double z = x * x;
    double p = 1.0 / 355687428096000.0;
    p = p * z - 1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return x + x * z * p;
}

RM_BOTH double rm_cos_small(double x)
{
    double z = x * x;
    double p = 1.0 / 20922789888000.0;
    p = p * z - 1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    return 1.0 - (0.5 * z - z * z * p);
}

/* Any |x| < 1e5. */
__attribute__((always_inline)) static inline void rm_sincos(double x, double *sine, double *cosine)
{
    /* Adding and taking off 1.5 * 2^52 rounds to the nearest integer. */
    const double to_integer = 6755399441055744.0;
    double n = (x * 0.63661977236758134308 + to_integer) - to_integer;
    /* pi/2 = high + low; high has 33 bits, so n * high is exact. */
    double r = (x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34;
    double quadrant = n - 4.0 * ((n * 0.25 - 0.375 + to_integer) - to_integer); /* 0, 1, 2 or 3 */
    double s = rm_sin_small(r), c = rm_cos_small(r);
    int odd = quadrant == 1.0 || quadrant == 3.0;
    double sine_of = odd ? c : s, cosine_of = odd ? s : c;
    *sine = quadrant >= 2.0 ? -sine_of : sine_of;
    *cosine = quadrant == 1.0 || quadrant == 2.0 ? -cosine_of : cosine_of;
}

#endif
