/* Convolution of images in shared memory (images.h): results, and gradients of images, which are
 * results of the convolution with the rotated kernel. */
#include "learner/backend/cuda/images.h"

namespace
{

#define TILE 16u              /* rows of a product of tensor cores */
#define ROWS (4u * 2u * TILE) /* of a unit at a time: two tiles for each warp of a group */

uint32_t up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

size_t table_words(const struct rm_images &g)
{
    return (size_t)g.together * (g.places + g.c.height * g.c.width) + 2 * g.steps;
}

/* --- weights --------------------------------------------------------------------------------- */

template <class As>
__global__ void pack_rows(struct rm_images g, const float *w, bool turned, uint32_t *to)
{
    const uint32_t area = g.c.kernel * g.c.kernel, row = rm_images_row(g) / 2;
    RM_EACH(i, (size_t)g.c.out_channels * row)
    {
        const uint32_t n = (uint32_t)(i / row), at = (uint32_t)(i % row) * 2;
        const uint32_t tap = at / g.depth;
        float v[2];
#pragma unroll
        for (uint32_t j = 0; j < 2; j++) {
            const uint32_t channel = at % g.depth + j;
            const bool there = tap < area && channel < g.c.channels;
            const size_t from =
                turned ? ((size_t)channel * g.c.out_channels + n) * area + area - 1 - tap
                       : ((size_t)n * g.c.channels + channel) * area + tap;
            v[j] = there ? w[from] : 0.0f;
        }
        to[i] = rm_pair(As(), v[0], v[1]);
    }
}

/* --- the kernel ------------------------------------------------------------------------------ */

/* Shared memory of a block: weights and tables for all groups; then a unit for each group. */
struct shared_parts {
    uint16_t *weights, *units;
    uint32_t *chunks, *rows, *positions;
};

__device__ shared_parts parts_of(const struct rm_images &g, uint16_t *shared)
{
    shared_parts p;
    p.weights = shared;
    p.units = p.weights + (size_t)g.wide_out * rm_images_shared_row(g);
    p.chunks = reinterpret_cast<uint32_t *>(p.units + (size_t)g.groups * g.unit);
    p.rows = p.chunks + 2 * g.steps;
    p.positions = p.rows + g.together * g.places;
    return p;
}

__device__ void fill_parts(const struct rm_images &g, const shared_parts &p, const uint16_t *w,
                           uint32_t first_out)
{
    const uint32_t eights = rm_images_row(g) / 8, row = rm_images_shared_row(g);
    const uint4 zeros = {0, 0, 0, 0};
    for (uint32_t i = threadIdx.x; i < g.wide_out * eights; i += blockDim.x) {
        const uint32_t n = i / eights, at = i % eights * 8;
        const uint16_t *from = w + (size_t)(first_out + n) * rm_images_row(g) + at;
        *reinterpret_cast<uint4 *>(p.weights + n * row + at) =
            first_out + n < g.c.out_channels ? __ldg(reinterpret_cast<const uint4 *>(from)) : zeros;
    }
    for (uint32_t i = threadIdx.x; i < g.groups * g.unit / 8; i += blockDim.x)
        reinterpret_cast<uint4 *>(p.units)[i] = zeros;
    for (uint32_t i = threadIdx.x; i < 2 * g.steps; i += blockDim.x)
        p.chunks[i] = rm_chunk_at(g, i);
    for (uint32_t i = threadIdx.x; i < g.together * g.places; i += blockDim.x)
        p.rows[i] = rm_row_at(g, i);
    for (uint32_t i = threadIdx.x; i < g.together * g.c.height * g.c.width; i += blockDim.x)
        p.positions[i] = rm_position_at(g, i);
}

/* Sums of two tiles of rows and NT of eight columns. row: the start of this warp lane's row of each
 * tile. */
template <class As, unsigned NT>
__device__ void multiply_rows(const struct rm_images &g, const uint16_t *const row[2],
                              const uint16_t *weights, const uint32_t *chunks, float sum[2][NT][4])
{
    const uint32_t warp_lane = threadIdx.x % 32, pitch = rm_images_shared_row(g);
    const uint16_t *column =
        weights + (warp_lane / 16 * 8 + warp_lane % 8) * pitch + warp_lane / 8 % 2 * 8;
    const uint32_t *chunk = chunks + warp_lane / 16;
#pragma unroll 2
    for (uint32_t s = 0; s < g.steps; s++) {
        const uint32_t at = chunk[2 * s];
        uint32_t a[2][4];
        rm_load_matrices(a[0], row[0] + at);
        rm_load_matrices(a[1], row[1] + at);
#pragma unroll
        for (unsigned n = 0; n < NT; n += 2) {
            uint32_t b[4];
            rm_load_matrices(b, column + n * 8 * pitch + s * 16);
#pragma unroll
            for (unsigned t = 0; t < 2; t++) {
                rm_multiply(As(), sum[t][n], a[t], b);
                rm_multiply(As(), sum[t][n + 1], a[t], b + 2);
            }
        }
    }
}

/* --- results --------------------------------------------------------------------------------- */

__device__ float finished(float x, bool relu)
{
    return relu && x < 0.0f ? 0.0f : x; /* NaN stays NaN */
}

/* The destination of the two rows of a tile of which a warp lane has parts. */
struct target {
    void *y;
    uint32_t out, places, first_out;
    uint32_t image, place; /* of the row */
};

/* To float32, (channels, places): eight lanes write neighbours. */
template <unsigned NT>
__device__ void write_floats(const target &to, const float sum[NT][4], unsigned half)
{
    float *y = static_cast<float *>(to.y) + (size_t)to.image * to.out * to.places + to.place;
    const uint32_t n0 = to.first_out + threadIdx.x % 4 * 2;
#pragma unroll
    for (unsigned n = 0; n < NT; n++)
#pragma unroll
        for (unsigned i = 0; i < 2; i++)
            if (n0 + n * 8 + i < to.out)
                y[(size_t)(n0 + n * 8 + i) * to.places] = sum[n][half * 2 + i];
}

/* Before, four lanes have two neighbours each of four groups of eight; afterwards, each has one
 * group of eight. */
__device__ uint4 exchange(const uint32_t own[4])
{
    const unsigned q = threadIdx.x % 4;
    uint32_t of[4]; /* of[d]: from warp lane q ^ d */
#pragma unroll
    for (unsigned d = 0; d < 4; d++) {
        const unsigned which = q ^ d;
        const uint32_t low = which & 1 ? own[1] : own[0], high = which & 1 ? own[3] : own[2];
        of[d] = which & 2 ? high : low;
        if (d)
            of[d] = __shfl_xor_sync(0xffffffffu, of[d], (int)d);
    }
    const uint32_t a = q & 1 ? of[1] : of[0], b = q & 1 ? of[0] : of[1];
    const uint32_t c = q & 1 ? of[3] : of[2], d = q & 1 ? of[2] : of[3];
    uint4 words;
    words.x = q & 2 ? c : a;
    words.y = q & 2 ? d : b;
    words.z = q & 2 ? a : c;
    words.w = q & 2 ? b : d;
    return words;
}

/* To 16 bits, (places, channels): 16 bytes by a warp lane, 64 by four. All warp lanes call. */
template <class As, unsigned NT>
__device__ void write_compact(const target &to, const float sum[NT][4], unsigned half, bool inside)
{
    uint16_t *y =
        static_cast<uint16_t *>(to.y) + ((size_t)to.image * to.places + to.place) * to.out;
    const uint32_t q = threadIdx.x % 4;
    if constexpr (NT % 4 != 0) {
#pragma unroll
        for (unsigned n = 0; n < NT; n++)
            if (inside && to.first_out + n * 8 < to.out)
                *reinterpret_cast<uint32_t *>(y + to.first_out + n * 8 + q * 2) =
                    rm_pair(As(), sum[n][half * 2], sum[n][half * 2 + 1]);
    } else {
#pragma unroll
        for (unsigned n = 0; n < NT; n += 4) {
            uint32_t own[4];
#pragma unroll
            for (unsigned i = 0; i < 4; i++)
                own[i] = rm_pair(As(), sum[n + i][half * 2], sum[n + i][half * 2 + 1]);
            const uint4 words = exchange(own);
            if (inside && to.first_out + (n + q) * 8 < to.out)
                *reinterpret_cast<uint4 *>(y + to.first_out + (n + q) * 8) = words;
        }
    }
}

template <class As, unsigned NT>
__global__ void __launch_bounds__(RM_GROUP *RM_GROUPS_MOST, 1)
    convolve_images(struct rm_images g, const void *x, const uint16_t *w, const float *bias,
                    bool relu, uint32_t images, void *y)
{
    RM_SHARED(uint16_t, shared);
    const shared_parts p = parts_of(g, shared);
    const uint32_t group = threadIdx.x / RM_GROUP, own = threadIdx.x % RM_GROUP;
    const uint32_t warp_lane = own % 32, warp = own / 32, first_out = blockIdx.y * g.wide_out;
    const uint32_t units = (images + g.together - 1) / g.together;
    const uint32_t positions = g.c.height * g.c.width;
    uint16_t *const unit = p.units + (size_t)group * g.unit;
    float biases[NT][2];
    for (unsigned n = 0; n < NT; n++)
        for (unsigned i = 0; i < 2; i++) {
            const uint32_t at = first_out + n * 8 + warp_lane % 4 * 2 + i;
            biases[n][i] = bias && at < g.c.out_channels ? bias[at] : 0.0f;
        }
    fill_parts(g, p, w, first_out);
    __syncthreads();
    for (uint32_t u = blockIdx.x + gridDim.x * group; u < units; u += gridDim.x * g.groups) {
        const uint32_t image = u * g.together, left = images - image;
        const uint32_t count = left < g.together ? left : g.together, rows = count * g.places;
        rm_take_places<As>(rm_image(x, g.c.x_compact, (size_t)image * g.c.channels * positions),
                           g.c.x_compact, false, g.c.channels, 0, g.depth / 8, positions,
                           count * positions, own, RM_GROUP, unit,
                           [&](uint32_t q) { return p.positions[q]; });
        rm_barrier_of(1 + group, RM_GROUP);
        for (uint32_t r0 = warp * 2 * TILE; r0 < rows; r0 += ROWS) {
            const uint16_t *row[2];
            float sum[2][NT][4];
#pragma unroll
            for (unsigned t = 0; t < 2; t++) {
                const uint32_t r = r0 + t * TILE + warp_lane % 16;
                row[t] = unit + p.rows[r < rows ? r : rows - 1];
#pragma unroll
                for (unsigned n = 0; n < NT; n++)
                    for (unsigned i = 0; i < 4; i++)
                        sum[t][n][i] = biases[n][i % 2];
            }
            multiply_rows<As, NT>(g, row, p.weights, p.chunks, sum);
#pragma unroll
            for (unsigned t = 0; t < 2; t++)
#pragma unroll
                for (unsigned half = 0; half < 2; half++) {
                    const uint32_t r = r0 + t * TILE + half * 8 + warp_lane / 4;
                    const target to = {y,         g.c.out_channels,     g.places,
                                       first_out, image + r / g.places, r % g.places};
#pragma unroll
                    for (unsigned n = 0; n < NT; n++)
                        for (unsigned i = 0; i < 2; i++)
                            sum[t][n][half * 2 + i] = finished(sum[t][n][half * 2 + i], relu);
                    if (g.c.y_compact)
                        write_compact<As, NT>(to, sum[t], half, r < rows);
                    else if (r < rows)
                        write_floats<NT>(to, sum[t], half);
                }
        }
        rm_barrier_of(1 + group, RM_GROUP);
    }
}

template <class As, unsigned NT>
void run(struct rm_cuda *c, const struct rm_images &g, const void *x, const uint16_t *w,
         const float *bias, bool relu, uint32_t images, void *y)
{
    const uint32_t units = (images + g.together - 1) / g.together;
    const uint32_t most = c->spec.small ? RM_BLOCKS_SMALL : c->info.processors;
    const dim3 grid(units < most ? units : most, (g.c.out_channels + g.wide_out - 1) / g.wide_out);
    if (rm_cuda_roomy(c, reinterpret_cast<const void *>(convolve_images<As, NT>)))
        RM_RUN_SHARED(c, (convolve_images<As, NT>), grid, RM_GROUP * g.groups, g.shared, g, x, w,
                      bias, relu, images, y);
}

} // namespace

bool rm_images_shape(struct rm_images *g, const struct rm_conv *c, bool spread)
{
    const uint64_t high = c->height + 2ull * c->padding, wide = c->width + 2ull * c->padding;
    *g = rm_images{};
    g->c = *c;
    g->places = c->out_height * c->out_width;
    g->depth = up(c->channels, 8);
    g->pitch = g->depth / 8 % 2 ? g->depth : g->depth + 8; /* an odd number of sixteen bytes */
    g->chunks = c->kernel * c->kernel * (g->depth / 8);
    g->steps = (g->chunks + 1) / 2;
    if (!g->places || g->depth > 1024 || high * (wide + 8) * g->pitch > 1u << 20 ||
        g->steps > 4096 || (c->x_compact && c->channels % 8) ||
        (c->y_compact && c->out_channels % 8))
        return false;
    g->high = (uint32_t)high;
    g->wide = (uint32_t)wide;
    while (spread && c->stride == 1 && g->wide % 8 != c->out_width % 8)
        g->wide++;
    g->together = g->places < RM_GROUP ? RM_GROUP / g->places : 1;
    g->unit = up(g->together * g->high * g->wide * g->pitch, 8);
    return true;
}

/* All channels of results if possible, and several groups: all groups of a block read the weights,
 * and groups alternate between memory and tensor cores. */
static bool cut_for(struct rm_images *g, const struct rm_conv *c, size_t shared, bool spread)
{
    if (!rm_images_shape(g, c, spread))
        return false;
    const size_t row = rm_images_shared_row(*g) * sizeof(uint16_t);
    uint32_t wide = c->out_channels > 32 ? 64 : c->out_channels > 16 ? 32 : 16;
    const size_t unit = g->unit * sizeof(uint16_t), tables = table_words(*g) * sizeof(uint32_t);
    while (wide > 16 && wide * row + 2 * unit + tables > shared)
        wide /= 2;
    g->wide_out = wide;
    g->groups = RM_GROUPS_MOST;
    while (g->groups && wide * row + g->groups * unit + tables > shared)
        g->groups--;
    g->shared = wide * row + g->groups * unit + tables;
    return g->groups > 0;
}

bool rm_images_best_cut(struct rm_images *g, const struct rm_conv *c, size_t shared,
                        rm_images_cut_fn *cut)
{
    struct rm_images tight;
    if (!cut(&tight, c, shared, false))
        return false;
    if (!cut(g, c, shared, true) || g->groups < tight.groups || g->stages < tight.stages ||
        g->wide_out < tight.wide_out)
        *g = tight;
    return true;
}

bool rm_images_cut(struct rm_images *g, const struct rm_conv *c, size_t shared)
{
    return rm_images_best_cut(g, c, shared, cut_for);
}

/* With a stride there would be zeros between the gradients. */
bool rm_images_turned(struct rm_conv *turned, const struct rm_conv *c)
{
    if (c->stride != 1 || c->padding >= c->kernel)
        return false;
    *turned = *c;
    turned->channels = c->out_channels;
    turned->height = c->out_height;
    turned->width = c->out_width;
    turned->padding = c->kernel - 1 - c->padding;
    turned->out_channels = c->channels;
    turned->out_height = c->height;
    turned->out_width = c->width;
    turned->x_compact = c->y_compact;
    turned->y_compact = c->x_compact;
    return true;
}

void rm_images_pack(struct rm_cuda *c, const struct rm_images &g, const float *w, bool turned,
                    uint16_t *to)
{
    const unsigned blocks = rm_cuda_blocks(c, (size_t)g.c.out_channels * rm_images_row(g) / 2, 256);
    uint32_t *words = reinterpret_cast<uint32_t *>(to);
    rm_in_halves(c->spec.compute, [&](auto format) {
        RM_RUN(c, pack_rows<decltype(format)>, blocks, 256, g, w, turned, words);
    });
}

void rm_images_convolve(struct rm_cuda *c, const struct rm_images &g, const void *x,
                        const uint16_t *w, const float *bias, bool relu, uint32_t images, void *y)
{
    if (!images)
        return;
    rm_in_halves(c->spec.compute, [&](auto format) {
        typedef decltype(format) As;
        if (g.wide_out == 64)
            run<As, 8>(c, g, x, w, bias, relu, images, y);
        else if (g.wide_out == 32)
            run<As, 4>(c, g, x, w, bias, relu, images, y);
        else
            run<As, 2>(c, g, x, w, bias, relu, images, y);
    });
}
