/* tables: the tables of operations, and functions of the tables that several files fill. */
#ifndef RM_LEARNER_BACKEND_CUDA_TABLES_H
#define RM_LEARNER_BACKEND_CUDA_TABLES_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/device_collective.h"
#include "learner/backend/device_draw.h"
#include "learner/backend/device_feed.h"
#include "learner/backend/device_optimizer.h"
#include "learner/backend/device_worlds.h"
#include "learner/backend/policy_ops.h"
#include "learner/backend/sequence_ops.h"
#include "learner/backend/soft_ops.h"
#include "learner/backend/value_ops.h"
}

extern const struct rm_device_collective_ops rm_cuda_collective;
extern const struct rm_device_feed_ops rm_cuda_feed;
extern const struct rm_device_optimizer_ops rm_cuda_optimizer;
extern const struct rm_device_world_ops rm_cuda_worlds;
extern const struct rm_policy_ops rm_cuda_policies;
extern const struct rm_sequence_ops rm_cuda_sequences;
extern const struct rm_soft_ops rm_cuda_soft;
extern const struct rm_value_ops rm_cuda_values;

/* scans.cu */
RM_CUDA_MEMBER(rm_policy_ops, gae) rm_cuda_gae;
RM_CUDA_MEMBER(rm_policy_ops, vtrace) rm_cuda_vtrace;
RM_CUDA_MEMBER(rm_policy_ops, returns) rm_cuda_returns;
RM_CUDA_MEMBER(rm_policy_ops, returns_end) rm_cuda_returns_end;
/* softmax.cu */
RM_CUDA_MEMBER(rm_policy_ops, values) rm_cuda_policy_values;
RM_CUDA_MEMBER(rm_policy_ops, loss) rm_cuda_policy_loss;
RM_CUDA_MEMBER(rm_policy_ops, loss_end) rm_cuda_policy_loss_end;
/* draw.cu, per.cu */
RM_CUDA_MEMBER(rm_device_feed_ops, draw) rm_cuda_draw;
RM_CUDA_MEMBER(rm_device_feed_ops, learned) rm_cuda_learned;
RM_CUDA_MEMBER(rm_device_feed_ops, add_up) rm_cuda_add_up;
/* rollouts.cu */
RM_CUDA_MEMBER(rm_device_world_ops, begin) rm_cuda_worlds_begin;
RM_CUDA_MEMBER(rm_device_world_ops, draw) rm_cuda_worlds_draw;
RM_CUDA_MEMBER(rm_device_world_ops, end) rm_cuda_worlds_end;

#endif
