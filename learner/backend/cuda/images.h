/* images: convolutions as products that gather their operands themselves (implicit GEMM). An image
 * that fits shared memory is copied there once, channels last and padded with zeros, and tensor
 * cores read patches in place. Only the result is written to memory.
 *
 * In shared memory an image has high * wide positions of `depth` numbers of 16 bits: its channels,
 * rounded up to a multiple of eight. A patch is `chunks` of eight numbers, by place of the kernel,
 * then by channel. Chunk j has the same offset from the first position of every patch. So the
 * address of an operand is the offset of a row plus the offset of a column, for any kernel, stride
 * and padding.
 *
 * In global memory images are float32, (channels, places), or COMPACT: 16 bits, (places, channels),
 * their channels a multiple of eight. */
#ifndef RM_LEARNER_BACKEND_CUDA_IMAGES_H
#define RM_LEARNER_BACKEND_CUDA_IMAGES_H

#include "learner/backend/cuda/cuda.h"
#include "learner/backend/cuda/formats.h"
#include "learner/backend/cuda/tensor.h"

#define RM_GROUP       128u /* threads that compute results of a unit together */
#define RM_GROUPS_MOST 4u
#define RM_BACK_BLOCK  512u /* threads that compute gradients of weights */
/* Blocks: of results, one for each multiprocessor; of gradients of weights, at most RM_PARTS_MOST,
 * whose parts are added up. */
#define RM_PARTS_MOST   128u
#define RM_BLOCKS_SMALL 1u /* with the device's `small`: each block has many units */
#define RM_PARTS_SMALL  2u

/* The cut of a convolution. */
struct rm_images {
    struct rm_conv c;
    uint32_t places;       /* of a result */
    uint32_t high, wide;   /* positions of an image, zeros included */
    uint32_t depth, pitch; /* numbers of a position, and between the starts of two */
    uint32_t chunks;       /* of a patch */
    uint32_t steps;        /* of a product: two chunks each */
    uint32_t together;     /* images of a unit */
    uint32_t unit;         /* numbers of a unit in shared memory */
    uint32_t wide_out;     /* results or gradients of them: channels of a block */
    uint32_t groups;       /* units that a block processes at a time */
    uint32_t tiles;        /* gradients of weights: chunks of a warp */
    uint32_t stages;       /* the same: units in shared memory at a time */
    size_t shared;         /* bytes */
};

/* Numbers from one row of weights to the next, in memory and in shared memory, where they are an
 * odd number of sixteen bytes, so that eight rows use all banks. */
static inline __host__ __device__ uint32_t rm_images_row(const struct rm_images &g)
{
    return g.steps * 16;
}
static inline __host__ __device__ uint32_t rm_images_shared_row(const struct rm_images &g)
{
    return g.steps * 16 + 8;
}

/* Sets the members that do not depend on threads and memory. `spread`: adds positions between the
 * rows of an image, so that consecutive places use consecutive banks also across the end of a
 * row. */
bool rm_images_shape(struct rm_images *g, const struct rm_conv *c, bool spread);
/* The spread cut if it has no fewer groups, stages or channels than the other. */
typedef bool rm_images_cut_fn(struct rm_images *g, const struct rm_conv *c, size_t shared,
                              bool spread);
bool rm_images_best_cut(struct rm_images *g, const struct rm_conv *c, size_t shared,
                        rm_images_cut_fn *cut);
/* Does the convolution fit `shared` bytes of shared memory? If so, fills in the cut;
 * rm_images_cut_back() for the gradients of weights. */
bool rm_images_cut(struct rm_images *g, const struct rm_conv *c, size_t shared);
bool rm_images_cut_back(struct rm_images *g, const struct rm_conv *c, size_t shared);
/* The convolution that computes a gradient of images from one of results. False: there is none. */
bool rm_images_turned(struct rm_conv *turned, const struct rm_conv *c);

/* Packs the weights as rows of the product: (out_channels, rm_images_row()) in 16 bits. `turned`: g
 * is the rotated convolution of that of w. */
void rm_images_pack(struct rm_cuda *c, const struct rm_images &g, const float *w, bool turned,
                    uint16_t *to);
/* y = act(conv(x, w) + bias); bias NULL: none; RELU or no activation. */
void rm_images_convolve(struct rm_cuda *c, const struct rm_images &g, const void *x,
                        const uint16_t *w, const float *bias, bool relu, uint32_t images, void *y);
/* Bytes of the blocks' parts for so many images. */
size_t rm_images_part_bytes(const struct rm_cuda *c, const struct rm_images &g, uint32_t images);
void rm_images_back(struct rm_cuda *c, const struct rm_images &g, const void *dy, const void *x,
                    uint32_t images, float *parts, float *dw, float *db);

/* --- in kernels ------------------------------------------------------------------------------ */

/* Offset of chunk j of a patch from its first position; beyond the last chunk, arbitrary. */
static inline __device__ uint32_t rm_chunk_at(const struct rm_images &g, uint32_t j)
{
    const uint32_t eights = g.depth / 8, k = g.c.kernel, tap = j / eights;
    return j < g.chunks ? (tap / k * g.wide + tap % k) * g.pitch + j % eights * 8 : 0;
}

/* Start of the patch of row r of a unit; rows are places of its images. */
static inline __device__ uint32_t rm_row_at(const struct rm_images &g, uint32_t r)
{
    const uint32_t image = r / g.places, place = r % g.places, s = g.c.stride;
    const uint32_t y = place / g.c.out_width * s, x = place % g.c.out_width * s;
    return (image * g.high * g.wide + y * g.wide + x) * g.pitch;
}

/* Destination of position q of a unit's images, zeros not counted. */
static inline __device__ uint32_t rm_position_at(const struct rm_images &g, uint32_t q)
{
    const uint32_t all = g.c.height * g.c.width, image = q / all, place = q % all;
    const uint32_t y = place / g.c.width + g.c.padding, x = place % g.c.width + g.c.padding;
    return (image * g.high * g.wide + y * g.wide + x) * g.pitch;
}

/* Eight channels, from `channel` on, of a place of images (.., channels, places) in float32. */
template <class As>
static inline __device__ uint4 rm_eight_channels(const float *x, uint32_t channels, uint32_t places,
                                                 uint32_t place, uint32_t channel)
{
    float v[8];
#pragma unroll
    for (uint32_t i = 0; i < 8; i++)
        v[i] = channel + i < channels ? __ldg(x + (size_t)(channel + i) * places + place) : 0.0f;
    uint4 words;
    words.x = rm_pair(As(), v[0], v[1]);
    words.y = rm_pair(As(), v[2], v[3]);
    words.z = rm_pair(As(), v[4], v[5]);
    words.w = rm_pair(As(), v[6], v[7]);
    return words;
}

/* Copies `count` places of images to rows of shared memory: place q to to[at(q)], from place 0 of
 * the first image at x on, by threads `own` of `threads`. With `later`, which needs compact images,
 * asynchronously (rm_copy_later). */
template <class As, class At>
static inline __device__ void
rm_take_places(const void *x, bool compact, bool later, uint32_t channels, uint32_t first_channel,
               uint32_t eights, uint32_t places, uint32_t count, uint32_t own, uint32_t threads,
               uint16_t *to, const At &at)
{
    if (compact) {
        const uint32_t side = threads / eights, eight = own % eights;
        const uint16_t *from = static_cast<const uint16_t *>(x) + first_channel + eight * 8;
        if (own / eights >= side || first_channel + eight * 8 >= channels)
            return;
#pragma unroll 4
        for (uint32_t q = own / eights; q < count; q += side) {
            uint16_t *there = to + at(q) + eight * 8;
            if (later)
                rm_copy_later(there, from + (size_t)q * channels);
            else
                *reinterpret_cast<uint4 *>(there) =
                    __ldg(reinterpret_cast<const uint4 *>(from + (size_t)q * channels));
        }
        return;
    }
    for (uint32_t q = own; q < count; q += threads) {
        const uint32_t image = q / places;
        const float *from = static_cast<const float *>(x) + (size_t)image * channels * places;
        uint16_t *there = to + at(q);
#pragma unroll 2
        for (uint32_t eight = 0; eight < eights; eight++)
            *reinterpret_cast<uint4 *>(there + eight * 8) = rm_eight_channels<As>(
                from, channels, places, q - image * places, first_channel + eight * 8);
    }
}

/* The first image of a unit. */
static inline __device__ const void *rm_image(const void *x, bool compact, size_t numbers)
{
    const size_t bytes = numbers * (compact ? sizeof(uint16_t) : sizeof(float));
    return static_cast<const char *>(x) + bytes;
}

#endif
