/* values: the table of device_values.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_VALUES_H
#define RM_LEARNER_BACKEND_CUDA_VALUES_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/device_values.h"
}

extern const struct rm_device_value_ops rm_cuda_values;

#endif
