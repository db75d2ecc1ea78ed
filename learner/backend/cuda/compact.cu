/* Compact rows of images (backend.h): activations, and linear layers whose input they are. Packing
 * turns the weights to (out, places, channels), and their gradients are turned back. */
#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/ops.h"
#include "learner/backend/cuda/product.h"
#include "learner/backend/cuda/sums.h"
#include "learner/backend/cuda/tensor.h"

namespace
{

/* Eight numbers at a time. With y: x = x act'(y), else x = act(x). */
template <class As>
struct activating {
    enum rm_activation act;
    const uint4 *y;
    uint4 *x;
    struct in {
        uint4 x, y;
    };
    __device__ in load(size_t i) const
    {
        in v;
        v.x = x[i];
        if (y)
            v.y = y[i];
        return v;
    }
    __device__ float one(uint32_t bits, uint32_t of) const
    {
        const float v = As::to_float((uint16_t)bits);
        if (!y)
            return rm_activated(act, v);
        return v * rm_activation_slope(act, 0.0f, As::to_float((uint16_t)of));
    }
    __device__ uint32_t two(uint32_t words, uint32_t of) const
    {
        return rm_pair(As(), one(words & 0xffffu, of & 0xffffu), one(words >> 16, of >> 16));
    }
    __device__ void store(size_t i, const in &v) const
    {
        uint4 to;
        to.x = two(v.x.x, v.y.x);
        to.y = two(v.x.y, v.y.y);
        to.z = two(v.x.z, v.y.z);
        to.w = two(v.x.w, v.y.w);
        x[i] = to;
    }
};

/* n is a multiple of eight, because channels are. */
void activate(struct rm_cuda *c, enum rm_activation act, const float *y, size_t n, float *x)
{
    const uint4 *of = reinterpret_cast<const uint4 *>(y);
    uint4 *to = reinterpret_cast<uint4 *>(x);
    rm_in_halves(c->spec.compute, [&](auto format) {
        rm_map(c, "compact activation", activating<decltype(format)>{act, of, to}, n / 8);
    });
}

uint32_t in_of(const struct rm_image_rows *rows)
{
    return rows->channels * rows->places;
}

/* A gradient of results in the products' format. */
struct rm_cuda_operand reduced(struct rm_cuda *c, const float *dy, uint32_t batch, uint32_t out,
                               bool turned)
{
    const uint32_t stride = rm_cuda_reduced_stride(out);
    void *to = rm_cuda_scratch(c, RM_SCRATCH_B, (size_t)batch * stride * sizeof(uint16_t));
    if (to)
        rm_cuda_reduce(c, dy, batch, out, to);
    return {to, stride, turned};
}

} // namespace

void rm_cuda_compact_activate(struct rm_backend *b, enum rm_activation act, size_t n, float *y)
{
    activate(rm_cuda_of(b), act, NULL, n, y);
}

void rm_cuda_compact_activate_dx(struct rm_backend *b, enum rm_activation act, const float *y,
                                 size_t n, float *dy)
{
    activate(rm_cuda_of(b), act, y, n, dy);
}

void rm_cuda_compact_pack(struct rm_backend *b, const float *w, uint32_t out,
                          const struct rm_image_rows *x, float *wt)
{
    struct rm_cuda *c = rm_cuda_of(b);
    rm_cuda_turn(c, w, out, x->channels, x->places, x->channels, c->spec.compute, wt);
}

/* y^T = op(W) x^T */
void rm_cuda_compact_linear(struct rm_backend *b, const float *x, const struct rm_image_rows *rows,
                            const float *wt, const float *bias, uint32_t out,
                            enum rm_activation act, float *y)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const uint32_t in = in_of(rows);
    if (!rows->batch || !out)
        return;
    const struct rm_cuda_product p = {.m = out,
                                      .n = rows->batch,
                                      .k = in,
                                      .a = {wt, in, true},
                                      .b = {x, in, false},
                                      .d = y,
                                      .d_stride = out,
                                      .compute = c->spec.compute};
    rm_cuda_product_biased(c, p, bias, act);
}

/* dx^T = W^T dy^T */
void rm_cuda_compact_linear_dx(struct rm_backend *b, const float *dy, const float *w,
                               const struct rm_image_rows *rows, uint32_t out, float *dx)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const uint32_t in = in_of(rows);
    if (!rows->batch)
        return;
    float *wt =
        static_cast<float *>(rm_cuda_scratch(c, RM_SCRATCH_A, (size_t)out * in * sizeof(uint16_t)));
    const struct rm_cuda_product p = {.m = in,
                                      .n = rows->batch,
                                      .k = out,
                                      .a = {wt, in, false},
                                      .b = reduced(c, dy, rows->batch, out, false),
                                      .d = dx,
                                      .d_stride = in,
                                      .d_reduced = true,
                                      .compute = c->spec.compute};
    if (!wt || !p.b.at)
        return;
    rm_cuda_compact_pack(b, w, out, rows, wt);
    rm_cuda_product_plain(c, p);
}

/* dW^T = x^T dy, as columns (places, channels), then turned. */
void rm_cuda_compact_linear_dw(struct rm_backend *b, const float *dy, const float *x,
                               const struct rm_image_rows *rows, uint32_t out, float *dw, float *db)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const uint32_t in = in_of(rows);
    if (!rows->batch) {
        rm_cuda_fill(b, 0.0f, (size_t)in * out, dw);
        rm_cuda_fill(b, 0.0f, out, db);
        return;
    }
    float *turned = static_cast<float *>(
        rm_cuda_scratch(c, RM_SCRATCH_PARTS, (size_t)out * in * sizeof(float)));
    const struct rm_cuda_product p = {.m = in,
                                      .n = out,
                                      .k = rows->batch,
                                      .a = {x, in, false},
                                      .b = reduced(c, dy, rows->batch, out, true),
                                      .d = turned,
                                      .d_stride = in,
                                      .compute = c->spec.compute};
    if (!turned || !p.b.at)
        return;
    if (!rm_cuda_product_summed(c, p, db))
        rm_cuda_column_sums(c, dy, rows->batch, out, db);
    rm_cuda_turn(c, turned, out, rows->places, rows->channels, rows->places, RM_COMPUTE_FP32, dw);
}
