/* ops: rm_cuda_NAME() for each operation of backend.h, with the type of the table's member. */
#ifndef RM_LEARNER_BACKEND_CUDA_OPS_H
#define RM_LEARNER_BACKEND_CUDA_OPS_H

#include "learner/backend/cuda/cuda.h"

#define RM_CUDA_DECLARE(name) RM_CUDA_MEMBER(rm_backend_ops, name) rm_cuda_##name;
RM_OPERATIONS(RM_CUDA_DECLARE)
RM_DEVICE_OPERATIONS(RM_CUDA_DECLARE)
#undef RM_CUDA_DECLARE

/* y = act(y), of compact rows. */
void rm_cuda_compact_activate(struct rm_backend *b, enum rm_activation act, size_t n, float *y);

#endif
