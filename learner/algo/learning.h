/* learning: returns a backend's operations for targets and losses. With the operations of networks
 * (learner/backend/backend.h) and of the optimizer (optimizer.h) they are all operations that an
 * update needs. On the CPU an operation is complete when it returns; on a device it is put in the
 * COMPUTE queue. */
#ifndef RM_LEARNER_ALGO_LEARNING_H
#define RM_LEARNER_ALGO_LEARNING_H

#include "learner/backend/backend.h"
#include "learner/backend/policy_ops.h"
#include "learner/backend/sequence_ops.h"
#include "learner/backend/soft_ops.h"
#include "learner/backend/value_ops.h"

const struct rm_value_ops *rm_value_ops_of(const struct rm_backend *backend);
const struct rm_sequence_ops *rm_sequence_ops_of(const struct rm_backend *backend);
const struct rm_soft_ops *rm_soft_ops_of(const struct rm_backend *backend);
const struct rm_policy_ops *rm_policy_ops_of(const struct rm_backend *backend);

#endif
