/* steps: functions and tables of this folder's files, for steps.c. */
#ifndef RM_LEARNER_NET_STEPS_STEPS_H
#define RM_LEARNER_NET_STEPS_STEPS_H

#include "learner/net/parts.h"

/* clang-format off */
int rm_compile_linear(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_activation(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_layer_norm(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_cosine(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_recurrent(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_embedding(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_conv2d(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_residual(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_dropout(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_attention(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_position(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_mean_pool(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_pointer(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_one_hot(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_message_passing(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_graph_attention(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_graph_pool(struct rm_compiler *c, const struct rm_layer_config *layer);
int rm_compile_history(struct rm_compiler *c, const struct rm_layer_config *layer);
/* Of a history, its queries alone: see history.c. */
struct rm_row_form rm_queries_form(struct rm_row_form history);
void rm_compile_queries(struct rm_compiler *c);
/* inputs.c: what comes before network.layers where observations have layers of their own. */
int rm_compile_inputs(struct rm_compiler *c);
/* Around layers: see tokens.c. `codes`: tokens of an observation of whole numbers for an embedding.
 */
uint32_t rm_tokens_of_codes(const struct rm_layer_config *layer,
                            const struct rm_net_observation *of);
void rm_compile_tokens(struct rm_compiler *c, const struct rm_token_set *set);
void rm_compile_spread(struct rm_compiler *c);
void rm_compile_first(struct rm_compiler *c);
/* Of real actions: see reals.c. */
void rm_compile_deviation(struct rm_compiler *c);
void rm_compile_action(struct rm_compiler *c);

#define RM_STEP_DECLARE(NAME, name) extern const struct rm_step_ops rm_##name##_step;
RM_STEPS(RM_STEP_DECLARE)
#undef RM_STEP_DECLARE
/* clang-format on */

#endif
