/* Attention of one head over the rows of one sample (Vaswani 2017, eq. 1). Keys are processed in
 * blocks with a running maximum and sum per query (Milakov and Gimelshein 2018; Dao 2022, algorithm
 * 1), so that scores never leave the first-level cache. The backward pass recomputes the scores
 * from the logarithm of their sum. Keys and values of a block are transposed once, so that every
 * product runs along rows. */
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"
#include "learner/backend/isa_vector.h"

#include <math.h>

#define KEYS    RM_ATTENTION_KEYS /* the last block is filled up to registers of sixteen */
#define QUERIES 24u               /* at a time */

#ifdef __AVX2__
#define TILE_ROWS 6u
#else
#define TILE_ROWS 4u
#endif
#define TILE_ROWS_MOST (2 * TILE_ROWS) /* of one vector, which leaves registers for more sums */

#define INLINE static inline __attribute__((always_inline))

/* c(rows, vectors) (+)= A B, sums in registers: rows and vectors are constants where inlined. */
INLINE void tile(const float *a, size_t row, size_t step, const float *b, size_t ldb,
                 const uint32_t rows, uint32_t inner, const uint32_t vectors, float *c, size_t ldc,
                 bool add)
{
    vec sum[TILE_ROWS_MOST][2];
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
    for (; vectors == 1 && r + 2 * TILE_ROWS <= rows; r += 2 * TILE_ROWS)
        tile(a + r * row, row, step, b, ldb, 2 * TILE_ROWS, inner, vectors, c + r * ldc, ldc, add);
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

typedef float four __attribute__((vector_size(16)));

static four four_at(const float *x)
{
    four v;
    __builtin_memcpy(&v, x, sizeof v);
    return v;
}

/* t(4, 4) = x(4, 4)^T, in rows of KEYS. */
static void transpose_four(const float *x, size_t stride, float *t)
{
    const four a = four_at(x), b = four_at(x + stride), c = four_at(x + 2 * stride),
               d = four_at(x + 3 * stride);
    const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
               ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7),
               cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const four out[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                         __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                         __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5),
                         __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7)};
    for (uint32_t i = 0; i < 4; i++)
        __builtin_memcpy(t + i * KEYS, &out[i], sizeof out[i]);
}

/* t(width, n) = x(rows, width)^T, zeros behind the rows, in rows of KEYS. */
static void transpose(const float *x, uint32_t rows, uint32_t n, uint32_t width, size_t stride,
                      float *t)
{
    const uint32_t fours = width % 4 ? 0 : rows / 4 * 4; /* rows that go four at a time */
    for (uint32_t r = 0; r < fours; r += 4)
        for (uint32_t i = 0; i < width; i += 4)
            transpose_four(x + r * stride + i, stride, t + i * KEYS + r);
    for (uint32_t i = 0; i < width; i++) {
        for (uint32_t r = fours; r < rows; r++)
            t[i * KEYS + r] = x[r * stride + i];
        for (uint32_t r = rows; r < n; r++)
            t[i * KEYS + r] = 0.0f;
    }
}

/* Number of the block's keys, from `first` on, that query `query` sees. */
static uint32_t seen(const struct rm_attention_head *h, uint32_t query, uint32_t first,
                     uint32_t keys)
{
    if (!h->causal)
        return keys;
    const uint32_t all = rm_attention_seen(h->rows, h->queries, query);
    return all >= first + keys ? keys : all > first ? all - first : 0;
}

static uint32_t filled(uint32_t keys)
{
    return (keys + RM_LANES - 1) / RM_LANES * RM_LANES;
}

/* n is a multiple of sixteen. */
static float maximum(const float *x, uint32_t n, float start)
{
    vec most = vec_all(start);
    for (uint32_t at = 0; at < n; at += VEC_FLOATS)
        most = vec_max(most, vec_load(x + at));
    return vec_most(most);
}

/* A tree over sixteen lanes, the same on all levels. */
INLINE float tree(vec sum[RM_LANES / VEC_FLOATS])
{
    for (uint32_t half = RM_LANES / VEC_FLOATS / 2; half > 0; half /= 2)
        for (uint32_t v = 0; v < half; v++)
            sum[v] = vec_add(sum[v], sum[v + half]);
    return vec_sum(sum[0]);
}

static float total(const float *x, uint32_t n)
{
    vec sum[RM_LANES / VEC_FLOATS];
    for (uint32_t v = 0; v < RM_LANES / VEC_FLOATS; v++)
        sum[v] = vec_load(x + v * VEC_FLOATS);
    for (uint32_t at = RM_LANES; at < n; at += RM_LANES)
        for (uint32_t v = 0; v < RM_LANES / VEC_FLOATS; v++)
            sum[v] = vec_add(sum[v], vec_load(x + at + v * VEC_FLOATS));
    return tree(sum);
}

/* Turns one query's scores into weights against its running maximum, and scales its earlier sums
 * down; those of a query that has seen nothing are 0 and stay 0. */
static void weigh(float *scores, uint32_t n, uint32_t visible, float scale, float *state, float *o,
                  uint32_t width)
{
    for (uint32_t j = 0; j < n; j++)
        scores[j] = j < visible ? scale * scores[j] : -INFINITY;
    const float most = maximum(scores, n, state[0]);
    for (uint32_t j = 0; j < n; j++)
        scores[j] = exp_of(scores[j] - most);
    const float sum = total(scores, n), kept = exp_of(state[0] - most);
    state[1] = RM_FMA(state[1], kept, sum);
    state[0] = most;
    for (uint32_t i = 0; i < width; i++)
        o[i] *= kept;
}

/* Drops some of a query's weights for rows from `first` on. */
static void drop(const struct rm_attention_head *h, uint32_t query, uint32_t first, uint32_t n,
                 float *scores)
{
    const struct rm_dropout *d = h->dropout;
    const uint32_t key = rm_attention_row_key(d, h->sample, h->head, query), below = d->below;
    const float scale = d->scale;
    for (uint32_t j = 0; j < n; j++)
        scores[j] *= rm_dropout_kept(key, first + j, below, scale);
}

static float kept_alone(const struct rm_attention_head *h, uint32_t query)
{
    const struct rm_dropout *d = h->dropout;
    if (!d->below)
        return 1.0f;
    const uint32_t key = rm_attention_row_key(d, h->sample, h->head, query);
    return rm_dropout_kept(key, query, d->below, d->scale);
}

INLINE float dot(const float *x, const float *y, uint32_t n)
{
    vec lanes[RM_LANES / VEC_FLOATS];
    uint32_t at = 0;
    for (uint32_t v = 0; v < RM_LANES / VEC_FLOATS; v++)
        lanes[v] = vec_zero();
    for (; at + RM_LANES <= n; at += RM_LANES)
        for (uint32_t v = 0; v < RM_LANES / VEC_FLOATS; v++)
            lanes[v] = vec_fma(vec_load(x + at + v * VEC_FLOATS), vec_load(y + at + v * VEC_FLOATS),
                               lanes[v]);
    float sum = at ? tree(lanes) : 0.0f;
    for (; at < n; at++)
        sum = RM_FMA(x[at], y[at], sum);
    return sum;
}

static void begin_with_nothing(const struct rm_attention_head *h, uint32_t query)
{
    float *state = h->log_sum + (size_t)(query - h->kept) * h->log_stride;
    float *o = h->o + (size_t)(query - h->kept) * h->o_stride;
    const uint32_t width = h->width;
    state[0] = -INFINITY;
    state[1] = 0.0f;
    for (uint32_t i = 0; i < width; i++)
        o[i] = 0.0f;
}

/* A query of a history begins with itself, the first of what it sees. */
static void begin_with_itself(const struct rm_attention_head *h, uint32_t query)
{
    const size_t row = query - h->kept, at = row * h->stride;
    float *state = h->log_sum + row * h->log_stride;
    float *restrict o = h->o + row * h->o_stride;
    const float *restrict v = h->v + at;
    const float kept = kept_alone(h, query);
    const uint32_t width = h->width;
    state[0] = h->scale * dot(h->q + at, h->k + at, width);
    state[1] = 1.0f;
    for (uint32_t i = 0; i < width; i++)
        o[i] = kept * v[i];
}

/* A block of transposed keys. */
struct block {
    const float *kt, *vt, *v;
    size_t v_stride;
    uint32_t first, keys;
};

/* The block's keys and values; `own` is room for the keys. */
static struct block block_of(const struct rm_attention_head *h, uint32_t first, uint32_t keys,
                             float *own)
{
    if (!h->kept_keys) {
        const size_t at = (size_t)first * h->stride;
        transpose(h->k + at, keys, filled(keys), h->width, h->stride, own);
        return (struct block){own, NULL, h->v + at, h->stride, first, keys};
    }
    float *kt = h->kept_keys + (size_t)first * h->o_stride;
    float *v = h->kept_values + (size_t)first * h->o_stride;
    const uint32_t had = h->kept > first ? h->kept - first : 0;
    if (had < keys) {
        const size_t at = (size_t)(first + had - h->kept) * h->stride;
        transpose(h->k + at, keys - had, filled(keys) - had, h->width, h->stride, kt + had);
        for (uint32_t r = had; r < keys; r++)
            __builtin_memcpy(v + (size_t)r * h->width, h->v + at + (r - had) * (size_t)h->stride,
                             h->width * sizeof *v);
    }
    return (struct block){kt, NULL, v, h->width, first, keys};
}

/* What queries [from, to) take from a block. */
static void attend(const struct rm_attention_head *h, const struct block *b, uint32_t from,
                   uint32_t to)
{
    _Alignas(64) float scores[QUERIES * KEYS];
    const uint32_t width = h->width;
    for (uint32_t at = from; at < to; at += QUERIES) {
        uint32_t queries = to - at < QUERIES ? to - at : QUERIES;
        const uint32_t keys = seen(h, at + queries - 1, b->first, b->keys), n = filled(keys);
        if (keys == 0)
            continue;
        const size_t row = at - h->kept;
        float *o = h->o + row * h->o_stride;
        product(h->q + row * h->stride, h->stride, 1, b->kt, KEYS, queries, width, n, scores, KEYS,
                false);
        for (uint32_t r = 0; r < queries; r++) {
            weigh(scores + r * KEYS, n, seen(h, at + r, b->first, keys), h->scale,
                  h->log_sum + (row + r) * h->log_stride, o + r * (size_t)h->o_stride, width);
            if (h->dropout->below)
                drop(h, at + r, b->first, n, scores + r * KEYS);
        }
        product(scores, KEYS, 1, b->v, b->v_stride, queries, keys, width, o, h->o_stride, true);
    }
}

void RM_ISA_NAME(attention)(const struct rm_attention_head *h)
{
    _Alignas(64) float kt[RM_ATTENTION_WIDTH_MAX * KEYS];
    const uint32_t context = rm_attention_context(h->rows, h->queries);
    for (uint32_t r = h->first; r < h->rows; r++)
        if (r < context)
            begin_with_nothing(h, r);
        else
            begin_with_itself(h, r);
    for (uint32_t first = 0; first < context; first += KEYS) {
        uint32_t keys = context - first < KEYS ? context - first : KEYS;
        const struct block b = block_of(h, first, keys, kt);
        /* earlier rows see nothing of this block */
        const uint32_t from = h->causal && first > h->first ? first : h->first;
        /* a single query sees as much as the last row before it */
        if (h->queries > 1)
            attend(h, &b, from, context);
        attend(h, &b, h->queries > 1 ? context : from, h->rows);
    }
    for (uint32_t r = h->first; r < h->rows; r++) {
        float *state = h->log_sum + (size_t)(r - h->kept) * h->log_stride;
        float *o = h->o + (size_t)(r - h->kept) * h->o_stride, share = 1.0f / state[1];
        const uint32_t width = h->width;
        for (uint32_t i = 0; i < width; i++)
            o[i] *= share;
        state[0] += rm_log_of(state[1]);
    }
}

/* Recomputes the weights of one query, and the gradient of its scores: P (dP - <dO, O>), times the
 * scale. Dropout scales dP, and the weights that the values' gradients take. */
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

/* The same with dropout, for rows from `first` on. */
static void weigh_dropped(const struct rm_attention_head *h, uint32_t query, uint32_t first,
                          float *scores, float *d, uint32_t n, uint32_t visible)
{
    const float *state = h->log_sum + (size_t)query * h->log_stride;
    const uint32_t key = rm_attention_row_key(h->dropout, h->sample, h->head, query);
    const uint32_t below = h->dropout->below;
    const float scale = h->scale, log_sum = state[0], delta = state[1], more = h->dropout->scale;
    for (uint32_t j = 0; j < n; j++) {
        const float kept = rm_dropout_kept(key, first + j, below, more);
        float p = exp_of(RM_FMA(scale, scores[j], -log_sum));
        p = j < visible ? p : 0.0f;
        d[j] = p * (kept * d[j] - delta) * scale;
        scores[j] = p * kept;
    }
}

/* d_q, d_k and d_v of a query by itself. */
static void begin_back(const struct rm_attention_head *h, uint32_t query)
{
    const size_t at = (size_t)query * h->stride;
    const float *restrict q = h->q + at, *restrict k = h->k + at;
    const float *restrict d_o = h->d_o + (size_t)query * h->o_stride;
    float *restrict d_q = h->d_q + at, *restrict d_k = h->d_k + at, *restrict d_v = h->d_v + at;
    const float *state = h->log_sum + (size_t)query * h->log_stride;
    const uint32_t width = h->width;
    const float kept = kept_alone(h, query), score = dot(q, k, width);
    const float p = exp_of(RM_FMA(h->scale, score, -state[0]));
    const float d = p * (kept * dot(d_o, h->v + at, width) - state[1]) * h->scale;
    for (uint32_t i = 0; i < width; i++) {
        d_q[i] = d * k[i];
        d_k[i] = d * q[i];
        d_v[i] = p * kept * d_o[i];
    }
}

/* Adds to the gradients of keys and values. */
static void attend_back(const struct rm_attention_head *h, const struct block *b, uint32_t from,
                        uint32_t to, bool begins)
{
    _Alignas(64) float scores[QUERIES * KEYS], d[QUERIES * KEYS];
    const uint32_t width = h->width;
    const size_t here = (size_t)b->first * h->stride;
    for (uint32_t at = from; at < to; at += QUERIES) {
        uint32_t queries = to - at < QUERIES ? to - at : QUERIES;
        const uint32_t keys = seen(h, at + queries - 1, b->first, b->keys), n = filled(keys);
        const float *q = h->q + (size_t)at * h->stride;
        const float *d_o = h->d_o + (size_t)at * h->o_stride;
        if (keys == 0)
            continue;
        product(q, h->stride, 1, b->kt, KEYS, queries, width, n, scores, KEYS, false);
        product(d_o, h->o_stride, 1, b->vt, KEYS, queries, width, n, d, KEYS, false);
        for (uint32_t r = 0; r < queries; r++) {
            const float *state = h->log_sum + (size_t)(at + r) * h->log_stride;
            const uint32_t visible = seen(h, at + r, b->first, keys);
            if (h->dropout->below)
                weigh_dropped(h, at + r, b->first, scores + r * KEYS, d + r * KEYS, n, visible);
            else
                weigh_again(scores + r * KEYS, d + r * KEYS, n, visible, h->scale, state[0],
                            state[1]);
        }
        product(scores, 1, KEYS, d_o, h->o_stride, keys, queries, width, h->d_v + here, h->stride,
                true);
        product(d, 1, KEYS, q, h->stride, keys, queries, width, h->d_k + here, h->stride, true);
        product(d, KEYS, 1, h->k + here, h->stride, queries, keys, width,
                h->d_q + (size_t)at * h->stride, h->stride, !begins);
    }
}

static void clear_rows(float *x, uint32_t rows, uint32_t width, size_t stride)
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < width; i++)
            x[r * stride + i] = 0.0f;
}

void RM_ISA_NAME(attention_dx)(const struct rm_attention_head *h)
{
    _Alignas(64) float kt[RM_ATTENTION_WIDTH_MAX * KEYS], vt[RM_ATTENTION_WIDTH_MAX * KEYS];
    const uint32_t context = rm_attention_context(h->rows, h->queries);
    clear_rows(h->d_q, h->first, h->width, h->stride);
    for (uint32_t r = h->first; r < h->rows; r++)
        h->log_sum[(size_t)r * h->log_stride + 1] =
            dot(h->made + (size_t)r * h->o_stride, h->d_o + (size_t)r * h->o_stride, h->width);
    for (uint32_t r = context; r < h->rows; r++)
        begin_back(h, r);
    for (uint32_t first = 0; first < context; first += KEYS) {
        uint32_t keys = context - first < KEYS ? context - first : KEYS;
        const struct block b = {.kt = kt, .vt = vt, .first = first, .keys = keys};
        const size_t here = (size_t)first * h->stride;
        transpose(h->k + here, keys, filled(keys), h->width, h->stride, kt);
        transpose(h->v + here, keys, filled(keys), h->width, h->stride, vt);
        clear_rows(h->d_k + here, keys, h->width, h->stride);
        clear_rows(h->d_v + here, keys, h->width, h->stride);
        attend_back(h, &b, h->causal && first > h->first ? first : h->first, context, first == 0);
        attend_back(h, &b, context, h->rows, false);
    }
}
