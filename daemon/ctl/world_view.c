#include "daemon/ctl/world_view.h"

#include "actor/worlds/options.h"
#include "config/json_value.h"
#include "daemon/format.h"
#include "daemon/probe.h"
#include "learner/net/features.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int describe(struct rm_world_view *view, const char *name, const char *library,
                    struct rm_error *error)
{
    int rc = rm_probe_library(library, RM_PROBE_PATIENCE_S, &view->description, error);
    if (rc)
        return rc;
    const struct rm_world_config config = {.description = view->description};
    rc = rm_world_spec_open(&view->world, &config, 0, error);
    if (rc == 0 && name[0] && strcmp(name, view->world.spec->name) != 0)
        rc = rm_fail(error, -ENOENT, "%s: holds the world '%s', not '%s'", library,
                     view->world.spec->name, name);
    return rc;
}

int rm_world_view_open(struct rm_world_view *view, const char *name, const char *library,
                       struct rm_error *error)
{
    struct rm_world_config config = {.description = NULL};
    memset(view, 0, sizeof *view);
    snprintf(config.name, sizeof config.name, "%s", name);
    int rc = library[0] ? describe(view, name, library, error)
                        : rm_world_spec_open(&view->world, &config, 0, error);
    if (rc) {
        rm_world_view_close(view);
        return rc;
    }
    view->spec = view->world.spec;
    return 0;
}

void rm_world_view_close(struct rm_world_view *view)
{
    rm_world_spec_close(&view->world);
    free(view->description);
    memset(view, 0, sizeof *view);
}

static const char *const dtype_names[] = {
    [RM_ENV_U8] = "u8",   [RM_ENV_I8] = "i8",   [RM_ENV_I16] = "i16",
    [RM_ENV_I32] = "i32", [RM_ENV_F32] = "f32", [RM_ENV_CODE8] = "code",
};

static const char *dtype_name(uint32_t dtype)
{
    bool known = dtype > 0 && dtype < sizeof dtype_names / sizeof dtype_names[0];
    return known ? dtype_names[dtype] : "?";
}

size_t rm_world_one_observation_text(const struct rm_env_observation *of, char *text, size_t size)
{
    size_t used = 0;
    if (of->name)
        used = (size_t)snprintf(text, size, "%s ", of->name);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "%s[", dtype_name(of->dtype));
    for (uint32_t d = 0; d < of->dims && d < RM_ENV_MAX_DIMS && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%s%u", d ? ", " : "",
                                 d || !of->counted ? "" : "up to ", of->shape[d]);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "]");
    if (of->dtype == RM_ENV_CODE8 && used < size)
        used += (size_t)snprintf(text + used, size - used, " of %u codes, %u values each",
                                 of->codes, of->channels);
    return used;
}

void rm_world_observation_text(const struct rm_env_agent *agent, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < rm_features_observations(agent) && used < size; i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        if (i > 0)
            used += (size_t)snprintf(text + used, size - used, "; ");
        if (used < size)
            used += rm_world_one_observation_text(&of, text + used, size - used);
    }
}

void rm_world_actions_text(const struct rm_env_agent *agent, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    if (agent->choices <= 1 && agent->actions)
        used = (size_t)snprintf(text, size, "%u", agent->actions);
    for (uint32_t c = 0; c < agent->choices && agent->choices > 1 && used < size; c++)
        used += (size_t)snprintf(text + used, size - used, "%s%u", c ? " x " : "",
                                 agent->choice_actions[c]);
    for (uint32_t i = 0; i < agent->boxes && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s[%u]", used ? " x " : "",
                                 agent->box[i].name, agent->box[i].values);
}

static void print_agents(FILE *out, const struct rm_env_spec *spec, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"AGENT", true, 0}, {"PHASE", false, 2},  {"OBSERVATION", true, 0}, {"LOW", false, 3},
        {"HIGH", false, 3}, {"INPUTS", false, 0}, {"ACTIONS", false, 0},    {"MASK", true, 1},
    };
    struct rm_table table;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t a = 0; a < spec->agents; a++) {
        const struct rm_env_agent *agent = &spec->agent[a];
        char observation[RM_WORLD_TEXT_MAX], actions[96];
        rm_world_observation_text(agent, observation, sizeof observation);
        rm_world_actions_text(agent, actions, sizeof actions);
        rm_table_cell(&table, "%s", agent->name);
        rm_table_cell(&table, "%u", agent->phase);
        rm_table_cell(&table, "%s", observation);
        const struct rm_env_observation first = rm_features_observation(agent, 0);
        const bool one = agent->observations == 0;
        rm_table_cell(&table, "%s", one ? rm_format_number(first.low).s : "-");
        rm_table_cell(&table, "%s", one ? rm_format_number(first.high).s : "-");
        rm_table_cell(&table, "%u", rm_env_obs_features(agent));
        rm_table_cell(&table, "%s", actions);
        rm_table_cell(&table, "%s", agent->has_mask ? "yes" : "no");
    }
    rm_table_end(&table, out, style);
}

void rm_world_option_text(const struct rm_env_option_doc *option, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; option->words && option->words[i] && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : ": ", option->words[i]);
}

static void range_cell(struct rm_table *table, const struct rm_env_option_doc *option, double end)
{
    if (rm_option_is_number(option))
        rm_table_cell(table, "%g", end);
    else
        rm_table_cell(table, "-");
}

static void print_options(FILE *out, const struct rm_env_option_doc *options,
                          const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"OPTION", true, 0}, {"TAKES", true, 1}, {"DEFAULT", false, 0},
        {"LEAST", false, 0}, {"MOST", false, 0}, {"MEANING", true, 0},
    };
    struct rm_table table;
    if (!options || !options->key)
        return;
    fputc('\n', out);
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (; options->key; options++) {
        char text[64];
        rm_option_fallback_text(options, text, sizeof text);
        rm_table_cell(&table, "%s", options->key);
        rm_table_cell(&table, "%s", rm_option_takes(options));
        rm_table_cell(&table, "%s", text);
        range_cell(&table, options, options->low);
        range_cell(&table, options, options->high);
        rm_world_option_text(options, text, sizeof text);
        rm_table_cell(&table, "%s%s", options->doc ? options->doc : "", text);
    }
    rm_table_end(&table, out, style);
}

void rm_world_view_print(FILE *out, const struct rm_world_view *view, const struct rm_style *style)
{
    const struct rm_env_spec *spec = view->spec;
    fprintf(out, "%s%s%s: %s\n\n", rm_style_bold(style), spec->name, rm_style_off(style),
            spec->doc ? spec->doc : "");
    if (spec->max_steps)
        fprintf(out, "episodes     at most %u steps\n", spec->max_steps);
    if (spec->phases > 1)
        fprintf(out, "turns        agents act in %u phases within a step\n", spec->phases);
    if (isfinite(spec->score_low) && isfinite(spec->score_high))
        fprintf(out, "scores       %g to %g\n", spec->score_low, spec->score_high);
    if (isfinite(spec->score_random))
        fprintf(out, "random play  %g\n", spec->score_random);
    if (isfinite(spec->score_solved))
        fprintf(out, "solved at    %g\n", spec->score_solved);
    fputc('\n', out);
    print_agents(out, spec, style);
    print_options(out, view->world.options, style);
}

static json_t *box_json(const struct rm_env_box *box)
{
    json_t *low = json_array(), *high = json_array();
    for (uint32_t v = 0; v < box->values; v++) {
        json_array_append_new(low, json_real((double)box->low[v]));
        json_array_append_new(high, json_real((double)box->high[v]));
    }
    return json_pack("{s:s, s:o, s:o}", "name", box->name, "low", low, "high", high);
}

/* Sets what an observation is: of an agent that has one, beside what it does. */
static void observation_json(json_t *o, const struct rm_env_observation *of)
{
    json_t *shape = json_array();
    for (uint32_t d = 0; d < of->dims && d < RM_ENV_MAX_DIMS; d++)
        json_array_append_new(shape, json_integer(of->shape[d]));
    json_object_set_new(o, "dtype", json_string(dtype_name(of->dtype)));
    json_object_set_new(o, "shape", shape);
    json_object_set_new(o, "low", rm_json_finite(of->low));
    json_object_set_new(o, "high", rm_json_finite(of->high));
}

static json_t *observations_json(const struct rm_env_agent *agent)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < agent->observations; i++) {
        const struct rm_env_observation *of = &agent->observation[i];
        json_t *o = json_pack("{s:s, s:b}", "name", of->name, "counted", (int)of->counted);
        observation_json(o, of);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *agent_json(const struct rm_env_agent *agent)
{
    const struct rm_env_observation first = rm_features_observation(agent, 0);
    json_t *choices = json_array(), *boxes = json_array();
    for (uint32_t c = 0; c < agent->choices && c < RM_ENV_MAX_CHOICES; c++)
        json_array_append_new(choices, json_integer(agent->choice_actions[c]));
    if (agent->choices <= 1) {
        json_array_clear(choices);
        if (agent->actions)
            json_array_append_new(choices, json_integer(agent->actions));
    }
    json_t *o = json_pack("{s:s, s:i}", "name", agent->name, "phase", (int)agent->phase);
    if (agent->observations)
        json_object_set_new(o, "observations", observations_json(agent));
    else
        observation_json(o, &first);
    for (uint32_t i = 0; i < agent->boxes; i++)
        json_array_append_new(boxes, box_json(&agent->box[i]));
    json_object_update_new(o, json_pack("{s:i, s:i, s:o, s:b, s:o}", "inputs",
                                        (int)rm_env_obs_features(agent), "actions",
                                        (int)agent->actions, "choices", choices, "mask",
                                        (int)agent->has_mask, "boxes", boxes));
    return o;
}

static json_t *option_json(const struct rm_env_option_doc *o)
{
    const bool is_number = rm_option_is_number(o);
    json_t *words = o->words ? json_array() : json_null();
    json_t *fallback = o->most            ? json_array()
                       : is_number        ? rm_json_finite(o->fallback)
                       : o->fallback_text ? json_string(o->fallback_text)
                                          : json_null();
    for (uint32_t i = 0; o->words && o->words[i]; i++)
        json_array_append_new(words, json_string(o->words[i]));
    return json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:s}", "key", o->key, "takes",
                     rm_option_takes(o), "most", (int)o->most, "default", fallback, "low",
                     rm_json_finite(is_number ? o->low : NAN), "high",
                     rm_json_finite(is_number ? o->high : NAN), "words", words, "doc",
                     o->doc ? o->doc : "");
}

json_t *rm_world_view_json(const struct rm_world_view *view)
{
    const struct rm_env_spec *spec = view->spec;
    json_t *agents = json_array(), *options = json_array();
    for (uint32_t a = 0; a < spec->agents; a++)
        json_array_append_new(agents, agent_json(&spec->agent[a]));
    for (const struct rm_env_option_doc *o = view->world.options; o && o->key; o++)
        json_array_append_new(options, option_json(o));
    return json_pack("{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "name", spec->name,
                     "doc", spec->doc ? spec->doc : "", "phases", (int)spec->phases, "max_steps",
                     (int)spec->max_steps, "score_low", rm_json_finite(spec->score_low),
                     "score_high", rm_json_finite(spec->score_high), "score_random",
                     rm_json_finite(spec->score_random), "score_solved",
                     rm_json_finite(spec->score_solved), "agents", agents, "options", options);
}
