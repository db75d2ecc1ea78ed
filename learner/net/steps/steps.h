/* steps: what the files of this folder have for the tables of steps.c. */
#ifndef RM_LEARNER_NET_STEPS_STEPS_H
#define RM_LEARNER_NET_STEPS_STEPS_H

#include "learner/net/parts.h"

int rm_compile_linear(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_activation(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_layer_norm(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_cosine(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_recurrent(struct rm_compiler *c, const struct rm_layer_config *layer);

extern const struct rm_step_ops rm_linear_step, rm_activate_step, rm_layer_norm_step,
    rm_cosine_step, rm_dueling_step, rm_normalize_step, rm_join_step;

extern const struct rm_step_ops rm_gru_step, rm_lstm_step;

#endif
