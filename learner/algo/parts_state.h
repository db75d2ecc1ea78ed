/* parts_state: what the parts of all trainers are made of, for checkpoints (shm/base/state.h). Each
 * is called by the learner's thread, to save and to load alike. After loading parameters,
 * rm_net_prepare() must follow. */
#ifndef RM_LEARNER_ALGO_PARTS_STATE_H
#define RM_LEARNER_ALGO_PARTS_STATE_H

#include "learner/algo/normaliser.h"
#include "learner/algo/optimizer.h"
#include "learner/algo/reward_scale.h"
#include "learner/algo/value_head.h"
#include "learner/backend/backend.h"
#include "shm/base/state.h"

/* `count` floats in the backend's memory. */
void rm_device_state(struct rm_state *state, struct rm_backend *backend, const char *name,
                     float *data, size_t count);

/* Moments and steps, within `name`. */
void rm_optimizer_state(struct rm_optimizer *optimizer, struct rm_backend *backend,
                        const char *name, struct rm_state *state);

void rm_normaliser_state(struct rm_normaliser *normaliser, struct rm_state *state);
void rm_reward_scale_state(struct rm_reward_scale *scale, struct rm_state *state);
void rm_value_head_state(struct rm_value_head *head, struct rm_state *state);

#endif
