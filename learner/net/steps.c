/* Two tables with one line for each kind of step: its functions, and the layer that is compiled to
 * it. */
#include "learner/net/steps/steps.h"

#include <assert.h>

/* clang-format off */
const struct rm_step_ops *const rm_step_ops[] = {
    [RM_STEP_LINEAR] = &rm_linear_step,
    [RM_STEP_ACTIVATE] = &rm_activate_step,
    [RM_STEP_LAYER_NORM] = &rm_layer_norm_step,
    [RM_STEP_COSINE] = &rm_cosine_step,
    [RM_STEP_DUELING] = &rm_dueling_step,
    [RM_STEP_NORMALIZE] = &rm_normalize_step,
    [RM_STEP_JOIN] = &rm_join_step,
    [RM_STEP_HEAD] = &rm_head_step,
    [RM_STEP_TAIL] = &rm_tail_step,
    [RM_STEP_GRU] = &rm_gru_step,
    [RM_STEP_LSTM] = &rm_lstm_step,
    [RM_STEP_TOKENS] = &rm_tokens_step,
    [RM_STEP_SPREAD] = &rm_spread_step,
    [RM_STEP_MEAN_POOL] = &rm_mean_pool_step,
    [RM_STEP_FIRST] = &rm_first_step,
    [RM_STEP_ATTENTION] = &rm_attention_step,
    [RM_STEP_POINTER] = &rm_pointer_step,
    [RM_STEP_RESIDUAL] = &rm_residual_step,
    [RM_STEP_EMBEDDING] = &rm_embedding_step,
    [RM_STEP_CONV2D] = &rm_conv2d_step,
    [RM_STEP_DROPOUT] = &rm_dropout_step,
    [RM_STEP_DEVIATION] = &rm_deviation_step,
    [RM_STEP_ACTION] = &rm_action_step,
};
static_assert(sizeof rm_step_ops / sizeof rm_step_ops[0] == RM_STEP_COUNT, "a row per kind");

const rm_compile_fn rm_layer_compile[RM_LAYER_TYPE_COUNT] = {
    [RM_LAYER_LINEAR] = rm_compile_linear,
    [RM_LAYER_NOISY_LINEAR] = rm_compile_linear,
    [RM_LAYER_RELU] = rm_compile_activation,
    [RM_LAYER_TANH] = rm_compile_activation,
    [RM_LAYER_GELU] = rm_compile_activation,
    [RM_LAYER_SILU] = rm_compile_activation,
    [RM_LAYER_ELU] = rm_compile_activation,
    [RM_LAYER_LEAKY_RELU] = rm_compile_activation,
    [RM_LAYER_SIGMOID] = rm_compile_activation,
    [RM_LAYER_LAYER_NORM] = rm_compile_layer_norm,
    [RM_LAYER_COSINE_EMBEDDING] = rm_compile_cosine,
    [RM_LAYER_EMBEDDING] = rm_compile_embedding,
    [RM_LAYER_CONV2D] = rm_compile_conv2d,
    [RM_LAYER_RESIDUAL] = rm_compile_residual,
    [RM_LAYER_DROPOUT] = rm_compile_dropout,
    [RM_LAYER_GRU] = rm_compile_recurrent,
    [RM_LAYER_LSTM] = rm_compile_recurrent,
    [RM_LAYER_ATTENTION] = rm_compile_attention,
    [RM_LAYER_MEAN_POOL] = rm_compile_mean_pool,
    [RM_LAYER_POINTER] = rm_compile_pointer,
};
/* clang-format on */
