/* Attention of one head over the rows of one sample (Vaswani 2017, eq. 1). Keys are processed in
 * blocks with a running maximum and sum per query (Milakov and Gimelshein 2018; Dao 2022, algorithm
 * 1), so that scores never leave the first-level cache. The backward pass recomputes the scores
 * from the logarithm of their sum. Keys and values of a block are transposed once, so that every
 * product runs along rows. */
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"
#include "learner/backend/isa_vector.h"

#include <math.h>

#define KEYS    64u /* of a block; the last block is filled up to registers of sixteen */
#define QUERIES 24u /* at a time */

#ifdef __AVX2__
#define TILE_ROWS 6u
#else
#define TILE_ROWS 4u
#endif

#define INLINE static inline __attribute__((always_inline))

/* c(rows, vectors) (+)= A B, sums in registers: rows and vectors are constants where inlined. */
INLINE void tile(const float *a, size_t row, size_t step, const float *b, size_t ldb,
                 const uint32_t rows, uint32_t inner, const uint32_t vectors, float *c, size_t ldc,
                 bool add)
{
    vec sum[TILE_ROWS][2];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t v = 0; v < vectors; v++)
            sum[r][v] = add ? vec_load(c + r * ldc + v * VEC_FLOATS) : vec_zero();
    for (uint32_t k = 0; k < inner; k++) {
        vec bk[2];
        for (uint32_t v = 0; v < vectors; v++)
            bk[v] = vec_load(b + k * ldb + v * VEC_FLOATS);
        for (uint32_t r = 0; r < rows; r++) {
            vec ak = vec_set(a[r * row + k * step]);
            for (uint32_t v = 0; v < vectors; v++)
                sum[r][v] = vec_fma(ak, bk[v], sum[r][v]);
        }
    }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t v = 0; v < vectors; v++)
            vec_store(c + r * ldc + v * VEC_FLOATS, sum[r][v]);
}

INLINE void tiles_of(const float *a, size_t row, size_t step, const float *b, size_t ldb,
                     uint32_t rows, uint32_t inner, const uint32_t vectors, float *c, size_t ldc,
                     bool add)
{
    uint32_t r = 0;
    for (; r + TILE_ROWS <= rows; r += TILE_ROWS)
        tile(a + r * row, row, step, b, ldb, TILE_ROWS, inner, vectors, c + r * ldc, ldc, add);
    for (; r + 2 <= rows; r += 2)
        tile(a + r * row, row, step, b, ldb, 2, inner, vectors, c + r * ldc, ldc, add);
    if (r < rows)
        tile(a + r * row, row, step, b, ldb, 1, inner, vectors, c + r * ldc, ldc, add);
}

/* C(rows, cols) = A B, or is added to. A's element (r, k) is a[r * row + k * step]; B(inner, cols)
 * has rows of ldb floats. */
static void product(const float *a, size_t row, size_t step, const float *b, size_t ldb,
                    uint32_t rows, uint32_t inner, uint32_t cols, float *c, size_t ldc, bool add)
{
    uint32_t at = 0;
    for (; at + 2 * VEC_FLOATS <= cols; at += 2 * VEC_FLOATS)
        tiles_of(a, row, step, b + at, ldb, rows, inner, 2, c + at, ldc, add);
    for (; at + VEC_FLOATS <= cols; at += VEC_FLOATS)
        tiles_of(a, row, step, b + at, ldb, rows, inner, 1, c + at, ldc, add);
    for (uint32_t r = 0; at < cols && r < rows; r++)
        for (uint32_t i = at; i < cols; i++) {
            float sum = add ? c[r * ldc + i] : 0.0f;
            for (uint32_t k = 0; k < inner; k++)
                sum = RM_FMA(a[r * row + k * step], b[k * ldb + i], sum);
            c[r * ldc + i] = sum;
        }
}

/* t(width, n) = x(rows, width)^T, zeros behind the rows, in rows of KEYS. */
static void transpose(const float *x, uint32_t rows, uint32_t n, uint32_t width, size_t stride,
                      float *t)
{
    for (uint32_t i = 0; i < width; i++) {
        for (uint32_t r = 0; r < rows; r++)
            t[i * KEYS + r] = x[r * stride + i];
        for (uint32_t r = rows; r < n; r++)
            t[i * KEYS + r] = 0.0f;
    }
}

/* Number of the block's keys, from `first` on, that query `query` sees. */
static uint32_t seen(const struct rm_attention_head *h, uint32_t query, uint32_t first,
                     uint32_t keys)
{
    if (!h->causal || query >= first + keys - 1)
        return keys;
    return query < first ? 0 : query - first + 1;
}

static uint32_t filled(uint32_t keys)
{
    return (keys + RM_LANES - 1) / RM_LANES * RM_LANES;
}

static float maximum(const float *x, uint32_t n, float start)
{
    float m[RM_LANES], most = start;
    for (uint32_t i = 0; i < RM_LANES; i++)
        m[i] = x[i];
    for (uint32_t at = RM_LANES; at < n; at += RM_LANES)
        for (uint32_t i = 0; i < RM_LANES; i++)
            m[i] = m[i] > x[at + i] ? m[i] : x[at + i];
    for (uint32_t i = 0; i < RM_LANES; i++)
        most = most > m[i] ? most : m[i];
    return most;
}

static float total(const float *x, uint32_t n)
{
    float s[RM_LANES] = {0}, sum = 0.0f;
    for (uint32_t at = 0; at < n; at += RM_LANES)
        for (uint32_t i = 0; i < RM_LANES; i++)
            s[i] += x[at + i];
    for (uint32_t i = 0; i < RM_LANES; i++)
        sum += s[i];
    return sum;
}

/* Turns one query's scores into weights against its running maximum, and scales its earlier sums
 * down. */
static void weigh(float *scores, uint32_t n, uint32_t visible, float scale, bool first,
                  float *state, float *o, uint32_t width)
{
    for (uint32_t j = 0; j < n; j++)
        scores[j] = j < visible ? scale * scores[j] : -INFINITY;
    float most = maximum(scores, n, first ? -INFINITY : state[0]);
    for (uint32_t j = 0; j < n; j++)
        scores[j] = exp_of(scores[j] - most);
    float sum = total(scores, n), kept = first ? 0.0f : exp_of(state[0] - most);
    state[1] = first ? sum : RM_FMA(state[1], kept, sum);
    state[0] = most;
    if (!first)
        for (uint32_t i = 0; i < width; i++)
            o[i] *= kept;
}

void RM_ISA_NAME(attention)(const struct rm_attention_head *h)
{
    _Alignas(64) float kt[RM_ATTENTION_WIDTH_MAX * KEYS], scores[QUERIES * KEYS];
    const uint32_t width = h->width;
    for (uint32_t first = 0; first < h->rows; first += KEYS) {
        uint32_t keys = h->rows - first < KEYS ? h->rows - first : KEYS, n = filled(keys);
        transpose(h->k + (size_t)first * h->stride, keys, n, width, h->stride, kt);
        /* earlier queries see nothing of this block */
        for (uint32_t at = h->causal ? first : 0; at < h->rows; at += QUERIES) {
            uint32_t queries = h->rows - at < QUERIES ? h->rows - at : QUERIES;
            float *o = h->o + (size_t)at * h->o_stride;
            product(h->q + (size_t)at * h->stride, h->stride, 1, kt, KEYS, queries, width, n,
                    scores, KEYS, false);
            for (uint32_t r = 0; r < queries; r++)
                weigh(scores + r * KEYS, n, seen(h, at + r, first, keys), h->scale, first == 0,
                      h->log_sum + (size_t)(at + r) * h->log_stride, o + r * (size_t)h->o_stride,
                      width);
            product(scores, KEYS, 1, h->v + (size_t)first * h->stride, h->stride, queries, keys,
                    width, o, h->o_stride, first > 0);
        }
    }
    for (uint32_t r = 0; r < h->rows; r++) {
        float *state = h->log_sum + (size_t)r * h->log_stride;
        float *o = h->o + (size_t)r * h->o_stride, share = 1.0f / state[1];
        for (uint32_t i = 0; i < width; i++)
            o[i] *= share;
        state[0] += rm_log_of(state[1]);
    }
}

/* Recomputes the weights of one query, and the gradient of its scores: P (dP - <dO, O>), times the
 * scale. */
static void weigh_again(float *scores, float *d, uint32_t n, uint32_t visible, float scale,
                        float log_sum, float delta)
{
    for (uint32_t j = 0; j < n; j++) {
        float p = exp_of(RM_FMA(scale, scores[j], -log_sum));
        p = j < visible ? p : 0.0f;
        d[j] = p * (d[j] - delta) * scale;
        scores[j] = p;
    }
}

void RM_ISA_NAME(attention_dx)(const struct rm_attention_head *h)
{
    _Alignas(64) float kt[RM_ATTENTION_WIDTH_MAX * KEYS], vt[RM_ATTENTION_WIDTH_MAX * KEYS];
    _Alignas(64) float scores[QUERIES * KEYS], d[QUERIES * KEYS];
    const uint32_t width = h->width;
    for (uint32_t r = 0; r < h->rows; r++) {
        const float *o = h->made + (size_t)r * h->o_stride, *d_o = h->d_o + (size_t)r * h->o_stride;
        float delta = 0.0f;
        for (uint32_t i = 0; i < width; i++)
            delta = RM_FMA(o[i], d_o[i], delta);
        h->log_sum[(size_t)r * h->log_stride + 1] = delta;
    }
    for (uint32_t first = 0; first < h->rows; first += KEYS) {
        uint32_t keys = h->rows - first < KEYS ? h->rows - first : KEYS, n = filled(keys);
        size_t here = (size_t)first * h->stride;
        transpose(h->k + here, keys, n, width, h->stride, kt);
        transpose(h->v + here, keys, n, width, h->stride, vt);
        uint32_t start = h->causal ? first : 0;
        for (uint32_t at = start; at < h->rows; at += QUERIES) {
            uint32_t queries = h->rows - at < QUERIES ? h->rows - at : QUERIES;
            const float *q = h->q + (size_t)at * h->stride;
            const float *d_o = h->d_o + (size_t)at * h->o_stride;
            product(q, h->stride, 1, kt, KEYS, queries, width, n, scores, KEYS, false);
            product(d_o, h->o_stride, 1, vt, KEYS, queries, width, n, d, KEYS, false);
            for (uint32_t r = 0; r < queries; r++) {
                const float *state = h->log_sum + (size_t)(at + r) * h->log_stride;
                weigh_again(scores + r * KEYS, d + r * KEYS, n, seen(h, at + r, first, keys),
                            h->scale, state[0], state[1]);
            }
            product(scores, 1, KEYS, d_o, h->o_stride, keys, queries, width, h->d_v + here,
                    h->stride, at > start);
            product(d, 1, KEYS, q, h->stride, keys, queries, width, h->d_k + here, h->stride,
                    at > start);
            product(d, KEYS, 1, h->k + here, h->stride, queries, keys, width,
                    h->d_q + (size_t)at * h->stride, h->stride, first > 0);
        }
    }
}
