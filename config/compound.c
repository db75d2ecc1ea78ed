/* compound: keys with more than one value: world.options, policy.map, policy.frozen. Layers are in
 * layers.c. */
#include "config/print.h"
#include "config/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_MAX 9007199254740991.0 /* 2^53 - 1 */

/* --- world.options ------------------------------------------------------------------------- */

/* Numbers that are whole are written as such, so that 2.0 and 2 are the same option. */
static json_t *plain(const json_t *value)
{
    json_t *copy, *member;
    const char *name;
    switch (json_typeof(value)) {
    case JSON_REAL:
        if (json_real_value(value) == floor(json_real_value(value)) &&
            fabs(json_real_value(value)) <= WHOLE_MAX)
            return json_integer((json_int_t)json_real_value(value));
        return json_real(json_real_value(value));
    case JSON_ARRAY:
        copy = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            json_array_append_new(copy, plain(json_array_get(value, i)));
        return copy;
    case JSON_OBJECT:
        copy = json_object();
        json_object_foreach((json_t *)value, name, member)
        {
            json_object_set_new(copy, name, plain(member));
        }
        return copy;
    default:
        return json_deep_copy(value);
    }
}

static char *text_of(const struct rm_key *key, const struct rm_experiment *experiment)
{
    return (char *)experiment + key->offset;
}

static void read_options(const struct rm_key *key, const json_t *value,
                         struct rm_experiment *experiment, struct rm_findings *findings)
{
    char is[64], path[RM_KEY_PATH_MAX];
    const size_t found = findings->total;
    const char *name;
    json_t *member;
    void *next;

    if (!json_is_object(value)) {
        rm_find(findings, key->path, false, "should be an object, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return;
    }
    json_object_foreach((json_t *)value, name, member)
    {
        snprintf(path, sizeof(path), "%s.%s", key->path, name);
        if (!*name || strlen(name) >= RM_TEXT_MAX)
            rm_find(findings, path, true, "a name here has 1 to %d bytes", RM_TEXT_MAX - 1);
    }
    json_t *options = plain(value);
    json_object_foreach_safe(options, next, name, member)
    {
        if (rm_key_is_comment(name))
            json_object_del(options, name);
    }
    char *text = options ? rm_json_text(options, false) : NULL;
    json_decref(options);
    if (text && strlen(text) >= key->bytes)
        rm_find(findings, key->path, false, "%zu bytes as JSON; at most %zu", strlen(text),
                key->bytes - 1);
    else if (text && findings->total == found)
        snprintf(text_of(key, experiment), key->bytes, "%s", text);
    free(text);
}

static json_t *write_options(const struct rm_key *key, const struct rm_experiment *experiment)
{
    json_t *options = json_loads(text_of(key, experiment), 0, NULL);
    return options ? options : json_object();
}

static json_t *schema_options(const struct rm_key *key)
{
    (void)key;
    return json_pack("{s:s}", "type", "object");
}

static void allowed_options(const struct rm_key *key, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s",
             strcmp(key->path, "sweep") == 0
                 ? "lists of values, and ranges, by key"
                 : "numbers, booleans, texts and lists by name; the world knows which");
}

const struct rm_key_type_ops rm_options_ops = {read_options, write_options, schema_options,
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
        rm_find(findings, key->path, false,
                "a list of %zu policies; it must have one per agent, 1 to %d", count,
                RM_AGENT_MAP_MAX);
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
            rm_find(
                findings, key->path, false,
                "policy %u is used but policy %u is not; policies are numbered from 0 without gaps",
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
            memset(experiment->policy.list, 0, sizeof(experiment->policy.list));
            experiment->policy.list_count = 0;
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

const struct rm_key_type_ops rm_map_ops = {read_map, write_map, schema_map, allowed_map,
                                           "text or list"};

/* --- policy.frozen ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double low, high, fallback; /* fallback NAN: must be given */
} frozen_members[] = {
    {"policy", 0, RM_AGENT_MAP_MAX - 1, NAN},
    {"of", 0, RM_AGENT_MAP_MAX - 1, NAN},
    {"every", 1, 1e12, 1000},
    {"keep", 1, 256, 8},
};
#define FROZEN_MEMBERS (sizeof(frozen_members) / sizeof(frozen_members[0]))

static void read_one_frozen(const char *path, const json_t *value, struct rm_frozen_config *out,
                            struct rm_findings *findings)
{
    uint64_t numbers[FROZEN_MEMBERS];
    char at[RM_KEY_PATH_MAX + 72], is[64];
    const char *name;
    json_t *member;

    if (!json_is_object(value)) {
        rm_find(findings, path, false,
                "should be an object such as {\"policy\": 1, \"of\": 0}, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return;
    }
    json_object_foreach((json_t *)value, name, member)
    {
        const char *keys[FROZEN_MEMBERS + 1] = {NULL};
        bool known = rm_key_is_comment(name);
        for (size_t m = 0; m < FROZEN_MEMBERS; m++) {
            keys[m] = frozen_members[m].name;
            known = known || !strcmp(name, keys[m]);
        }
        const char *near = known ? NULL : rm_nearest(name, keys);
        snprintf(at, sizeof(at), "%s.%s", path, name);
        if (!known)
            rm_find(findings, at, true, "unknown key%s%s%s", near ? "; did you mean \"" : "",
                    near ? near : "", near ? "\"?" : "");
    }
    for (size_t m = 0; m < FROZEN_MEMBERS; m++) {
        numbers[m] = isnan(frozen_members[m].fallback) ? 0 : (uint64_t)frozen_members[m].fallback;
        member = json_object_get(value, frozen_members[m].name);
        snprintf(at, sizeof(at), "%s.%s", path, frozen_members[m].name);
        if (member)
            rm_value_whole(member, at, frozen_members[m].low, frozen_members[m].high, &numbers[m],
                           findings);
        else if (isnan(frozen_members[m].fallback))
            rm_find(findings, path, false, "needs \"%s\"", frozen_members[m].name);
    }
    *out = (struct rm_frozen_config){(uint32_t)numbers[0], (uint32_t)numbers[1], numbers[2],
                                     (uint32_t)numbers[3]};
}

static void read_frozen(const struct rm_key *key, const json_t *value,
                        struct rm_experiment *experiment, struct rm_findings *findings)
{
    struct rm_frozen_config read[RM_FROZEN_MAX] = {{0}};
    size_t count = json_array_size(value), found = findings->total;
    char is[64], path[RM_KEY_PATH_MAX];

    if (!json_is_array(value)) {
        rm_find(findings, key->path, false, "should be a list, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return;
    }
    if (count > RM_FROZEN_MAX) {
        rm_find(findings, key->path, false, "%zu frozen policies; allowed are at most %d", count,
                RM_FROZEN_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s[%zu]", key->path, i);
        read_one_frozen(path, json_array_get(value, i), &read[i], findings);
    }
    if (findings->total != found)
        return;
    experiment->policy.frozen_count = (uint32_t)count;
    memcpy(experiment->policy.frozen, read, sizeof(read));
}

static json_t *write_frozen(const struct rm_key *key, const struct rm_experiment *experiment)
{
    json_t *list = json_array();
    (void)key;
    for (uint32_t i = 0; i < experiment->policy.frozen_count; i++) {
        const struct rm_frozen_config *f = &experiment->policy.frozen[i];
        json_array_append_new(list,
                              json_pack("{s:I, s:I, s:I, s:I}", "policy", (json_int_t)f->policy,
                                        "of", (json_int_t)f->of, "every", (json_int_t)f->every,
                                        "keep", (json_int_t)f->keep));
    }
    return list;
}

static json_t *schema_frozen(const struct rm_key *key)
{
    json_t *members = json_pack("{s:{}, s:{}}", "//", "comment"), *required = json_array();
    (void)key;
    for (size_t m = 0; m < FROZEN_MEMBERS; m++) {
        json_t *number = json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum",
                                   (json_int_t)frozen_members[m].low, "maximum",
                                   (json_int_t)frozen_members[m].high);
        if (isnan(frozen_members[m].fallback))
            json_array_append_new(required, json_string(frozen_members[m].name));
        else
            json_object_set_new(number, "default",
                                json_integer((json_int_t)frozen_members[m].fallback));
        json_object_set_new(members, frozen_members[m].name, number);
    }
    return json_pack("{s:s, s:i, s:{s:s, s:o, s:o, s:b}}", "type", "array", "maxItems",
                     RM_FROZEN_MAX, "items", "type", "object", "properties", members, "required",
                     required, "additionalProperties", 0);
}

static void allowed_frozen(const struct rm_key *key, char *text, size_t bytes)
{
    (void)key;
    snprintf(text, bytes, "objects of `policy`, `of`, `every` (1000), `keep` (8)");
}

const struct rm_key_type_ops rm_frozen_ops = {read_frozen, write_frozen, schema_frozen,
                                              allowed_frozen, "list"};
