/* parts: a compiled network from the inside. For the files of this room only. */
#ifndef RM_LEARNER_NET_PARTS_H
#define RM_LEARNER_NET_PARTS_H

#include "learner/net/net.h"

#include <stdbool.h>

/* The steps of a network, in order. An activation right after a product is part of its step. */
enum rm_step_kind {
    RM_STEP_LINEAR = 0, /* y = act(x W^T + b), noisy or not */
    RM_STEP_ACTIVATE,
    RM_STEP_LAYER_NORM,
    RM_STEP_COSINE, /* z = x * ReLU(cos(pi i tau) W^T + b): rows become rows * quantiles */
    RM_STEP_DUELING,
};

#define RM_NO_OFFSET SIZE_MAX

struct rm_step {
    enum rm_step_kind kind;
    uint32_t in, out; /* features; COSINE: out = in, and `cosines` inputs of its product */
    uint32_t cosines;
    bool noisy;
    bool per_quantile; /* its input has rows * quantiles */
    enum rm_activation act;
    size_t weight, bias;             /* floats into the arena; layer norm: gamma, beta */
    size_t sigma_weight, sigma_bias; /* RM_NO_OFFSET unless noisy */
    size_t noise;                    /* floats into a draw of noise */
};

#define RM_STEPS_MAX   (RM_LAYERS_MAX + 2)
#define RM_TENSORS_MAX (RM_STEPS_MAX * 4)

struct rm_net {
    struct rm_network_config config;
    struct rm_net_shape shape;
    uint32_t step_count;
    struct rm_step steps[RM_STEPS_MAX];
    size_t param_count, act_count, noise_count;
    uint32_t outputs;
    bool uses_quantiles;
    size_t tensor_count;
    struct rm_net_tensor tensors[RM_TENSORS_MAX];
};

/* Buffers of one step. Those that a step does not need are NULL. */
struct rm_step_buffers {
    float *y;       /* its result; without training two buffers take turns */
    float *pre;     /* GELU in training: what it was applied to */
    float *packed;  /* mean weights, packed */
    float *noisy_w; /* effective weights (out, in) of the last noisy forward */
    float *noisy_b;
    float *noisy_packed;
    float *eps_w, *eps_b;               /* factorised noise, expanded */
    float *mean, *rstd;                 /* layer norm */
    float *cosines, *phi;               /* cosine embedding */
    const float *now_packed, *now_bias; /* what the pass under way uses */
    bool packed_fresh;
    bool last_noisy; /* what the last forward used */
    const float *last_eps_w, *last_eps_b;
};

struct rm_net_workspace {
    const struct rm_net *net;
    struct rm_backend *backend;
    uint32_t max_batch, max_quantiles;
    bool training;
    struct rm_step_buffers steps[RM_STEPS_MAX];
    float *turns[2];     /* results of all but the last step, without training */
    float *states;       /* what the cosine embedding multiplies, without training */
    float *result;       /* of the last step, without training */
    float *gradients[2]; /* of a step's result and of its input, taking turns */
    float *phi_gradient;
    float **owned; /* every allocation */
    size_t owned_count, floats;
};

/* Rows of a group and thread: with 250 features they and the weights fit a cache of 1 MB. */
#define RM_GROUP_ROWS 128u

/* States that forward takes at a time where rows are many. At most the batch for which buffers are.
 */
uint32_t rm_net_group_states(const struct rm_net_workspace *workspace, uint32_t quantiles);

static inline uint32_t rm_step_weight_inputs(const struct rm_step *s)
{
    return s->kind == RM_STEP_COSINE ? s->cosines : s->in;
}

#endif
