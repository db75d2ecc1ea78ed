/* learner/net: layers in impossible places are refused with a message that names them.
 */
#include "learner/net/net.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <string.h>

#define EMBEDDING                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_EMBEDDING, .units = 4                                                     \
    }
#define LINEAR(n)                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_LINEAR, .units = (n)                                                      \
    }
#define CONV(n, size, step, around)                                                                \
    {                                                                                              \
        .type = RM_LAYER_CONV2D, .units = (n), .kernel = (size), .stride = (step),                 \
        .padding = (around)                                                                        \
    }
#define RESIDUAL(layers)                                                                           \
    {                                                                                              \
        .type = RM_LAYER_RESIDUAL, .span = (layers)                                                \
    }
#define PLAIN(kind)                                                                                \
    {                                                                                              \
        .type = RM_LAYER_##kind                                                                    \
    }
#define COSINE                                                                                     \
    {                                                                                              \
        .type = RM_LAYER_COSINE_EMBEDDING, .cosines = 8                                            \
    }
#define VECTOR .inputs = 6, .actions = 2, .outputs_per_action = 1
#define CODES  .inputs = 3, .actions = 2, .outputs_per_action = 1, .dims = 1, .dim = {3}, .high = 5
#define IMAGE  .inputs = 24, .actions = 2, .outputs_per_action = 1, .dims = 3, .dim = {2, 3, 4}

#define TWO                                                                                        \
    .inputs = 9, .actions = 2, .outputs_per_action = 1, .observations = 2,                         \
    .observation = {{.name = "board", .words = 6, .dims = 2, .dim = {2, 3}},                       \
                    {.name = "hand", .at = 6, .words = 3, .dims = 1, .dim = {3}, .high = 5}}

struct refusal {
    struct rm_network_config config;
    struct rm_net_shape shape;
    const char *says;
};

static const struct refusal layers[] = {
    {{.layer_count = 2, .layers = {LINEAR(4), EMBEDDING}},
     {VECTOR},
     "network.layers[1]: embedding: must be the first layer"},
    {{.layer_count = 1, .layers = {EMBEDDING}, .normalize_observations = true},
     {CODES},
     "network.layers[0]: embedding: takes whole numbers as they are; "
     "network.normalize_observations must be off"},
    {{.layer_count = 1, .layers = {EMBEDDING}},
     {VECTOR, .low = -0.5, .high = 3e9},
     "network.layers[0]: embedding: the world's numbers go from -0.5 to 3e+09, which gives no size "
     "of a table"},
    {{.layer_count = 1, .layers = {{.type = RM_LAYER_EMBEDDING, .units = 4, .codes = 5}}},
     {VECTOR, .low = 2, .high = 7},
     "network.layers[0]: embedding: the world's numbers go from 2 to 7; a table of 5 codes is too "
     "small"},
    {{.layer_count = 1, .layers = {{.type = RM_LAYER_EMBEDDING}}},
     {CODES},
     "network.layers[0]: embedding: units must be"},
    {{.layer_count = 1, .layers = {CONV(4, 3, 1, 0)}},
     {VECTOR},
     "network.layers[0]: conv2d: needs an image"},
    {{.layer_count = 2, .layers = {LINEAR(24), CONV(4, 3, 1, 0)}},
     {IMAGE},
     "network.layers[1]: conv2d: needs an image"},
    {{.layer_count = 2, .layers = {EMBEDDING, CONV(4, 3, 1, 0)}},
     {CODES},
     "network.layers[1]: conv2d: needs an image, an observation of (channels, height, width) or "
     "the output of a conv2d; its input is 3 x 4 numbers"},
    {{.layer_count = 2, .layers = {CONV(4, 3, 1, 0), CONV(4, 3, 1, 0)}},
     {IMAGE},
     "network.layers[1]: conv2d: a kernel of 3 is larger than the image of 1 x 2 with padding 0"},
    {{.layer_count = 1, .layers = {CONV(4, 3, 0, 0)}},
     {IMAGE},
     "network.layers[0]: conv2d: units must be from 1 to 65536, kernel and stride at least 1"},
    {{.layer_count = 1, .layers = {CONV(60000, 1, 1, 63)}},
     {IMAGE},
     "network.layers[0]: conv2d: makes 60000 x 129 x 130 numbers"},
    {{.layer_count = 2, .layers = {LINEAR(6), RESIDUAL(2)}},
     {VECTOR},
     "network.layers[1]: residual: cannot bridge 2 layers; before it there are 1"},
    {{.layer_count = 1, .layers = {RESIDUAL(0)}},
     {VECTOR},
     "network.layers[0]: residual: cannot bridge 0 layers"},
    {{.layer_count = 3, .layers = {LINEAR(6), LINEAR(7), RESIDUAL(1)}},
     {VECTOR},
     "network.layers[2]: residual: adds what went into network layer 1, 1 x 6 numbers, to 1 x 7"},
    {{.layer_count = 2, .layers = {EMBEDDING, RESIDUAL(1)}},
     {CODES},
     "network.layers[1]: residual: cannot bridge an embedding"},
    {{.layer_count = 2, .layers = {COSINE, RESIDUAL(1)}},
     {VECTOR},
     "network.layers[1]: residual: cannot bridge a cosine_embedding"},
    {{.layer_count = 2, .layers = {EMBEDDING, COSINE}},
     {CODES},
     "network.layers[1]: cosine_embedding: needs one row of features per observation"},
    {{.layer_count = 1, .layers = {COSINE}},
     {VECTOR, .head = RM_HEAD_LOGITS},
     "network.layers[0]: cosine_embedding: is for values of actions"},
    {{.layer_count = 1, .layers = {{.type = RM_LAYER_DROPOUT, .rate = 1}}},
     {VECTOR},
     "network.layers[0]: dropout: rate must be from 0 to below 1"},
    {{.layer_count = 1, .layers = {PLAIN(MEAN_POOL)}},
     {VECTOR},
     "network.layers[0]: mean_pool: needs tokens"},
};

static const struct refusal heads[] = {
    {{.dueling = true},
     {VECTOR, .head = RM_HEAD_LOGITS},
     "network: network.head.dueling is for values of actions"},
    {{.layer_count = 1,
      .layers = {LINEAR(4)},
      .trunk = RM_TRUNK_SEPARATE,
      .value_layer_count = 2,
      .value_layers = {LINEAR(5), RESIDUAL(1)}},
     {VECTOR, .head = RM_HEAD_ACTOR_CRITIC},
     "network.value_layers[1]: residual: adds"},
    {{.layer_count = 1,
      .layers = {LINEAR(4)},
      .trunk = RM_TRUNK_SEPARATE,
      .value_layer_count = 1,
      .value_layers = {EMBEDDING}},
     {CODES, .head = RM_HEAD_ACTOR_CRITIC},
     "network.value_layers[0]: embedding: network.layers must begin with an embedding too"},
    {{.layer_count = 1,
      .layers = {EMBEDDING},
      .trunk = RM_TRUNK_SEPARATE,
      .value_layer_count = 1,
      .value_layers = {PLAIN(TANH)}},
     {CODES, .head = RM_HEAD_ACTOR_CRITIC},
     "network.value_layers[0]: tanh: must be an embedding: network.layers begins with one"},
    {{.value_layer_count = RM_LAYERS_MAX + 1}, {VECTOR}, "network.value_layers: "},
};

#define GRAPH                                                                                      \
    .inputs = 15, .actions = 2, .outputs_per_action = 1, .observations = 2,                        \
    .observation = {                                                                               \
        {.name = "map", .counts = 1, .words = 6, .item = 2, .dims = 2, .dim = {3, 2}},             \
        {.name = "map_edges", .at = 7, .counts = 1, .words = 7, .item = 1, .dims = 1, .dim = {7}}}

static const struct refusal graphs[] = {
    {{.layer_count = 1, .layers = {{.type = RM_LAYER_MESSAGE_PASSING, .units = 4}}},
     {VECTOR},
     "network.layers[0]: message_passing: belongs in a list of network.inputs"},
    {{.input_count = 1, .inputs = {{.name = "board", 0, 1}}, .input_layers = {PLAIN(GRAPH_POOL)}},
     {TWO},
     "network.inputs: has no layers for observation hand"},
    {{.input_count = 2,
      .inputs = {{.name = "board", 0, 1}, {.name = "hand", 1, 0}},
      .input_layers = {PLAIN(GRAPH_POOL)}},
     {TWO},
     "network.inputs.board[0]: graph_pool: needs edges: the world shows no observation "
     "board_edges"},
    {{.input_count = 1, .inputs = {{.name = "map", 0, 1}}, .input_layers = {PLAIN(GRAPH_POOL)}},
     {GRAPH},
     "network.inputs.map[0]: graph_pool: needs the own node: an observation map_node"},
    {{.input_count = 1,
      .inputs = {{.name = "map", 0, 1}},
      .input_layers = {{.type = RM_LAYER_GRAPH_ATTENTION, .heads = 3, .units = 4}}},
     {GRAPH},
     "network.inputs.map[0]: graph_attention: 3 heads do not divide a width of 4"},
    {{.input_count = 1,
      .inputs = {{.name = "map", 0, 2}},
      .input_layers = {PLAIN(MEAN_POOL), {.type = RM_LAYER_MESSAGE_PASSING, .units = 4}}},
     {GRAPH},
     "network.inputs.map[1]: message_passing: needs nodes: map must be a counted observation"},
    {{.input_count = 2,
      .inputs = {{.name = "map", 0, 2}, {.name = "map_edges", 2, 0}},
      .input_layers = {{.type = RM_LAYER_MESSAGE_PASSING, .units = 4}, PLAIN(MEAN_POOL)}},
     {GRAPH},
     "network.inputs.map_edges: is part of a graph"},
    {{.layer_count = 1, .layers = {{.type = RM_LAYER_ONE_HOT, .column = 6, .codes = 2}}},
     {VECTOR},
     "network.layers[0]: one_hot: column 6 of 6 numbers"},
    {{.layer_count = 2, .layers = {LINEAR(4), {.type = RM_LAYER_ONE_HOT, .codes = 2}}},
     {VECTOR},
     "network.layers[1]: one_hot: reads the world's numbers: no layer with parameters"},
};

#define GROUP(called, layers)                                                                      \
    {                                                                                              \
        .name = (called), .layer_count = (layers), .is_group = true, .combine = RM_COMBINE_TOKENS  \
    }

static const struct refusal inputs[] = {
    {{.input_count = 1, .inputs = {{.name = "board", 0, 0}}},
     {VECTOR},
     "network.inputs: the world shows one observation, without a name; its layers are"},
    {{.input_count = 2, .inputs = {{.name = "board", 0, 0}, {.name = "hands", 0, 0}}},
     {TWO},
     "network.inputs.hands: the world shows no such observation; it shows board, hand"},
    {{.input_count = 1, .inputs = {{.name = "board", 0, 0}}},
     {TWO},
     "network.inputs: has no layers for observation hand; an empty list takes its numbers"},
    {{.input_count = 2,
      .inputs = {{.name = "board", 0, 1}, {.name = "hand", 1, 1}},
      .input_layers = {LINEAR(4), CONV(2, 2, 1, 0)}},
     {TWO},
     "network.inputs.hand[0]: conv2d: needs an image"},
    {{.input_count = 2,
      .inputs = {{.name = "board", 0, 2}, {.name = "hand", 2, 0}},
      .input_layers = {LINEAR(4), COSINE}},
     {TWO},
     "network.inputs.board[1]: cosine_embedding: multiplies the rows of all inputs"},
    {{.input_count = 2,
      .inputs = {{.name = "board", 0, 1}, {.name = "hand", 1, 0}},
      .input_layers = {{.type = RM_LAYER_POINTER, .units = 3}}},
     {TWO},
     "network.inputs.board[0]: pointer: must be the last layer of the policy"},
    {{.input_count = 2,
      .inputs = {{.name = "board", 0, 1}, {.name = "hand", 1, 1}},
      .input_layers = {LINEAR(4), {.type = RM_LAYER_EMBEDDING, .units = 5}},
      .combine = RM_COMBINE_TOKENS},
     {TWO},
     "network.combine: tokens: those of board have 4 numbers, but those of hand have 5"},
    {{.input_count = 3,
      .inputs = {GROUP("both", 0), {.name = "board", 2, 1, 1}, {.name = "hand", 3, 1, 1}},
      .input_layers = {LINEAR(4), PLAIN(RELU), LINEAR(4), CONV(2, 2, 1, 0)}},
     {TWO},
     "network.inputs.both.inputs.hand[0]: conv2d: needs an image"},
    {{.input_count = 3,
      .inputs = {GROUP("both", 1), {.name = "board", 2, 1, 1}, {.name = "hand", 3, 1, 1}},
      .input_layers = {PLAIN(GRAPH_POOL), PLAIN(RELU), LINEAR(4), LINEAR(4)}},
     {TWO},
     "network.inputs.both.layers[0]: graph_pool: belongs in a list of network.inputs"},
    {{.input_count = 3,
      .inputs = {GROUP("both", 1), {.name = "board", 2, 1, 1}, {.name = "hand", 3, 1, 1}},
      .input_layers = {EMBEDDING, PLAIN(RELU), LINEAR(4), LINEAR(4)}},
     {TWO},
     "network.inputs.both.layers[0]: embedding: reads the numbers of one observation"},
    {{.input_count = 3,
      .inputs = {GROUP("both", 1), {.name = "board", 2, 1, 1}, {.name = "hand", 3, 1, 1}},
      .input_layers = {{.type = RM_LAYER_POINTER, .units = 3}, PLAIN(RELU), LINEAR(4), LINEAR(4)}},
     {TWO},
     "network.inputs.both.layers[0]: pointer: must be the last layer of the policy"},
    {{.input_count = 3,
      .inputs = {GROUP("both", 1), {.name = "board", 2, 1, 1}, {.name = "hand", 3, 1, 1}},
      .input_layers = {LINEAR(3), PLAIN(RELU), LINEAR(4), LINEAR(5)}},
     {TWO},
     "network.inputs.both.combine: tokens: those of board have 4 numbers, but those of hand have "
     "5"},
    {{.input_count = 4,
      .inputs = {GROUP("both", 0),
                 {.name = "board", 2, 0, 1},
                 {.name = "hand", 3, 0, 1},
                 {.name = "feet", 0, 0, 1}}},
     {TWO},
     "network.inputs.both.inputs.feet: the world shows no such observation; it shows board, hand"},
    {{.input_count = 2, .inputs = {GROUP("board", 0), {.name = "hand", 2, 0, 1}}},
     {TWO},
     "network.inputs.board: is a group, but the world shows an observation of this name"},
    {{.input_count = 2, .inputs = {GROUP("both", 0), {.name = "hand", 2, 0, 1}}},
     {TWO},
     "network.inputs: has no layers for observation board"},
    {{.layer_count = 1, .layers = {EMBEDDING}},
     {TWO},
     "network.layers[0]: embedding: reads the numbers of one observation, but the world has "
     "several"},
    {{.input_count = 2,
      .inputs = {{.name = "board", 0, 0}, {.name = "hand", 0, 0}},
      .layer_count = 1,
      .layers = {EMBEDDING}},
     {TWO},
     "network.layers[0]: embedding: reads the numbers of one observation, but the world has "
     "several"},
    {{.input_count = 2,
      .inputs = {{.name = "board", 0, 0}, {.name = "hand", 0, 0}},
      .layer_count = 1,
      .layers = {PLAIN(MEAN_POOL)}},
     {TWO},
     "network.layers[0]: mean_pool: needs tokens"},
};

static void expect_refused(const struct refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rm_net *net;
        struct rm_error error;
        if (rm_net_compile(&net, &cases[i].config, &cases[i].shape, &error) != -EINVAL)
            fail_msg("case %zu is taken, which should say \"%s\"", i, cases[i].says);
        assert_null(net);
        if (strncmp(error.text, cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("case %zu says \"%s\", not \"%s\"", i, error.text, cases[i].says);
    }
}

static void layers_out_of_place(void **state)
{
    (void)state;
    expect_refused(layers, sizeof layers / sizeof layers[0]);
}

static void values_and_heads(void **state)
{
    (void)state;
    expect_refused(heads, sizeof heads / sizeof heads[0]);
}

static void inputs_that_do_not_fit(void **state)
{
    (void)state;
    expect_refused(inputs, sizeof inputs / sizeof inputs[0]);
    expect_refused(graphs, sizeof graphs / sizeof graphs[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_out_of_place),
        cmocka_unit_test(values_and_heads),
        cmocka_unit_test(inputs_that_do_not_fit),
    };
    return cmocka_run_group_tests_name("net refusals", tests, NULL, NULL);
}
