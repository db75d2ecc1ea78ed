/* values: the table of value_ops.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_VALUES_H
#define RM_LEARNER_BACKEND_CUDA_VALUES_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/value_ops.h"
}

extern const struct rm_value_ops rm_cuda_values;

#endif
