/* The functions of each kind of step, and the layer that is compiled to it. */
#include "learner/net/steps/steps.h"

/* clang-format off */
const struct rm_step_ops *const rm_step_ops[] = {
#define ROW(NAME, name) [RM_STEP_##NAME] = &rm_##name##_step,
    RM_STEPS(ROW)
#undef ROW
};

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
    [RM_LAYER_POSITION] = rm_compile_position,
    [RM_LAYER_MEAN_POOL] = rm_compile_mean_pool,
    [RM_LAYER_POINTER] = rm_compile_pointer,
    [RM_LAYER_ONE_HOT] = rm_compile_one_hot,
    [RM_LAYER_MESSAGE_PASSING] = rm_compile_message_passing,
    [RM_LAYER_GRAPH_ATTENTION] = rm_compile_graph_attention,
    [RM_LAYER_GRAPH_POOL] = rm_compile_graph_pool,
    [RM_LAYER_HISTORY] = rm_compile_history,
};
/* clang-format on */
