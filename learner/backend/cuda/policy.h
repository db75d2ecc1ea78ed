/* policy: what device_policy.h asks for, function by function. */
#ifndef RM_LEARNER_BACKEND_CUDA_POLICY_H
#define RM_LEARNER_BACKEND_CUDA_POLICY_H

#include "learner/backend/cuda/block.h"
#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/device_policy.h"
}

/* The table, for plugin.cu. */
extern const struct rm_device_policy_ops rm_cuda_policies;

/* scans.cu */
void rm_cuda_gae(struct rm_backend *b, const struct rm_rollout_rows *rows, float lambda,
                 float *advantage, float *target);
void rm_cuda_vtrace(struct rm_backend *b, const struct rm_rollout_rows *rows,
                    const struct rm_vtrace *vtrace, const float *logp_now, const float *logp_then,
                    float *advantage, float *target);
void rm_cuda_returns(struct rm_backend *b, const struct rm_device_returns *returns);

/* softmax.cu */
void rm_cuda_policy_values(struct rm_backend *b, const struct rm_device_values *values);
void rm_cuda_policy_loss(struct rm_backend *b, const struct rm_device_policy_loss *loss);

/* Threads of a block that adds up alone, so that a sum has one order. */
#define RM_SUM_THREADS 512u

#endif
