/* half: conversions between float and the two 16-bit formats, to nearest even. */
#ifndef RM_TESTS_CUDA_EMULATION_HALF_H
#define RM_TESTS_CUDA_EMULATION_HALF_H

#include <stdint.h>
#include <string.h>

namespace rm_emulated
{
static inline uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static inline float float_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static inline bool is_nan(uint32_t u)
{
    return (u & 0x7fffffffu) > 0x7f800000u;
}

/* Rounds off the lowest `bits` of the mantissa. */
static inline uint32_t rounded(uint32_t u, unsigned bits)
{
    const uint32_t half = (1u << (bits - 1)) - 1 + (u >> bits & 1u);
    return is_nan(u) ? u : (u + half) & ~((1u << bits) - 1);
}

static inline uint16_t to_bf16(float v)
{
    const uint32_t u = bits_of(v);
    return is_nan(u) ? 0x7fff : (uint16_t)(rounded(u, 16) >> 16);
}

static inline float from_bf16(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

static inline uint16_t to_fp16(float v)
{
    const uint32_t u = bits_of(v), sign = u >> 16 & 0x8000u, magnitude = u & 0x7fffffffu;
    if (is_nan(u))
        return 0x7fff;
    if (magnitude >= 0x477ff000u) /* 65520 and above */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: steps of 2^-24, which adding 0.5 rounds to */
        const float scaled = float_of(magnitude) + 0.5f;
        return (uint16_t)(sign | (bits_of(scaled) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((rounded(magnitude, 13) - 0x38000000u) >> 13));
}

static inline float from_fp16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u)
        return float_of(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x0400u) {
        const float v = (float)magnitude * 0x1p-24f;
        return sign ? -v : v;
    }
    return float_of(sign | ((magnitude << 13) + 0x38000000u));
}

/* To 10 bits of mantissa, as products in TF32 take their inputs. */
static inline float to_tf32(float v)
{
    return float_of(rounded(bits_of(v), 13));
}
} // namespace rm_emulated

/* Arithmetic of a 16-bit type is float's, rounded after each operation. */
#define RM_HALF_ARITHMETIC(type, to, from)                                                         \
    static inline type operator-(type a)                                                           \
    {                                                                                              \
        return to(-from(a));                                                                       \
    }                                                                                              \
    RM_HALF_OPERATOR(type, to, from, +)                                                            \
    RM_HALF_OPERATOR(type, to, from, -)                                                            \
    RM_HALF_OPERATOR(type, to, from, *)                                                            \
    RM_HALF_OPERATOR(type, to, from, /)                                                            \
    RM_HALF_COMPARISON(type, from, <)                                                              \
    RM_HALF_COMPARISON(type, from, >)                                                              \
    RM_HALF_COMPARISON(type, from, <=)                                                             \
    RM_HALF_COMPARISON(type, from, >=)                                                             \
    RM_HALF_COMPARISON(type, from, ==)                                                             \
    RM_HALF_COMPARISON(type, from, !=)                                                             \
    static inline type __hadd(type a, type b)                                                      \
    {                                                                                              \
        return a + b;                                                                              \
    }                                                                                              \
    static inline type __hsub(type a, type b)                                                      \
    {                                                                                              \
        return a - b;                                                                              \
    }                                                                                              \
    static inline type __hmul(type a, type b)                                                      \
    {                                                                                              \
        return a * b;                                                                              \
    }                                                                                              \
    static inline type __hfma(type a, type b, type c)                                              \
    {                                                                                              \
        return to(from(a) * from(b) + from(c));                                                    \
    }                                                                                              \
    static inline type __hmax(type a, type b)                                                      \
    {                                                                                              \
        return a > b ? a : b;                                                                      \
    }                                                                                              \
    static inline bool __hisnan(type a)                                                            \
    {                                                                                              \
        return a != a;                                                                             \
    }
#define RM_HALF_OPERATOR(type, to, from, op)                                                       \
    static inline type operator op(type a, type b)                                                 \
    {                                                                                              \
        return to(from(a) op from(b));                                                             \
    }                                                                                              \
    static inline type &operator op##=(type &a, type b)                                            \
    {                                                                                              \
        return a = a op b;                                                                         \
    }
#define RM_HALF_COMPARISON(type, from, op)                                                         \
    static inline bool operator op(type a, type b)                                                 \
    {                                                                                              \
        return from(a) op from(b);                                                                 \
    }

/* A 16-bit type, a pair of them, and the functions of cuda_bf16.h and cuda_fp16.h whose names have
 * `name` in them. */
#define RM_HALF_TYPE(type, pair, name, into, from)                                                 \
    struct type {                                                                                  \
        uint16_t bits;                                                                             \
        type() = default;                                                                          \
        type(float v) : bits(into(v))                                                              \
        {                                                                                          \
        }                                                                                          \
        operator float() const                                                                     \
        {                                                                                          \
            return from(bits);                                                                     \
        }                                                                                          \
    };                                                                                             \
    static_assert(sizeof(type) == 2, "two bytes");                                                 \
    struct alignas(4) pair {                                                                       \
        type x, y;                                                                                 \
    };                                                                                             \
    static inline type __float2##name(float v)                                                     \
    {                                                                                              \
        return type(v);                                                                            \
    }                                                                                              \
    static inline type __float2##name##_rn(float v)                                                \
    {                                                                                              \
        return type(v);                                                                            \
    }                                                                                              \
    static inline float __##name##2float(type v)                                                   \
    {                                                                                              \
        return (float)v;                                                                           \
    }                                                                                              \
    static inline unsigned short __##name##_as_ushort(type v)                                      \
    {                                                                                              \
        return v.bits;                                                                             \
    }                                                                                              \
    static inline type __ushort_as_##name(unsigned short bits)                                     \
    {                                                                                              \
        type v;                                                                                    \
        v.bits = bits;                                                                             \
        return v;                                                                                  \
    }                                                                                              \
    static inline pair __floats2##name##2_rn(float x, float y)                                     \
    {                                                                                              \
        return {type(x), type(y)};                                                                 \
    }                                                                                              \
    static inline pair __float22##name##2_rn(float2 v)                                             \
    {                                                                                              \
        return {type(v.x), type(v.y)};                                                             \
    }                                                                                              \
    static inline float2 __##name##22float2(pair v)                                                \
    {                                                                                              \
        return {(float)v.x, (float)v.y};                                                           \
    }                                                                                              \
    static inline float __low2float(pair v)                                                        \
    {                                                                                              \
        return (float)v.x;                                                                         \
    }                                                                                              \
    static inline float __high2float(pair v)                                                       \
    {                                                                                              \
        return (float)v.y;                                                                         \
    }                                                                                              \
    static inline pair __halves2##name##2(type x, type y)                                          \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    RM_HALF_ARITHMETIC(type, type, (float))

#endif
