/* Convolution as a matrix product, for shapes that direct.c does not take: the patch under each
 * position of the kernel becomes a row (im2col; Chellapilla et al., 2006), with images in chunks of
 * a fixed number so that sums over them have one order.
 *
 * Scratch: patches (rows, channels * kernel^2), then results (rows, out_channels), then, in
 * training, a chunk's gradients of weights and biases. */
#include "learner/backend/cpu.h"

#include <string.h>

/* Minimum rows of patches in a chunk, if the batch allows. */
#define CHUNK_ROWS 1024u

static uint32_t patch_of(const struct rm_conv *c)
{
    return c->channels * c->kernel * c->kernel;
}

static uint32_t chunk_of(const struct rm_conv *c)
{
    return (CHUNK_ROWS + rm_conv_places(c) - 1) / rm_conv_places(c);
}

struct scratch {
    float *patches, *results, *dw, *db;
    size_t in, out; /* numbers of an image and of its result */
    uint32_t chunk; /* images */
};

static size_t cut(const struct rm_conv *c, bool training, float *at, struct scratch *s)
{
    size_t rows = (size_t)chunk_of(c) * rm_conv_places(c);
    size_t patches = rm_rounded(rows * patch_of(c)), results = rm_rounded(rows * c->out_channels);
    size_t dw = rm_rounded((size_t)c->out_channels * patch_of(c)), db = rm_rounded(c->out_channels);
    if (s)
        *s = (struct scratch){.patches = at,
                              .results = at + patches,
                              .dw = at + patches + results,
                              .db = at + patches + results + dw,
                              .in = (size_t)c->channels * c->height * c->width,
                              .out = (size_t)c->out_channels * rm_conv_places(c),
                              .chunk = chunk_of(c)};
    return patches + results + (training ? dw + db : 0);
}

size_t rm_cpu_conv2d_packed_floats(struct rm_backend *b, const struct rm_conv *c)
{
    if (rm_direct_suits(c))
        return rm_direct_packed_floats(rm_cpu_of(b), c);
    return rm_cpu_packed_floats(b, c->out_channels, patch_of(c));
}

void rm_cpu_conv2d_pack(struct rm_backend *b, const struct rm_conv *c, const float *w, float *wt)
{
    if (rm_direct_suits(c)) {
        rm_direct_pack(rm_cpu_of(b), c, w, wt);
        return;
    }
    rm_cpu_pack(b, w, c->out_channels, patch_of(c), wt);
}

size_t rm_cpu_conv2d_scratch_floats(struct rm_backend *b, const struct rm_conv *c, bool training)
{
    if (rm_direct_suits(c))
        return rm_direct_scratch_floats(rm_cpu_of(b), c, training);
    return cut(c, training, NULL, NULL);
}

int rm_cpu_conv2d_reserve(struct rm_backend *b, const struct rm_conv *c, uint32_t batch,
                          bool training)
{
    if (rm_direct_suits(c))
        return 0;
    (void)batch; /* chunks have one size: the last is filled up with zeros */
    return rm_cpu_reserve(b, chunk_of(c) * rm_conv_places(c), patch_of(c), c->out_channels,
                          training);
}

struct images {
    const struct rm_conv *c;
    const float *from;
    float *to;
};

/* Patches of one image: rows of (channel, y, x) under the kernel, zeros beyond the edges. */
static void take_patches(void *work, uint32_t image)
{
    const struct images *m = work;
    const struct rm_conv *c = m->c;
    const uint32_t k = c->kernel;
    const float *x = m->from + (size_t)image * c->channels * c->height * c->width;
    float *to = m->to + (size_t)image * rm_conv_places(c) * patch_of(c);
    for (uint32_t oy = 0; oy < c->out_height; oy++)
        for (uint32_t ox = 0; ox < c->out_width; ox++)
            for (uint32_t channel = 0; channel < c->channels; channel++)
                for (uint32_t ky = 0; ky < k; ky++, to += k) {
                    int64_t y = (int64_t)oy * c->stride + ky - c->padding;
                    int64_t x0 = (int64_t)ox * c->stride - c->padding;
                    const float *row = x + ((size_t)channel * c->height) * c->width;
                    for (uint32_t kx = 0; kx < k; kx++) {
                        bool inside = y >= 0 && y < c->height && x0 + kx >= 0 && x0 + kx < c->width;
                        to[kx] = inside ? row[y * c->width + x0 + kx] : 0.0f;
                    }
                }
}

/* The inverse: adds up a number's gradients in all of its patches, in their order. */
static void give_patches(void *work, uint32_t image)
{
    const struct images *m = work;
    const struct rm_conv *c = m->c;
    const uint32_t k = c->kernel;
    const size_t floats = (size_t)c->channels * c->height * c->width;
    const float *from = m->from + (size_t)image * rm_conv_places(c) * patch_of(c);
    float *dx = m->to + image * floats;
    memset(dx, 0, floats * sizeof *dx);
    for (uint32_t oy = 0; oy < c->out_height; oy++)
        for (uint32_t ox = 0; ox < c->out_width; ox++)
            for (uint32_t channel = 0; channel < c->channels; channel++)
                for (uint32_t ky = 0; ky < k; ky++, from += k) {
                    int64_t y = (int64_t)oy * c->stride + ky - c->padding;
                    int64_t x0 = (int64_t)ox * c->stride - c->padding;
                    float *row = dx + ((size_t)channel * c->height) * c->width;
                    for (uint32_t kx = 0; kx < k; kx++)
                        if (y >= 0 && y < c->height && x0 + kx >= 0 && x0 + kx < c->width)
                            row[y * c->width + x0 + kx] += from[kx];
                }
}

/* Turns an image's (rows, columns) around. */
static void turn(const struct images *m, uint32_t image, uint32_t rows, uint32_t columns)
{
    const float *from = m->from + (size_t)image * rows * columns;
    float *to = m->to + (size_t)image * rows * columns;
    for (uint32_t c = 0; c < columns; c++)
        for (uint32_t r = 0; r < rows; r++)
            to[(size_t)c * rows + r] = from[(size_t)r * columns + c];
}

static void channels_first(void *work, uint32_t image)
{
    const struct images *m = work;
    turn(m, image, rm_conv_places(m->c), m->c->out_channels);
}

static void channels_last(void *work, uint32_t image)
{
    const struct images *m = work;
    turn(m, image, m->c->out_channels, rm_conv_places(m->c));
}

static void each_image(struct rm_backend *b, rm_pool_fn fn, const struct rm_conv *c,
                       const float *from, float *to, uint32_t images)
{
    struct images m = {c, from, to};
    rm_cpu_run(rm_cpu_of(b), fn, &m, images, (double)images * rm_conv_places(c) * patch_of(c));
}

void rm_cpu_conv2d(struct rm_backend *b, const struct rm_conv *c, const float *x, const float *wt,
                   const float *bias, uint32_t batch, enum rm_activation act, float *y,
                   float *scratch)
{
    if (rm_direct_suits(c)) {
        rm_direct_forward(rm_cpu_of(b), c, x, wt, bias, batch, act, y, scratch);
        return;
    }
    struct scratch s;
    cut(c, false, scratch, &s);
    for (uint32_t at = 0; at < batch; at += s.chunk) {
        uint32_t n = batch - at < s.chunk ? batch - at : s.chunk;
        each_image(b, take_patches, c, x + at * s.in, s.patches, n);
        rm_cpu_linear(b, s.patches, wt, bias, n * rm_conv_places(c), patch_of(c), c->out_channels,
                      act, s.results);
        each_image(b, channels_first, c, s.results, y + at * s.out, n);
    }
}

void rm_cpu_conv2d_dx(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                      const float *w, uint32_t batch, float *dx, float *scratch)
{
    if (rm_direct_suits(c)) {
        rm_direct_dx(rm_cpu_of(b), c, dy, w, batch, dx, scratch);
        return;
    }
    struct scratch s;
    cut(c, true, scratch, &s);
    for (uint32_t at = 0; at < batch; at += s.chunk) {
        uint32_t n = batch - at < s.chunk ? batch - at : s.chunk;
        each_image(b, channels_last, c, dy + at * s.out, s.results, n);
        rm_cpu_linear_dx(b, s.results, w, n * rm_conv_places(c), patch_of(c), c->out_channels,
                         s.patches);
        each_image(b, give_patches, c, s.patches, dx + at * s.in, n);
    }
}

void rm_cpu_conv2d_dw(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                      const float *x, uint32_t batch, float *dw, float *db, float *scratch)
{
    if (rm_direct_suits(c)) {
        rm_direct_dw(rm_cpu_of(b), c, dy, x, batch, dw, db, scratch);
        return;
    }
    const size_t weights = (size_t)c->out_channels * patch_of(c);
    struct scratch s;
    cut(c, true, scratch, &s);
    for (uint32_t at = 0; at < batch; at += s.chunk) {
        uint32_t n = batch - at < s.chunk ? batch - at : s.chunk;
        size_t rest = (size_t)(s.chunk - n) * rm_conv_places(c);
        each_image(b, take_patches, c, x + at * s.in, s.patches, n);
        each_image(b, channels_last, c, dy + at * s.out, s.results, n);
        memset(s.patches + (size_t)n * rm_conv_places(c) * patch_of(c), 0,
               rest * patch_of(c) * sizeof *s.patches);
        memset(s.results + n * s.out, 0, rest * c->out_channels * sizeof *s.results);
        rm_cpu_linear_dw(b, s.results, s.patches, s.chunk * rm_conv_places(c), patch_of(c),
                         c->out_channels, at ? s.dw : dw, at ? s.db : db);
        if (at) {
            rm_cpu_add(b, dw, s.dw, weights, dw);
            rm_cpu_add(b, db, s.db, c->out_channels, db);
        }
    }
}
