#include "config/curriculum.h"

#include "config/print.h"
#include "config/value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OVER_MOST 100000

/* --- a rule ---------------------------------------------------------------------------------- */

/* What a rule is called, and the names of its bounds: a mean that is high, or low, enough. */
struct form {
    const char *name, *high, *low;
};
static const struct form until = {"until", "at_least", "at_most"},
                         back = {"back", "above", "below"};

static void find_unknown(const json_t *object, const char *const *keys, const char *path,
                         struct rm_findings *findings)
{
    char at[RM_KEY_PATH_MAX + 96];
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        bool known = rm_key_is_comment(name);
        for (size_t i = 0; keys[i]; i++)
            known = known || !strcmp(name, keys[i]);
        const char *near = known ? NULL : rm_nearest(name, keys);
        snprintf(at, sizeof(at), "%s.%.80s", path, name);
        if (!known)
            rm_find(findings, at, true, "unknown key%s%s%s", near ? "; did you mean \"" : "",
                    near ? near : "", near ? "\"?" : "");
    }
}

static void read_text(const json_t *rule, const char *path, const char *key, char *to, size_t bytes,
                      struct rm_findings *findings)
{
    char at[RM_KEY_PATH_MAX + 96], is[64];
    const json_t *value = json_object_get(rule, key);
    const char *text = json_string_value(value);
    snprintf(at, sizeof(at), "%s.%s", path, key);
    if (value && (!text || !text[0] || strlen(text) >= bytes))
        rm_find(findings, at, false, "should be a name, but is %s",
                rm_value_brief(value, is, sizeof(is)));
    else if (text)
        snprintf(to, bytes, "%s", text);
}

static void read_bound(const json_t *rule, const struct form *form, const char *path,
                       struct rm_stage_rule *to, struct rm_findings *findings)
{
    char at[RM_KEY_PATH_MAX + 96], is[64];
    const json_t *high = json_object_get(rule, form->high), *low = json_object_get(rule, form->low);
    const json_t *value = high ? high : low;
    if (!high == !low) {
        rm_find(findings, path, false, "needs a number, either \"%s\" or \"%s\"", form->high,
                form->low);
        return;
    }
    snprintf(at, sizeof(at), "%s.%s", path, high ? form->high : form->low);
    if (!json_is_number(value))
        rm_find(findings, at, false, "should be a number, but is %s",
                rm_value_brief(value, is, sizeof(is)));
    to->high = high;
    to->bound = json_number_value(value);
}

static void read_rule(const json_t *stage, const struct form *form, const char *of,
                      struct rm_stage_rule *to, struct rm_findings *findings)
{
    const char *const keys[] = {"figure", "agent", "over", form->high, form->low, NULL};
    const json_t *rule = json_object_get(stage, form->name);
    char path[RM_KEY_PATH_MAX], at[RM_KEY_PATH_MAX + 96], is[64];
    uint64_t over = 100;
    *to = (struct rm_stage_rule){.over = 0};
    if (!rule)
        return;
    snprintf(path, sizeof(path), "%s.%s", of, form->name);
    if (!json_is_object(rule)) {
        rm_find(
            findings, path, false,
            "should be an object such as {\"figure\": \"return\", \"over\": 50, \"%s\": 1}, but "
            "is %s",
            form->high, rm_value_brief(rule, is, sizeof(is)));
        return;
    }
    find_unknown(rule, keys, path, findings);
    if (!json_object_get(rule, "figure"))
        rm_find(findings, path, false, "needs \"figure\"");
    read_text(rule, path, "figure", to->figure, sizeof(to->figure), findings);
    read_text(rule, path, "agent", to->agent, sizeof(to->agent), findings);
    snprintf(at, sizeof(at), "%s.over", path);
    if (json_object_get(rule, "over"))
        rm_value_whole(json_object_get(rule, "over"), at, 1, OVER_MOST, &over, findings);
    read_bound(rule, form, path, to, findings);
    to->over = (uint32_t)over;
}

/* --- the key --------------------------------------------------------------------------------- */

static void read_stage(const json_t *stage, uint32_t i, uint32_t count, struct rm_stage_config *to,
                       struct rm_findings *findings)
{
    static const char *const keys[] = {"options", "until", "back", NULL};
    const json_t *options = json_object_get(stage, "options");
    char path[RM_KEY_PATH_MAX], is[64];
    snprintf(path, sizeof(path), "curriculum[%u]", i);
    if (!json_is_object(stage)) {
        rm_find(findings, path, false,
                "should be an object with \"options\" and \"until\", but is %s",
                rm_value_brief(stage, is, sizeof(is)));
        return;
    }
    find_unknown(stage, keys, path, findings);
    if (!json_is_object(options))
        rm_find(findings, path, false, "needs \"options\", an object of options of the world");
    read_rule(stage, &until, path, &to->until, findings);
    read_rule(stage, &back, path, &to->back, findings);
    if (i + 1 < count && !json_object_get(stage, "until"))
        rm_find(findings, path, false,
                "needs \"until\", the condition under which the next stage begins");
    if (i + 1 == count && json_object_get(stage, "until"))
        rm_find(findings, path, false,
                "the last stage has no \"until\", because no stage follows it");
    if (i == 0 && json_object_get(stage, "back"))
        rm_find(findings, path, false,
                "the first stage has no \"back\", because no stage precedes it");
}

static void read_curriculum(const struct rm_key *key, const json_t *value,
                            struct rm_experiment *experiment, struct rm_findings *findings)
{
    struct rm_curriculum_config *to = &experiment->curriculum;
    struct rm_stage_config stage[RM_STAGES_MAX] = {{.until = {.over = 0}}};
    const size_t found = findings->total, count = json_array_size(value);
    char is[64];

    if (!json_is_array(value)) {
        rm_find(findings, key->path, false, "should be a list of stages, but is %s",
                rm_value_brief(value, is, sizeof(is)));
        return;
    }
    if (count == 1 || count > RM_STAGES_MAX)
        rm_find(findings, key->path, false, "%zu %s; a curriculum has 2 to %d", count,
                count == 1 ? "stage" : "stages", RM_STAGES_MAX);
    for (size_t i = 0; i < count && i < RM_STAGES_MAX; i++)
        read_stage(json_array_get(value, i), (uint32_t)i, (uint32_t)count, &stage[i], findings);
    char *text = findings->total == found && count ? rm_json_text(value, false) : NULL;
    if (text && strlen(text) >= sizeof(to->json)) {
        rm_find(findings, key->path, false, "%zu bytes as JSON; at most %zu", strlen(text),
                sizeof(to->json) - 1);
    } else if (findings->total == found) {
        to->stages = (uint32_t)count;
        memcpy(to->stage, stage, sizeof(stage));
        snprintf(to->json, sizeof(to->json), "%s", text ? text : "");
    }
    free(text);
}

static json_t *write_curriculum(const struct rm_key *key, const struct rm_experiment *experiment)
{
    json_t *list = json_loads(experiment->curriculum.json, 0, NULL);
    (void)key;
    return list ? list : json_array();
}

static json_t *schema_rule(const struct form *form)
{
    return json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s, s:i, s:i}, s:{s:s}, s:{s:s}}, s:[s]}",
                     "type", "object", "properties", "figure", "type", "string", "agent", "type",
                     "string", "over", "type", "integer", "minimum", 1, "maximum", OVER_MOST,
                     form->high, "type", "number", form->low, "type", "number", "required",
                     "figure");
}

static json_t *schema_curriculum(const struct rm_key *key)
{
    (void)key;
    return json_pack("{s:s, s:i, s:{s:s, s:{s:{s:s}, s:o, s:o}, s:[s]}}", "type", "array",
                     "maxItems", RM_STAGES_MAX, "items", "type", "object", "properties", "options",
                     "type", "object", "until", schema_rule(&until), "back", schema_rule(&back),
                     "required", "options");
}

static void allowed_curriculum(const struct rm_key *key, char *text, size_t bytes)
{
    (void)key;
    snprintf(text, bytes, "objects of `options`, `until` and `back`; 2 to %d, or none",
             RM_STAGES_MAX);
}

const struct rm_key_type_ops rm_curriculum_ops = {read_curriculum, write_curriculum,
                                                  schema_curriculum, allowed_curriculum, "list"};

/* --- a stage's world ------------------------------------------------------------------------- */

int rm_curriculum_world(const struct rm_experiment *experiment, uint32_t stage,
                        struct rm_world_config *world)
{
    *world = experiment->world;
    if (!experiment->curriculum.stages)
        return 0;
    json_t *list = json_loads(experiment->curriculum.json, 0, NULL),
           *options = json_loads(world->options[0] ? world->options : "{}", 0, NULL),
           *own = json_object_get(json_array_get(list, stage), "options");
    char *text = options && own && json_object_update(options, own) == 0
                     ? rm_json_text(options, false)
                     : NULL;
    const bool fits = text && strlen(text) < sizeof(world->options);
    if (fits)
        snprintf(world->options, sizeof(world->options), "%s", text);
    json_decref(list);
    json_decref(options);
    free(text);
    return fits ? 0 : -ENOMEM;
}
