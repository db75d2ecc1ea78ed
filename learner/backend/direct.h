/* direct: convolutions with stride 1 as matrix products without patches in memory.
 *
 * An image is turned to (row, column, channel) in the cache, each place there with the kernel's
 * width of neighbours beside it: (height + 2 padding, out_width, kernel * channels). Then the part
 * of every row ky of the kernel is one product over all places at once, whose k is kernel *
 * channels, and products of the rows of the kernel add up. The gradient of x is the same with dy
 * and the kernel turned round; that of the weights is a product over places.
 *
 * Images are independent but for the gradients of weights, which are added up within a fixed number
 * of slots of consecutive images and then over slots, in order. */
#ifndef RM_LEARNER_BACKEND_DIRECT_H
#define RM_LEARNER_BACKEND_DIRECT_H

#include "learner/backend/backend.h"

struct rm_cpu;

/* Whether a convolution is for this file. */
bool rm_direct_suits(const struct rm_conv *c);

/* As those of the backend. */
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
