#include "actor/worlds/bridges/python_spec.h"

#include "actor/worlds/described.h"
#include "actor/worlds/worlds.h"
#include "config/utf8.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGENTS_MAX 64

/* An agent's list of observations and their codebooks, or NULL. */
struct seen {
    struct rm_env_observation *observation;
    float *book[RM_ENV_MAX_OBSERVATIONS];
};

struct rm_python_spec {
    json_t *text; /* owns all strings */
    struct rm_env_spec spec;
    struct rm_env_agent agent[AGENTS_MAX];
    struct seen seen[AGENTS_MAX];
    struct rm_env_box *box[AGENTS_MAX]; /* with their bounds behind them, or NULL */
    struct rm_env_figure figure[RM_ENV_MAX_FIGURES];
    char name[48], doc[256];
    uint32_t apart; /* 1: some worlds can be stepped without the others */
};

static const struct {
    const char *name;
    uint32_t dtype;
} dtypes[] = {{"uint8", RM_ENV_U8},
              {"int8", RM_ENV_I8},
              {"int16", RM_ENV_I16},
              {"int32", RM_ENV_I32},
              {"float32", RM_ENV_F32}};

static uint32_t dtype_of(const char *name)
{
    for (size_t i = 0; name && i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].dtype;
    return 0;
}

/* A whole number that is there and not above `most`. */
static bool take_whole(const json_t *from, const char *name, uint32_t most, uint32_t *to)
{
    const json_t *value = json_object_get(from, name);
    const json_int_t whole = json_integer_value(value);
    *to = (uint32_t)whole;
    return json_is_integer(value) && whole >= 0 && whole <= (json_int_t)most;
}

/* A number or, since JSON has none without end, "inf" and "-inf". */
static bool take_real(const json_t *from, const char *name, double *to)
{
    const json_t *value = json_object_get(from, name);
    const char *text = json_string_value(value);
    if (json_is_number(value))
        *to = json_number_value(value);
    else if (text && strcmp(text, "inf") == 0)
        *to = INFINITY;
    else if (text && strcmp(text, "-inf") == 0)
        *to = -INFINITY;
    else
        return false;
    return true;
}

static bool take_list(const json_t *list, uint32_t most, uint32_t *values, uint32_t *count)
{
    if (!json_is_array(list) || json_array_size(list) > most)
        return false;
    *count = (uint32_t)json_array_size(list);
    for (uint32_t i = 0; i < *count; i++) {
        const json_int_t value = json_integer_value(json_array_get(list, i));
        if (value < 1 || value > UINT32_MAX)
            return false;
        values[i] = (uint32_t)value;
    }
    return true;
}

/* What each of n codes becomes: one number of n is 1. */
static float *one_hot(uint32_t n)
{
    float *book = calloc((size_t)n * n, sizeof *book);
    for (uint32_t i = 0; book && i < n; i++)
        book[(size_t)i * n + i] = 1;
    return book;
}

static bool take_observation(const json_t *from, struct rm_env_observation *of, float **book)
{
    uint32_t codes;
    of->name = json_string_value(json_object_get(from, "name"));
    of->dtype = dtype_of(json_string_value(json_object_get(from, "dtype")));
    if (!of->name || !of->dtype || !take_whole(from, "codes", 256, &codes) ||
        !take_list(json_object_get(from, "shape"), RM_ENV_MAX_DIMS, of->shape, &of->dims) ||
        !take_real(from, "low", &of->low) || !take_real(from, "high", &of->high))
        return false;
    if (codes == 0)
        return true;
    of->dtype = RM_ENV_CODE8;
    of->codes = of->channels = codes;
    of->codebook = *book = one_hot(codes);
    return *book != NULL;
}

/* Several observations, each by a name. */
static bool take_observations(const json_t *list, struct rm_env_agent *agent, struct seen *seen)
{
    const size_t n = json_array_size(list);
    if (n > RM_ENV_MAX_OBSERVATIONS)
        return false;
    seen->observation = calloc(n, sizeof *seen->observation);
    agent->observation = seen->observation;
    agent->observations = seen->observation ? (uint32_t)n : 0;
    for (size_t i = 0; seen->observation && i < n; i++)
        if (!take_observation(json_array_get(list, i), &seen->observation[i], &seen->book[i]))
            return false;
    return seen->observation != NULL;
}

/* One, or several. */
static bool take_seen(const json_t *from, struct rm_env_agent *agent, struct seen *seen)
{
    const json_t *list = json_object_get(from, "observations");
    if (json_array_size(list))
        return take_observations(list, agent, seen);
    agent->dtype = dtype_of(json_string_value(json_object_get(from, "dtype")));
    return agent->dtype &&
           take_list(json_object_get(from, "shape"), RM_ENV_MAX_DIMS, agent->shape, &agent->dims) &&
           take_real(from, "low", &agent->low) && take_real(from, "high", &agent->high);
}

static bool take_agent(const json_t *from, struct rm_env_agent *agent, struct seen *seen,
                       struct rm_env_box **boxes)
{
    agent->name = json_string_value(json_object_get(from, "name"));
    return agent->name && take_seen(from, agent, seen) &&
           take_whole(from, "phase", AGENTS_MAX, &agent->phase) &&
           take_whole(from, "actions", UINT32_MAX, &agent->actions) &&
           take_whole(from, "has_mask", 1, &agent->has_mask) &&
           take_list(json_object_get(from, "choices"), RM_ENV_MAX_CHOICES, agent->choice_actions,
                     &agent->choices) &&
           rm_described_boxes(json_object_get(from, "boxes"), agent, boxes);
}

static bool take_figures(struct rm_python_spec *s)
{
    const json_t *names = json_object_get(s->text, "figures");
    const size_t n = json_array_size(names);
    if (!json_is_array(names) || n > RM_ENV_MAX_FIGURES)
        return false;
    s->spec.figures = (uint32_t)n;
    s->spec.figure = s->figure;
    for (size_t f = 0; f < n; f++)
        if (!(s->figure[f].name = json_string_value(json_array_get(names, f))))
            return false;
    return true;
}

static bool take_all(struct rm_python_spec *s, const char *name)
{
    const json_t *agents = json_object_get(s->text, "agents");
    const char *doc = json_string_value(json_object_get(s->text, "doc"));
    const size_t n = json_array_size(agents);
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->doc, sizeof s->doc, "%s", doc ? doc : "");
    rm_utf8_line(s->doc);
    s->spec = (struct rm_env_spec){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof s->spec,
        .name = s->name,
        .doc = s->doc,
        .agents = (uint32_t)n,
        .agent = s->agent,
        .score_low = NAN,
        .score_high = NAN,
        .score_random = NAN,
        .score_solved = NAN,
    };
    if (n < 1 || n > AGENTS_MAX || !take_whole(s->text, "phases", AGENTS_MAX, &s->spec.phases) ||
        !take_whole(s->text, "max_steps", UINT32_MAX, &s->spec.max_steps) ||
        !take_whole(s->text, "picture_width", UINT32_MAX, &s->spec.picture_width) ||
        !take_whole(s->text, "picture_height", UINT32_MAX, &s->spec.picture_height) ||
        !take_whole(s->text, "apart", 1, &s->apart) || !take_figures(s))
        return false;
    for (size_t a = 0; a < n; a++)
        if (!take_agent(json_array_get(agents, a), &s->agent[a], &s->seen[a], &s->box[a]))
            return false;
    return true;
}

int rm_python_spec_read(struct rm_python_spec **spec, const char *name, const char *text,
                        struct rm_error *error)
{
    struct rm_python_spec *s = calloc(1, sizeof *s);
    *spec = NULL;
    if (!s)
        return rm_fail(error, -ENOMEM, "no memory for the description of a world");
    s->text = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    int rc =
        s->text && take_all(s, name)
            ? rm_world_check_spec(s->name, &s->spec, error)
            : rm_fail(error, -EPROTO, "the Python worker's description of the world is malformed");
    if (rc < 0) {
        rm_python_spec_free(s);
        return rc;
    }
    *spec = s;
    return 0;
}

const struct rm_env_spec *rm_python_spec(const struct rm_python_spec *spec)
{
    return &spec->spec;
}

bool rm_python_spec_apart(const struct rm_python_spec *spec)
{
    return spec->apart && spec->spec.phases == 1;
}

const char *rm_python_spec_versions(const struct rm_python_spec *spec)
{
    const char *text = json_string_value(json_object_get(spec->text, "versions"));
    return text ? text : "";
}

void rm_python_spec_free(struct rm_python_spec *spec)
{
    if (!spec)
        return;
    for (size_t a = 0; a < AGENTS_MAX; a++) {
        for (size_t i = 0; i < RM_ENV_MAX_OBSERVATIONS; i++)
            free(spec->seen[a].book[i]);
        free(spec->seen[a].observation);
        free(spec->box[a]);
    }
    json_decref(spec->text);
    free(spec);
}
