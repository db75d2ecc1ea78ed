/* Convolution. Each of its three products uses images.h if products are in 16 bits and images are
 * small enough; the choice depends on the shape and the device alone. Otherwise it is a product of
 * matrices by the library, of any shape and format (im2col; Chellapilla et al., 2006): the patch
 * under each position of the kernel becomes a row, in the products' own format, for as many images
 * at once as the reserved memory holds. The gradients of images are gathered: each number adds up
 * its own patches' gradients in their order. */
#include "learner/backend/cuda/formats.h"
#include "learner/backend/cuda/images.h"
#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/ops.h"
#include "learner/backend/cuda/product.h"
#include "learner/backend/cuda/sums.h"

#include <errno.h>

namespace
{

/* Bytes of patches at a time, or those of one image if that has more. */
#define PATCH_BYTES       ((size_t)512 << 20)
#define PATCH_BYTES_SMALL ((size_t)20000)

#define TOGETHER  8u  /* numbers of a patch for a thread */
#define TURN      32u /* side of a tile that is transposed at a time */
#define TURN_ROWS 8u

__host__ __device__ uint32_t patch_of(const struct rm_conv &c)
{
    return c.channels * c.kernel * c.kernel;
}

__host__ __device__ uint32_t places_of(const struct rm_conv &c)
{
    return c.out_height * c.out_width;
}

size_t image_floats(const struct rm_conv &c)
{
    return (size_t)c.channels * c.height * c.width;
}

/* Row r, a place of an image: numbers TOGETHER i .. of (channel, y, x) under the kernel, with zeros
 * beyond the edges and after the patch. */
template <class As>
struct taking_patches {
    struct rm_conv c;
    const float *x;
    uint32_t stride; /* of a row of `to` */
    typename As::type *to;
    __device__ void at(size_t r, uint32_t i) const
    {
        const uint32_t places = places_of(c), patch = patch_of(c), k = c.kernel;
        const uint32_t image = (uint32_t)(r / places), place = (uint32_t)(r % places);
        const int32_t y0 = (int32_t)(place / c.out_width * c.stride) - (int32_t)c.padding;
        const int32_t x0 = (int32_t)(place % c.out_width * c.stride) - (int32_t)c.padding;
        uint32_t at = i * TOGETHER, channel = at / (k * k), ky = at / k % k, kx = at % k;
        const float *from = x + (size_t)image * c.channels * c.height * c.width;
        alignas(16) typename As::type v[TOGETHER];
#pragma unroll
        for (uint32_t j = 0; j < TOGETHER; j++, at++) {
            const int32_t y = y0 + (int32_t)ky, xx = x0 + (int32_t)kx;
            const bool inside =
                at < patch && y >= 0 && y < (int32_t)c.height && xx >= 0 && xx < (int32_t)c.width;
            v[j] = As::from_float(
                inside ? from[((size_t)channel * c.height + (uint32_t)y) * c.width + (uint32_t)xx]
                       : 0.0f);
            if (++kx == k) {
                kx = 0;
                if (++ky == k) {
                    ky = 0;
                    channel++;
                }
            }
        }
        write(v, to + r * stride + i * TOGETHER, stride - i * TOGETHER);
    }
    /* Writes at most `room` numbers; 16 bytes at a time if rows begin at multiples of that. */
    __device__ void write(const typename As::type v[TOGETHER], typename As::type *row,
                          uint32_t room) const
    {
        const uint32_t each = 16 / sizeof *v;
        if (stride % each) {
            for (uint32_t j = 0; j < TOGETHER && j < room; j++)
                row[j] = v[j];
            return;
        }
        for (uint32_t j = 0; j < TOGETHER && j < room; j += each)
            *reinterpret_cast<uint4 *>(row + j) = *reinterpret_cast<const uint4 *>(v + j);
    }
};

/* Row r is a channel of an image, i is a number of it. */
struct giving_patches {
    struct rm_conv c;
    const float *patches; /* (images * places, patch) */
    float *dx;
    __device__ void at(size_t r, uint32_t i) const
    {
        const uint32_t k = c.kernel, s = c.stride, patch = patch_of(c);
        const uint32_t channel = (uint32_t)(r % c.channels);
        const uint32_t y = i / c.width + c.padding, x = i % c.width + c.padding;
        const float *from =
            patches + r / c.channels * places_of(c) * patch + (size_t)channel * k * k;
        float sum = 0.0f;
        for (uint32_t oy = y < k ? 0 : (y - k) / s + 1; oy < c.out_height && oy * s <= y; oy++)
            for (uint32_t ox = x < k ? 0 : (x - k) / s + 1; ox < c.out_width && ox * s <= x; ox++)
                sum +=
                    from[(size_t)(oy * c.out_width + ox) * patch + (y - oy * s) * k + (x - ox * s)];
        dx[r * c.height * c.width + i] = sum;
    }
};

/* rm_cuda_turn() */
template <class As>
__global__ void turn_images(const float *x, uint32_t rows, uint32_t columns, uint32_t stride,
                            typename As::type *to)
{
    RM_SHARED(float, tile); /* (TURN, TURN + 1) */
    const uint32_t across = (columns + TURN - 1) / TURN, image = blockIdx.y;
    const uint32_t r0 = blockIdx.x / across * TURN, c0 = blockIdx.x % across * TURN;
    const float *from = x + (size_t)image * rows * columns;
    typename As::type *out = to + (size_t)image * columns * stride;
    const uint32_t i = threadIdx.x;
    for (uint32_t j = threadIdx.y; j < TURN; j += TURN_ROWS)
        tile[j * (TURN + 1) + i] =
            r0 + j < rows && c0 + i < columns ? from[(size_t)(r0 + j) * columns + c0 + i] : 0.0f;
    __syncthreads();
    for (uint32_t j = threadIdx.y; j < TURN; j += TURN_ROWS)
        if (c0 + j < columns && r0 + i < stride)
            out[(size_t)(c0 + j) * stride + r0 + i] = As::from_float(tile[i * (TURN + 1) + j]);
}

#define MOST_IMAGES 32768u /* of a launch */

template <class As>
void turn(struct rm_cuda *c, const float *x, uint32_t images, uint32_t rows, uint32_t columns,
          uint32_t stride, void *to)
{
    typename As::type *out = static_cast<typename As::type *>(to);
    const uint32_t tiles = (stride + TURN - 1) / TURN * ((columns + TURN - 1) / TURN);
    for (uint32_t at = 0; at < images; at += MOST_IMAGES) {
        const uint32_t n = images - at < MOST_IMAGES ? images - at : MOST_IMAGES;
        RM_RUN_SHARED(c, turn_images<As>, dim3(tiles, n), dim3(TURN, TURN_ROWS),
                      TURN * (TURN + 1) * sizeof(float), x + (size_t)at * rows * columns, rows,
                      columns, stride, out + (size_t)at * columns * stride);
    }
}

/* One convolution: the cut of its products' rows. */
struct plan {
    struct rm_cuda *c;
    struct rm_conv conv;
    enum rm_compute compute;
    uint32_t patch, places, out;       /* numbers */
    uint32_t patch_stride, out_stride; /* of rows in the products' format */
    size_t element;                    /* bytes of it */
    uint32_t images;                   /* at a time */
};

struct plan plan_of(struct rm_backend *b, const struct rm_conv *conv)
{
    struct plan p = {};
    p.c = rm_cuda_of(b);
    p.conv = *conv;
    p.compute = p.c->spec.compute;
    const bool reduced = rm_cuda_reduced(p.compute);
    p.patch = patch_of(*conv);
    p.places = places_of(*conv);
    p.out = conv->out_channels;
    p.patch_stride = reduced ? rm_cuda_reduced_stride(p.patch) : p.patch;
    p.out_stride = reduced ? rm_cuda_reduced_stride(p.out) : p.out;
    p.element = reduced ? sizeof(uint16_t) : sizeof(float);
    const size_t bytes = (size_t)p.places * p.patch * sizeof(float);
    const size_t most = p.c->spec.small ? PATCH_BYTES_SMALL : PATCH_BYTES;
    p.images = bytes < most ? (uint32_t)(most / bytes) : 1;
    return p;
}

uint32_t fewer(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Gradients of patches are floats and may use the memory of the patches. */
size_t patch_bytes(const struct plan &p, uint32_t images, bool training)
{
    const size_t rows = (size_t)fewer(images, p.images) * p.places;
    const size_t made = rows * p.patch_stride * p.element, back = rows * p.patch * sizeof(float);
    return training && back > made ? back : made;
}

size_t result_bytes(const struct plan &p, uint32_t images)
{
    const size_t rows = (size_t)fewer(images, p.images) * p.places;
    return rows * p.out_stride * sizeof(float);
}

void take_patches(const struct plan &p, const float *x, uint32_t images, void *to)
{
    const size_t rows = (size_t)images * p.places;
    const uint32_t n = (p.patch_stride + TOGETHER - 1) / TOGETHER;
    rm_in_format(p.compute, [&](auto format) {
        typedef decltype(format) As;
        typename As::type *out = static_cast<typename As::type *>(to);
        rm_map(p.c, "patches", taking_patches<As>{p.conv, x, p.patch_stride, out}, rows, n);
    });
}

/* Gradients (out, places) of images to rows of the products. */
void channels_last(const struct plan &p, const float *dy, uint32_t images, void *to)
{
    rm_cuda_turn(p.c, dy, images, p.out, p.places, p.out_stride, p.compute, to);
}

/* Sums over places, then over images, in order: (images, channels, places) to (channels). */
struct summing_places {
    const float *dy;
    uint32_t places;
    float *sums; /* (images, channels) */
    __device__ void at(size_t r, uint32_t) const
    {
        float sum = 0.0f;
        for (uint32_t i = 0; i < places; i++)
            sum += dy[r * places + i];
        sums[r] = sum;
    }
};

} // namespace

void rm_cuda_turn(struct rm_cuda *c, const float *x, uint32_t images, uint32_t rows,
                  uint32_t columns, uint32_t stride, enum rm_compute compute, void *to)
{
    rm_in_format(compute, [&](auto format) {
        turn<decltype(format)>(c, x, images, rows, columns, stride, to);
    });
}

namespace
{

int reserve_patches(struct rm_backend *b, const struct rm_conv *conv, uint32_t batch, bool training)
{
    const struct plan p = plan_of(b, conv);
    const size_t weights = (size_t)p.out * p.patch_stride * p.element;
    return rm_cuda_scratch_reserve(p.c, RM_SCRATCH_PATCHES, patch_bytes(p, batch, training)) &&
                   rm_cuda_scratch_reserve(p.c, RM_SCRATCH_RESULTS, result_bytes(p, batch)) &&
                   (!training || rm_cuda_scratch_reserve(p.c, RM_SCRATCH_A, weights)) &&
                   (!training || rm_cuda_scratch_reserve(p.c, RM_SCRATCH_B,
                                                         (size_t)batch * p.out * sizeof(float)))
               ? 0
               : -ENOMEM;
}

void convolve_patches(struct rm_backend *b, const struct rm_conv *conv, const float *x,
                      const float *wt, const float *bias, uint32_t batch, enum rm_activation act,
                      float *y)
{
    const struct plan p = plan_of(b, conv);
    const size_t in = image_floats(*conv), out = (size_t)p.out * p.places;
    void *patches = rm_cuda_scratch(p.c, RM_SCRATCH_PATCHES, patch_bytes(p, batch, false));
    float *made =
        static_cast<float *>(rm_cuda_scratch(p.c, RM_SCRATCH_RESULTS, result_bytes(p, batch)));
    for (uint32_t at = 0; at < batch && rm_cuda_ready(p.c); at += p.images) {
        const uint32_t n = fewer(batch - at, p.images);
        take_patches(p, x + at * in, n, patches);
        const struct rm_cuda_product m = {.m = p.out,
                                          .n = n * p.places,
                                          .k = p.patch,
                                          .a = {wt, p.patch_stride, true},
                                          .b = {patches, p.patch_stride, false},
                                          .d = made,
                                          .d_stride = p.out,
                                          .compute = p.compute};
        rm_cuda_product_biased(p.c, m, bias, act);
        turn<rm_in_fp32>(p.c, made, n, p.places, p.out, p.places, y + at * out);
    }
}

void patches_dx(struct rm_backend *b, const struct rm_conv *conv, const float *dy, const float *w,
                uint32_t batch, float *dx)
{
    const struct plan p = plan_of(b, conv);
    const size_t in = image_floats(*conv), out = (size_t)p.out * p.places;
    void *rows = rm_cuda_scratch(p.c, RM_SCRATCH_RESULTS, result_bytes(p, batch));
    float *patches =
        static_cast<float *>(rm_cuda_scratch(p.c, RM_SCRATCH_PATCHES, patch_bytes(p, batch, true)));
    const void *weights = w;
    if (rm_cuda_reduced(p.compute)) {
        void *made =
            rm_cuda_scratch(p.c, RM_SCRATCH_A, (size_t)p.out * p.patch_stride * sizeof(uint16_t));
        if (made)
            rm_cuda_reduce(p.c, w, p.out, p.patch, made);
        weights = made;
    }
    for (uint32_t at = 0; at < batch && rm_cuda_ready(p.c); at += p.images) {
        const uint32_t n = fewer(batch - at, p.images);
        channels_last(p, dy + at * out, n, rows);
        const struct rm_cuda_product m = {.m = p.patch,
                                          .n = n * p.places,
                                          .k = p.out,
                                          .a = {weights, p.patch_stride, false},
                                          .b = {rows, p.out_stride, false},
                                          .d = patches,
                                          .d_stride = p.patch,
                                          .compute = p.compute};
        rm_cuda_product_plain(p.c, m);
        rm_map(p.c, "give_patches", giving_patches{*conv, patches, dx + at * in},
               (size_t)n * conv->channels, conv->height * conv->width);
    }
}

void patches_dw(struct rm_backend *b, const struct rm_conv *conv, const float *dy, const float *x,
                uint32_t batch, float *dw, float *db)
{
    const struct plan p = plan_of(b, conv);
    const size_t in = image_floats(*conv), out = (size_t)p.out * p.places;
    void *patches = rm_cuda_scratch(p.c, RM_SCRATCH_PATCHES, patch_bytes(p, batch, false));
    void *rows = rm_cuda_scratch(p.c, RM_SCRATCH_RESULTS, result_bytes(p, batch));
    bool summed = false;
    if (!batch) {
        rm_cuda_fill(b, 0.0f, (size_t)p.out * p.patch, dw);
        rm_cuda_fill(b, 0.0f, p.out, db);
        return;
    }
    for (uint32_t at = 0; at < batch && rm_cuda_ready(p.c); at += p.images) {
        const uint32_t n = fewer(batch - at, p.images);
        take_patches(p, x + at * in, n, patches);
        channels_last(p, dy + at * out, n, rows);
        const struct rm_cuda_product m = {.m = p.patch,
                                          .n = p.out,
                                          .k = n * p.places,
                                          .a = {patches, p.patch_stride, false},
                                          .b = {rows, p.out_stride, true},
                                          .d = dw,
                                          .d_stride = p.patch,
                                          .compute = p.compute,
                                          .add = at > 0};
        if (batch <= p.images)
            summed = rm_cuda_product_summed(p.c, m, db);
        else
            rm_cuda_product_plain(p.c, m);
    }
    if (summed)
        return;
    float *sums = static_cast<float *>(
        rm_cuda_scratch(p.c, RM_SCRATCH_B, (size_t)batch * p.out * sizeof(float)));
    if (!sums)
        return;
    rm_map(p.c, "sum_places", summing_places{dy, p.places, sums}, (size_t)batch * p.out, 1u);
    rm_cuda_column_sums(p.c, sums, batch, p.out, db);
}

/* --- the choice ------------------------------------------------------------------------------ */

enum way { RESULTS, GRADIENTS, OF_WEIGHTS };

/* Whether the convolution uses images.h; if so, fills in the cut. */
bool by_images(struct rm_cuda *c, enum way way, const struct rm_conv *conv, struct rm_images *g)
{
    struct rm_conv turned;
    if (!rm_cuda_reduced(c->spec.compute) || c->spec.plain)
        return false;
    if (way == OF_WEIGHTS)
        return rm_images_cut_back(g, conv, c->shared_most);
    if (way == RESULTS)
        return rm_images_cut(g, conv, c->shared_most);
    return rm_images_turned(&turned, conv) && rm_images_cut(g, &turned, c->shared_most);
}

size_t packed_bytes(const struct rm_images &g)
{
    return (size_t)g.c.out_channels * rm_images_row(g) * sizeof(uint16_t);
}

} // namespace

bool rm_cuda_conv2d_compact(struct rm_backend *b, const struct rm_conv *conv)
{
    struct rm_cuda *c = rm_cuda_of(b);
    struct rm_images g;
    return by_images(c, RESULTS, conv, &g) && by_images(c, GRADIENTS, conv, &g) &&
           by_images(c, OF_WEIGHTS, conv, &g);
}

size_t rm_cuda_conv2d_packed_floats(struct rm_backend *b, const struct rm_conv *conv)
{
    struct rm_images g;
    return by_images(rm_cuda_of(b), RESULTS, conv, &g)
               ? packed_bytes(g) / sizeof(float)
               : rm_cuda_packed_floats(b, conv->out_channels, patch_of(*conv));
}

void rm_cuda_conv2d_pack(struct rm_backend *b, const struct rm_conv *conv, const float *w,
                         float *wt)
{
    struct rm_cuda *c = rm_cuda_of(b);
    struct rm_images g;
    if (by_images(c, RESULTS, conv, &g))
        rm_images_pack(c, g, w, false, reinterpret_cast<uint16_t *>(wt));
    else
        rm_cuda_pack(b, w, conv->out_channels, patch_of(*conv), wt);
}

/* Scratch that all convolutions share: rm_cuda_scratch(). */
size_t rm_cuda_conv2d_scratch_floats(struct rm_backend *b, const struct rm_conv *conv,
                                     bool training)
{
    (void)b;
    (void)conv;
    (void)training;
    return 0;
}

int rm_cuda_conv2d_reserve(struct rm_backend *b, const struct rm_conv *conv, uint32_t batch,
                           bool training)
{
    struct rm_cuda *c = rm_cuda_of(b);
    struct rm_images g;
    bool patches = !by_images(c, RESULTS, conv, &g);
    if (training && by_images(c, GRADIENTS, conv, &g)) {
        if (!rm_cuda_scratch_reserve(c, RM_SCRATCH_A, packed_bytes(g)))
            return -ENOMEM;
    } else if (training) {
        patches = true;
    }
    if (training && by_images(c, OF_WEIGHTS, conv, &g)) {
        if (!rm_cuda_scratch_reserve(c, RM_SCRATCH_PARTS, rm_images_part_bytes(c, g, batch)))
            return -ENOMEM;
    } else if (training) {
        patches = true;
    }
    return patches ? reserve_patches(b, conv, batch, training) : 0;
}

void rm_cuda_conv2d(struct rm_backend *b, const struct rm_conv *conv, const float *x,
                    const float *wt, const float *bias, uint32_t batch, enum rm_activation act,
                    float *y, float *scratch)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t out = (size_t)conv->out_channels * conv->out_height * conv->out_width;
    struct rm_images g;
    (void)scratch;
    if (!by_images(c, RESULTS, conv, &g)) {
        convolve_patches(b, conv, x, wt, bias, batch, act, y);
        return;
    }
    rm_images_convolve(c, g, x, reinterpret_cast<const uint16_t *>(wt), bias, act == RM_ACT_RELU,
                       batch, y);
    if (act == RM_ACT_NONE || act == RM_ACT_RELU)
        return;
    if (conv->y_compact)
        rm_cuda_compact_activate(b, act, batch * out, y);
    else
        rm_cuda_activate(b, act, y, batch * out, y);
}

void rm_cuda_conv2d_dx(struct rm_backend *b, const struct rm_conv *conv, const float *dy,
                       const float *w, uint32_t batch, float *dx, float *scratch)
{
    struct rm_cuda *c = rm_cuda_of(b);
    struct rm_images g;
    (void)scratch;
    if (!by_images(c, GRADIENTS, conv, &g)) {
        patches_dx(b, conv, dy, w, batch, dx);
        return;
    }
    uint16_t *turned = static_cast<uint16_t *>(rm_cuda_scratch(c, RM_SCRATCH_A, packed_bytes(g)));
    if (!turned)
        return;
    rm_images_pack(c, g, w, true, turned);
    rm_images_convolve(c, g, dy, turned, NULL, false, batch, dx);
}

void rm_cuda_conv2d_dw(struct rm_backend *b, const struct rm_conv *conv, const float *dy,
                       const float *x, uint32_t batch, float *dw, float *db, float *scratch)
{
    struct rm_cuda *c = rm_cuda_of(b);
    struct rm_images g;
    (void)scratch;
    if (!batch || !by_images(c, OF_WEIGHTS, conv, &g)) {
        patches_dw(b, conv, dy, x, batch, dw, db);
        return;
    }
    float *parts = static_cast<float *>(
        rm_cuda_scratch(c, RM_SCRATCH_PARTS, rm_images_part_bytes(c, g, batch)));
    if (parts)
        rm_images_back(c, g, dy, x, batch, parts, dw, db);
}
