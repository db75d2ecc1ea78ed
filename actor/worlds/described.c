#include "actor/worlds/described.h"

#include "config/json_memory.h"
#include "config/utf8.h"
#include "shm/board.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 256

struct rm_described {
    json_t *text; /* owns all strings */
    struct rm_env_spec spec;
    struct rm_env_agent *agent; /* [spec.agents] */
    float **codebook;           /* [spec.agents]: theirs, or NULL */
    struct rm_env_option_doc *options;
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
    WHOLE_OF(rm_env_spec, abi_version), WHOLE_OF(rm_env_spec, struct_size),
    WHOLE_OF(rm_env_spec, phases),      WHOLE_OF(rm_env_spec, max_steps),
    REAL_OF(rm_env_spec, score_low),    REAL_OF(rm_env_spec, score_high),
    REAL_OF(rm_env_spec, score_random), REAL_OF(rm_env_spec, score_solved),
};
static const struct member agent_members[] = {
    WHOLE_OF(rm_env_agent, phase),    WHOLE_OF(rm_env_agent, dtype),
    WHOLE_OF(rm_env_agent, dims),     REAL_OF(rm_env_agent, low),
    REAL_OF(rm_env_agent, high),      WHOLE_OF(rm_env_agent, codes),
    WHOLE_OF(rm_env_agent, channels), WHOLE_OF(rm_env_agent, actions),
    WHOLE_OF(rm_env_agent, has_mask), WHOLE_OF(rm_env_agent, choices),
};
static const struct member option_members[] = {
    REAL_OF(rm_env_option_doc, fallback),
    REAL_OF(rm_env_option_doc, low),
    REAL_OF(rm_env_option_doc, high),
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
static json_t *codebook_text(const struct rm_env_agent *agent)
{
    const size_t n = (size_t)agent->codes * agent->channels;
    char *text = malloc(n * 8 + 1);
    for (size_t i = 0; text && i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &agent->codebook[i], sizeof bits);
        snprintf(text + 8 * i, 9, "%08x", bits);
    }
    json_t *value = text ? json_string(text) : NULL;
    free(text);
    return value;
}

static json_t *agent_text(const struct rm_env_agent *agent)
{
    json_t *o = json_object();
    put_text(o, "name", agent->name);
    put_members(o, agent_members, COUNT(agent_members), agent);
    json_object_set_new(o, "shape", words(agent->shape, RM_ENV_MAX_DIMS));
    json_object_set_new(o, "choice_actions", words(agent->choice_actions, RM_ENV_MAX_CHOICES));
    if (agent->dtype == RM_ENV_CODE8)
        json_object_set_new(o, "codebook", codebook_text(agent));
    return o;
}

char *rm_described_write(const struct rm_world *world, const struct rm_env_spec *spec)
{
    const uint64_t mark = rm_json_failures();
    json_t *o = json_object(), *agents = json_array(), *options = json_array();
    put_text(o, "name", spec->name);
    put_text(o, "doc", spec->doc);
    put_members(o, spec_members, COUNT(spec_members), spec);
    for (uint32_t a = 0; a < spec->agents; a++)
        json_array_append_new(agents, agent_text(&spec->agent[a]));
    for (const struct rm_env_option_doc *d = world->ops->options; d && d->key; d++) {
        json_t *option = json_object();
        put_text(option, "key", d->key);
        put_text(option, "doc", d->doc);
        put_members(option, option_members, COUNT(option_members), d);
        json_array_append_new(options, option);
    }
    json_object_set_new(o, "agents", agents);
    json_object_set_new(o, "options", options);
    o = rm_json_whole(o, mark);
    char *text = o ? rm_json_dump(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

/* --- reading --------------------------------------------------------------------------------- */

/* What a world says of itself, for people: one line that changes nothing but what it says. */
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

static bool take_codebook(const json_t *from, struct rm_env_agent *agent, float **codebook)
{
    const json_t *value = json_object_get(from, "codebook");
    const char *text = json_string_value(value);
    const uint64_t n = (uint64_t)agent->codes * agent->channels;
    if (agent->codes > 256 || agent->channels > 256 || json_string_length(value) != n * 8)
        return false;
    float *book = calloc(n ? n : 1, sizeof *book);
    agent->codebook = *codebook = book;
    for (uint64_t i = 0; book && i < n; i++) {
        char digits[9], *end;
        memcpy(digits, text + 8 * i, 8);
        digits[8] = '\0';
        const uint32_t bits = (uint32_t)strtoul(digits, &end, 16);
        if (*end)
            return false;
        memcpy(&book[i], &bits, sizeof bits);
    }
    return book != NULL;
}

static bool take_agent(const json_t *from, struct rm_env_agent *agent, float **codebook)
{
    agent->name = json_string_value(json_object_get(from, "name"));
    return take_members(from, agent_members, COUNT(agent_members), agent) &&
           take_words(json_object_get(from, "shape"), agent->shape, RM_ENV_MAX_DIMS) &&
           take_words(json_object_get(from, "choice_actions"), agent->choice_actions,
                      RM_ENV_MAX_CHOICES) &&
           (agent->dtype != RM_ENV_CODE8 || take_codebook(from, agent, codebook));
}

static bool take_options(struct rm_described *d, const json_t *list)
{
    const size_t n = json_array_size(list);
    if (n > OPTIONS_MAX)
        return false;
    d->options = calloc(n + 1, sizeof *d->options);
    for (size_t i = 0; d->options && i < n; i++) {
        json_t *from = json_array_get(list, i);
        d->options[i].key = json_string_value(json_object_get(from, "key"));
        d->options[i].doc = take_line(from, "doc");
        if (!d->options[i].key || !rm_name_valid(d->options[i].key) ||
            !take_members(from, option_members, COUNT(option_members), &d->options[i]))
            return false;
    }
    return d->options != NULL;
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
    d->codebook = calloc(n ? n : 1, sizeof *d->codebook);
    if (!d->agent || !d->codebook)
        return false;
    d->spec.agents = (uint32_t)n;
    d->spec.agent = d->agent;
    for (size_t a = 0; a < n; a++)
        if (!take_agent(json_array_get(agents, a), &d->agent[a], &d->codebook[a]))
            return false;
    return take_options(d, json_object_get(d->text, "options"));
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
        free(d->codebook[a]);
    free(d->codebook);
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

static bool agents_alike(const struct rm_env_agent *a, const struct rm_env_agent *b)
{
    for (size_t i = 0; i < COUNT(agent_members); i++) {
        const struct member *m = &agent_members[i];
        const void *x = (const char *)a + m->offset, *y = (const char *)b + m->offset;
        if (memcmp(x, y, m->kind == WHOLE ? sizeof(uint32_t) : sizeof(double)) != 0)
            return false;
    }
    const size_t book = (size_t)a->codes * a->channels * sizeof(float);
    return strcmp(a->name, b->name) == 0 &&
           memcmp(a->shape, b->shape, a->dims * sizeof *a->shape) == 0 &&
           (a->choices <= 1 || memcmp(a->choice_actions, b->choice_actions,
                                      a->choices * sizeof *a->choice_actions) == 0) &&
           (a->dtype != RM_ENV_CODE8 || memcmp(a->codebook, b->codebook, book) == 0);
}

bool rm_described_alike(const struct rm_env_spec *a, const struct rm_env_spec *b)
{
    bool same = a->agents == b->agents && a->phases == b->phases;
    for (uint32_t i = 0; same && i < a->agents; i++)
        same = agents_alike(&a->agent[i], &b->agent[i]);
    return same;
}

/* --- either ---------------------------------------------------------------------------------- */

int rm_world_spec_open(struct rm_world_spec *s, const struct rm_world_config *config, uint64_t seed,
                       struct rm_error *error)
{
    *s = (struct rm_world_spec){.spec = NULL};
    if (config->description) {
        int rc = rm_described_read(&s->described, config->description, error);
        if (rc < 0 || !s->described)
            return rm_fail_within(error, rc, "world.library: \"%s\"", config->library);
        s->spec = rm_described_spec(s->described);
        s->options = rm_described_options(s->described);
        return 0;
    }
    int rc = rm_world_open(&s->world, config->name, config->library, error);
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

void rm_world_spec_close(struct rm_world_spec *s)
{
    rm_described_free(s->described);
    if (s->env)
        s->world.ops->close(s->env);
    rm_world_close(&s->world);
    *s = (struct rm_world_spec){.spec = NULL};
}
