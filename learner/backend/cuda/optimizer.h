/* optimizer: the table of device_optimizer.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_OPTIMIZER_H
#define RM_LEARNER_BACKEND_CUDA_OPTIMIZER_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/device_optimizer.h"
}

extern const struct rm_device_optimizer_ops rm_cuda_optimizer;

#endif
