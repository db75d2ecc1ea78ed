/* Convolution over images (channels, height, width), zeros around them. */
#include "learner/net/steps/steps.h"

enum kept { PACKED, SCRATCH };

struct rm_conv rm_step_conv(const struct rm_net_workspace *w, const struct rm_step *s)
{
    return (struct rm_conv){
        .channels = s->in.channels,
        .height = s->in.height,
        .width = s->in.width,
        .kernel = s->layer.kernel,
        .stride = s->layer.stride,
        .padding = s->layer.padding,
        .out_channels = s->out.channels,
        .out_height = s->out.height,
        .out_width = s->out.width,
        .x_compact = rm_reads_compact(w, s),
        .y_compact = w->steps[s - w->net->steps].compact,
    };
}

int rm_compile_conv2d(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    const struct rm_row_form in = c->place.form;
    const uint32_t k = layer->kernel, padding = layer->padding;
    if (!in.channels)
        return rm_compile_refuse(c,
                                 "needs an image, an observation of (channels, height, width) or "
                                 "the output of a conv2d; its input is %u x %u numbers",
                                 in.tokens, in.features);
    if (layer->units == 0 || layer->units > RM_UNITS_MAX || k == 0 || layer->stride == 0)
        return rm_compile_refuse(c, "units must be from 1 to %u, kernel and stride at least 1",
                                 RM_UNITS_MAX);
    if (k > in.height + 2 * padding || k > in.width + 2 * padding)
        return rm_compile_refuse(c,
                                 "a kernel of %u is larger than the image of %u x %u with "
                                 "padding %u",
                                 k, in.height, in.width, padding);
    struct rm_row_form out = in;
    out.channels = layer->units;
    out.height = (in.height + 2 * padding - k) / layer->stride + 1;
    out.width = (in.width + 2 * padding - k) / layer->stride + 1;
    uint64_t features = (uint64_t)out.channels * out.height * out.width;
    if (features > (1u << 24))
        return rm_compile_refuse(c, "makes %u x %u x %u numbers of an observation; at most 2^24",
                                 out.channels, out.height, out.width);
    out.features = (uint32_t)features;
    struct rm_step *s = rm_compile_step(c, RM_STEP_CONV2D, out);
    s->weight = rm_compile_tensor(c, "weight", RM_TENSOR_TRAINED | RM_TENSOR_MATRIX, 4,
                                  (const uint32_t[]){out.channels, in.channels, k, k});
    s->bias = rm_compile_vector(c, "bias", out.channels);
    return 0;
}

static bool buffers(struct rm_net_workspace *w, const struct rm_step *s, struct rm_step_buffers *b)
{
    const struct rm_conv conv = rm_step_conv(w, s);
    const struct rm_backend_ops *ops = w->backend->ops;
    const size_t packed = ops->conv2d_packed_floats(w->backend, &conv);
    const size_t scratch = ops->conv2d_scratch_floats(w->backend, &conv, w->training);
    return rm_workspace_want(w, packed > 0, &b->kept[PACKED], packed) &&
           rm_workspace_want(w, scratch > 0, &b->kept[SCRATCH], scratch) &&
           ops->conv2d_reserve(w->backend, &conv, w->max_batch, w->training) == 0;
}

static void prepare(const struct rm_pass *p, const struct rm_step *s, struct rm_step_buffers *b)
{
    const struct rm_conv conv = rm_step_conv(p->w, s);
    if (b->kept[PACKED] && !b->fresh)
        p->ops->conv2d_pack(p->b, &conv, p->params + s->weight, b->kept[PACKED]);
    b->fresh = true;
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    const struct rm_conv conv = rm_step_conv(p->w, s);
    uint32_t n = (uint32_t)rm_rows_of(p, &s->out);
    float *pre = b->pre ? b->pre + rm_kept_at(p, &s->out) * s->out.features : NULL;
    const float *weights = b->kept[PACKED] ? b->kept[PACKED] : p->params + s->weight;
    p->ops->conv2d(p->b, &conv, rows->x, weights, p->params + s->bias, n,
                   pre ? RM_ACT_NONE : s->act, pre ? pre : rows->y, b->kept[SCRATCH]);
    if (pre)
        p->ops->activate(p->b, s->act, pre, (size_t)n * s->out.features, rows->y);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    const struct rm_conv conv = rm_step_conv(p->w, s);
    uint32_t n = (uint32_t)rm_rows_of(p, &s->out);
    if (b->compact && s->act != RM_ACT_NONE)
        p->ops->compact_activate_dx(p->b, s->act, b->y, (size_t)n * s->out.features, rows->dy);
    else
        rm_step_through_activation(p, s, b, rows->dy);
    p->ops->conv2d_dw(p->b, &conv, rows->dy, rows->x, n, p->grads + s->weight, p->grads + s->bias,
                      b->kept[SCRATCH]);
    if (rows->dx)
        p->ops->conv2d_dx(p->b, &conv, rows->dy, p->params + s->weight, n, rows->dx,
                          b->kept[SCRATCH]);
}

static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    uint32_t area = s->layer.kernel * s->layer.kernel, in = s->in.channels * area;
    rm_init_weights(net, params + s->weight, s->out.channels, in, in, s->out.channels * area,
                    net->config.gain, rng);
    rm_init_biases(net, params + s->bias, s->out.channels, in, rng);
}

static double flops(const struct rm_step *s)
{
    return 2.0 * s->out.features * s->in.channels * s->layer.kernel * s->layer.kernel;
}

const struct rm_step_ops rm_conv2d_step = {.name = "conv2d",
                                           .by_row = true,
                                           .pre = true,
                                           .buffers = buffers,
                                           .prepare = prepare,
                                           .forward = forward,
                                           .backward = backward,
                                           .init = init,
                                           .flops = flops};
