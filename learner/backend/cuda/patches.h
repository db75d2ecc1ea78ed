/* patches: convolutions as products of matrices whose rows are patches (im2col), by the library's
 * products: any shape and format. The functions are those of backend.h; their memory is
 * rm_cuda_scratch()'s. */
#ifndef RM_LEARNER_BACKEND_CUDA_PATCHES_H
#define RM_LEARNER_BACKEND_CUDA_PATCHES_H

#include "learner/backend/cuda/cuda.h"

size_t rm_patches_packed_floats(struct rm_backend *b, const struct rm_conv *c);
void rm_patches_pack(struct rm_backend *b, const struct rm_conv *c, const float *w, float *wt);
int rm_patches_reserve(struct rm_backend *b, const struct rm_conv *c, uint32_t batch,
                       bool training);
void rm_patches_convolve(struct rm_backend *b, const struct rm_conv *c, const float *x,
                         const float *wt, const float *bias, uint32_t batch, enum rm_activation act,
                         float *y);
void rm_patches_convolve_dx(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                            const float *w, uint32_t batch, float *dx);
void rm_patches_convolve_dw(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                            const float *x, uint32_t batch, float *dw, float *db);

#endif
