/* cuda_bf16: __nv_bfloat16, a float with 8 bits of mantissa. */
#ifndef RM_TESTS_CUDA_EMULATION_CUDA_BF16_H
#define RM_TESTS_CUDA_EMULATION_CUDA_BF16_H

#include "cuda_runtime.h"
#include "half.h"

struct __nv_bfloat16 {
    uint16_t bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float v) : bits(rm_emulated::to_bf16(v))
    {
    }
    operator float() const
    {
        return rm_emulated::from_bf16(bits);
    }
};
static_assert(sizeof(__nv_bfloat16) == 2, "two bytes");

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 __float2bfloat16(float v)
{
    return __nv_bfloat16(v);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float v)
{
    return __nv_bfloat16(v);
}
static inline float __bfloat162float(__nv_bfloat16 v)
{
    return (float)v;
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v)
{
    return v.bits;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 v;
    v.bits = bits;
    return v;
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v)
{
    return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)};
}
static inline float2 __bfloat1622float2(__nv_bfloat162 v)
{
    return {(float)v.x, (float)v.y};
}
static inline float __low2float(__nv_bfloat162 v)
{
    return (float)v.x;
}
static inline float __high2float(__nv_bfloat162 v)
{
    return (float)v.y;
}
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return {x, y};
}

RM_HALF_ARITHMETIC(__nv_bfloat16, __nv_bfloat16, (float))

#endif
