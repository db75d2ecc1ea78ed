/* device_math: intrinsics of CUDA's that a host's <math.h> has not. The fast ones are exact here:
 * kernels may not rely on more than their documented errors. */
#ifndef RM_TESTS_CUDA_EMULATION_DEVICE_MATH_H
#define RM_TESTS_CUDA_EMULATION_DEVICE_MATH_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

using std::max;
using std::min;
/* CUDA's take an unsigned beside an int as well. */
static inline unsigned min(unsigned a, int b)
{
    return min(a, (unsigned)b);
}
static inline unsigned min(int a, unsigned b)
{
    return min((unsigned)a, b);
}
static inline unsigned max(unsigned a, int b)
{
    return max(a, (unsigned)b);
}
static inline unsigned max(int a, unsigned b)
{
    return max((unsigned)a, b);
}

#define RM_AS(name, to, from)                                                                      \
    static inline to name(from v)                                                                  \
    {                                                                                              \
        to r;                                                                                      \
        static_assert(sizeof r == sizeof v, "");                                                   \
        memcpy(&r, &v, sizeof r);                                                                  \
        return r;                                                                                  \
    }
RM_AS(__float_as_int, int, float)
RM_AS(__float_as_uint, unsigned, float)
RM_AS(__int_as_float, float, int)
RM_AS(__uint_as_float, float, unsigned)
RM_AS(__double_as_longlong, long long, double)
RM_AS(__longlong_as_double, double, long long)
#undef RM_AS

/* CUDA's own is off by a unit in the last place where a host's is not, so it is no host's bits. */
static inline float rm_emulated_expf(float x)
{
    const float y = expf(x);
    return (__float_as_uint(y) & 1u) && y < INFINITY ? nextafterf(y, INFINITY) : y;
}
#define expf rm_emulated_expf

template <class T>
static inline T __ldg(const T *p)
{
    return *p;
}
template <class T>
static inline T __ldcs(const T *p)
{
    return *p;
}
template <class T>
static inline T __ldcg(const T *p)
{
    return *p;
}
template <class T>
static inline void __stcs(T *p, T v)
{
    *p = v;
}

static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
static inline int __popcll(unsigned long long v)
{
    return __builtin_popcountll(v);
}
static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
static inline int __ffsll(long long v)
{
    return __builtin_ffsll(v);
}
static inline int __clz(int v)
{
    return v ? __builtin_clz((unsigned)v) : 32;
}
static inline int __clzll(long long v)
{
    return v ? __builtin_clzll((unsigned long long)v) : 64;
}
static inline unsigned __brev(unsigned v)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= (v >> i & 1u) << (31 - i);
    return r;
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
static inline int __mulhi(int a, int b)
{
    return (int)((long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by)
{
    return (unsigned)((((unsigned long long)high << 32 | low) << (by & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by)
{
    return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31));
}

/* Names that a newer C library has too. */
#define rsqrtf    rm_rsqrtf
#define rsqrt     rm_rsqrt
#define rcbrtf    rm_rcbrtf
#define sinpif    rm_sinpif
#define cospif    rm_cospif
#define sinpi     rm_sinpi
#define cospi     rm_cospi
#define sincospif rm_sincospif
#define sincospi  rm_sincospi

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}
static inline float __frsqrt_rn(float x)
{
    return (float)(1.0 / sqrt((double)x));
}
static inline float rcbrtf(float x)
{
    return 1.0f / cbrtf(x);
}
static inline float sinpif(float x)
{
    return (float)sin(M_PI * remainder((double)x, 2.0));
}
static inline float cospif(float x)
{
    return (float)cos(M_PI * remainder((double)x, 2.0));
}
static inline double sinpi(double x)
{
    return sin(M_PI * remainder(x, 2.0));
}
static inline double cospi(double x)
{
    return cos(M_PI * remainder(x, 2.0));
}
static inline void sincospif(float x, float *s, float *c)
{
    *s = sinpif(x);
    *c = cospif(x);
}
static inline void sincospi(double x, double *s, double *c)
{
    *s = sinpi(x);
    *c = cospi(x);
}
static inline float __saturatef(float x)
{
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
/* The C library declares these names as its own. */
#define __expf(x)          expf(x)
#define __exp10f(x)        powf(10.0f, x)
#define __logf(x)          logf(x)
#define __log2f(x)         log2f(x)
#define __sinf(x)          sinf(x)
#define __cosf(x)          cosf(x)
#define __sincosf(x, s, c) sincosf(x, s, c)
#define __powf(x, y)       powf(x, y)
#define __tanhf(x)         tanhf(x)
static inline float __fdividef(float x, float y)
{
    return x / y;
}

/* Operations that nvcc neither fuses nor reorders. */
#define RM_ROUNDED(suffix, type, fused)                                                            \
    static inline type __##suffix##add_rn(type a, type b)                                          \
    {                                                                                              \
        return a + b;                                                                              \
    }                                                                                              \
    static inline type __##suffix##mul_rn(type a, type b)                                          \
    {                                                                                              \
        return a * b;                                                                              \
    }                                                                                              \
    static inline type __##suffix##sub_rn(type a, type b)                                          \
    {                                                                                              \
        return a - b;                                                                              \
    }                                                                                              \
    static inline type __##suffix##div_rn(type a, type b)                                          \
    {                                                                                              \
        return a / b;                                                                              \
    }
RM_ROUNDED(f, float, fmaf)
RM_ROUNDED(d, double, fma)
#undef RM_ROUNDED
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}
static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
static inline double __dsqrt_rn(double x)
{
    return sqrt(x);
}
static inline float __frcp_rn(float x)
{
    return 1.0f / x;
}

static inline int __float2int_rn(float x)
{
    return (int)rintf(x);
}
static inline int __float2int_rz(float x)
{
    return (int)x;
}
static inline int __float2int_rd(float x)
{
    return (int)floorf(x);
}
static inline int __float2int_ru(float x)
{
    return (int)ceilf(x);
}
static inline unsigned __float2uint_rn(float x)
{
    return (unsigned)rintf(x);
}
static inline unsigned __float2uint_rz(float x)
{
    return (unsigned)x;
}
static inline float __int2float_rn(int x)
{
    return (float)x;
}
static inline float __uint2float_rn(unsigned x)
{
    return (float)x;
}
static inline double __uint2double_rn(unsigned x)
{
    return (double)x;
}
static inline float __double2float_rn(double x)
{
    return (float)x;
}

#endif
