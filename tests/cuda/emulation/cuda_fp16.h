/* cuda_fp16: __half, 11 bits of mantissa and 5 of exponent. */
#ifndef RM_TESTS_CUDA_EMULATION_CUDA_FP16_H
#define RM_TESTS_CUDA_EMULATION_CUDA_FP16_H

#include "cuda_runtime.h"
#include "half.h"

struct __half {
    uint16_t bits;
    __half() = default;
    __half(float v) : bits(rm_emulated::to_fp16(v))
    {
    }
    operator float() const
    {
        return rm_emulated::from_fp16(bits);
    }
};
static_assert(sizeof(__half) == 2, "two bytes");

struct alignas(4) __half2 {
    __half x, y;
};
typedef __half half;
typedef __half2 half2;

static inline __half __float2half(float v)
{
    return __half(v);
}
static inline __half __float2half_rn(float v)
{
    return __half(v);
}
static inline float __half2float(__half v)
{
    return (float)v;
}
static inline unsigned short __half_as_ushort(__half v)
{
    return v.bits;
}
static inline __half __ushort_as_half(unsigned short bits)
{
    __half v;
    v.bits = bits;
    return v;
}
static inline __half2 __floats2half2_rn(float x, float y)
{
    return {__half(x), __half(y)};
}
static inline __half2 __float22half2_rn(float2 v)
{
    return {__half(v.x), __half(v.y)};
}
static inline float2 __half22float2(__half2 v)
{
    return {(float)v.x, (float)v.y};
}
static inline float __low2float(__half2 v)
{
    return (float)v.x;
}
static inline float __high2float(__half2 v)
{
    return (float)v.y;
}
static inline __half2 __halves2half2(__half x, __half y)
{
    return {x, y};
}

RM_HALF_ARITHMETIC(__half, __half, (float))

#endif
