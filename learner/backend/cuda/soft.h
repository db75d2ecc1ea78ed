/* soft: the table of soft_ops.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_SOFT_H
#define RM_LEARNER_BACKEND_CUDA_SOFT_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/soft_ops.h"
}

extern const struct rm_soft_ops rm_cuda_soft;

#endif
