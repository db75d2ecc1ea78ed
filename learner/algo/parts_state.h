/* parts_state: the state of the trainers' parts, for checkpoints (shm/base/state.h). The learner's
 * thread calls each function, both to save and to load. After loading parameters, call
 * rm_net_prepare(). */
#ifndef RM_LEARNER_ALGO_PARTS_STATE_H
#define RM_LEARNER_ALGO_PARTS_STATE_H

#include "learner/algo/normaliser.h"
#include "learner/algo/optimizer.h"
#include "learner/algo/reward_scale.h"
#include "learner/algo/value_head.h"
#include "learner/backend/backend.h"
#include "shm/base/state.h"

/* Saves or loads `count` floats of the backend's memory. */
void rm_device_state(struct rm_state *state, struct rm_backend *backend, const char *name,
                     float *data, size_t count);

/* Saves or loads moments and steps, within `name`. */
void rm_optimizer_state(struct rm_optimizer *optimizer, struct rm_backend *backend,
                        const char *name, struct rm_state *state);

void rm_normaliser_state(struct rm_normaliser *normaliser, struct rm_state *state);
void rm_reward_scale_state(struct rm_reward_scale *scale, struct rm_state *state);
void rm_value_head_state(struct rm_value_head *head, struct rm_state *state);

#endif
