/* Sums in a fixed order: of squares, over rows, and layer norm, which uses both. */
#include "learner/backend/cuda/sums.h"

#include "learner/backend/cuda/block.h"
#include "learner/backend/cuda/collective.h"
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/memory.h"
#include "learner/backend/cuda/ops.h"

#include <math.h>

namespace
{

/* --- squares --------------------------------------------------------------------------------- */

#define SQUARES_BLOCK 256u

/* partials(gridDim): sums of squares of x. */
__global__ void sum_of_squares(const float *x, size_t n, double *partials)
{
    RM_SHARED(double, shared);
    double sum = 0.0;
    RM_EACH(i, n)
    {
        const double d = (double)x[i];
        sum = fma(d, d, sum);
    }
    sum = rm_block_sum(sum, shared);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

/* One block. */
__global__ void sum_of_partials(double *partials, uint32_t n)
{
    RM_SHARED(double, shared);
    double sum = 0.0;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += partials[i];
    sum = rm_block_sum(sum, shared);
    if (threadIdx.x == 0)
        partials[0] = sum;
}

/* --- columns --------------------------------------------------------------------------------- */

#define COLUMNS  32u
#define ROWS     16u             /* of threads */
#define MIN_ROWS 64u             /* of a part */
#define TILES    RM_CUDA_TICKETS /* blocks that are enough */

/* The terms of a sum: numbers themselves, or layer norm's two. */
struct plain_columns {
    static const unsigned sums = 1;
    const float *x;
    uint32_t n;
    __device__ void add_terms(size_t r, uint32_t i, float *sum) const
    {
        sum[0] += x[r * n + i];
    }
};

struct norm_columns {
    static const unsigned sums = 2;
    const float *x, *dy, *mean, *rstd;
    uint32_t n;
    __device__ void add_terms(size_t r, uint32_t i, float *sum) const
    {
        const float d = dy[r * n + i];
        sum[0] = fmaf(d, (x[r * n + i] - mean[r]) * rstd[r], sum[0]);
        sum[1] += d;
    }
};

/* The destination of the sums, and of the sums of parts of the rows until the last block of a tile
 * has finished. */
struct column_sums {
    float *to[2], *parts[2]; /* (n), (parts, n) */
    uint32_t *tickets;       /* of tiles: blocks that have finished; 0 before and after */
};

/* Sums over the threads of a column, in order; for threads of the first `sums` rows. */
template <unsigned sums>
__device__ float sum_threads(const float sum[sums], float *shared)
{
    for (unsigned s = 0; s < sums; s++)
        shared[(s * ROWS + threadIdx.y) * COLUMNS + threadIdx.x] = sum[s];
    __syncthreads();
    if (threadIdx.y >= sums)
        return 0.0f;
    const float *of = shared + threadIdx.y * ROWS * COLUMNS + threadIdx.x;
    float all = of[0];
    for (unsigned k = 1; k < ROWS; k++)
        all += of[k * COLUMNS];
    return all;
}

/* Whether this block is the last of its tile, so that the others' parts are visible. All threads
 * call. */
__device__ bool is_last(uint32_t *ticket, float *shared)
{
    uint32_t *word = reinterpret_cast<uint32_t *>(shared);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        const uint32_t before = atomicAdd(ticket, 1u);
        *word = before + 1 == gridDim.y;
        if (*word)
            *ticket = 0;
    }
    __syncthreads();
    const bool last = *word;
    __threadfence();
    __syncthreads();
    return last;
}

/* Block (x, y): columns COLUMNS x .., of part y of the rows. */
template <class Op>
__global__ void sum_columns(Op op, size_t rows, size_t per_part, uint32_t n, struct column_sums to)
{
    RM_SHARED(float, shared); /* (sums, ROWS, COLUMNS) */
    const uint32_t i = blockIdx.x * COLUMNS + threadIdx.x, s = threadIdx.y;
    const size_t first = blockIdx.y * per_part;
    const size_t end = rows - first < per_part ? rows : first + per_part;
    float sum[Op::sums] = {};
    if (i < n)
        for (size_t r = first + threadIdx.y; r < end; r += ROWS)
            op.add_terms(r, i, sum);
    const float own = sum_threads<Op::sums>(sum, shared);
    const bool writes = s < Op::sums && i < n;
    if (gridDim.y == 1) {
        if (writes)
            to.to[s][i] = own;
        return;
    }
    if (writes)
        to.parts[s][blockIdx.y * (size_t)n + i] = own;
    if (!is_last(to.tickets + blockIdx.x, shared))
        return;
    for (unsigned k = 0; k < Op::sums; k++) {
        sum[k] = 0.0f;
        for (unsigned part = threadIdx.y; part < gridDim.y && i < n; part += ROWS)
            sum[k] += __ldcg(to.parts[k] + part * (size_t)n + i);
    }
    const float all = sum_threads<Op::sums>(sum, shared);
    if (writes)
        to.to[s][i] = all;
}

/* Number of parts of the rows, so that few columns of many rows make enough blocks. */
uint32_t parts_of(size_t rows, uint32_t n)
{
    const uint32_t wide = (n + COLUMNS - 1) / COLUMNS;
    size_t parts = TILES / wide, most = (rows + MIN_ROWS - 1) / MIN_ROWS;
    parts = parts < most ? parts : most;
    return parts > 1 ? (uint32_t)parts : 1;
}

template <class Op>
void run_columns(struct rm_cuda *c, const Op &op, size_t rows, uint32_t n, float *to0, float *to1)
{
    const uint32_t parts = parts_of(rows, n);
    const size_t per_part = (rows + parts - 1) / parts;
    const uint32_t used = rows ? (uint32_t)((rows + per_part - 1) / per_part) : 1;
    const struct column_sums to = {{to0, to1},
                                   {c->partials, c->partials + RM_CUDA_PARTIALS / 2},
                                   reinterpret_cast<uint32_t *>(c->partials + RM_CUDA_PARTIALS)};
    const dim3 grid((n + COLUMNS - 1) / COLUMNS, used), block(COLUMNS, ROWS);
    if (n)
        RM_RUN_SHARED(c, sum_columns<Op>, grid, block, Op::sums * ROWS * COLUMNS * sizeof(float),
                      op, rows, per_part, n, to);
}

/* --- layer norm ------------------------------------------------------------------------------ */

#define EPSILON 1e-5f

/* A warp shares a row, or a block if rows are long. */
#define ROW_BLOCK  256u
#define LONG_ROW   2048u
#define ROW_SHARED (32u * sizeof(float))

template <bool whole>
RM_INLINE float row_sum(float x, float *shared)
{
    return whole ? rm_block_sum(x, shared) : rm_warp_sum(x);
}

template <bool whole>
__global__ void normalize_rows(const float *x, const float *gamma, const float *beta, uint32_t rows,
                               uint32_t n, float *y, float *mean, float *rstd)
{
    RM_SHARED(float, shared);
    const uint32_t wide = whole ? blockDim.x : 32u, high = blockDim.x / wide;
    const uint32_t warp_lane = threadIdx.x % wide;
    for (size_t r = blockIdx.x * (size_t)high + threadIdx.x / wide; r < rows;
         r += (size_t)gridDim.x * high) {
        const float *from = x + r * n;
        float sum = 0.0f, squares = 0.0f;
        for (uint32_t i = warp_lane; i < n; i += wide)
            sum += from[i];
        const float mu = row_sum<whole>(sum, shared) / (float)n;
        for (uint32_t i = warp_lane; i < n; i += wide)
            squares = fmaf(from[i] - mu, from[i] - mu, squares);
        const float rs = 1.0f / sqrtf(row_sum<whole>(squares, shared) / (float)n + EPSILON);
        for (uint32_t i = warp_lane; i < n; i += wide)
            y[r * n + i] = fmaf((from[i] - mu) * rs, gamma[i], beta[i]);
        if (warp_lane == 0) {
            mean[r] = mu;
            rstd[r] = rs;
        }
    }
}

/* With h = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - h mean(g h)). */
template <bool whole>
__global__ void normalize_rows_back(const float *x, const float *gamma, const float *mean,
                                    const float *rstd, const float *dy, uint32_t rows, uint32_t n,
                                    float *dx)
{
    RM_SHARED(float, shared);
    const uint32_t wide = whole ? blockDim.x : 32u, high = blockDim.x / wide;
    const uint32_t warp_lane = threadIdx.x % wide;
    for (size_t r = blockIdx.x * (size_t)high + threadIdx.x / wide; r < rows;
         r += (size_t)gridDim.x * high) {
        const float mu = mean[r], rs = rstd[r], *xr = x + r * n, *dr = dy + r * n;
        float g = 0.0f, gh = 0.0f;
        for (uint32_t i = warp_lane; i < n; i += wide) {
            const float d = dr[i] * gamma[i];
            g += d;
            gh = fmaf(d, (xr[i] - mu) * rs, gh);
        }
        g = row_sum<whole>(g, shared) / (float)n;
        gh = row_sum<whole>(gh, shared) / (float)n;
        for (uint32_t i = warp_lane; i < n; i += wide)
            dx[r * n + i] = rs * (dr[i] * gamma[i] - g - (xr[i] - mu) * rs * gh);
    }
}

} // namespace

void rm_cuda_column_sums(struct rm_cuda *c, const float *x, size_t rows, uint32_t n, float *sums)
{
    run_columns(c, plain_columns{x, n}, rows, n, sums, NULL);
}

double rm_cuda_sum_squares(struct rm_backend *b, const float *x, size_t n)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const unsigned most = RM_CUDA_SUMS, wanted = rm_cuda_blocks(c, n, SQUARES_BLOCK);
    const unsigned blocks = wanted < most ? wanted : most;
    const size_t shared = RM_BLOCK_SUM_BYTES;
    RM_RUN_SHARED(c, sum_of_squares, blocks, SQUARES_BLOCK, shared, x, n, c->sums);
    if (blocks > 1)
        RM_RUN_SHARED(c, sum_of_partials, 1, SQUARES_BLOCK, shared, c->sums, blocks);
    rm_cuda_copy_out(b, RM_QUEUE_COMPUTE, c->host_sums, c->sums, sizeof *c->sums);
    if (!rm_cuda_ready(c))
        return NAN;
    c->counts.synchronizations++;
    rm_cuda_await_stream(c, RM_QUEUE_COMPUTE);
    return rm_cuda_ready(c) ? c->host_sums[0] : NAN;
}

void rm_cuda_layer_norm(struct rm_backend *b, const float *x, const float *gamma, const float *beta,
                        uint32_t rows, uint32_t n, float *y, float *mean, float *rstd)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!rows || !n)
        return;
    if (n >= LONG_ROW)
        RM_RUN_SHARED(c, normalize_rows<true>, rm_cuda_blocks(c, rows, 1), ROW_BLOCK, ROW_SHARED, x,
                      gamma, beta, rows, n, y, mean, rstd);
    else
        RM_RUN_SHARED(c, normalize_rows<false>, rm_cuda_blocks(c, rows, ROW_BLOCK / 32), ROW_BLOCK,
                      ROW_SHARED, x, gamma, beta, rows, n, y, mean, rstd);
}

void rm_cuda_layer_norm_dx(struct rm_backend *b, const float *x, const float *gamma,
                           const float *mean, const float *rstd, const float *dy, uint32_t rows,
                           uint32_t n, float *dx, float *dgamma, float *dbeta)
{
    struct rm_cuda *c = rm_cuda_of(b);
    run_columns(c, norm_columns{x, dy, mean, rstd, n}, rows, n, dgamma, dbeta);
    if (!dx || !rows || !n)
        return;
    if (n >= LONG_ROW)
        RM_RUN_SHARED(c, normalize_rows_back<true>, rm_cuda_blocks(c, rows, 1), ROW_BLOCK,
                      ROW_SHARED, x, gamma, mean, rstd, dy, rows, n, dx);
    else
        RM_RUN_SHARED(c, normalize_rows_back<false>, rm_cuda_blocks(c, rows, ROW_BLOCK / 32),
                      ROW_BLOCK, ROW_SHARED, x, gamma, mean, rstd, dy, rows, n, dx);
}
