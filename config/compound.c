/* compound: the keys that hold more than one value: world.options, policy.map, network.layers. */
#include "config/value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- world.options ------------------------------------------------------------------------- */

static void read_options(const struct rm_key *key, const json_t *value,
                         struct rm_experiment *experiment, struct rm_findings *findings)
{
    char is[64], path[RM_KEY_PATH_MAX];
    struct rm_world_config read = {.option_count = 0}, *world = &experiment->world;
    const char *name;
    json_t *member;

    if (!json_is_object(value)) {
        rm_find(findings, key->path, false, "should be an object of numbers, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return;
    }
    json_object_foreach((json_t *)value, name, member)
    {
        if (rm_key_is_comment(name))
            continue;
        snprintf(path, sizeof(path), "%s.%s", key->path, name);
        if (!json_is_number(member) && !json_is_boolean(member)) {
            rm_find(findings, path, false,
                    "should be a number or a boolean, as all world options, but is %s",
                    rm_value_brief(member, is, sizeof(is)));
        } else if (!*name || strlen(name) >= RM_TEXT_MAX) {
            rm_find(findings, path, true, "the name of a world option has 1 to %d bytes",
                    RM_TEXT_MAX - 1);
        } else if (read.option_count == RM_WORLD_OPTIONS_MAX) {
            rm_find(findings, path, true, "more than %d world options", RM_WORLD_OPTIONS_MAX);
            return;
        } else {
            struct rm_world_option_value *option = &read.options[read.option_count++];
            snprintf(option->key, sizeof(option->key), "%s", name);
            option->value =
                json_is_number(member) ? json_number_value(member) + 0.0 : json_is_true(member);
        }
    }
    world->option_count = read.option_count;
    memcpy(world->options, read.options, sizeof(read.options));
}

static json_t *write_options(const struct rm_key *key, const struct rm_experiment *experiment)
{
    json_t *object = json_object();
    (void)key;
    for (uint32_t i = 0; i < experiment->world.option_count; i++)
        json_object_set_new(object, experiment->world.options[i].key,
                            json_real(experiment->world.options[i].value));
    return object;
}

static json_t *schema_options(const struct rm_key *key)
{
    (void)key;
    return json_pack("{s:s, s:i, s:{s:{}, s:{}}, s:{s:[s,s]}}", "type", "object", "maxProperties",
                     RM_WORLD_OPTIONS_MAX + 2, "properties", "//", "comment",
                     "additionalProperties", "type", "number", "boolean");
}

static void allowed_options(const struct rm_key *key, char *text, size_t bytes)
{
    (void)key;
    snprintf(text, bytes, "%d options at most; the world knows which", RM_WORLD_OPTIONS_MAX);
}

const struct rm_value_ops rm_options_ops = {read_options, write_options, schema_options,
                                            allowed_options, "object"};

/* --- policy.map ---------------------------------------------------------------------------- */

static void read_list(const struct rm_key *key, const json_t *value,
                      struct rm_experiment *experiment, struct rm_findings *findings)
{
    uint32_t list[RM_AGENT_MAP_MAX] = {0}, highest = 0;
    size_t count = json_array_size(value);
    uint64_t seen = 0;
    bool whole = true;

    if (count == 0 || count > RM_AGENT_MAP_MAX) {
        rm_find(findings, key->path, false, "a list of %zu policies; it has one per agent, 1 to %d",
                count, RM_AGENT_MAP_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char path[RM_KEY_PATH_MAX];
        uint64_t policy;
        snprintf(path, sizeof(path), "%s[%zu]", key->path, i);
        if (!rm_value_whole(json_array_get(value, i), path, 0, RM_AGENT_MAP_MAX - 1, &policy,
                            findings)) {
            whole = false;
            continue;
        }
        list[i] = (uint32_t)policy;
        seen |= UINT64_C(1) << policy;
        highest = list[i] > highest ? list[i] : highest;
    }
    if (!whole)
        return;
    for (uint32_t p = 0; p < highest; p++)
        if (!(seen >> p & 1)) {
            rm_find(findings, key->path, false,
                    "policy %u is there but policy %u is not; policies are numbered from 0 without "
                    "gaps",
                    highest, p);
            return;
        }
    experiment->policy.map = RM_MAP_LIST;
    experiment->policy.list_count = (uint32_t)count;
    memcpy(experiment->policy.list, list, sizeof(list));
}

static void read_map(const struct rm_key *key, const json_t *value,
                     struct rm_experiment *experiment, struct rm_findings *findings)
{
    char is[64];
    if (json_is_array(value)) {
        read_list(key, value, experiment, findings);
    } else if (json_is_string(value)) {
        int index = rm_value_name(value, key->path, rm_map_names, findings);
        if (index >= 0) {
            memset(&experiment->policy, 0, sizeof(experiment->policy));
            experiment->policy.map = (enum rm_map)index;
        }
    } else {
        rm_find(findings, key->path, false,
                "should be \"independent\", \"shared\" or a list of policy numbers, but is %s",
                rm_value_brief(value, is, sizeof(is)));
    }
}

static json_t *write_map(const struct rm_key *key, const struct rm_experiment *experiment)
{
    (void)key;
    if (experiment->policy.map != RM_MAP_LIST)
        return json_string(rm_map_names[experiment->policy.map]);
    json_t *list = json_array();
    for (uint32_t i = 0; i < experiment->policy.list_count; i++)
        json_array_append_new(list, json_integer(experiment->policy.list[i]));
    return list;
}

static json_t *schema_map(const struct rm_key *key)
{
    (void)key;
    return json_pack("{s:[{s:[s,s]}, {s:s, s:i, s:i, s:{s:s, s:i, s:i}}]}", "oneOf", "enum",
                     rm_map_names[0], rm_map_names[1], "type", "array", "minItems", 1, "maxItems",
                     RM_AGENT_MAP_MAX, "items", "type", "integer", "minimum", 0, "maximum",
                     RM_AGENT_MAP_MAX - 1);
}

static void allowed_map(const struct rm_key *key, char *text, size_t bytes)
{
    (void)key;
    snprintf(text, bytes, "independent, shared, or a list of policy numbers");
}

const struct rm_value_ops rm_map_ops = {read_map, write_map, schema_map, allowed_map,
                                        "text or list"};

/* --- network.layers ------------------------------------------------------------------------ */

static void read_layer(const char *path, const json_t *value, struct rm_layer_config *layer,
                       struct rm_findings *findings)
{
    const char *names[RM_LAYER_TYPE_COUNT + 1] = {NULL};
    char is[64], at[RM_KEY_PATH_MAX + 72];
    const char *name;
    json_t *member;
    uint64_t number;

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
    if (row->has_cosines)
        layer->cosines = RM_LAYER_COSINES;
    json_object_foreach((json_t *)value, name, member)
    {
        static const char *const keys[] = {"type", "units", "cosines", NULL};
        bool units = !strcmp(name, "units"), cosines = !strcmp(name, "cosines");
        snprintf(at, sizeof(at), "%s.%s", path, name);
        if (rm_key_is_comment(name) || !strcmp(name, "type"))
            continue;
        if (units && row->has_units) {
            if (rm_value_whole(member, at, 1, RM_LAYER_UNITS_MAX, &number, findings))
                layer->units = (uint32_t)number;
            else
                layer->units = 1; /* said already */
        } else if (cosines && row->has_cosines) {
            if (rm_value_whole(member, at, 1, RM_LAYER_COSINES_MAX, &number, findings))
                layer->cosines = (uint32_t)number;
        } else if (units || cosines) {
            rm_find(findings, at, true, "a layer of type %s has no %s", row->type, name);
        } else {
            const char *near = rm_nearest(name, keys);
            rm_find(findings, at, true, "unknown key%s%s%s", near ? "; did you mean \"" : "",
                    near ? near : "", near ? "\"?" : "");
        }
    }
    if (row->has_units && !layer->units)
        rm_find(findings, path, false, "a layer of type %s needs \"units\", 1 to %d", row->type,
                RM_LAYER_UNITS_MAX);
}

static void read_layers(const struct rm_key *key, const json_t *value,
                        struct rm_experiment *experiment, struct rm_findings *findings)
{
    struct rm_layer_config layers[RM_LAYERS_MAX] = {{0}};
    size_t count = json_array_size(value), found = findings->total;
    char is[64], path[RM_KEY_PATH_MAX];

    if (!json_is_array(value)) {
        rm_find(findings, key->path, false, "should be a list of layers, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return;
    }
    if (count > RM_LAYERS_MAX) {
        rm_find(findings, key->path, false, "%zu layers; allowed are at most %d", count,
                RM_LAYERS_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s[%zu]", key->path, i);
        read_layer(path, json_array_get(value, i), &layers[i], findings);
    }
    if (findings->total != found)
        return;
    experiment->network.layer_count = (uint32_t)count;
    memcpy(experiment->network.layers, layers, sizeof(layers));
}

static json_t *write_layers(const struct rm_key *key, const struct rm_experiment *experiment)
{
    json_t *list = json_array();
    (void)key;
    for (uint32_t i = 0; i < experiment->network.layer_count; i++) {
        const struct rm_layer_config *layer = &experiment->network.layers[i];
        const struct rm_layer_row *row = &rm_layer_rows[layer->type];
        json_t *object = json_pack("{s:s}", "type", row->type);
        if (row->has_units)
            json_object_set_new(object, "units", json_integer(layer->units));
        if (row->has_cosines)
            json_object_set_new(object, "cosines", json_integer(layer->cosines));
        json_array_append_new(list, object);
    }
    return list;
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
        if (row->has_units) {
            json_object_set_new(members, "units",
                                json_pack("{s:s, s:i, s:i}", "type", "integer", "minimum", 1,
                                          "maximum", RM_LAYER_UNITS_MAX));
            json_array_append_new(required, json_string("units"));
        }
        if (row->has_cosines)
            json_object_set_new(members, "cosines",
                                json_pack("{s:s, s:i, s:i, s:i}", "type", "integer", "minimum", 1,
                                          "maximum", RM_LAYER_COSINES_MAX, "default",
                                          RM_LAYER_COSINES));
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

const struct rm_value_ops rm_layers_ops = {read_layers, write_layers, schema_layers, allowed_layers,
                                           "list"};
