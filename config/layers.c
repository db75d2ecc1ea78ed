/* layers: the types of network layers and their members; reads lists of layers. */
#include "config/names.h"
#include "config/traits.h"
#include "config/value.h"
#include "shm/board.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MEMBER(key, kind, field, least, most, value, text)                                         \
    {                                                                                              \
        .name = (key), .type = (kind), .offset = offsetof(struct rm_layer_config, field),          \
        .low = (least), .high = (most), .fallback = (value), .doc = (text)                         \
    }
#define UNITS(text) MEMBER("units", RM_MEMBER_U32, units, 1, RM_LAYER_UNITS_MAX, NAN, text)

const struct rm_layer_row rm_layer_rows[RM_LAYER_TYPE_COUNT] = {
    [RM_LAYER_LINEAR] = {"linear",
                         "fully connected, with bias; applies to each token alone",
                         {UNITS("outputs")}},
    [RM_LAYER_NOISY_LINEAR] =
        {"noisy_linear",
         "fully connected, weights and biases with trained noise, drawn for every pass of an "
         "update, and, with actor.noise, for every vector step of an actor; otherwise, and in "
         "evaluations, the means of the weights act",
         {UNITS("outputs")}},
    [RM_LAYER_RELU] = {"relu", "max(x, 0)", {{0}}},
    [RM_LAYER_TANH] = {"tanh", "hyperbolic tangent", {{0}}},
    [RM_LAYER_GELU] = {"gelu", "Gaussian error linear unit", {{0}}},
    [RM_LAYER_SILU] = {"silu", "x times its logistic function", {{0}}},
    [RM_LAYER_ELU] = {"elu", "x above 0, exp(x) - 1 below", {{0}}},
    [RM_LAYER_LEAKY_RELU] = {"leaky_relu", "x above 0, x / 100 below", {{0}}},
    [RM_LAYER_SIGMOID] = {"sigmoid", "logistic function", {{0}}},
    [RM_LAYER_LAYER_NORM] = {"layer_norm",
                             "normalises each row, then a trained scale and shift",
                             {{0}}},
    [RM_LAYER_COSINE_EMBEDDING] = {"cosine_embedding",
                                   "IQN: multiplies each row by an embedding of each quantile",
                                   {MEMBER("cosines", RM_MEMBER_U32, cosines, 1, 1024, 64,
                                           "cosines (Dabney 2018b)")}},
    [RM_LAYER_EMBEDDING] =
        {"embedding",
         "first layer, over whole numbers: each becomes a trained row of a table; an observation "
         "of n numbers becomes n tokens",
         {UNITS("floats per token"),
          MEMBER("codes", RM_MEMBER_U32, codes, 0, 1 << 24, 0,
                 "rows of the table; 0: as many as the world's bounds need"),
          MEMBER("columns", RM_MEMBER_U32, columns, 0, 64, 0,
                 "numbers come in groups of this size, and a token is the sum over the groups of a "
                 "row of the observation; a number 0 adds nothing"),
          MEMBER(
              "first_codes", RM_MEMBER_U32, first_codes, 0, 1 << 24, 0,
              "with columns: rows of a separate table for the first column; 0: no separate table"),
          MEMBER("difference", RM_MEMBER_BOOL, difference, 0, 1, 0,
                 "with columns: the last column is subtracted"),
          MEMBER("deviation", RM_MEMBER_F64, deviation, 1e-6, 100, 1,
                 "of the initial rows, which are normal")}},
    [RM_LAYER_CONV2D] = {"conv2d",
                         "convolution over an observation of (channels, height, width) or (height, "
                         "width), or over the result of another convolution",
                         {UNITS("output channels"),
                          MEMBER("kernel", RM_MEMBER_U32, kernel, 1, 64, 3, "height and width"),
                          MEMBER("stride", RM_MEMBER_U32, stride, 1, 64, 1, "step"),
                          MEMBER("padding", RM_MEMBER_U32, padding, 0, 63, 0,
                                 "zeros on every side")}},
    [RM_LAYER_RESIDUAL] =
        {"residual",
         "adds the input of the layers before it, which must have the same width (He 2016)",
         {MEMBER("span", RM_MEMBER_U32, span, 1, RM_LAYERS_MAX - 1, NAN,
                 "number of layers that it bridges")}},
    [RM_LAYER_DROPOUT] = {"dropout",
                          "probability of zero in training; the other numbers are scaled up",
                          {MEMBER("rate", RM_MEMBER_F64, rate, 0, 0.99, 0.1, "probability")}},
    [RM_LAYER_GRU] = {"gru", "gated recurrent unit (Cho 2014)", {UNITS("hidden units")}},
    [RM_LAYER_LSTM] = {"lstm", "long short-term memory (Hochreiter 1997)", {UNITS("hidden units")}},
    [RM_LAYER_ATTENTION] = {"attention",
                            "multi-head self-attention over tokens (Vaswani 2017)",
                            {MEMBER("heads", RM_MEMBER_U32, heads, 1, 64, 1, "heads"),
                             MEMBER("units", RM_MEMBER_U32, units, 0, RM_LAYER_UNITS_MAX, 0,
                                    "width of queries, keys and values; 0: as its input"),
                             MEMBER("causal", RM_MEMBER_BOOL, causal, 0, 1, 0,
                                    "a token attends only to itself and to tokens before it"),
                             MEMBER("dropout", RM_MEMBER_F64, rate, 0, 0.99, 0,
                                    "probability that, in training, a token does not see another "
                                    "that it attends to; the weights of the others are scaled up"),
                             MEMBER("xavier", RM_MEMBER_BOOL, xavier, 0, 1, 0,
                                    "initial weights of queries, keys and values by Xavier's rule, "
                                    "all biases 0, whatever network.init says; as PyTorch's")}},
    [RM_LAYER_POSITION] = {"position",
                           "adds to each token a trained row for its place in the observation",
                           {MEMBER("codes", RM_MEMBER_U32, codes, 0, 1 << 24, 0,
                                   "rows of the table; 0: as many as the observation has tokens"),
                            MEMBER("deviation", RM_MEMBER_F64, deviation, 1e-6, 100, 0.02,
                                   "of the initial rows, which are normal")}},
    [RM_LAYER_MEAN_POOL] = {"mean_pool", "mean over tokens, padding left out", {{0}}},
    [RM_LAYER_POINTER] = {"pointer",
                          "last layer: one action per token, scored by the product of the token's "
                          "embedding with that of the first token",
                          {UNITS("width of the product")}},
    [RM_LAYER_ONE_HOT] =
        {"one_hot",
         "replaces one number of each row by its one-hot code, behind the other numbers",
         {MEMBER("column", RM_MEMBER_U32, column, 0, RM_LAYER_UNITS_MAX, NAN,
                 "the number, counted from 0"),
          MEMBER("codes", RM_MEMBER_U32, codes, 1, RM_LAYER_UNITS_MAX, NAN,
                 "numbers that stand for it; all are 0 for a number from here on")}},
    [RM_LAYER_MESSAGE_PASSING] =
        {"message_passing",
         "in the list of a graph: linear in a node and the mean of the nodes that its edges come "
         "from (Hamilton 2017)",
         {UNITS("outputs")}},
    [RM_LAYER_GRAPH_ATTENTION] =
        {"graph_attention",
         "in the list of a graph: attention of a node over the nodes that its edges come from "
         "(Velickovic 2018), with queries, keys and values of their own",
         {MEMBER("heads", RM_MEMBER_U32, heads, 1, 64, 1, "heads"),
          MEMBER("units", RM_MEMBER_U32, units, 0, RM_LAYER_UNITS_MAX, 0,
                 "width of queries, keys and values; 0: as its input")}},
    [RM_LAYER_GRAPH_POOL] = {"graph_pool",
                             "in the list of a graph: mean over nodes, then the own node",
                             {{0}}},
    [RM_LAYER_HISTORY] =
        {"history",
         "first layer, over packed histories: transitions, queries and the ends of regions become "
         "tokens, each with a trained row for its type and one for its position added",
         {UNITS("floats per token"),
          MEMBER("codes", RM_MEMBER_U32, codes, 1, 1 << 24, NAN,
                 "rows of the table of positions; a query's position is the number of rows of the "
                 "context that it sees"),
          MEMBER(
              "tied", RM_MEMBER_BOOL, tied, 0, 1, 0,
              "a query's token comes from its observation by the linear layer of transitions, so "
              "that a state has the same weights in both; false: from a table with a row for "
              "each observation that is possible")}},
};

static void store(struct rm_layer_config *layer, const struct rm_layer_member *m, double value)
{
    void *at = (char *)layer + m->offset;
    if (m->type == RM_MEMBER_F64)
        *(double *)at = value;
    else if (m->type == RM_MEMBER_BOOL)
        *(bool *)at = value != 0;
    else
        *(uint32_t *)at = (uint32_t)value;
}

static double load(const struct rm_layer_config *layer, const struct rm_layer_member *m)
{
    const void *at = (const char *)layer + m->offset;
    if (m->type == RM_MEMBER_F64)
        return *(const double *)at;
    return m->type == RM_MEMBER_BOOL ? *(const bool *)at : *(const uint32_t *)at;
}

/* Returns false after recording a finding. */
static bool read_member(const char *path, const json_t *value, const struct rm_layer_member *m,
                        struct rm_layer_config *layer, struct rm_findings *findings)
{
    char is[64];
    uint64_t whole;
    if (m->type == RM_MEMBER_U32) {
        if (!rm_value_whole(value, path, m->low, m->high, &whole, findings))
            return false;
        store(layer, m, (double)whole);
        return true;
    }
    if (m->type == RM_MEMBER_BOOL && !json_is_boolean(value)) {
        rm_find(findings, path, false, "should be true or false, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return false;
    }
    if (m->type == RM_MEMBER_BOOL) {
        store(layer, m, json_is_true(value));
        return true;
    }
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= m->low && number <= m->high)) {
        rm_find(findings, path, false, "should be a number from %g to %g, but is %s", m->low,
                m->high, rm_value_brief(value, is, sizeof(is)));
        return false;
    }
    store(layer, m, number);
    return true;
}

static bool is_layer_key(const char *name)
{
    for (int t = 0; t < RM_LAYER_TYPE_COUNT; t++)
        for (const struct rm_layer_member *m = rm_layer_rows[t].members; m->name; m++)
            if (!strcmp(m->name, name))
                return true;
    return false;
}

static void say_unknown(const char *path, const char *name, const struct rm_layer_row *row,
                        struct rm_findings *findings)
{
    const char *keys[RM_LAYER_MEMBERS_MAX + 2] = {"type"};
    if (is_layer_key(name)) {
        rm_find(findings, path, true, "a layer of type %s has no %s", row->type, name);
        return;
    }
    for (size_t i = 0; row->members[i].name; i++)
        keys[i + 1] = row->members[i].name;
    const char *near = rm_nearest(name, keys);
    rm_find(findings, path, true, "unknown key%s%s%s", near ? "; did you mean \"" : "",
            near ? near : "", near ? "\"?" : "");
}

static void read_layer(const char *path, const json_t *value, struct rm_layer_config *layer,
                       struct rm_findings *findings)
{
    const char *names[RM_LAYER_TYPE_COUNT + 1] = {NULL};
    char is[64], at[RM_KEY_PATH_MAX + 72];
    const char *name;
    json_t *member;

    if (!json_is_object(value)) {
        rm_find(findings, path, false,
                "should be an object such as {\"type\": \"relu\"}, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return;
    }
    for (int i = 0; i < RM_LAYER_TYPE_COUNT; i++)
        names[i] = rm_layer_rows[i].type;
    json_t *type = json_object_get(value, "type");
    if (!type) {
        rm_find(findings, path, false, "a layer needs a \"type\"");
        return;
    }
    snprintf(at, sizeof(at), "%s.type", path);
    int index = rm_value_name(type, at, names, findings);
    if (index < 0)
        return;
    const struct rm_layer_row *row = &rm_layer_rows[index];
    layer->type = (enum rm_layer_type)index;
    json_object_foreach((json_t *)value, name, member)
    {
        const struct rm_layer_member *m = row->members;
        if (rm_key_is_comment(name) || !strcmp(name, "type"))
            continue;
        while (m->name && strcmp(m->name, name) != 0)
            m++;
        snprintf(at, sizeof(at), "%s.%s", path, name);
        if (!m->name)
            say_unknown(at, name, row, findings);
    }
    for (const struct rm_layer_member *m = row->members; m->name; m++) {
        member = json_object_get(value, m->name);
        snprintf(at, sizeof(at), "%s.%s", path, m->name);
        if (member)
            read_member(at, member, m, layer, findings);
        else if (isnan(m->fallback))
            rm_find(findings, path, false, "a layer of type %s needs \"%s\", %g to %g", row->type,
                    m->name, m->low, m->high);
        else
            store(layer, m, m->fallback);
    }
}

static uint32_t count_of(const struct rm_key *key, const struct rm_experiment *experiment)
{
    uint32_t count;
    memcpy(&count, (const char *)experiment + key->offset, sizeof count);
    return count;
}

/* A key of layers spans its count and, after it, the list. */
static size_t list_offset(const struct rm_key *key)
{
    return key->offset + key->bytes - sizeof(struct rm_layer_config) * RM_LAYERS_MAX;
}

/* Reads a list of at most `most` layers, which is at `path`; returns how many. */
static uint32_t read_list(const char *path, const json_t *value, size_t most,
                          struct rm_layer_config *layers, struct rm_findings *findings)
{
    const size_t count = json_array_size(value);
    char is[64], at[RM_KEY_PATH_MAX + 24];

    if (!json_is_array(value)) {
        rm_find(findings, path, false, "should be a list of layers, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return 0;
    }
    if (count > most) {
        rm_find(findings, path, false, "%zu layers; allowed are at most %zu", count, most);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(at, sizeof(at), "%s[%zu]", path, i);
        read_layer(at, json_array_get(value, i), &layers[i], findings);
    }
    return (uint32_t)count;
}

static void read_layers(const struct rm_key *key, const json_t *value,
                        struct rm_experiment *experiment, struct rm_findings *findings)
{
    struct rm_layer_config layers[RM_LAYERS_MAX] = {{0}};
    const size_t found = findings->total;
    const uint32_t taken = read_list(key->path, value, RM_LAYERS_MAX, layers, findings);
    if (findings->total != found)
        return;
    memcpy((char *)experiment + key->offset, &taken, sizeof taken);
    memcpy((char *)experiment + list_offset(key), layers, sizeof(layers));
}

static json_t *member_to_json(const struct rm_layer_config *layer, const struct rm_layer_member *m)
{
    double value = load(layer, m);
    if (m->type == RM_MEMBER_BOOL)
        return json_boolean(value != 0);
    return m->type == RM_MEMBER_U32 ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *write_list(const struct rm_layer_config *layers, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct rm_layer_row *row = &rm_layer_rows[layers[i].type];
        json_t *object = json_pack("{s:s}", "type", row->type);
        for (const struct rm_layer_member *m = row->members; m->name; m++)
            json_object_set_new(object, m->name, member_to_json(&layers[i], m));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *write_layers(const struct rm_key *key, const struct rm_experiment *experiment)
{
    return write_list((const void *)((const char *)experiment + list_offset(key)),
                      count_of(key, experiment));
}

static json_t *schema_member(const struct rm_layer_member *m)
{
    static const char *const types[] = {
        [RM_MEMBER_U32] = "integer", [RM_MEMBER_BOOL] = "boolean", [RM_MEMBER_F64] = "number"};
    json_t *object = json_pack("{s:s, s:s}", "type", types[m->type], "description", m->doc);
    if (m->type == RM_MEMBER_U32) {
        json_object_set_new(object, "minimum", json_integer((json_int_t)m->low));
        json_object_set_new(object, "maximum", json_integer((json_int_t)m->high));
    } else if (m->type == RM_MEMBER_F64) {
        json_object_set_new(object, "minimum", json_real(m->low));
        json_object_set_new(object, "maximum", json_real(m->high));
    }
    if (!isnan(m->fallback)) {
        json_t *fallback = m->type == RM_MEMBER_BOOL  ? json_boolean(m->fallback != 0)
                           : m->type == RM_MEMBER_U32 ? json_integer((json_int_t)m->fallback)
                                                      : json_real(m->fallback);
        json_object_set_new(object, "default", fallback);
    }
    return object;
}

static json_t *schema_layers(const struct rm_key *key)
{
    json_t *kinds = json_array();
    (void)key;
    for (int i = 0; i < RM_LAYER_TYPE_COUNT; i++) {
        const struct rm_layer_row *row = &rm_layer_rows[i];
        json_t *members =
            json_pack("{s:{}, s:{}, s:{s:s}}", "//", "comment", "type", "const", row->type);
        json_t *required = json_pack("[s]", "type");
        for (const struct rm_layer_member *m = row->members; m->name; m++) {
            json_object_set_new(members, m->name, schema_member(m));
            if (isnan(m->fallback))
                json_array_append_new(required, json_string(m->name));
        }
        json_array_append_new(kinds, json_pack("{s:s, s:s, s:o, s:o, s:b}", "type", "object",
                                               "description", row->doc, "properties", members,
                                               "required", required, "additionalProperties", 0));
    }
    return json_pack("{s:s, s:i, s:{s:o}}", "type", "array", "maxItems", RM_LAYERS_MAX, "items",
                     "oneOf", kinds);
}

static void allowed_layers(const struct rm_key *key, char *text, size_t bytes)
{
    (void)key;
    snprintf(text, bytes, "%d layers at most, see below", RM_LAYERS_MAX);
}

const struct rm_key_type_ops rm_layers_ops = {read_layers, write_layers, schema_layers,
                                              allowed_layers, "list"};

/* --- network.inputs -------------------------------------------------------------------------- */

static void read_members(const char *path, const json_t *value, uint32_t group,
                         struct rm_network_config *network, struct rm_findings *findings);

/* The layers of an input that was added last. */
static void read_own_layers(const char *path, const json_t *value,
                            struct rm_network_config *network, struct rm_findings *findings)
{
    struct rm_input_config *input = &network->inputs[network->input_count - 1];
    input->layer_count = read_list(path, value, RM_LAYERS_MAX - input->first,
                                   network->input_layers + input->first, findings);
}

/* A group: its inputs, what combines them, and layers behind. */
static void read_group(const char *path, const json_t *value, struct rm_network_config *network,
                       struct rm_findings *findings)
{
    static const char *const keys[] = {"inputs", "combine", "layers", NULL};
    const uint32_t group = network->input_count;
    char at[RM_KEY_PATH_MAX + 72];
    const char *name;
    json_t *member;
    network->inputs[group - 1].is_group = true;
    json_object_foreach((json_t *)value, name, member)
    {
        size_t k = 0;
        while (keys[k] && strcmp(keys[k], name) != 0)
            k++;
        snprintf(at, sizeof at, "%s.%s", path, name);
        if (!keys[k] && !rm_key_is_comment(name)) {
            const char *near = rm_nearest(name, keys);
            rm_find(findings, at, true, "a group has inputs, combine and layers%s%s%s",
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        }
    }
    snprintf(at, sizeof at, "%s.layers", path);
    if ((member = json_object_get(value, "layers")))
        read_own_layers(at, member, network, findings);
    snprintf(at, sizeof at, "%s.combine", path);
    if ((member = json_object_get(value, "combine"))) {
        const int index = rm_value_name(member, at, rm_combine_names, findings);
        network->inputs[group - 1].combine = (enum rm_combine)(index < 0 ? 0 : index);
    }
    snprintf(at, sizeof at, "%s.inputs", path);
    member = json_object_get(value, "inputs");
    const size_t found = findings->total;
    if (member)
        read_members(at, member, group, network, findings);
    if (network->input_count == group && findings->total == found)
        rm_find(findings, member ? at : path, false, "a group needs at least one input");
}

static void read_input(const char *path, const char *name, const json_t *value, uint32_t group,
                       struct rm_network_config *network, struct rm_findings *findings)
{
    const uint32_t n = network->input_count;
    char is[64];
    if (!rm_name_valid(name) || strlen(name) >= RM_INPUT_NAME_MAX) {
        rm_find(findings, path, false, "is no name of an observation: " RM_NAME_RULE);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(network->inputs[i].name, name)) {
            char other[RM_KEY_PATH_MAX];
            rm_network_input_path(network, &network->inputs[i], other, sizeof other);
            rm_find(findings, path, true, "another input has this name: %s", other);
            return;
        }
    if (n == RM_INPUTS_MAX) {
        rm_find(findings, path, false, "more than %d inputs, groups included", RM_INPUTS_MAX);
        return;
    }
    struct rm_input_config *input = &network->inputs[network->input_count++];
    snprintf(input->name, sizeof input->name, "%s", name);
    input->group = group;
    input->first = n ? network->inputs[n - 1].first + network->inputs[n - 1].layer_count : 0;
    if (json_is_array(value))
        read_own_layers(path, value, network, findings);
    else if (json_is_object(value))
        read_group(path, value, network, findings);
    else
        rm_find(findings, path, false, "should be a list of layers or a group of inputs, but is %s",
                rm_value_brief(value, is, sizeof(is)));
}

/* All inputs of a group, counted from 1, or with 0 those of the network. */
static void read_members(const char *path, const json_t *value, uint32_t group,
                         struct rm_network_config *network, struct rm_findings *findings)
{
    const char *name;
    json_t *member;
    char is[64], at[RM_KEY_PATH_MAX];

    if (!json_is_object(value)) {
        rm_find(findings, path, false,
                "should be an object with a list of layers for each observation, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return;
    }
    json_object_foreach((json_t *)value, name, member)
    {
        if (rm_key_is_comment(name))
            continue;
        snprintf(at, sizeof at, "%s.%.*s", path, RM_INPUT_NAME_MAX, name);
        read_input(at, name, member, group, network, findings);
    }
}

static void read_inputs(const struct rm_key *key, const json_t *value,
                        struct rm_experiment *experiment, struct rm_findings *findings)
{
    struct rm_network_config read = {.input_count = 0};
    const size_t found = findings->total;

    read_members(key->path, value, 0, &read, findings);
    if (findings->total != found)
        return;
    experiment->network.input_count = read.input_count;
    memcpy(experiment->network.inputs, read.inputs, sizeof read.inputs);
    memcpy(experiment->network.input_layers, read.input_layers, sizeof read.input_layers);
}

static json_t *write_members(const struct rm_network_config *network, uint32_t group)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < network->input_count; i++) {
        const struct rm_input_config *input = &network->inputs[i];
        if (input->group != group)
            continue;
        json_t *own = write_list(network->input_layers + input->first, input->layer_count);
        if (input->is_group)
            own = json_pack("{s:o, s:s, s:o}", "inputs", write_members(network, i + 1), "combine",
                            rm_combine_names[input->combine], "layers", own);
        json_object_set_new(object, input->name, own);
    }
    return object;
}

static json_t *write_inputs(const struct rm_key *key, const struct rm_experiment *experiment)
{
    (void)key;
    return write_members(&experiment->network, 0);
}

static json_t *schema_inputs(const struct rm_key *key)
{
    json_t *combine = json_pack("{s:[]}", "enum");
    for (int i = 0; i < RM_COMBINE_COUNT; i++)
        json_array_append_new(json_object_get(combine, "enum"), json_string(rm_combine_names[i]));
    json_t *group =
        json_pack("{s:s, s:{s:{}, s:{}, s:{s:s, s:i}, s:o, s:o}, s:[s], s:b}", "type", "object",
                  "properties", "//", "comment", "inputs", "$ref",
                  "#/properties/network/properties/inputs", "minProperties", 1, "combine", combine,
                  "layers", schema_layers(key), "required", "inputs", "additionalProperties", 0);
    return json_pack("{s:s, s:i, s:{s:{}}, s:{s:[o, o]}}", "type", "object", "maxProperties",
                     RM_INPUTS_MAX, "properties", "//", "additionalProperties", "anyOf",
                     schema_layers(key), group);
}

static void allowed_inputs(const struct rm_key *key, char *text, size_t bytes)
{
    (void)key;
    snprintf(text, bytes, "lists of layers, see below, by the names of observations; groups");
}

const struct rm_key_type_ops rm_inputs_ops = {read_inputs, write_inputs, schema_inputs,
                                              allowed_inputs, "object"};
