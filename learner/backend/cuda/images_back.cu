/* Gradients of a convolution's weights, of images in shared memory (images.h): a product over
 * places, transposed(dy) times patches. A block keeps its images' sums in registers to the end. The
 * blocks' sums are added up in order, and the number of blocks depends on the number of images
 * alone. */
#include "learner/backend/cuda/images.h"

namespace
{

#define WARPS      (RM_BACK_BLOCK / 32)
#define TILE       16u /* places of a product */
#define STAGES     2u
#define TILES_MOST 9u

/* Warps along channels of results, 32 channels each. */
uint32_t warps_high(const struct rm_images &g)
{
    return g.wide_out / 32;
}

__host__ __device__ uint32_t rows_of(const struct rm_images &g)
{
    return (g.together * g.places + TILE - 1) / TILE * TILE;
}

/* Numbers from one row of dy to the next: an odd number of sixteen bytes. */
__host__ __device__ uint32_t row_of_dy(const struct rm_images &g)
{
    return g.wide_out + 8;
}

__host__ __device__ uint32_t stage_of(const struct rm_images &g)
{
    return g.unit + rows_of(g) * row_of_dy(g);
}

/* Floats of a part: gradients of weights (out_channels, chunks * 8), then of biases. Even. */
__host__ __device__ size_t part_of(const struct rm_images &g)
{
    return ((size_t)g.c.out_channels * (g.chunks * 8 + 1) + 1) / 2 * 2;
}

uint32_t blocks_for(const struct rm_cuda *c, const struct rm_images &g, uint32_t images)
{
    const uint32_t most = c->spec.small ? RM_PARTS_SMALL : RM_PARTS_MOST;
    const uint32_t units = (images + g.together - 1) / g.together;
    return units < most ? units : most;
}

struct tables {
    uint32_t *rows, *positions;
};

__device__ tables tables_of(const struct rm_images &g, uint16_t *shared)
{
    tables t;
    t.rows = reinterpret_cast<uint32_t *>(shared + (size_t)g.stages * stage_of(g));
    t.positions = t.rows + rows_of(g);
    return t;
}

__device__ void fill_shared(const struct rm_images &g, const tables &t, uint16_t *shared)
{
    const uint4 zeros = {0, 0, 0, 0};
    for (uint32_t i = threadIdx.x; i < g.stages * stage_of(g) / 8; i += blockDim.x)
        reinterpret_cast<uint4 *>(shared)[i] = zeros;
    for (uint32_t i = threadIdx.x; i < rows_of(g); i += blockDim.x)
        t.rows[i] = i < g.together * g.places ? rm_row_at(g, i) : 0;
    for (uint32_t i = threadIdx.x; i < g.together * g.c.height * g.c.width; i += blockDim.x)
        t.positions[i] = rm_position_at(g, i);
}

/* Copies unit u to `unit`: its images, then their dy; zeros for images that do not exist. */
template <class As>
__device__ void take_unit(const struct rm_images &g, const tables &t, const void *dy, const void *x,
                          uint32_t images, uint32_t u, uint16_t *unit)
{
    const uint32_t image = u * g.together, left = images - image, pitch = row_of_dy(g);
    const uint32_t count = left < g.together ? left : g.together;
    const uint32_t positions = g.c.height * g.c.width;
    uint16_t *const there = unit + g.unit;
    rm_take_places<As>(rm_image(x, g.c.x_compact, (size_t)image * g.c.channels * positions),
                       g.c.x_compact, true, g.c.channels, 0, g.depth / 8, positions,
                       count * positions, threadIdx.x, blockDim.x, unit,
                       [&](uint32_t q) { return t.positions[q]; });
    rm_take_places<As>(rm_image(dy, g.c.y_compact, (size_t)image * g.c.out_channels * g.places),
                       g.c.y_compact, true, g.c.out_channels, blockIdx.z * g.wide_out,
                       g.wide_out / 8, g.places, count * g.places, threadIdx.x, blockDim.x, there,
                       [&](uint32_t q) { return q * pitch; });
    if (count == g.together)
        return;
    const uint4 zeros = {0, 0, 0, 0};
    const uint32_t from = count * g.places * pitch / 8, to = rows_of(g) * pitch / 8;
    for (uint32_t i = from + threadIdx.x; i < to; i += blockDim.x)
        reinterpret_cast<uint4 *>(there)[i] = zeros;
}

/* sum += transposed(dy) patches: 32 channels of results, TILES chunks from `chunk` on. */
template <class As, unsigned TILES>
__device__ void multiply_unit(const struct rm_images &g, const tables &t, const uint16_t *unit,
                              uint32_t channel, const uint32_t at[(TILES + 1) / 2],
                              float sum[2][TILES][4])
{
    const uint32_t warp_lane = threadIdx.x % 32, pitch = row_of_dy(g), rows = rows_of(g);
    const uint16_t *dy = unit + g.unit + (warp_lane / 16 * 8 + warp_lane % 8) * pitch + channel +
                         warp_lane / 8 % 2 * 8;
    const uint32_t *row = t.rows + warp_lane / 8 % 2 * 8 + warp_lane % 8;
    for (uint32_t k = 0; k < rows; k += TILE) {
        const uint16_t *patch = unit + row[k];
        uint32_t a[2][4];
        rm_load_turned(a[0], dy + k * pitch);
        rm_load_turned(a[1], dy + k * pitch + TILE);
#pragma unroll
        for (unsigned n = 0; n < TILES; n += 2) {
            uint32_t b[4];
            if (n + 1 < TILES)
                rm_load_turned(b, patch + at[n / 2]);
            else
                rm_load_turned_pair(b, patch + at[n / 2]);
#pragma unroll
            for (unsigned j = 0; j < 2; j++) {
                rm_multiply(As(), sum[j][n], a[j], b);
                if (n + 1 < TILES)
                    rm_multiply(As(), sum[j][n + 1], a[j], b + 2);
            }
        }
    }
}

/* The sums of dy, one channel for a thread of each side; at the end the sum over all sides. */
template <class As>
__device__ float sum_unit(const struct rm_images &g, const uint16_t *unit)
{
    const uint32_t channel = threadIdx.x % g.wide_out, sides = blockDim.x / g.wide_out;
    const uint32_t rows = rows_of(g), pitch = row_of_dy(g);
    const uint16_t *dy = unit + g.unit + channel;
    float sum = 0.0f;
    for (uint32_t r = threadIdx.x / g.wide_out; r < rows; r += sides)
        sum += As::to_float(dy[r * pitch]);
    return sum;
}

__device__ void write_biases(const struct rm_images &g, float sum, float *shared, float *part)
{
    const uint32_t channel = blockIdx.z * g.wide_out + threadIdx.x;
    __syncthreads();
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= g.wide_out || channel >= g.c.out_channels)
        return;
    sum = 0.0f;
    for (uint32_t i = threadIdx.x; i < blockDim.x; i += g.wide_out)
        sum += shared[i];
    part[(size_t)g.c.out_channels * g.chunks * 8 + channel] = sum;
}

template <class As, unsigned TILES>
__global__ void __launch_bounds__(RM_BACK_BLOCK, 1)
    sum_patches(struct rm_images g, uint32_t high, const void *dy, const void *x, uint32_t images,
                float *parts)
{
    RM_SHARED(uint16_t, shared);
    const tables t = tables_of(g, shared);
    const uint32_t warp_lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t channel = warp % high * 32;
    const uint32_t chunk = (blockIdx.y * (WARPS / high) + warp / high) * TILES;
    const uint32_t units = (images + g.together - 1) / g.together;
    float sum[2][TILES][4] = {}, bias = 0.0f;
    uint32_t at[(TILES + 1) / 2], stage = 0;
#pragma unroll
    for (unsigned n = 0; n < TILES; n += 2)
        at[n / 2] = rm_chunk_at(g, chunk + n + warp_lane / 16);
    fill_shared(g, t, shared);
    __syncthreads();
    take_unit<As>(g, t, dy, x, images, blockIdx.x, shared);
    rm_copies_close();
    for (uint32_t u = blockIdx.x; u < units; u += gridDim.x) {
        const uint32_t next = u + gridDim.x;
        const uint16_t *unit = shared + (size_t)stage * stage_of(g);
        if (g.stages > 1 && next < units) {
            stage ^= 1;
            take_unit<As>(g, t, dy, x, images, next, shared + (size_t)stage * stage_of(g));
            rm_copies_close();
            rm_copies_wait<1>();
        } else {
            rm_copies_wait<0>();
        }
        __syncthreads();
        if (chunk < g.chunks)
            multiply_unit<As, TILES>(g, t, unit, channel, at, sum);
        if (blockIdx.y == 0)
            bias += sum_unit<As>(g, unit);
        __syncthreads();
        if (g.stages == 1 && next < units) {
            take_unit<As>(g, t, dy, x, images, next, shared);
            rm_copies_close();
        }
    }
    float *const part = parts + blockIdx.x * part_of(g);
#pragma unroll
    for (unsigned j = 0; j < 2; j++)
#pragma unroll
        for (unsigned half = 0; half < 2; half++) {
            const uint32_t row =
                blockIdx.z * g.wide_out + channel + j * TILE + half * 8 + warp_lane / 4;
            float *to = part + (size_t)row * g.chunks * 8 + chunk * 8 + warp_lane % 4 * 2;
#pragma unroll
            for (unsigned n = 0; n < TILES; n++)
                if (row < g.c.out_channels && chunk + n < g.chunks) {
                    const float2 two = {sum[j][n][half * 2], sum[j][n][half * 2 + 1]};
                    *reinterpret_cast<float2 *>(to + n * 8) = two;
                }
        }
    if (blockIdx.y == 0)
        write_biases(g, bias, reinterpret_cast<float *>(shared), part);
}

/* Adds up dw(out, channels, taps) and db over the blocks' parts, one after another. */
__global__ void add_parts(struct rm_images g, const float *parts, uint32_t count, float *dw,
                          float *db)
{
    const uint32_t columns = g.chunks * 8, area = g.c.kernel * g.c.kernel;
    const size_t weights = (size_t)g.c.out_channels * columns, part = part_of(g);
    RM_EACH(i, weights + g.c.out_channels)
    {
        float sum = 0.0f;
#pragma unroll 8
        for (uint32_t k = 0; k < count; k++)
            sum += __ldg(parts + k * part + i);
        const uint32_t tap = (uint32_t)(i % columns) / g.depth;
        const uint32_t channel = (uint32_t)(i % columns) % g.depth;
        if (i >= weights)
            db[i - weights] = sum;
        else if (channel < g.c.channels)
            dw[(i / columns * g.c.channels + channel) * area + tap] = sum;
    }
}

template <class As, unsigned TILES>
void run(struct rm_cuda *c, const struct rm_images &g, const void *dy, const void *x,
         uint32_t images, float *parts)
{
    const uint32_t across = WARPS / warps_high(g) * TILES;
    const dim3 grid(blocks_for(c, g, images), (g.chunks + across - 1) / across,
                    (g.c.out_channels + g.wide_out - 1) / g.wide_out);
    if (rm_cuda_roomy(c, reinterpret_cast<const void *>(sum_patches<As, TILES>)))
        RM_RUN_SHARED(c, (sum_patches<As, TILES>), grid, RM_BACK_BLOCK, g.shared, g, warps_high(g),
                      dy, x, images, parts);
}

} // namespace

static bool cut_for(struct rm_images *g, const struct rm_conv *c, size_t shared, bool spread)
{
    if (!rm_images_shape(g, c, spread))
        return false;
    g->wide_out = c->out_channels > 32 ? 64 : 32;
    const uint32_t warps = WARPS / warps_high(*g);
    g->tiles = g->chunks <= warps       ? 1
               : g->chunks <= 3 * warps ? 3
               : g->chunks <= 5 * warps ? 5
                                        : TILES_MOST;
    const size_t words = rows_of(*g) + (size_t)g->together * c->height * c->width;
    const size_t stage = stage_of(*g) * sizeof(uint16_t), tables = words * sizeof(uint32_t);
    const size_t least = RM_BACK_BLOCK * sizeof(float); /* for the sums of biases */
    g->stages = STAGES;
    while (g->stages && g->stages * stage + tables > shared)
        g->stages--;
    g->shared = g->stages * stage + tables;
    g->shared = g->shared > least ? g->shared : least;
    return g->stages > 0;
}

bool rm_images_cut_back(struct rm_images *g, const struct rm_conv *c, size_t shared)
{
    return rm_images_best_cut(g, c, shared, cut_for);
}

size_t rm_images_part_bytes(const struct rm_cuda *c, const struct rm_images &g, uint32_t images)
{
    return blocks_for(c, g, images) * part_of(g) * sizeof(float);
}

void rm_images_back(struct rm_cuda *c, const struct rm_images &g, const void *dy, const void *x,
                    uint32_t images, float *parts, float *dw, float *db)
{
    rm_in_halves(c->spec.compute, [&](auto format) {
        typedef decltype(format) As;
        if (g.tiles == 1)
            run<As, 1>(c, g, dy, x, images, parts);
        else if (g.tiles == 3)
            run<As, 3>(c, g, dy, x, images, parts);
        else if (g.tiles == 5)
            run<As, 5>(c, g, dy, x, images, parts);
        else
            run<As, TILES_MOST>(c, g, dy, x, images, parts);
    });
    RM_RUN(c, add_parts, rm_cuda_blocks(c, part_of(g), 128), 128, g, parts,
           blocks_for(c, g, images), dw, db);
}
