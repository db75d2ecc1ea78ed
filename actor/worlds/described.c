#include "actor/worlds/described.h"

#include "actor/worlds/bridges/python.h"
#include "actor/worlds/options.h"
#include "config/curriculum.h"
#include "config/json_memory.h"
#include "config/utf8.h"
#include "learner/net/features.h"
#include "shm/base/float_word.h"
#include "shm/board.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rm_described {
    json_t *text; /* owns all strings */
    struct rm_env_spec spec;
    struct rm_env_agent *agent;                  /* [spec.agents] */
    struct rm_env_observation **observation;     /* [spec.agents]: theirs, or NULL */
    float *(*codebook)[RM_ENV_MAX_OBSERVATIONS]; /* [spec.agents]: of their observations, or NULL */
    struct rm_env_box **box; /* [spec.agents]: theirs, with their bounds, or NULL */
    struct rm_env_option_doc *options;
    const char ***words; /* [options]: theirs, or NULL; ends with `options` */
    size_t option_count;
    struct rm_env_figure *figures; /* [spec.figures] */
    const char ***figure_words;    /* [spec.figures]: theirs, or NULL */
};

/* Members that are numbers, as they are named in the text. */
enum kind { WHOLE, REAL };
struct member {
    const char *name;
    enum kind kind;
    size_t offset;
};
#define WHOLE_OF(type, name)                                                                       \
    {                                                                                              \
#name, WHOLE, offsetof(struct type, name)                                                  \
    }
#define REAL_OF(type, name)                                                                        \
    {                                                                                              \
#name, REAL, offsetof(struct type, name)                                                   \
    }

static const struct member spec_members[] = {
    WHOLE_OF(rm_env_spec, abi_version),   WHOLE_OF(rm_env_spec, struct_size),
    WHOLE_OF(rm_env_spec, phases),        WHOLE_OF(rm_env_spec, max_steps),
    REAL_OF(rm_env_spec, score_low),      REAL_OF(rm_env_spec, score_high),
    REAL_OF(rm_env_spec, score_random),   REAL_OF(rm_env_spec, score_solved),
    WHOLE_OF(rm_env_spec, picture_width), WHOLE_OF(rm_env_spec, picture_height),
};
static const struct member agent_members[] = {
    WHOLE_OF(rm_env_agent, phase),    WHOLE_OF(rm_env_agent, dtype),
    WHOLE_OF(rm_env_agent, dims),     REAL_OF(rm_env_agent, low),
    REAL_OF(rm_env_agent, high),      WHOLE_OF(rm_env_agent, codes),
    WHOLE_OF(rm_env_agent, channels), WHOLE_OF(rm_env_agent, actions),
    WHOLE_OF(rm_env_agent, has_mask), WHOLE_OF(rm_env_agent, choices),
};
static const struct member observation_members[] = {
    WHOLE_OF(rm_env_observation, dtype),   WHOLE_OF(rm_env_observation, dims),
    REAL_OF(rm_env_observation, low),      REAL_OF(rm_env_observation, high),
    WHOLE_OF(rm_env_observation, codes),   WHOLE_OF(rm_env_observation, channels),
    WHOLE_OF(rm_env_observation, counted),
};
static const struct member option_members[] = {
    REAL_OF(rm_env_option_doc, fallback), REAL_OF(rm_env_option_doc, low),
    REAL_OF(rm_env_option_doc, high),     WHOLE_OF(rm_env_option_doc, type),
    WHOLE_OF(rm_env_option_doc, most),
};
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* --- writing --------------------------------------------------------------------------------- */

/* Infinite ones, and none, have no JSON. */
static json_t *exact(double value)
{
    char text[40];
    snprintf(text, sizeof text, "%a", value);
    return json_string(text);
}

static void put_members(json_t *to, const struct member *members, size_t n, const void *from)
{
    for (size_t i = 0; i < n; i++) {
        const void *at = (const char *)from + members[i].offset;
        json_object_set_new(to, members[i].name,
                            members[i].kind == WHOLE ? json_integer(*(const uint32_t *)at)
                                                     : exact(*(const double *)at));
    }
}

static void put_text(json_t *to, const char *name, const char *text)
{
    if (text)
        json_object_set_new(to, name, json_string(text));
}

static json_t *words(const uint32_t *values, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

/* Eight digits a float, so that it stays the same to the bit. */
static json_t *floats_text(const float *floats, size_t n)
{
    char *text = malloc(n * 8 + 1);
    for (size_t i = 0; text && i < n; i++)
        snprintf(text + 8 * i, 9, "%08x", (uint32_t)rm_word_of_float(floats[i]));
    json_t *value = text ? json_string(text) : NULL;
    free(text);
    return value;
}

static json_t *boxes_text(const struct rm_env_agent *agent)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < agent->boxes; i++) {
        const struct rm_env_box *box = &agent->box[i];
        json_t *o = json_object();
        put_text(o, "name", box->name);
        json_object_set_new(o, "low", floats_text(box->low, box->values));
        json_object_set_new(o, "high", floats_text(box->high, box->values));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *observation_text(const struct rm_env_observation *of)
{
    json_t *o = json_object();
    put_text(o, "name", of->name);
    put_members(o, observation_members, COUNT(observation_members), of);
    json_object_set_new(o, "shape", words(of->shape, RM_ENV_MAX_DIMS));
    if (of->dtype == RM_ENV_CODE8)
        json_object_set_new(o, "codebook",
                            floats_text(of->codebook, (size_t)of->codes * of->channels));
    return o;
}

static json_t *agent_text(const struct rm_env_agent *agent)
{
    json_t *o = json_object(), *observations = json_array();
    put_text(o, "name", agent->name);
    put_members(o, agent_members, COUNT(agent_members), agent);
    json_object_set_new(o, "shape", words(agent->shape, RM_ENV_MAX_DIMS));
    json_object_set_new(o, "choice_actions", words(agent->choice_actions, RM_ENV_MAX_CHOICES));
    for (uint32_t i = 0; i < agent->observations; i++)
        json_array_append_new(observations, observation_text(&agent->observation[i]));
    json_object_set_new(o, "observations", observations);
    if (!agent->observations && agent->dtype == RM_ENV_CODE8)
        json_object_set_new(o, "codebook",
                            floats_text(agent->codebook, (size_t)agent->codes * agent->channels));
    if (agent->boxes)
        json_object_set_new(o, "boxes", boxes_text(agent));
    return o;
}

static json_t *texts(const char *const *from)
{
    json_t *list = json_array();
    for (; *from; from++)
        json_array_append_new(list, json_string(*from));
    return list;
}

char *rm_described_write(const struct rm_world *world, const struct rm_env_spec *spec)
{
    const uint64_t mark = rm_json_failures();
    json_t *o = json_object(), *agents = json_array(), *options = json_array();
    json_t *figures = json_array();
    put_text(o, "name", spec->name);
    put_text(o, "doc", spec->doc);
    put_members(o, spec_members, COUNT(spec_members), spec);
    for (uint32_t a = 0; a < spec->agents; a++)
        json_array_append_new(agents, agent_text(&spec->agent[a]));
    for (const struct rm_env_option_doc *d = world->ops->options; d && d->key; d++) {
        json_t *option = json_object();
        put_text(option, "key", d->key);
        put_text(option, "doc", d->doc);
        put_text(option, "fallback_text", d->fallback_text);
        put_members(option, option_members, COUNT(option_members), d);
        if (d->words)
            json_object_set_new(option, "words", texts(d->words));
        json_array_append_new(options, option);
    }
    for (uint32_t f = 0; f < spec->figures; f++) {
        json_t *figure = json_object();
        put_text(figure, "name", spec->figure[f].name);
        put_text(figure, "doc", spec->figure[f].doc);
        if (spec->figure[f].words)
            json_object_set_new(figure, "words", texts(spec->figure[f].words));
        json_array_append_new(figures, figure);
    }
    json_object_set_new(o, "agents", agents);
    json_object_set_new(o, "options", options);
    json_object_set_new(o, "figures", figures);
    o = rm_json_whole(o, mark);
    char *text = o ? rm_json_dump(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

/* --- reading --------------------------------------------------------------------------------- */

/* A text of the world for people, as one printable line. */
static const char *take_line(json_t *from, const char *name)
{
    char line[1024];
    const char *said = json_string_value(json_object_get(from, name));
    if (!said)
        return NULL;
    snprintf(line, sizeof line, "%s", said);
    rm_utf8_line(line);
    json_object_set_new(from, name, json_string(line));
    return json_string_value(json_object_get(from, name));
}

static bool take_members(const json_t *from, const struct member *members, size_t n, void *to)
{
    for (size_t i = 0; i < n; i++) {
        void *at = (char *)to + members[i].offset;
        const json_t *value = json_object_get(from, members[i].name);
        const json_int_t whole = json_integer_value(value);
        const char *text = json_string_value(value);
        char *end = NULL;
        if (members[i].kind == WHOLE) {
            if (!json_is_integer(value) || whole < 0 || whole > UINT32_MAX)
                return false;
            *(uint32_t *)at = (uint32_t)whole;
        } else {
            if (!text)
                return false;
            *(double *)at = strtod(text, &end);
            if (end == text || *end)
                return false;
        }
    }
    return true;
}

static bool take_words(const json_t *list, uint32_t *values, uint32_t n)
{
    if (json_array_size(list) != n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const json_int_t value = json_integer_value(json_array_get(list, i));
        if (value < 0 || value > UINT32_MAX)
            return false;
        values[i] = (uint32_t)value;
    }
    return true;
}

static bool take_floats(const json_t *value, float *floats, size_t n)
{
    const char *text = json_string_value(value);
    if (json_string_length(value) != n * 8)
        return false;
    for (size_t i = 0; i < n; i++) {
        char digits[9], *end;
        memcpy(digits, text + 8 * i, 8);
        digits[8] = '\0';
        const uint32_t bits = (uint32_t)strtoul(digits, &end, 16);
        if (*end)
            return false;
        floats[i] = rm_float_of_word((int32_t)bits);
    }
    return true;
}

/* The floats, or NULL. */
static float *take_codebook(const json_t *from, uint32_t codes, uint32_t channels)
{
    const size_t n = (size_t)codes * channels;
    float *book = codes > 256 || channels > 256 ? NULL : calloc(n ? n : 1, sizeof *book);
    if (book && take_floats(json_object_get(from, "codebook"), book, n))
        return book;
    free(book);
    return NULL;
}

static bool take_observation(const json_t *from, struct rm_env_observation *of, float **codebook)
{
    of->name = json_string_value(json_object_get(from, "name"));
    if (!take_members(from, observation_members, COUNT(observation_members), of) ||
        !take_words(json_object_get(from, "shape"), of->shape, RM_ENV_MAX_DIMS))
        return false;
    if (of->dtype == RM_ENV_CODE8)
        of->codebook = *codebook = take_codebook(from, of->codes, of->channels);
    return of->dtype != RM_ENV_CODE8 || *codebook;
}

static bool take_observations(const json_t *list, struct rm_env_agent *agent,
                              struct rm_env_observation **observation, float **codebook)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n > RM_ENV_MAX_OBSERVATIONS)
        return false;
    agent->observations = (uint32_t)n;
    if (n == 0)
        return true;
    agent->observation = *observation = calloc(n, sizeof **observation);
    for (size_t i = 0; *observation && i < n; i++)
        if (!take_observation(json_array_get(list, i), &(*observation)[i], &codebook[i]))
            return false;
    return *observation != NULL;
}

bool rm_described_boxes(const json_t *list, struct rm_env_agent *agent, struct rm_env_box **boxes)
{
    const size_t n = json_array_size(list);
    size_t values = 0;
    for (size_t i = 0; i < n; i++)
        values += json_string_length(json_object_get(json_array_get(list, i), "low")) / 8;
    if (n == 0)
        return true;
    struct rm_env_box *box = *boxes = calloc(1, n * sizeof *box + 2 * values * sizeof(float));
    float *bounds = (float *)(void *)(box + n);
    agent->box = box;
    agent->boxes = box ? (uint32_t)n : 0;
    for (size_t i = 0; box && i < n; i++) {
        const json_t *from = json_array_get(list, i), *low = json_object_get(from, "low");
        const size_t own = json_string_length(low) / 8;
        box[i].name = json_string_value(json_object_get(from, "name"));
        box[i].values = (uint32_t)own;
        box[i].low = bounds;
        box[i].high = bounds + own;
        if (!take_floats(low, bounds, own) ||
            !take_floats(json_object_get(from, "high"), bounds + own, own))
            return false;
        bounds += 2 * own;
    }
    return box;
}

static bool take_agent(struct rm_described *d, uint32_t a, const json_t *from)
{
    struct rm_env_agent *agent = &d->agent[a];
    float **codebook = d->codebook[a];
    agent->name = json_string_value(json_object_get(from, "name"));
    if (!take_members(from, agent_members, COUNT(agent_members), agent) ||
        !take_words(json_object_get(from, "shape"), agent->shape, RM_ENV_MAX_DIMS) ||
        !take_words(json_object_get(from, "choice_actions"), agent->choice_actions,
                    RM_ENV_MAX_CHOICES) ||
        !rm_described_boxes(json_object_get(from, "boxes"), agent, &d->box[a]) ||
        !take_observations(json_object_get(from, "observations"), agent, &d->observation[a],
                           codebook))
        return false;
    if (agent->observations || agent->dtype != RM_ENV_CODE8)
        return true;
    agent->codebook = *codebook = take_codebook(from, agent->codes, agent->channels);
    return *codebook != NULL;
}

/* Texts of a list, ending with NULL, owned by the list; NULL: there are too many, one that is none,
 * or no memory. */
static const char **take_texts(const json_t *list, size_t most)
{
    const size_t n = json_array_size(list);
    const char **to = json_is_array(list) && n <= most ? calloc(n + 1, sizeof *to) : NULL;
    for (size_t i = 0; to && i < n; i++) {
        to[i] = json_string_value(json_array_get(list, i));
        if (!to[i]) {
            free(to);
            return NULL;
        }
    }
    return to;
}

static bool take_option(const json_t *from, struct rm_env_option_doc *option, const char ***words)
{
    json_t *list = json_object_get(from, "words");
    option->key = json_string_value(json_object_get(from, "key"));
    option->doc = take_line((json_t *)from, "doc");
    option->fallback_text = take_line((json_t *)from, "fallback_text");
    if (list && !(option->words = *words = take_texts(list, RM_OPTIONS_MAX)))
        return false;
    return option->key && take_members(from, option_members, COUNT(option_members), option);
}

static bool take_options(struct rm_described *d, const json_t *list)
{
    struct rm_error error;
    const size_t n = json_array_size(list);
    if (n > RM_OPTIONS_MAX)
        return false;
    d->options = calloc(n + 1, sizeof *d->options);
    d->words = calloc(n + 1, sizeof *d->words);
    d->option_count = d->words ? n : 0;
    for (size_t i = 0; d->options && d->words && i < n; i++)
        if (!take_option(json_array_get(list, i), &d->options[i], &d->words[i]))
            return false;
    return d->options && d->words && rm_options_check_table("", d->options, &error) == 0;
}

static bool take_figures(struct rm_described *d, const json_t *list)
{
    const size_t n = json_array_size(list);
    if (n > RM_ENV_MAX_FIGURES)
        return false;
    d->figures = calloc(n + 1, sizeof *d->figures);
    d->figure_words = calloc(n + 1, sizeof *d->figure_words);
    if (!d->figures || !d->figure_words)
        return false;
    d->spec.figures = (uint32_t)n;
    d->spec.figure = d->figures;
    for (size_t f = 0; f < n; f++) {
        json_t *from = json_array_get(list, f), *words = json_object_get(from, "words");
        d->figures[f].name = json_string_value(json_object_get(from, "name"));
        d->figures[f].doc = take_line(from, "doc");
        if (words &&
            !(d->figures[f].words = d->figure_words[f] = take_texts(words, RM_ENV_MAX_WORDS)))
            return false;
    }
    return true;
}

static bool take_all(struct rm_described *d)
{
    const json_t *agents = json_object_get(d->text, "agents");
    const size_t n = json_array_size(agents);
    d->spec.name = json_string_value(json_object_get(d->text, "name"));
    d->spec.doc = take_line(d->text, "doc");
    if (!d->spec.name || !rm_name_valid(d->spec.name) || n > 65536 ||
        !take_members(d->text, spec_members, COUNT(spec_members), &d->spec))
        return false;
    d->agent = calloc(n ? n : 1, sizeof *d->agent);
    d->observation = calloc(n ? n : 1, sizeof(struct rm_env_observation *));
    d->codebook = calloc(n ? n : 1, sizeof *d->codebook);
    d->box = calloc(n ? n : 1, sizeof(struct rm_env_box *));
    if (!d->agent || !d->observation || !d->codebook || !d->box)
        return false;
    d->spec.agents = (uint32_t)n;
    d->spec.agent = d->agent;
    for (size_t a = 0; a < n; a++)
        if (!take_agent(d, (uint32_t)a, json_array_get(agents, a)))
            return false;
    return take_figures(d, json_object_get(d->text, "figures")) &&
           take_options(d, json_object_get(d->text, "options"));
}

int rm_described_read(struct rm_described **described, const char *text, struct rm_error *error)
{
    struct rm_described *d = calloc(1, sizeof *d);
    json_error_t where;
    *described = NULL;
    if (!d)
        return rm_fail(error, -ENOMEM, "no memory for the description of a world");
    d->text = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    int rc = d->text && take_all(d)
                 ? rm_world_check_spec(d->spec.name, &d->spec, error)
                 : rm_fail(error, -EPROTO,
                           "the description of a world is damaged, or of another "
                           "version");
    if (rc < 0) {
        rm_described_free(d);
        return rc;
    }
    *described = d;
    return 0;
}

void rm_described_free(struct rm_described *d)
{
    if (!d)
        return;
    for (uint32_t a = 0; d->codebook && a < d->spec.agents; a++)
        for (uint32_t i = 0; i < RM_ENV_MAX_OBSERVATIONS; i++)
            free(d->codebook[a][i]);
    for (uint32_t a = 0; d->codebook && a < d->spec.agents; a++)
        free(d->observation[a]);
    free(d->observation);
    for (uint32_t a = 0; d->box && a < d->spec.agents; a++)
        free(d->box[a]);
    for (size_t i = 0; i < d->option_count; i++)
        free(d->words[i]);
    for (uint32_t f = 0; d->figure_words && f < d->spec.figures; f++)
        free(d->figure_words[f]);
    free(d->figures);
    free(d->figure_words);
    free(d->words);
    free(d->codebook);
    free(d->box);
    free(d->agent);
    free(d->options);
    json_decref(d->text);
    free(d);
}

const struct rm_env_spec *rm_described_spec(const struct rm_described *described)
{
    return &described->spec;
}

const struct rm_env_option_doc *rm_described_options(const struct rm_described *described)
{
    return described->options;
}

/* --- comparing ------------------------------------------------------------------------------- */

static bool members_alike(const struct member *members, size_t n, const void *a, const void *b)
{
    for (size_t i = 0; i < n; i++) {
        const void *x = (const char *)a + members[i].offset,
                   *y = (const char *)b + members[i].offset;
        if (memcmp(x, y, members[i].kind == WHOLE ? sizeof(uint32_t) : sizeof(double)) != 0)
            return false;
    }
    return true;
}

static bool observations_alike(const struct rm_env_observation *a,
                               const struct rm_env_observation *b)
{
    const size_t book = (size_t)a->codes * a->channels * sizeof(float);
    return members_alike(observation_members, COUNT(observation_members), a, b) &&
           (!a->name || strcmp(a->name, b->name) == 0) &&
           memcmp(a->shape, b->shape, a->dims * sizeof *a->shape) == 0 &&
           (a->dtype != RM_ENV_CODE8 || memcmp(a->codebook, b->codebook, book) == 0);
}

static bool agents_alike(const struct rm_env_agent *a, const struct rm_env_agent *b)
{
    bool same = members_alike(agent_members, COUNT(agent_members), a, b) &&
                a->observations == b->observations && strcmp(a->name, b->name) == 0 &&
                rm_env_boxes_alike(a, b) &&
                (a->choices <= 1 || memcmp(a->choice_actions, b->choice_actions,
                                           a->choices * sizeof *a->choice_actions) == 0);
    for (uint32_t i = 0; same && i < rm_features_observations(a); i++) {
        const struct rm_env_observation x = rm_features_observation(a, i),
                                        y = rm_features_observation(b, i);
        same = observations_alike(&x, &y);
    }
    return same;
}

static bool figures_alike(const struct rm_env_figure *a, const struct rm_env_figure *b)
{
    const uint32_t words = rm_env_figure_words(a);
    bool same = strcmp(a->name, b->name) == 0 && words == rm_env_figure_words(b);
    for (uint32_t i = 0; same && i < words; i++)
        same = strcmp(a->words[i], b->words[i]) == 0;
    return same;
}

bool rm_described_alike(const struct rm_env_spec *a, const struct rm_env_spec *b)
{
    bool same = a->agents == b->agents && a->phases == b->phases && a->figures == b->figures;
    for (uint32_t f = 0; same && f < a->figures; f++)
        same = figures_alike(&a->figure[f], &b->figure[f]);
    for (uint32_t i = 0; same && i < a->agents; i++)
        same = agents_alike(&a->agent[i], &b->agent[i]);
    return same;
}

/* --- either ---------------------------------------------------------------------------------- */

/* The world itself. */
static int open_world(struct rm_world_spec *s, const struct rm_world_config *config, uint64_t seed,
                      struct rm_error *error)
{
    int rc = rm_world_open_configured(&s->world, config, error);
    if (rc < 0)
        return rc;
    rc = rm_world_create(&s->world, config, seed, 0, 1, &s->env, error);
    if (rc < 0) {
        rm_world_close(&s->world);
        return rc;
    }
    s->spec = s->world.ops->describe(s->env);
    s->options = s->world.ops->options;
    return 0;
}

int rm_world_spec_open(struct rm_world_spec *s, const struct rm_world_config *config, uint64_t seed,
                       struct rm_error *error)
{
    *s = (struct rm_world_spec){.spec = NULL};
    if (config->description) {
        int rc = rm_described_read(&s->described, config->description, error);
        if (rc < 0 || !s->described)
            return rm_fail_within(error, rc, "%s: \"%s\"", rm_world_source(config).key,
                                  rm_world_source(config).value);
        s->spec = rm_described_spec(s->described);
        s->options = rm_described_options(s->described);
        return 0;
    }
    return open_world(s, config, seed, error);
}

void rm_world_spec_close(struct rm_world_spec *s)
{
    rm_described_free(s->described);
    if (s->env)
        s->world.ops->close(s->env);
    rm_world_close(&s->world);
    *s = (struct rm_world_spec){.spec = NULL};
}

/* Would a world of this configuration look like the one that is trained in? */
static int check_alike(const struct rm_experiment *experiment, struct rm_world_config *config,
                       const struct rm_env_spec *spec, struct rm_error *error)
{
    struct rm_world_spec world = {.spec = NULL};
    if (!strcmp(config->options, experiment->world.options))
        return 0;
    /* A Python world gets the list of figures: those that it finds by playing depend on chance. */
    const struct rm_world python = {.ops = &rm_python_ops};
    config->description = config->python[0] ? rm_described_write(&python, spec) : NULL;
    int rc = open_world(&world, config, experiment->seed, error);
    free(config->description);
    if (rc < 0)
        return rc;
    if (!rm_described_alike(world.spec, spec))
        rc = rm_fail(error, -EINVAL,
                     "world '%s' has other observations or actions with them than in training",
                     spec->name);
    rm_world_spec_close(&world);
    return rc;
}

int rm_world_check_evaluation(const struct rm_experiment *experiment,
                              const struct rm_env_spec *spec, struct rm_error *error)
{
    struct rm_world_config *config = malloc(sizeof *config);
    int rc = config ? rm_options_evaluation_world(experiment, config) : -ENOMEM;
    if (rc < 0)
        rm_fail(error, rc, "evaluation.options: no memory, or too long with world.options");
    else if ((rc = check_alike(experiment, config, spec, error)) < 0)
        rm_fail_within(error, rc, "evaluation.options");
    for (uint32_t i = 0; rc == 0 && i < experiment->curriculum.stages; i++) {
        rc = rm_curriculum_world(experiment, i, config);
        if (rc < 0)
            rm_fail(error, rc, "no memory, or too long with world.options");
        else
            rc = check_alike(experiment, config, spec, error);
        if (rc < 0)
            rm_fail_within(error, rc, "curriculum[%u].options", i);
    }
    free(config);
    return rc;
}
