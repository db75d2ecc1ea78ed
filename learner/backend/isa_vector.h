/* isa_vector: the few vector operations that compilers do not generate, on one register of the
 * level. For *.isa.c files only. */
#ifndef RM_LEARNER_BACKEND_ISA_VECTOR_H
#define RM_LEARNER_BACKEND_ISA_VECTOR_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)

#define VEC_FLOATS 16
typedef __m512 vec;
typedef __m512i vec64; /* VEC_FLOATS / 2 words of 64 bits */
#define vec_zero()        _mm512_setzero_ps()
#define vec_set(x)        _mm512_set1_ps(x)
#define vec_load(p)       _mm512_loadu_ps(p)
#define vec_store(p, v)   _mm512_storeu_ps(p, v)
#define vec_all(x)        _mm512_set1_ps(x)
#define vec_add(a, b)     _mm512_add_ps(a, b)
#define vec_max(a, b)     _mm512_max_ps(a, b)
#define vec_fma(a, b, c)  _mm512_fmadd_ps(a, b, c)
#define vec64_set(x)      _mm512_set1_epi64((long long)(x))
#define vec64_load(p)     _mm512_loadu_si512(p)
#define vec64_store(p, v) _mm512_storeu_si512(p, v)
#define vec64_mul32(a, b) _mm512_mul_epu32(a, b)
#define vec64_high(a)     _mm512_srli_epi64(a, 32)
#define vec64_xor(a, b)   _mm512_xor_si512(a, b)

/* A mask of the first floats of a vector, 1 to VEC_FLOATS; the others are not touched, and read as
 * 0. */
typedef __mmask16 vec_mask;
#define vec_load_first(p, mask)     _mm512_maskz_loadu_ps(mask, p)
#define vec_store_first(p, v, mask) _mm512_mask_storeu_ps(p, mask, v)

static inline vec_mask vec_first(uint32_t n)
{
    return (vec_mask)(0xffffu >> (VEC_FLOATS - n));
}

static inline float vec_sum(vec v)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

static inline __m128 vec_four_most(vec v)
{
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    return _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
}

#elif defined(__AVX2__)

#define VEC_FLOATS                  8
typedef __m256 vec;
typedef __m256i vec64;
#define vec_zero()                  _mm256_setzero_ps()
#define vec_set(x)                  _mm256_set1_ps(x)
#define vec_load(p)                 _mm256_loadu_ps(p)
#define vec_store(p, v)             _mm256_storeu_ps(p, v)
#define vec_all(x)                  _mm256_set1_ps(x)
#define vec_add(a, b)               _mm256_add_ps(a, b)
#define vec_max(a, b)               _mm256_max_ps(a, b)
#define vec_fma(a, b, c)            _mm256_fmadd_ps(a, b, c)
#define vec64_set(x)                _mm256_set1_epi64x((long long)(x))
#define vec64_load(p)               _mm256_loadu_si256((const __m256i *)(p))
#define vec64_store(p, v)           _mm256_storeu_si256((__m256i *)(p), v)
#define vec64_mul32(a, b)           _mm256_mul_epu32(a, b)
#define vec64_high(a)               _mm256_srli_epi64(a, 32)
#define vec64_xor(a, b)             _mm256_xor_si256(a, b)

typedef __m256i vec_mask;
#define vec_load_first(p, mask)     _mm256_maskload_ps(p, mask)
#define vec_store_first(p, v, mask) _mm256_maskstore_ps(p, mask, v)

static inline vec_mask vec_first(uint32_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline float vec_sum(vec v)
{
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

static inline __m128 vec_four_most(vec v)
{
    return _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}

#else

#define VEC_FLOATS        4
typedef __m128 vec;
typedef __m128i vec64;
#define vec_zero()        _mm_setzero_ps()
#define vec_set(x)        _mm_set1_ps(x)
#define vec_load(p)       _mm_loadu_ps(p)
#define vec_store(p, v)   _mm_storeu_ps(p, v)
#define vec_all(x)        _mm_set1_ps(x)
#define vec_add(a, b)     _mm_add_ps(a, b)
#define vec_max(a, b)     _mm_max_ps(a, b)
#define vec_fma(a, b, c)  _mm_add_ps(_mm_mul_ps(a, b), c)
#define vec64_set(x)      _mm_set1_epi64x((long long)(x))
#define vec64_load(p)     _mm_loadu_si128((const __m128i *)(p))
#define vec64_store(p, v) _mm_storeu_si128((__m128i *)(p), v)
#define vec64_mul32(a, b) _mm_mul_epu32(a, b)
#define vec64_high(a)     _mm_srli_epi64(a, 32)
#define vec64_xor(a, b)   _mm_xor_si128(a, b)

typedef uint32_t vec_mask; /* SSE has no masks: the number of floats */

static inline vec_mask vec_first(uint32_t n)
{
    return n;
}

static inline vec vec_load_first(const float *p, vec_mask n)
{
    float x[VEC_FLOATS] = {0};
    memcpy(x, p, n * sizeof *p);
    return vec_load(x);
}

static inline void vec_store_first(float *p, vec v, vec_mask n)
{
    float x[VEC_FLOATS];
    vec_store(x, v);
    memcpy(p, x, n * sizeof *p);
}

static inline float vec_sum(vec v)
{
    __m128 q = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

static inline __m128 vec_four_most(vec v)
{
    return v;
}

#endif

/* The largest number; any, if one is no number. */
static inline float vec_most(vec v)
{
    __m128 q = vec_four_most(v);
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

#endif
