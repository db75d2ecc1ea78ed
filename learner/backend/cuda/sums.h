/* sums: sums over rows, for gradients of parameters that all rows share. */
#ifndef RM_LEARNER_BACKEND_CUDA_SUMS_H
#define RM_LEARNER_BACKEND_CUDA_SUMS_H

#include "learner/backend/cuda/cuda.h"

/* Floats of struct rm_cuda's `partials`: those of two sums at once. After them there are as many
 * words as such a sum has tiles of columns; they are 0 between operations. */
#define RM_CUDA_PARTIALS (2u * 16384u)
#define RM_CUDA_TICKETS  512u

/* sums(n) = column sums of x(rows, n), in an order that depends on the shape alone. */
void rm_cuda_column_sums(struct rm_cuda *c, const float *x, size_t rows, uint32_t n, float *sums);

#endif
