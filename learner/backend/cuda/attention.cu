/* Attention over the rows of each sample (Vaswani et al., 2017), with a running maximum and sum per
 * query (Milakov and Gimelshein, 2018; Dao, 2022), so that scores never leave the registers.
 *
 * A block has one head of one sample. Each of its warps owns some rows (queries; for the gradients
 * of keys and values: keys) and processes the rows of the other side 32 at a time, from shared
 * memory: one for each lane in products, one after another in sums over rows. Every sum has one
 * order; gradients of queries and of keys are two passes without atomics. */
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/ops.h"
#include "learner/backend/cuda/spans.h"

namespace
{

#define WARPS 4u
#define ROWS  32u /* of the other side at a time */

struct heads {
    struct rm_attention a;
    uint32_t width;
    float scale;
    const float *qkv, *o, *d_o;
    float *stats, *to;     /* to: o or d_qkv */
    const uint64_t *draws; /* as struct rm_cuda's `before` and `times`; NULL: none */
    uint64_t times;
};

/* The head of a block. Rows of q, k, v and their gradients are `stride` apart. */
struct head {
    uint32_t rows, width, stride;
    const float *q, *k, *v;
    size_t at, o_at; /* into qkv, and into o */
    float *stats;
};

__device__ struct head head_of(const struct heads &h)
{
    const uint32_t sample = blockIdx.x / h.a.heads, head = blockIdx.x % h.a.heads;
    const struct rm_span s = rm_span_of_sample(h.a.spans, sample);
    const size_t at = (size_t)s.from * 3 * h.a.units + (size_t)head * h.width;
    return {s.rows,
            h.width,
            3 * h.a.units,
            h.qkv + at,
            h.qkv + at + h.a.units,
            h.qkv + at + 2 * (size_t)h.a.units,
            at,
            (size_t)s.from * h.a.units + (size_t)head * h.width,
            h.stats + ((size_t)s.from * h.a.heads + head) * 2};
}

__host__ __device__ constexpr uint32_t fours(uint32_t width)
{
    return (width + 3) / 4 * 4;
}

/* Four more floats, so that lanes that each read their own row use different banks. */
__host__ __device__ constexpr uint32_t tile_stride(uint32_t width)
{
    return fours(width) + 4;
}

/* to(n, stride) = rows [first, first + n) of `from`, zeros beyond `rows` and `width`. */
__device__ void load_rows(const float *from, uint32_t stride, uint32_t first, uint32_t rows,
                          uint32_t width, uint32_t n, uint32_t to_stride, float *to,
                          uint32_t thread, uint32_t threads)
{
    const uint32_t wide = fours(width);
    for (uint32_t i = thread; i < n * wide; i += threads) {
        const uint32_t r = i / wide, c = i % wide;
        to[r * to_stride + c] =
            first + r < rows && c < width ? from[(size_t)(first + r) * stride + c] : 0.0f;
    }
}

/* Loads the block's tile of 32 rows; when it returns, no thread reads the previous tile. */
__device__ void load_tile(const float *from, uint32_t stride, uint32_t first, const struct head &h,
                          float *tile)
{
    __syncthreads();
    load_rows(from, stride, first, h.rows, h.width, ROWS, tile_stride(h.width), tile, threadIdx.x,
              WARPS * 32);
    __syncthreads();
}

/* out[i] = <own row i, the lane's row of the tile> */
template <unsigned OWN>
__device__ void products(const float *own, const float *tile, uint32_t width, float out[OWN])
{
    const float4 *row =
        reinterpret_cast<const float4 *>(tile + threadIdx.x % 32 * tile_stride(width));
    const uint32_t n = fours(width) / 4;
    for (unsigned i = 0; i < OWN; i++)
        out[i] = 0.0f;
    for (uint32_t c = 0; c < n; c++) {
        const float4 t = row[c];
#pragma unroll
        for (unsigned i = 0; i < OWN; i++) {
            const float4 v = reinterpret_cast<const float4 *>(own + i * fours(width))[c];
            out[i] = fmaf(v.x, t.x, out[i]);
            out[i] = fmaf(v.y, t.y, out[i]);
            out[i] = fmaf(v.z, t.z, out[i]);
            out[i] = fmaf(v.w, t.w, out[i]);
        }
    }
}

/* sum[i][u] += weight[i] of warp lane j times tile row j, column warp lane + 32 u, for all j < n.
 */
template <unsigned UNITS, unsigned OWN>
__device__ void add_rows(const float weight[OWN], const float *tile, uint32_t width, uint32_t n,
                         float sum[OWN][UNITS])
{
    const uint32_t warp_lane = threadIdx.x % 32;
    for (uint32_t j = 0; j < n; j++) {
        float row[UNITS];
#pragma unroll
        for (unsigned u = 0; u < UNITS; u++)
            row[u] = warp_lane + 32 * u < width ? tile[j * tile_stride(width) + warp_lane + 32 * u]
                                                : 0.0f;
#pragma unroll
        for (unsigned i = 0; i < OWN; i++) {
            const float w = __shfl_sync(0xffffffffu, weight[i], (int)j);
#pragma unroll
            for (unsigned u = 0; u < UNITS; u++)
                sum[i][u] = fmaf(w, row[u], sum[i][u]);
        }
    }
}

template <unsigned UNITS, unsigned OWN>
__device__ void write_rows(const float sum[OWN][UNITS], const float share[OWN], uint32_t first,
                           const struct head &h, uint32_t stride, float *to)
{
    for (unsigned i = 0; i < OWN && first + i < h.rows; i++)
        for (unsigned u = 0; u < UNITS; u++) {
            const uint32_t column = threadIdx.x % 32 + 32 * u;
            if (column < h.width)
                to[(size_t)(first + i) * stride + column] = sum[i][u] * share[i];
        }
}

/* Shared memory: a tile, then the warps' own rows, `kinds` of them. */
__device__ float *own_rows(float *shared, uint32_t width, unsigned own, unsigned kinds)
{
    return shared + ROWS * tile_stride(width) + threadIdx.x / 32 * own * kinds * fours(width);
}

/* Whether row `query` of a sample sees row `key`. */
__device__ bool sees(const struct heads &all, uint32_t rows, uint32_t query, uint32_t key)
{
    if (query >= rows || key >= rows)
        return false;
    return !all.a.causal || key < rm_attention_seen(rows, all.a.queries, query) ||
           (key == query && key >= rm_attention_context(rows, all.a.queries));
}

/* What dropout makes of a weight. */
__device__ float kept(const struct heads &all, uint32_t query, uint32_t key)
{
    struct rm_dropout d = all.a.dropout;
    if (!d.below)
        return 1.0f;
    const uint32_t sample = blockIdx.x / all.a.heads, head = blockIdx.x % all.a.heads;
    d.update += all.draws ? all.times * *all.draws : 0;
    return rm_dropout_kept(rm_attention_row_key(&d, sample + all.a.before, head, query), key,
                           d.below, d.scale);
}

__device__ uint32_t less(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

template <unsigned UNITS, unsigned OWN>
__global__ void attend(struct heads all)
{
    RM_SHARED(float, tile);
    const struct head h = head_of(all);
    const uint32_t warp_lane = threadIdx.x % 32, warp = threadIdx.x / 32, units = all.a.units;
    float *own = own_rows(tile, h.width, OWN, 1);
    for (uint32_t block = blockIdx.y * WARPS * OWN; block < h.rows;
         block += gridDim.y * WARPS * OWN) {
        const uint32_t first = block + warp * OWN;
        const uint32_t end = all.a.causal ? less(h.rows, block + WARPS * OWN) : h.rows;
        float most[OWN], total[OWN], sum[OWN][UNITS] = {}, score[OWN];
        for (unsigned i = 0; i < OWN; i++) {
            most[i] = -INFINITY;
            total[i] = 0.0f;
        }
        __syncwarp();
        load_rows(h.q, h.stride, first, h.rows, h.width, OWN, fours(h.width), own, warp_lane, 32);
        for (uint32_t at = 0; at < end; at += ROWS) {
            load_tile(h.k, h.stride, at, h, tile);
            products<OWN>(own, tile, h.width, score);
            for (unsigned i = 0; i < OWN; i++) {
                const uint32_t key = at + warp_lane;
                const bool seen = sees(all, h.rows, first + i, key);
                const float s = seen ? all.scale * score[i] : -INFINITY;
                const float now = fmaxf(most[i], rm_warp_max(s));
                const float shrunk = total[i] > 0.0f ? expf(most[i] - now) : 0.0f;
                score[i] = seen ? expf(s - now) : 0.0f;
                total[i] = fmaf(total[i], shrunk, rm_warp_sum(score[i]));
                score[i] *= kept(all, first + i, key);
                most[i] = now;
                for (unsigned u = 0; u < UNITS; u++)
                    sum[i][u] *= shrunk;
            }
            load_tile(h.v, h.stride, at, h, tile);
            add_rows<UNITS, OWN>(score, tile, h.width, less(ROWS, h.rows - at), sum);
        }
        for (unsigned i = 0; i < OWN; i++) {
            if (warp_lane == 0 && first + i < h.rows)
                h.stats[(size_t)(first + i) * 2 * all.a.heads] = most[i] + logf(total[i]);
            total[i] = 1.0f / total[i];
        }
        write_rows<UNITS, OWN>(sum, total, first, h, units, all.to + h.o_at);
    }
}

/* <o, d_o> of each query, beside the logarithm of its sum: a warp for a row and head. */
__global__ void weigh(struct heads all, uint32_t rows)
{
    const uint32_t warp_lane = threadIdx.x % 32, heads = all.a.heads;
    const size_t count = (size_t)rows * heads;
    for (size_t i = blockIdx.x * (size_t)WARPS + threadIdx.x / 32; i < count;
         i += (size_t)gridDim.x * WARPS) {
        const size_t at = i / heads * all.a.units + i % heads * all.width;
        float sum = 0.0f;
        for (uint32_t c = warp_lane; c < all.width; c += 32)
            sum = fmaf(all.o[at + c], all.d_o[at + c], sum);
        sum = rm_warp_sum(sum);
        if (warp_lane == 0)
            all.stats[2 * i + 1] = sum;
    }
}

/* With P the weights, dP = dO V^T and dS = P (dP - <dO, O>) scale: dQ = dS K; and for keys (where
 * rows and warp lanes change sides) dK = dS^T Q, dV = P^T dO. */
template <unsigned UNITS, unsigned OWN, bool keys>
__global__ void attend_back(struct heads all)
{
    RM_SHARED(float, tile);
    const struct head h = head_of(all);
    const uint32_t warp_lane = threadIdx.x % 32, warp = threadIdx.x / 32, units = all.a.units;
    const float *d_o = all.d_o + h.o_at;
    /* The warps' own rows, and those of the other side. */
    const float *own1_at = keys ? h.k : h.q, *own2_at = keys ? h.v : d_o;
    const float *tile1 = keys ? h.q : h.k, *tile2 = keys ? d_o : h.v;
    const uint32_t own2_stride = keys ? h.stride : units, tile2_stride = keys ? units : h.stride;
    float *own1 = own_rows(tile, h.width, OWN, 2), *own2 = own1 + OWN * fours(h.width);
    float share[OWN];
    for (unsigned i = 0; i < OWN; i++)
        share[i] = 1.0f;
    for (uint32_t block = blockIdx.y * WARPS * OWN; block < h.rows;
         block += gridDim.y * WARPS * OWN) {
        const uint32_t first = block + warp * OWN;
        const uint32_t end = all.a.causal && !keys ? less(h.rows, block + WARPS * OWN) : h.rows;
        const uint32_t begin = all.a.causal && keys ? block / ROWS * ROWS : 0;
        float sum1[OWN][UNITS] = {}, sum2[OWN][UNITS] = {}, p[OWN], d[OWN];
        __syncwarp();
        load_rows(own1_at, h.stride, first, h.rows, h.width, OWN, fours(h.width), own1, warp_lane,
                  32);
        load_rows(own2_at, own2_stride, first, h.rows, h.width, OWN, fours(h.width), own2,
                  warp_lane, 32);
        for (uint32_t at = begin; at < end; at += ROWS) {
            const uint32_t n = less(ROWS, h.rows - at);
            load_tile(tile1, h.stride, at, h, tile);
            products<OWN>(own1, tile, h.width, p);
            load_tile(tile2, tile2_stride, at, h, tile);
            products<OWN>(own2, tile, h.width, d);
            for (unsigned i = 0; i < OWN; i++) {
                const uint32_t query = keys ? at + warp_lane : first + i;
                const uint32_t key = keys ? first + i : at + warp_lane;
                const bool seen = sees(all, h.rows, query, key);
                const float *of = h.stats + (size_t)query * 2 * all.a.heads;
                const float part = seen ? kept(all, query, key) : 0.0f;
                p[i] = seen ? expf(fmaf(all.scale, p[i], -of[0])) : 0.0f;
                d[i] = seen ? p[i] * (part * d[i] - of[1]) * all.scale : 0.0f;
                p[i] *= part;
            }
            if (keys)
                add_rows<UNITS, OWN>(p, tile, h.width, n, sum2);
            load_tile(tile1, h.stride, at, h, tile);
            add_rows<UNITS, OWN>(d, tile, h.width, n, sum1);
        }
        float *to = all.to + h.at + (keys ? units : 0);
        write_rows<UNITS, OWN>(sum1, share, first, h, h.stride, to);
        if (keys)
            write_rows<UNITS, OWN>(sum2, share, first, h, h.stride, to + units);
    }
}

/* --- launches -------------------------------------------------------------------------------- */

/* By the number of columns of a lane. */
const struct {
    uint32_t most;
    unsigned own;
    void (*forward)(struct heads), (*queries)(struct heads), (*keys)(struct heads);
} kinds[] = {
    {32, 4, attend<1, 4>, attend_back<1, 4, false>, attend_back<1, 4, true>},
    {64, 4, attend<2, 4>, attend_back<2, 4, false>, attend_back<2, 4, true>},
    {128, 4, attend<4, 4>, attend_back<4, 4, false>, attend_back<4, 4, true>},
    {256, 1, attend<8, 1>, attend_back<8, 1, false>, attend_back<8, 1, true>},
};

size_t kind_of(uint32_t width)
{
    size_t i = 0;
    while (i + 1 < sizeof kinds / sizeof *kinds && width > kinds[i].most)
        i++;
    return i;
}

void run(struct rm_cuda *c, void (*kernel)(struct heads), const char *name, const struct heads &h,
         unsigned own, unsigned stored)
{
    const unsigned blocks = h.a.batch * h.a.heads, wanted = 4 * c->info.processors;
    const unsigned high = blocks >= wanted ? 1 : wanted / blocks < 8 ? wanted / blocks : 8;
    const size_t shared =
        (ROWS * tile_stride(h.width) + WARPS * own * stored * fours(h.width)) * sizeof(float);
    if (!rm_cuda_ready(c))
        return;
    RM_LAUNCH(kernel, dim3(blocks, high), WARPS * 32, shared, rm_cuda_stream(c), h);
    rm_cuda_launched(c, name);
}

/* Clears rows that belong to no sample. False: nothing to do. */
bool begin(struct rm_cuda *c, const struct rm_attention *a, float *to, size_t floats)
{
    if (!a->batch || !a->rows || !rm_cuda_ready(c))
        return false;
    return RM_CUDA(c, cudaMemsetAsync(to, 0, a->rows * floats * sizeof *to, rm_cuda_stream(c)));
}

struct heads heads_of(const struct rm_cuda *c, const struct rm_attention *a, const float *qkv,
                      float *stats, float *to)
{
    struct heads h = {};
    h.a = *a;
    h.width = a->units / a->heads;
    h.scale = 1.0f / sqrtf((float)h.width);
    h.qkv = qkv;
    h.stats = stats;
    h.to = to;
    h.draws = c->before;
    h.times = c->times;
    return h;
}

} // namespace

void rm_cuda_attention(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                       float *o, float *stats)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const struct heads h = heads_of(c, a, qkv, stats, o);
    const size_t kind = kind_of(h.width);
    if (begin(c, a, o, a->units))
        run(c, kinds[kind].forward, "attention", h, kinds[kind].own, 1);
}

void rm_cuda_attention_dx(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                          const float *o, float *stats, const float *d_o, float *d_qkv)
{
    struct rm_cuda *c = rm_cuda_of(b);
    struct heads h = heads_of(c, a, qkv, stats, d_qkv);
    const size_t kind = kind_of(h.width);
    h.o = o;
    h.d_o = d_o;
    if (!begin(c, a, d_qkv, 3 * (size_t)a->units))
        return;
    RM_RUN(c, weigh, rm_cuda_blocks(c, (size_t)a->rows * a->heads, WARPS), WARPS * 32, h, a->rows);
    run(c, kinds[kind].queries, "attention_dx", h, kinds[kind].own, 2);
    run(c, kinds[kind].keys, "attention_dx", h, kinds[kind].own, 2);
}
