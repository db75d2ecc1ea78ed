/* tables: the tables of operations that have no header of their own. NAME.cu defines rm_cuda_NAME.
 */
#ifndef RM_LEARNER_BACKEND_CUDA_TABLES_H
#define RM_LEARNER_BACKEND_CUDA_TABLES_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/device_feed.h"
#include "learner/backend/device_optimizer.h"
#include "learner/backend/sequence_ops.h"
#include "learner/backend/soft_ops.h"
#include "learner/backend/value_ops.h"
}

extern const struct rm_device_feed_ops rm_cuda_feed;
extern const struct rm_device_optimizer_ops rm_cuda_optimizer;
extern const struct rm_sequence_ops rm_cuda_sequences;
extern const struct rm_soft_ops rm_cuda_soft;
extern const struct rm_value_ops rm_cuda_values;

#endif
