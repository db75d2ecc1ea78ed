#include "tests/support/nets.h"

#include <string.h>

#define LINEAR(n)                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_LINEAR, .units = n                                                        \
    }
#define NOISY(n)                                                                                   \
    {                                                                                              \
        .type = RM_LAYER_NOISY_LINEAR, .units = n                                                  \
    }
#define COSINE(n)                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_COSINE_EMBEDDING, .cosines = n                                            \
    }
#define RELU                                                                                       \
    {                                                                                              \
        .type = RM_LAYER_RELU                                                                      \
    }
#define TANH                                                                                       \
    {                                                                                              \
        .type = RM_LAYER_TANH                                                                      \
    }
#define GELU                                                                                       \
    {                                                                                              \
        .type = RM_LAYER_GELU                                                                      \
    }
#define PLAIN(name)                                                                                \
    {                                                                                              \
        .type = RM_LAYER_##name                                                                    \
    }
#define EMBEDDING(n, rows)                                                                         \
    {                                                                                              \
        .type = RM_LAYER_EMBEDDING, .units = n, .codes = rows                                      \
    }
#define CONV(n, size, step, around)                                                                \
    {                                                                                              \
        .type = RM_LAYER_CONV2D, .units = n, .kernel = size, .stride = step, .padding = around     \
    }
#define RESIDUAL(layers)                                                                           \
    {                                                                                              \
        .type = RM_LAYER_RESIDUAL, .span = layers                                                  \
    }
#define DROPOUT(share)                                                                             \
    {                                                                                              \
        .type = RM_LAYER_DROPOUT, .rate = share                                                    \
    }
#define LAYER_NORM                                                                                 \
    {                                                                                              \
        .type = RM_LAYER_LAYER_NORM                                                                \
    }

#define GRU(n)                                                                                     \
    {                                                                                              \
        .type = RM_LAYER_GRU, .units = n                                                           \
    }
#define LSTM(n)                                                                                    \
    {                                                                                              \
        .type = RM_LAYER_LSTM, .units = n                                                          \
    }

#define ATTENTION(h, n, c)                                                                         \
    {                                                                                              \
        .type = RM_LAYER_ATTENTION, .heads = h, .units = n, .causal = c                            \
    }
#define MEAN_POOL                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_MEAN_POOL                                                                 \
    }
#define POINTER(n)                                                                                 \
    {                                                                                              \
        .type = RM_LAYER_POINTER, .units = n                                                       \
    }

/* Observations of tokens. */
#define TOKENS(count, each, acts, ends_in)                                                         \
    {                                                                                              \
        .inputs = (count) * (each), .actions = (acts), .outputs_per_action = 1, .head = (ends_in), \
        .dims = 2, .dim = {                                                                        \
            count,                                                                                 \
            each                                                                                   \
        }                                                                                          \
    }

#define SHAPE(in, acts, each)                                                                      \
    {                                                                                              \
        .inputs = (in), .actions = (acts), .outputs_per_action = (each)                            \
    }

/* Logits and a state value. */
#define CRITIC(in, acts)                                                                           \
    {                                                                                              \
        .inputs = (in), .actions = (acts), .outputs_per_action = 1, .head = RM_HEAD_ACTOR_CRITIC   \
    }

/* Images of (c, h, w) numbers, and whole numbers in (low, high). */
#define IMAGE(c, h, w, acts)                                                                       \
    {                                                                                              \
        .inputs = (c) * (h) * (w), .actions = (acts), .outputs_per_action = 1, .dims = 3, .dim = { \
            c,                                                                                     \
            h,                                                                                     \
            w                                                                                      \
        }                                                                                          \
    }
#define CODES(n, acts, least, most)                                                                \
    {                                                                                              \
        .inputs = (n), .actions = (acts), .outputs_per_action = 1, .dims = 1, .dim = {n},          \
        .low = (least), .high = (most)                                                             \
    }
#define TUPLES(n, m, acts, least, most)                                                            \
    {                                                                                              \
        .inputs = (n) * (m), .actions = (acts), .outputs_per_action = 1, .dims = 2, .dim = {n, m}, \
        .low = (least), .high = (most)                                                             \
    }

void test_net_input(const struct named_net *of, const struct rm_net *net, float *x, size_t n,
                    double *copy)
{
    const struct rm_net_shape *shape = &of->shape;
    for (size_t i = 0; i < n; i++) {
        double number = x[i];
        if (rm_net_takes_codes(net)) {
            uint32_t bits, codes = (uint32_t)(shape->high - shape->low) + 1;
            memcpy(&bits, &x[i], sizeof bits);
            int32_t code = (int32_t)shape->low + (int32_t)(bits * 2654435761u % 65521 % codes);
            memcpy(&x[i], &code, sizeof code);
            number = code;
        }
        if (copy)
            copy[i] = number;
    }
}

const struct named_net test_nets[] = {
    {"head alone", {.layer_count = 0}, SHAPE(7, 3, 1), 5, 0, false},
    {"linear relu",
     {.layer_count = 2, .layers = {LINEAR(33), RELU}, .sigma0 = 0.5},
     SHAPE(9, 4, 1),
     6,
     0,
     false},
    {"thin products",
     {.layer_count = 4, .layers = {LINEAR(8), TANH, LINEAR(5), RELU}},
     SHAPE(3, 2, 1),
     37,
     0,
     false},
    {"wide head", {.layer_count = 2, .layers = {LINEAR(20), RELU}}, SHAPE(6, 5, 9), 7, 0, false},
    {"tanh, gelu",
     {.layer_count = 4, .layers = {LINEAR(40), TANH, LINEAR(24), GELU}},
     SHAPE(11, 3, 1),
     9,
     0,
     false},
    {"activations on their own",
     {.layer_count = 5, .layers = {TANH, GELU, LINEAR(18), LAYER_NORM, RELU}},
     SHAPE(19, 3, 1),
     8,
     0,
     false},
    {"layer norm first",
     {.layer_count = 4, .layers = {LAYER_NORM, LINEAR(21), LAYER_NORM, GELU}},
     SHAPE(23, 2, 1),
     10,
     0,
     false},
    {"no activation between",
     {.layer_count = 3, .layers = {LINEAR(17), LINEAR(19), TANH}},
     SHAPE(8, 3, 1),
     6,
     0,
     false},
    {"dueling",
     {.layer_count = 2, .layers = {LINEAR(30), RELU}, .dueling = true},
     SHAPE(10, 6, 1),
     8,
     0,
     false},
    {"dueling quantiles",
     {.layer_count = 2, .layers = {LINEAR(30), RELU}, .dueling = true},
     SHAPE(10, 3, 7),
     8,
     0,
     false},
    {"noisy independent",
     {.layer_count = 2,
      .layers = {NOISY(35), RELU},
      .noisy_head = true,
      .noise = RM_NOISE_INDEPENDENT,
      .sigma0 = 0.3},
     SHAPE(12, 4, 1),
     8,
     0,
     true},
    {"noisy factorised",
     {4,
      {NOISY(35), RELU, NOISY(18), RELU},
      .dueling = true,
      .noisy_head = true,
      .noise = RM_NOISE_FACTORISED,
      .sigma0 = 0.5},
     SHAPE(12, 4, 3),
     8,
     0,
     true},
    {"noisy with the noise off",
     {.layer_count = 2,
      .layers = {NOISY(35), RELU},
      .noisy_head = true,
      .noise = RM_NOISE_INDEPENDENT,
      .sigma0 = 0.3},
     SHAPE(12, 4, 1),
     8,
     0,
     false},
    {"quantiles",
     {5,
      {LINEAR(26), RELU, COSINE(10), NOISY(22), RELU},
      .dueling = true,
      .noisy_head = true,
      .noise = RM_NOISE_INDEPENDENT,
      .sigma0 = 0.2},
     SHAPE(15, 4, 1),
     5,
     3,
     true},
    {"quantiles first",
     {.layer_count = 3, .layers = {COSINE(6), LINEAR(18), TANH}},
     SHAPE(20, 3, 1),
     4,
     5,
     false},
    {"logits",
     {.layer_count = 2, .layers = {LINEAR(20), TANH}},
     {.inputs = 6, .actions = 5, .outputs_per_action = 1, .head = RM_HEAD_LOGITS},
     7,
     0,
     false},
    {"value and policy of one trunk",
     {.layer_count = 4, .layers = {LINEAR(24), TANH, LINEAR(18), TANH}, .trunk = RM_TRUNK_SHARED},
     CRITIC(7, 4),
     9,
     0,
     false},
    {"value and policy apart",
     {.layer_count = 4, .layers = {LINEAR(24), TANH, LINEAR(18), GELU}, .trunk = RM_TRUNK_SEPARATE},
     CRITIC(7, 4),
     9,
     0,
     false},
    {"a value with layers of its own",
     {.layer_count = 2,
      .layers = {LINEAR(24), RELU},
      .value_layer_count = 3,
      .value_layers = {LAYER_NORM, LINEAR(19), TANH},
      .trunk = RM_TRUNK_SEPARATE},
     CRITIC(7, 4),
     9,
     0,
     false},
    {"a shared trunk without layers",
     {.layer_count = 0, .trunk = RM_TRUNK_SHARED},
     CRITIC(5, 3),
     4,
     0,
     false},
    {"normalised inputs, apart",
     {.layer_count = 2,
      .layers = {LINEAR(21), TANH},
      .trunk = RM_TRUNK_SEPARATE,
      .normalize_observations = true,
      .observation_clip = 0.4},
     CRITIC(6, 3),
     12,
     0,
     false},
    {"normalised inputs, values",
     {.layer_count = 3,
      .layers = {TANH, LINEAR(21), RELU},
      .dueling = true,
      .normalize_observations = true,
      .observation_clip = 10},
     SHAPE(6, 3, 2),
     12,
     0,
     false},
    {"noise in policy and value",
     {.layer_count = 2,
      .layers = {NOISY(23), TANH},
      .trunk = RM_TRUNK_SEPARATE,
      .noisy_head = true,
      .noise = RM_NOISE_FACTORISED,
      .sigma0 = 0.5},
     CRITIC(8, 3),
     6,
     0,
     true},
    {"noise in a trunk of both",
     {.layer_count = 2,
      .layers = {NOISY(23), RELU},
      .trunk = RM_TRUNK_SHARED,
      .noisy_head = true,
      .noise = RM_NOISE_INDEPENDENT,
      .sigma0 = 0.3},
     CRITIC(8, 3),
     6,
     0,
     true},
    {"gru",
     {.layer_count = 3, .layers = {LINEAR(18), TANH, GRU(11)}},
     SHAPE(7, 3, 1),
     15,
     0,
     false},
    {"lstm first", {.layer_count = 1, .layers = {LSTM(9)}}, SHAPE(5, 2, 1), 12, 0, false},
    {"gru, lstm, value apart",
     {.layer_count = 3,
      .layers = {GRU(17), LSTM(6), RELU},
      .value_layer_count = 2,
      .value_layers = {LSTM(5), GRU(8)},
      .trunk = RM_TRUNK_SEPARATE},
     CRITIC(6, 4),
     12,
     0,
     false},
    {"lstm, value with it",
     {.layer_count = 3, .layers = {LINEAR(12), RELU, LSTM(20)}},
     CRITIC(6, 4),
     14,
     0,
     false},
    {"mean of tokens",
     {.layer_count = 4, .layers = {LINEAR(19), TANH, MEAN_POOL, LINEAR(20)}},
     TOKENS(6, 5, 3, RM_HEAD_VALUES),
     5,
     0,
     false},
    {"attention, causal attention",
     {.layer_count = 6,
      .layers = {LINEAR(24), ATTENTION(3, 0, false), LAYER_NORM, ATTENTION(2, 10, true), RELU,
                 MEAN_POOL}},
     TOKENS(7, 6, 2, RM_HEAD_ACTOR_CRITIC),
     6,
     0,
     false},
    {"attention, no mean",
     {.layer_count = 1, .layers = {ATTENTION(1, 8, true)}},
     TOKENS(5, 6, 3, RM_HEAD_VALUES),
     6,
     0,
     false},
    {"pointer",
     {.layer_count = 3, .layers = {LINEAR(21), GELU, POINTER(18)}},
     TOKENS(6, 4, 5, RM_HEAD_ACTOR_CRITIC),
     9,
     0,
     false},
    {"pointer, value apart",
     {.layer_count = 4,
      .layers = {LINEAR(20), RELU, LAYER_NORM, POINTER(17)},
      .value_layer_count = 2,
      .value_layers = {LINEAR(18), TANH},
      .trunk = RM_TRUNK_SEPARATE},
     TOKENS(4, 5, 3, RM_HEAD_ACTOR_CRITIC),
     9,
     0,
     false},
    {"tokens, lstm",
     {.layer_count = 3, .layers = {LINEAR(20), MEAN_POOL, LSTM(7)}},
     TOKENS(3, 5, 2, RM_HEAD_VALUES),
     8,
     0,
     false},
    {"silu, elu",
     {.layer_count = 4, .layers = {LINEAR(21), PLAIN(SILU), LINEAR(17), PLAIN(ELU)}},
     SHAPE(9, 4, 1),
     6,
     0,
     false},
    {"leaky_relu, sigmoid",
     {.layer_count = 4, .layers = {LINEAR(21), PLAIN(LEAKY_RELU), LINEAR(17), PLAIN(SIGMOID)}},
     SHAPE(9, 4, 1),
     6,
     0,
     false},
    {"more activations on their own",
     {.layer_count = 6,
      .layers = {PLAIN(SIGMOID), PLAIN(SILU), LINEAR(18), LAYER_NORM, PLAIN(LEAKY_RELU),
                 PLAIN(ELU)}},
     SHAPE(19, 3, 1),
     8,
     0,
     false},
    {"residual over what an activation takes",
     {.layer_count = 5, .layers = {LINEAR(18), RELU, LINEAR(18), RESIDUAL(2), TANH}},
     SHAPE(7, 3, 1),
     6,
     0,
     false},
    {"residual from the input",
     {.layer_count = 4, .layers = {LINEAR(14), TANH, RESIDUAL(2), RELU}},
     SHAPE(14, 3, 1),
     6,
     0,
     false},
    {"residuals within residuals",
     {.layer_count = 10,
      .layers = {LINEAR(12), LAYER_NORM, LINEAR(12), GELU, LINEAR(12), RESIDUAL(3), TANH,
                 RESIDUAL(2), RESIDUAL(7), RESIDUAL(9)}},
     SHAPE(12, 3, 1),
     6,
     0,
     false},
    {"residual before quantiles",
     {.layer_count = 7,
      .layers = {LINEAR(16), RELU, LINEAR(16), RESIDUAL(2), COSINE(7), LINEAR(16), RESIDUAL(1)}},
     SHAPE(11, 4, 1),
     5,
     3,
     false},
    {"a token a number",
     {.layer_count = 3, .layers = {EMBEDDING(6, 0), LINEAR(9), TANH}},
     CODES(5, 3, 0, 6),
     7,
     0,
     false},
    {"codes from below zero",
     {.layer_count = 2, .layers = {EMBEDDING(5, 0), RELU}},
     CODES(3, 4, -2, 8),
     9,
     0,
     false},
    {"tokens of three numbers",
     {.layer_count = 4, .layers = {EMBEDDING(19, 12), LAYER_NORM, LINEAR(19), RESIDUAL(2)}},
     TUPLES(4, 3, 3, 0, 10),
     6,
     0,
     false},
    {"attention over codes",
     {.layer_count = 4,
      .layers = {EMBEDDING(6, 0), ATTENTION(2, 0, false), RESIDUAL(1), MEAN_POOL}},
     CODES(5, 3, 0, 6),
     7,
     0,
     false},
    {"a pointer over tuples",
     {.layer_count = 4, .layers = {EMBEDDING(10, 0), LINEAR(12), PLAIN(SILU), POINTER(7)}},
     {.inputs = 5 * 3,
      .actions = 4,
      .outputs_per_action = 1,
      .head = RM_HEAD_ACTOR_CRITIC,
      .dims = 2,
      .dim = {5, 3},
      .low = 0,
      .high = 11},
     6,
     0,
     false},
    {"a pointer over sets of triples, value apart",
     {.layer_count = 9,
      .layers = {{.type = RM_LAYER_EMBEDDING,
                  .units = 70,
                  .codes = 8,
                  .columns = 3,
                  .first_codes = 9,
                  .difference = true},
                 LINEAR(20),
                 RELU,
                 LAYER_NORM,
                 LINEAR(20),
                 RELU,
                 LAYER_NORM,
                 RESIDUAL(3),
                 POINTER(18)},
      .value_layer_count = 2,
      .value_layers = {LINEAR(10), RELU},
      .trunk = RM_TRUNK_SEPARATE},
     {.inputs = 4 * 2 * 3,
      .actions = 3,
      .outputs_per_action = 1,
      .head = RM_HEAD_ACTOR_CRITIC,
      .dims = 3,
      .dim = {4, 2, 3},
      .low = 0,
      .high = 7},
     7,
     0,
     false},
    {"codes for policy and value",
     {.layer_count = 2, .layers = {EMBEDDING(7, 0), TANH}, .trunk = RM_TRUNK_SEPARATE},
     {.inputs = 4,
      .actions = 3,
      .outputs_per_action = 1,
      .head = RM_HEAD_ACTOR_CRITIC,
      .dims = 1,
      .dim = {4},
      .low = 0,
      .high = 15},
     9,
     0,
     false},
    {"convolutions",
     {.layer_count = 6,
      .layers = {CONV(5, 3, 1, 1), RELU, CONV(4, 2, 2, 0), GELU, LINEAR(11), TANH}},
     IMAGE(2, 5, 6, 3),
     4,
     0,
     false},
    {"convolution of many channels",
     {.layer_count = 2, .layers = {CONV(20, 3, 2, 2), PLAIN(SILU)}},
     IMAGE(3, 4, 5, 3),
     3,
     0,
     false},
    {"residual convolution",
     {.layer_count = 4, .layers = {CONV(3, 3, 1, 1), LAYER_NORM, RELU, RESIDUAL(3)}},
     IMAGE(3, 4, 4, 2),
     5,
     0,
     false},
    {"image of a plane, for policy and value",
     {.layer_count = 3, .layers = {CONV(4, 2, 1, 0), RELU, LINEAR(10)}, .trunk = RM_TRUNK_SHARED},
     {.inputs = 30,
      .actions = 4,
      .outputs_per_action = 1,
      .head = RM_HEAD_ACTOR_CRITIC,
      .dims = 2,
      .dim = {5, 6}},
     5,
     0,
     false},
    {"dropout",
     {.layer_count = 5, .layers = {DROPOUT(0.2), LINEAR(30), DROPOUT(0.5), RELU, DROPOUT(0.1)}},
     SHAPE(12, 3, 1),
     9,
     0,
     false},
    {"dropout apart",
     {.layer_count = 3, .layers = {LINEAR(24), TANH, DROPOUT(0.4)}, .trunk = RM_TRUNK_SEPARATE},
     CRITIC(7, 3),
     9,
     0,
     false},
};
const size_t test_net_count = sizeof test_nets / sizeof test_nets[0];

const struct named_net treasurehunt_net = {"treasurehunt",
                                           {5,
                                            {LINEAR(250), RELU, COSINE(64), NOISY(250), RELU},
                                            .dueling = true,
                                            .noisy_head = true,
                                            .noise = RM_NOISE_INDEPENDENT,
                                            .sigma0 = 0.017},
                                           SHAPE(625, 4, 1),
                                           4,
                                           3,
                                           true};

static bool recurrent(const struct rm_layer_config *layers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (layers[i].type == RM_LAYER_GRU || layers[i].type == RM_LAYER_LSTM)
            return true;
    return false;
}

uint32_t test_net_steps(const struct named_net *of)
{
    uint32_t steps = of->batch - 1;
    if (!recurrent(of->config.layers, of->config.layer_count) &&
        !recurrent(of->config.value_layers, of->config.value_layer_count))
        return 0;
    while (of->batch % steps)
        steps--;
    return steps;
}
