/* A policy file, used from outside: scripts/use_policy.py must come to the network's own numbers.
 */
#include "learner/net/policy_file.h"
#include "actor/worlds/plan.h"
#include "actor/worlds/worlds.h"
#include "config/config.h"
#include "config/schema.h"
#include "config/traits.h"
#include "learner/net/history.h"
#include "shm/base/rng.h"
#include "tests/support/tensors.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 6, STEPS = 3, QUANTILES = 5, INPUTS_MAX = 256 };

/* Of histories: whole numbers of a cell, and steps of a region. */
enum { CELLS = 3, REGION = 3, FEATURES = 2 * 2 + 3 + 1 };

static char folder[] = "/tmp/rm-policy-XXXXXX";

static const float codebook[] = {0, 1, 0, 2, 0.5f, -1};

static const float low[] = {-2, 0}, high[] = {2, 10};
static const struct rm_env_box box = {"force", 2, low, high};

/* Cells of three codes of two channels, up to five cards, two numbers, up to three rows of four. */
static const struct rm_env_observation listed[] = {
    {.name = "board",
     .dtype = RM_ENV_CODE8,
     .dims = 2,
     .shape = {3, 4},
     .codes = 3,
     .channels = 2,
     .codebook = codebook},
    {.name = "hand",
     .dtype = RM_ENV_I16,
     .dims = 1,
     .shape = {5},
     .low = 1,
     .high = 8,
     .counted = 1},
    {.name = "left", .dtype = RM_ENV_F32, .dims = 1, .shape = {2}, .high = 1},
    {.name = "rows", .dtype = RM_ENV_F32, .dims = 2, .shape = {3, 4}, .high = 1, .counted = 1},
};
/* Up to five nodes, their edges, the own one. */
static const struct rm_env_observation mapped[] = {
    {.name = "map", .dtype = RM_ENV_F32, .dims = 2, .shape = {5, 3}, .high = 5, .counted = 1},
    {.name = "map_edges", .dtype = RM_ENV_I16, .dims = 1, .shape = {21}, .high = 15, .counted = 1},
    {.name = "map_node", .dtype = RM_ENV_I32, .dims = 1, .shape = {1}, .high = 5},
    {.name = "left", .dtype = RM_ENV_F32, .dims = 1, .shape = {2}, .high = 1},
};
#define CODES         .dtype = RM_ENV_CODE8, .codes = 3, .channels = 2, .codebook = codebook
#define REALS(size)   .dtype = RM_ENV_F32, .dims = 1, .shape = {size}, .low = -1, .high = 1
#define THREE_ACTIONS .actions = 3, .has_mask = 1

enum { ITEMS, IMAGE, TOKENS, NUMBERS, CHOICES, REAL, BOTH, SEVERAL, GRAPH, CELL };

static const struct rm_env_agent agents[] = {
    /* Three elements of three codes of two channels: six features. */
    [ITEMS] = {.name = "a", CODES, .dims = 2, .shape = {3, 1}, .low = -1, .high = 2, THREE_ACTIONS},
    [IMAGE] = {.name = "a", CODES, .dims = 2, .shape = {6, 5}, THREE_ACTIONS},
    /* Tokens of four numbers, one of them with an action each but the first. */
    [TOKENS] = {.name = "a",
                .dtype = RM_ENV_F32,
                .dims = 2,
                .shape = {4, 4},
                .low = -1,
                .high = 1,
                THREE_ACTIONS},
    [NUMBERS] =
        {.name = "a", .dtype = RM_ENV_I8, .dims = 2, .shape = {4, 6}, .high = 7, THREE_ACTIONS},
    [CHOICES] = {.name = "a", REALS(5), THREE_ACTIONS, .choices = 2, .choice_actions = {2, 1}},
    [REAL] = {.name = "a", REALS(5), .boxes = 1, .box = &box},
    [BOTH] = {.name = "a", REALS(5), .actions = 3, .boxes = 1, .box = &box},
    [SEVERAL] = {.name = "a", .observations = 4, .observation = listed, THREE_ACTIONS},
    [GRAPH] = {.name = "a", .observations = 4, .observation = mapped, THREE_ACTIONS},
    [CELL] =
        {.name = "a", .dtype = RM_ENV_I8, .dims = 1, .shape = {2}, .high = CELLS - 1, .actions = 3},
};

#define LAYERS(list)       "{\"layers\": [" list "]}"
#define UNITS(type, units) "{\"type\": \"" type "\", \"units\": " #units "}"
#define LAYER(type)        "{\"type\": \"" type "\"}"

/* Every type of layer is in one of them. */
static const struct {
    const struct rm_env_agent *agent;
    uint32_t stack;
    const char *algorithm, *network;
    uint32_t per_action, draws;
} cases[] = {
    {&agents[ITEMS], 2, "dqn",
     "{\"layers\": [{\"type\": \"linear\", \"units\": 20}, {\"type\": \"layer_norm\"},"
     " {\"type\": \"gelu\"}, {\"type\": \"linear\", \"units\": 10}, {\"type\": \"tanh\"}],"
     " \"head\": {\"dueling\": false}, \"normalize_observations\": true, \"observation_clip\": "
     "0.25}",
     1, 1},
    {&agents[ITEMS], 2, "qr-dqn",
     "{\"layers\": [{\"type\": \"noisy_linear\", \"units\": 20}, {\"type\": \"relu\"}],"
     " \"head\": {\"dueling\": true, \"noisy\": true}}",
     QUANTILES, 1},
    {&agents[ITEMS], 2, "iqn",
     "{\"layers\": [{\"type\": \"linear\", \"units\": 20}, {\"type\": \"relu\"},"
     " {\"type\": \"cosine_embedding\", \"cosines\": 16}, {\"type\": \"noisy_linear\", \"units\": "
     "12},"
     " {\"type\": \"relu\"}], \"head\": {\"dueling\": true, \"noisy\": true}}",
     1, QUANTILES},
    {&agents[IMAGE], 2, "dqn",
     LAYERS("{\"type\": \"conv2d\", \"units\": 4, \"padding\": 1}," LAYER(
         "elu") ","
                "{\"type\": \"conv2d\", \"units\": 3, \"kernel\": 2, \"stride\": 2}," LAYER(
                    "silu") "," UNITS("linear", 8)),
     1, 1},
    {&agents[TOKENS], 1, "ppo",
     LAYERS(UNITS("linear", 8) "," LAYER(
         "leaky_relu") ","
                       "{\"type\": \"attention\", \"heads\": 2, \"units\": 6},{\"type\": "
                       "\"residual\", \"span\": 1}," LAYER(
                           "layer_norm") ",{\"type\": "
                                         "\"attention\", "
                                         "\"causal\": "
                                         "true}," LAYER(
                                             "dropou"
                                             "t") "," LAYER("mean_pool") "," UNITS("linear",
                                                                                   5) "," LAYER("si"
                                                                                                "gm"
                                                                                                "oi"
                                                                                                "d")),
     1, 1},
    {&agents[TOKENS], 1, "ppo",
     LAYERS(LAYER("position") ",{\"type\": \"attention\", \"units\": 6}," LAYER("tanh")), 1, 1},
    {&agents[TOKENS], 1, "ppo",
     "{\"layers\": [" UNITS("linear", 6) "," LAYER("tanh") "," UNITS("pointer",
                                                                     5) "], \"trunk\": \"shared\"}",
     1, 1},
    {&agents[NUMBERS], 1, "dqn",
     LAYERS(UNITS("embedding", 5) "," UNITS("linear", 7) "," LAYER("relu")), 1, 1},
    {&agents[NUMBERS], 1, "ppo",
     LAYERS(
         "{\"type\": \"embedding\", \"units\": 6, \"columns\": 3, \"codes\": 8, \"first_codes\": 8,"
         " \"difference\": true}," UNITS("attention", 6) "," LAYER("mean_pool")),
     1, 1},
    {&agents[CHOICES], 1, "ppo", LAYERS(UNITS("linear", 6) "," UNITS("gru", 7)), 1, 1},
    {&agents[CHOICES], 1, "ppo", LAYERS(UNITS("lstm", 7) "," LAYER("relu") "," UNITS("gru", 4)), 1,
     1},
    {&agents[CHOICES], 1, "sac", LAYERS(UNITS("linear", 6) "," LAYER("gelu")), 1, 1},
    {&agents[REAL], 1, "ppo", LAYERS(UNITS("linear", 6) "," LAYER("tanh")), 1, 1},
    {&agents[REAL], 2, "sac", LAYERS(UNITS("linear", 6) "," LAYER("relu")), 1, 1},
    {&agents[BOTH], 1, "appo",
     "{\"layers\": [" UNITS("gru", 7) "], \"head\": {\"first_deviation\": 0.5}}", 1, 1},
    {&agents[SEVERAL], 2, "dqn", LAYERS(UNITS("linear", 9) "," LAYER("relu")), 1, 1},
    {&agents[SEVERAL], 2, "dqn",
     "{\"normalize_observations\": true, \"observation_clip\": 0.25,"
     " \"inputs\": {\"rows\": [" UNITS("linear", 5) "," LAYER("tanh") "," UNITS(
         "attention",
         4) "," LAYER("mean_pool") "], \"hand\": [" LAYER("tanh") "], \"left\": [],"
                                                                  " \"board\": [{\"type\": "
                                                                  "\"conv2d\", \"units\": 3, "
                                                                  "\"kernel\": 2}," LAYER(
                                                                      "elu") "]},"
                                                                             " \"layers\": [" UNITS(
                                                                                 "linear",
                                                                                 9) "," LAYER("rel"
                                                                                              "u") "]}",
     1, 1},
    {&agents[SEVERAL], 2, "ppo",
     "{\"inputs\": {\"board\": [" UNITS("embedding", 6) "], \"hand\": [" UNITS(
         "embedding",
         6) "," UNITS("linear",
                      6) "], \"left\": [" UNITS("linear",
                                                6) "], \"rows\": [" UNITS("linear",
                                                                          6) "]}, \"combine\": "
                                                                             "\"tokens\", "
                                                                             "\"layers\": "
                                                                             "[" UNITS(
                                                                                 "attention",
                                                                                 6) "," LAYER("m"
                                                                                              "e"
                                                                                              "a"
                                                                                              "n"
                                                                                              "_"
                                                                                              "p"
                                                                                              "o"
                                                                                              "o"
                                                                                              "l") "]}",
     1, 1},
    {&agents[SEVERAL], 1, "ppo",
     "{\"inputs\": {\"board\": [], \"hand\": [" UNITS("embedding", 6) "], \"left\": [" UNITS(
         "gru", 5) "], \"rows\": [" UNITS("linear",
                                          6) "," LAYER("mean_pool") "]},"
                                                                    " \"layers\": [" UNITS("lstm",
                                                                                           6) "]}",
     1, 1},
    {&agents[SEVERAL], 2, "dqn",
     "{\"normalize_observations\": true, \"observation_clip\": 0.25, \"inputs\": {"
     " \"all\": {\"inputs\": {\"rows\": [{\"type\": \"linear\", \"units\": 6}],"
     "   \"one\": {\"inputs\": {\"left\": [], \"board\": [{\"type\": \"tanh\"}]},"
     "     \"layers\": [{\"type\": \"linear\", \"units\": 6}]}},"
     "   \"combine\": \"tokens\", \"layers\": [{\"type\": \"attention\", \"heads\": 2},"
     "     {\"type\": \"mean_pool\"}]}, \"hand\": []},"
     " \"layers\": [{\"type\": \"linear\", \"units\": 9}, {\"type\": \"relu\"}]}",
     1, 1},
    {&agents[GRAPH], 1, "ppo",
     "{\"inputs\": {\"all\": {\"inputs\": {\"left\": [{\"type\": \"linear\", \"units\": 6}],"
     "   \"map\": [{\"type\": \"graph_attention\"}, {\"type\": \"linear\", \"units\": 6}]},"
     "   \"combine\": \"tokens\", \"layers\": [{\"type\": \"position\"}, {\"type\": \"attention\"},"
     "     {\"type\": \"mean_pool\"}, {\"type\": \"gru\", \"units\": 5}]}}}",
     1, 1},
    {&agents[GRAPH], 1, "ppo",
     "{\"inputs\": {\"left\": [], \"map\": [{\"type\": \"one_hot\", \"column\": 1, \"codes\": 5},"
     " {\"type\": \"message_passing\", \"units\": 6}, {\"type\": \"relu\"},"
     " {\"type\": \"graph_pool\"}]}, \"layers\": [{\"type\": \"linear\", \"units\": 6}]}",
     1, 1},
    {&agents[GRAPH], 1, "dqn",
     "{\"normalize_observations\": true, \"observation_clip\": 2, \"inputs\": {\"left\": [],"
     " \"map\": [{\"type\": \"graph_attention\", \"heads\": 2, \"units\": 6},"
     " {\"type\": \"mean_pool\"}]}, \"layers\": [{\"type\": \"linear\", \"units\": 6}]}",
     1, 1},
    {&agents[CELL], 1, "distill",
     "{\"layers\": [{\"type\": \"history\", \"units\": 6, \"codes\": 20},"
     " {\"type\": \"attention\", \"heads\": 2, \"causal\": true, \"dropout\": 0.1},"
     " {\"type\": \"residual\", \"span\": 1}, {\"type\": \"layer_norm\"},"
     " {\"type\": \"attention\", \"causal\": true}]}",
     1, 1},
    {&agents[CELL], 1, "distill",
     "{\"layers\": [{\"type\": \"history\", \"units\": 6, \"codes\": 20, \"tied\": true},"
     " {\"type\": \"attention\", \"heads\": 2, \"causal\": true}]}",
     1, 1},
};

static bool histories(size_t c)
{
    return cases[c].agent == &agents[CELL];
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void write_floats(const char *name, const float *from, size_t n)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(from, sizeof *from, n, out), n);
    fclose(out);
}

static size_t read_floats(const char *name, float *to, size_t most)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    const size_t n = fread(to, sizeof *to, most, in);
    fclose(in);
    return n;
}

static void random_floats(float *to, size_t n, uint32_t stream)
{
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < n; i++)
        to[i] = rm_rng_float(&rng);
}

struct made {
    struct rm_experiment experiment;
    struct rm_net *net;
    float *params;
};

/* An experiment of frame stack 2, its network with random parameters, and the file. */
static void make(struct made *m, size_t c)
{
    char json[1024];
    struct rm_error error = {""};
    snprintf(
        json, sizeof json,
        "{\"name\": \"policy-file\", \"world\": {\"name\": \"count\"},"
        " \"sample\": {\"frame_stack\": %u%s},"
        " \"algorithm\": {\"name\": \"%s\", \"quantiles\": %d}, \"network\": %s}",
        cases[c].stack,
        histories(c)
            ? ", \"from\": \"recording\", \"region\": 3}, \"evaluation\": {\"final_episodes\": 0"
            : "",
        cases[c].algorithm, QUANTILES, cases[c].network);
    if (rm_config_parse(&m->experiment, "test", json, strlen(json), NULL, 0, &error))
        fail_msg("%s", error.text);
    const struct rm_net_shape shape = rm_plan_net_shape(&m->experiment, cases[c].agent);
    assert_int_equal(shape.outputs_per_action, cases[c].per_action);
    if (rm_net_compile(&m->net, &m->experiment.network, &shape, &error))
        fail_msg("%s", error.text);
    m->params = calloc(rm_net_param_count(m->net), sizeof *m->params);
    rm_net_init(m->net, m->params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    const struct rm_net_tensor *tensors;
    const size_t count = rm_net_tensors(m->net, &tensors);
    for (size_t i = 0; i < count; i++) /* as if observations had been seen */
        if (strncmp(tensors[i].name, "normalizer.", 11) == 0)
            random_floats(m->params + tensors[i].offset, shape.inputs, 3 + (uint32_t)i);
    const struct rm_policy_file file = {
        .experiment = &m->experiment,
        .policy = cases[c].algorithm,
        .agent = cases[c].agent,
        .net = m->net,
        .params = m->params,
        .updates = 17,
        .env_steps = 1234567890123,
    };
    if (rm_policy_file_write(&file, folder, &error))
        fail_msg("%s", error.text);
}

static void unmake(struct made *m)
{
    rm_net_destroy(m->net);
    free(m->params);
}

static void the_file_says_what_it_takes(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        static struct made m;
        struct rm_error error = {""};
        struct rm_safetensors file;
        char path[128];
        make(&m, c);
        snprintf(path, sizeof path, "%s/%s.safetensors", folder, cases[c].algorithm);
        assert_int_equal(rm_safetensors_read(&file, path, &error), 0);
        static const struct {
            const char *key, *value;
        } expected[] = {
            {"format", "ringmaster-policy-1"},
            {"experiment", "policy-file"},
            {"updates", "17"},
            {"env_steps", "1234567890123"},
        };
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
            assert_string_equal(rm_test_metadata(&file, expected[i].key), expected[i].value);
        const struct rm_env_agent *agent_of = cases[c].agent;
        assert_string_equal(rm_test_metadata(&file, "actions"), agent_of->actions ? "3" : "0");
        assert_string_equal(rm_test_metadata(&file, "masks"), agent_of->has_mask ? "1" : "0");
        if (agent_of->boxes)
            assert_string_equal(rm_test_metadata(&file, "reals"),
                                strcmp(cases[c].algorithm, "sac") == 0
                                    ? "{\"low\":[-2.0,0.0],\"high\":[2.0,10.0],\"bound\":\"tanh\","
                                      "\"deviation\":\"state\"}"
                                    : "{\"low\":[-2.0,0.0],\"high\":[2.0,10.0],\"bound\":\"clip\","
                                      "\"deviation\":\"parameter\"}");
        assert_string_equal(rm_test_metadata(&file, "algorithm"), cases[c].algorithm);
        assert_string_equal(rm_test_metadata(&file, "choices"),
                            cases[c].agent->choices > 1 ? "[2,1]" : "[]");
        const char *one =
            cases[c].agent == &agents[SEVERAL] ? "{}" : rm_test_metadata(&file, "observation");
        json_t *observation = json_loads(one, 0, NULL);
        if (cases[c].agent == &agents[SEVERAL]) {
            json_t *list = json_loads(rm_test_metadata(&file, "observations"), 0, NULL);
            assert_int_equal(json_array_size(list), 4);
            assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "name")),
                                "hand");
            assert_true(json_is_true(json_object_get(json_array_get(list, 1), "counted")));
            json_decref(list);
        }
        if (cases[c].agent->dtype == RM_ENV_CODE8)
            assert_string_equal(json_string_value(json_object_get(observation, "dtype")), "code8");
        const json_t *book = json_object_get(observation, "codebook");
        for (size_t k = 0; k < 6 && book; k++)
            assert_true(json_number_value(json_array_get(json_array_get(book, k / 2), k % 2)) ==
                        (double)codebook[k]);
        json_decref(observation);
        /* Every parameter, once. */
        size_t floats = 0;
        const struct rm_net_tensor *tensors;
        const size_t count = rm_net_tensors(m.net, &tensors);
        assert_int_equal(file.count, count);
        for (size_t i = 0; i < count; i++) {
            const struct rm_tensor *t = rm_test_tensor(&file, tensors[i].name);
            assert_non_null(t);
            size_t n = 1;
            for (uint32_t d = 0; d < t->dims; d++)
                n *= t->shape[d];
            assert_memory_equal(t->data, m.params + tensors[i].offset, n * sizeof(float));
            floats += n;
        }
        assert_int_equal(floats, rm_net_param_count(m.net));
        rm_safetensors_close(&file);
        unmake(&m);
    }
}

/* The observation that input `at` comes from, where there are several. */
static const struct rm_net_observation *observation_of(const struct rm_net_shape *shape, size_t at)
{
    uint32_t o = 0;
    while (o + 1 < shape->observations && at >= shape->observation[o + 1].at)
        o++;
    return shape->observations ? &shape->observation[o] : NULL;
}

/* Whether the network takes input `at` as a code. */
static bool takes_code(const struct made *m, const struct rm_env_agent *of, size_t at)
{
    const struct rm_net_shape shape = rm_plan_net_shape(&m->experiment, of);
    const struct rm_net_observation *o = observation_of(&shape, at);
    return rm_network_codes(&m->experiment.network, of) >> (o ? o - shape.observation : 0) & 1;
}

/* `x` has whole numbers where the network takes codes. A recurrent network is given ROWS lanes of
 * STEPS steps. `out`: what a policy acts by, which is all but a value. */
static void forward(const struct made *m, const struct rm_env_agent *of, const float *x,
                    const float *tau, uint32_t draws, uint32_t batch, float *out)
{
    static int32_t codes[ROWS * STEPS * INPUTS_MAX];
    struct rm_error error = {""};
    struct rm_backend *backend;
    struct rm_net_workspace *space;
    const size_t inputs = rm_net_inputs(m->net);
    const struct rm_net_input in = {.x = rm_net_takes_codes(m->net) ? (const void *)codes : x,
                                    .batch = batch,
                                    .tau = tau,
                                    .quantiles = tau ? draws : 0,
                                    .steps = batch / ROWS};
    for (size_t i = 0; i < batch * inputs; i++)
        if (takes_code(m, of, i % inputs))
            codes[i] = (int32_t)x[i];
        else
            memcpy(&codes[i], &x[i], sizeof codes[i]);
    assert_int_equal(rm_backend_cpu_create(&backend, 1, "auto", &error), 0);
    assert_int_equal(
        rm_net_workspace_create(&space, m->net, backend, batch, draws, RM_NET_ACT, &error), 0);
    rm_net_prepare(space, m->params);
    const float *y = rm_net_forward(space, m->params, &in);
    memcpy(out, y, (size_t)batch * draws * rm_net_workspace_outputs(space) * sizeof *out);
    rm_net_workspace_destroy(space);
    rm_backend_destroy(backend);
}

/* Packed histories, one in three of a first region. */
static void draw_histories(bool tied, float *x, size_t rows)
{
    const size_t width = rm_history_width(FEATURES), context = 2 * REGION + 2;
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, 9, 0);
    for (size_t i = 0; i < rows; i++)
        for (size_t at = 0; at < context + REGION; at++, x += width) {
            const size_t missing = i % 3 == 1 ? REGION + 2 : 0;
            float f[FEATURES];
            for (size_t k = 0; k < FEATURES; k++)
                f[k] = rm_rng_float(&rng);
            const bool end = missing == 0 && at == REGION + 1;
            const bool begin = at == missing || (missing == 0 && at == REGION + 2);
            if (at >= context)
                rm_history_put(x, RM_HISTORY_QUERY, tied ? 0 : rm_rng_below(&rng, CELLS * CELLS),
                               tied ? f : NULL, FEATURES);
            else if (at < missing)
                memset(x, 0, width * sizeof *x);
            else
                rm_history_put(x,
                               end     ? RM_HISTORY_END
                               : begin ? RM_HISTORY_BEGIN
                                       : RM_HISTORY_TRANSITION,
                               0, end || begin ? NULL : f, FEATURES);
        }
}

/* Inputs as a world may give them: whole numbers for an embedding, and tokens that are padding. */
static void draw_inputs(const struct made *m, const struct rm_env_agent *of, float *x, size_t rows)
{
    const size_t inputs = rm_net_inputs(m->net);
    const struct rm_net_shape shape = rm_plan_net_shape(&m->experiment, of);
    random_floats(x, rows * inputs, 1);
    if (of == &agents[CELL]) {
        draw_histories(shape.history.query_codes == 0, x, rows);
        return;
    }
    for (size_t i = 0; i < rows * inputs && of->observations; i++) {
        const struct rm_net_observation *o = observation_of(&shape, i % inputs);
        const uint32_t most = o->counts ? o->words / o->counts / o->item : 0;
        if (i % inputs - o->at < o->counts)
            x[i] = floorf(x[i] * (float)(most + 1));
        else if (takes_code(m, of, i % inputs))
            x[i] = (float)o->low + floorf(x[i] * (float)(o->high - o->low + 1));
        else if (of == &agents[GRAPH] && strncmp(o->name, "map", 3) == 0)
            x[i] = floorf(x[i] * 7);
    }
    for (size_t i = 0; i < rows * inputs && !of->observations; i++) {
        const size_t row = i / inputs, token = i % inputs / (inputs / of->shape[0]);
        if (of == &agents[NUMBERS])
            x[i] = floorf(x[i] * 8);
        if ((of == &agents[TOKENS] || of == &agents[NUMBERS]) && token > 0 &&
            (row + token) % 3 == 0)
            x[i] = 0;
    }
}

/* An interpreter that has NumPy, or NULL. */
static const char *numpy_python(void)
{
    static const char *const candidates[] = {"python3", "/usr/bin/python3"};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        char command[128];
        snprintf(command, sizeof command, "%s -c 'import numpy' >/dev/null 2>&1", candidates[i]);
        if (system(command) == 0)
            return candidates[i];
    }
    return NULL;
}

static void every_type_of_layer_is_tried(void **state)
{
    (void)state;
    for (size_t t = 0; t < RM_LAYER_TYPE_COUNT; t++) {
        char type[80];
        size_t c = 0;
        snprintf(type, sizeof type, "\"type\": \"%s\"", rm_layer_rows[t].type);
        while (c < sizeof cases / sizeof *cases && !strstr(cases[c].network, type))
            c++;
        if (c == sizeof cases / sizeof *cases)
            fail_msg("no network has a layer with %s", type);
    }
}

static void numpy_comes_to_the_same_numbers(void **state)
{
    (void)state;
    if (access("scripts/use_policy.py", R_OK)) {
        print_message("skipped: not run from the top of the tree\n");
        skip();
    }
    const char *python = numpy_python();
    if (!python) {
        print_message("skipped: there is no python3 with NumPy\n");
        skip();
    }
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        static struct made m;
        static float x[ROWS * STEPS * INPUTS_MAX], tau[ROWS * QUANTILES], want[4096], got[4096];
        char command[640];
        const bool iqn = cases[c].draws > 1;
        make(&m, c);
        const size_t inputs = rm_net_inputs(m.net);
        assert_true(inputs <= INPUTS_MAX);
        const uint32_t steps = rm_net_state_count(m.net) ? STEPS : 1, batch = ROWS * steps;
        const struct rm_env_agent *agent_of = cases[c].agent;
        const size_t each = histories(c)
                                ? rm_net_outputs(m.net)
                                : cases[c].draws * agent_of->actions * cases[c].per_action +
                                      2 * rm_env_reals(agent_of);
        const size_t outputs = batch * each;
        draw_inputs(&m, cases[c].agent, x, batch);
        random_floats(tau, ROWS * QUANTILES, 2);
        write_floats("x", x, batch * inputs);
        write_floats("tau", tau, ROWS * QUANTILES);
        snprintf(
            command, sizeof command,
            "%s scripts/use_policy.py %s/%s.safetensors --inputs %s/x --outputs %s/q --steps %u "
            "%s%s%s",
            python, folder, cases[c].algorithm, folder, folder, steps, iqn ? "--tau " : "",
            iqn ? folder : "", iqn ? "/tau" : "");
        assert_int_equal(system(command), 0);
        assert_int_equal(read_floats("q", got, 4096), outputs);
        forward(&m, cases[c].agent, x, iqn ? tau : NULL, cases[c].draws, batch, want);
        for (size_t i = 0; i < outputs; i++)
            if (fabs((double)got[i] - (double)want[i]) > 2e-5 + 1e-4 * fabs((double)want[i]))
                fail_msg("%s, %s: output %zu is %g in NumPy, %g here", cases[c].algorithm,
                         cases[c].network, i, (double)got[i], (double)want[i]);
        snprintf(command, sizeof command,
                 "%s scripts/use_policy.py %s/%s.safetensors | grep -c '^action %s$' | grep -qx 5",
                 python, folder, cases[c].algorithm,
                 agent_of == &agents[BOTH]   ? ".[0-2], array(.*"
                 : agent_of == &agents[REAL] ? "\\[.*"
                 : agent_of->choices > 1     ? ".[01], 0."
                                             : "[0-2]");
        if (!histories(c)) /* others act on observations */
            assert_int_equal(system(command), 0);
        unmake(&m);
    }
}

/* A type of layer that is not there yet is refused in words. */
static void unknown_layers_are_named(void **state)
{
    (void)state;
    static struct made m;
    const char *python = numpy_python();
    char command[640];
    if (!python || access("scripts/use_policy.py", R_OK)) {
        print_message("skipped: no python3 with NumPy, or not run from the top of the tree\n");
        skip();
    }
    make(&m, 0);
    snprintf(command, sizeof command,
             "sed -i 's/layer_norm/layer_nurm/' %s/dqn.safetensors && "
             "%s scripts/use_policy.py %s/dqn.safetensors 2>&1 | grep -q \"layer 1 is of type "
             "'layer_nurm', which this program does not run; it runs attention, \"",
             folder, python, folder);
    assert_int_equal(system(command), 0);
    unmake(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_says_what_it_takes),
        cmocka_unit_test(every_type_of_layer_is_tried),
        cmocka_unit_test(numpy_comes_to_the_same_numbers),
        cmocka_unit_test(unknown_layers_are_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
