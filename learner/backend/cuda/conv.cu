/* Convolution: each of its three products uses images.h if products are in 16 bits and images are
 * small enough, else patches.h. The choice depends on the shape and the device alone. */
#include "learner/backend/cuda/images.h"
#include "learner/backend/cuda/ops.h"
#include "learner/backend/cuda/patches.h"
#include "learner/backend/cuda/product.h"

#include <errno.h>

namespace
{

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
    return by_images(rm_cuda_of(b), RESULTS, conv, &g) ? packed_bytes(g) / sizeof(float)
                                                       : rm_patches_packed_floats(b, conv);
}

void rm_cuda_conv2d_pack(struct rm_backend *b, const struct rm_conv *conv, const float *w,
                         float *wt)
{
    struct rm_cuda *c = rm_cuda_of(b);
    struct rm_images g;
    if (by_images(c, RESULTS, conv, &g))
        rm_images_pack(c, g, w, false, reinterpret_cast<uint16_t *>(wt));
    else
        rm_patches_pack(b, conv, w, wt);
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
    return patches ? rm_patches_reserve(b, conv, batch, training) : 0;
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
        rm_patches_convolve(b, conv, x, wt, bias, batch, act, y);
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
        rm_patches_convolve_dx(b, conv, dy, w, batch, dx);
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
        rm_patches_convolve_dw(b, conv, dy, x, batch, dw, db);
        return;
    }
    float *parts = static_cast<float *>(
        rm_cuda_scratch(c, RM_SCRATCH_PARTS, rm_images_part_bytes(c, g, batch)));
    if (parts)
        rm_images_back(c, g, dy, x, batch, parts, dw, db);
}
