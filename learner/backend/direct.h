/* direct: convolutions with stride 1 as matrix products without patches in memory.
 *
 * An image is converted in the cache to (row, column, channel), and each position gets the kernel's
 * width of neighbours beside it: (height + 2 padding, out_width, kernel * channels). Then the part
 * of a kernel row ky is one product over all positions, with k = kernel * channels, and the
 * products of the kernel's rows are added up. The gradient of x is the same with dy and the rotated
 * kernel; the gradient of the weights is a product over positions.
 *
 * Images are independent, except for gradients of weights, which are added up within a fixed number
 * of slots of consecutive images and then over slots, in order. */
#ifndef RM_LEARNER_BACKEND_DIRECT_H
#define RM_LEARNER_BACKEND_DIRECT_H

#include "learner/backend/backend.h"

struct rm_cpu;

static inline uint32_t rm_conv_places(const struct rm_conv *c)
{
    return c->out_height * c->out_width;
}

/* The number of floats, rounded up to whole cache lines. */
static inline size_t rm_rounded(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

/* Whether direct.c can compute this convolution. */
bool rm_direct_suits(const struct rm_conv *c);

/* The backend's functions of the same names (conv2d_...). */
size_t rm_direct_packed_floats(const struct rm_cpu *cpu, const struct rm_conv *c);
size_t rm_direct_scratch_floats(const struct rm_cpu *cpu, const struct rm_conv *c, bool training);
void rm_direct_pack(const struct rm_cpu *cpu, const struct rm_conv *c, const float *w, float *wt);
void rm_direct_forward(struct rm_cpu *cpu, const struct rm_conv *c, const float *x, const float *wt,
                       const float *bias, uint32_t batch, enum rm_activation act, float *y,
                       float *scratch);
void rm_direct_dx(struct rm_cpu *cpu, const struct rm_conv *c, const float *dy, const float *w,
                  uint32_t batch, float *dx, float *scratch);
void rm_direct_dw(struct rm_cpu *cpu, const struct rm_conv *c, const float *dy, const float *x,
                  uint32_t batch, float *dw, float *db, float *scratch);

#endif
