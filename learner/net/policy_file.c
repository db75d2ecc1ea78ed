#include "learner/net/policy_file.h"

#include "config/json_memory.h"
#include "config/json_value.h"
#include "config/config.h"
#include "config/schema.h"
#include "config/traits.h"
#include "learner/net/features.h"
#include "learner/net/parts.h"
#include "learner/net/reals.h"
#include "learner/net/safetensors.h"
#include "shm/base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const dtype_names[] = {
    [RM_ENV_U8] = "u8",   [RM_ENV_I8] = "i8",   [RM_ENV_I16] = "i16",
    [RM_ENV_I32] = "i32", [RM_ENV_F32] = "f32", [RM_ENV_CODE8] = "code8",
};

static void set_number(json_t *object, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_object_set_new(object, key, json_string(text));
}

/* Consumes `value` and stores it as JSON text. */
static void set_json(json_t *object, const char *key, json_t *value)
{
    char *text = rm_json_dump(value, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_object_set_new(object, key, json_string(text ? text : "null"));
    free(text);
    json_decref(value);
}

static json_t *observation(const struct rm_env_observation *of)
{
    json_t *o = json_object(), *shape = json_array();
    const uint32_t elements = rm_observation_elements(of);
    json_object_set_new(o, "dtype", json_string(dtype_names[of->dtype]));
    for (uint32_t d = 0; d < of->dims; d++)
        json_array_append_new(shape, json_integer(of->shape[d]));
    json_object_set_new(o, "shape", shape);
    json_object_set_new(o, "low", rm_json_finite(of->low));
    json_object_set_new(o, "high", rm_json_finite(of->high));
    json_object_set_new(
        o, "features",
        json_integer(of->dtype == RM_ENV_CODE8 ? elements * of->channels : elements));
    if (of->dtype != RM_ENV_CODE8)
        return o;
    json_t *book = json_array();
    for (uint32_t k = 0; k < of->codes; k++) {
        json_t *row = json_array();
        for (uint32_t c = 0; c < of->channels; c++)
            json_array_append_new(row, json_real((double)of->codebook[k * of->channels + c]));
        json_array_append_new(book, row);
    }
    json_object_set_new(o, "codes", json_integer(of->codes));
    json_object_set_new(o, "channels", json_integer(of->channels));
    json_object_set_new(o, "codebook", book);
    return o;
}

/* Of an agent that has a list of them, in its order; otherwise empty. */
static json_t *observations(const struct rm_env_agent *agent)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < agent->observations; i++) {
        json_t *o = observation(&agent->observation[i]);
        json_object_set_new(o, "name", json_string(agent->observation[i].name));
        json_object_set_new(o, "counted", json_boolean(agent->observation[i].counted));
        json_array_append_new(list, o);
    }
    return list;
}

/* What the agent sees: "observation", or "observations" where it has a list of them. */
static void set_observations(json_t *m, const struct rm_env_agent *agent)
{
    const struct rm_env_observation first = rm_features_observation(agent, 0);
    if (agent->observations)
        set_json(m, "observations", observations(agent));
    else
        set_json(m, "observation", observation(&first));
}

/* Actions of each choice of an agent with several choices; otherwise empty. */
static json_t *choices(const struct rm_env_agent *agent)
{
    json_t *list = json_array();
    for (uint32_t c = 0; c < agent->choices && agent->choices > 1; c++)
        json_array_append_new(list, json_integer(agent->choice_actions[c]));
    return list;
}

/* The real numbers of an action: their bounds, and how the network's output encodes them. */
static json_t *reals(const struct rm_policy_file *p)
{
    json_t *low = json_array(), *high = json_array();
    for (uint32_t i = 0; i < p->agent->boxes; i++)
        for (uint32_t v = 0; v < p->agent->box[i].values; v++) {
            json_array_append_new(low, json_real((double)p->agent->box[i].low[v]));
            json_array_append_new(high, json_real((double)p->agent->box[i].high[v]));
        }
    json_t *o = json_object();
    json_object_set_new(o, "low", low);
    json_object_set_new(o, "high", high);
    json_object_set_new(o, "bound",
                        json_string(rm_bounds_by_tanh(p->experiment) ? "tanh" : "clip"));
    json_object_set_new(o, "deviation",
                        json_string(rm_deviation_of_state(p->experiment) ? "state" : "parameter"));
    return o;
}

/* What a network of histories takes and gives (learner/net/history.h). */
static json_t *history(const struct rm_net_shape *shape)
{
    return json_pack("{sisisisi}", "places", (int)shape->dim[0], "width", (int)shape->dim[1],
                     "queries", (int)shape->history.queries, "types", (int)shape->history.types);
}

/* Quantiles of the network's output; 1 for an output without quantiles. */
static uint32_t quantiles(const struct rm_policy_file *p)
{
    const struct rm_experiment *e = p->experiment;
    return rm_net_uses_quantiles(p->net) || rm_algorithm_traits(e->algorithm.name)->quantiles
               ? e->algorithm.quantiles
               : 1;
}

static json_t *make_metadata(const struct rm_policy_file *p)
{
    const struct rm_experiment *e = p->experiment;
    json_t *m = json_object(), *config = rm_config_to_json(e);
    json_object_set_new(m, "format", json_string(RM_POLICY_FORMAT));
    json_object_set_new(m, "experiment", json_string(e->name));
    json_object_set_new(m, "policy", json_string(p->policy));
    json_object_set_new(m, "algorithm", json_string(rm_algorithm_names[e->algorithm.name]));
    set_json(m, "world", json_deep_copy(json_object_get(config, "world")));
    set_json(m, "network", json_deep_copy(json_object_get(config, "network")));
    set_observations(m, p->agent);
    set_number(m, "quantiles", quantiles(p));
    set_number(m, "acting_quantiles", e->actor.quantiles);
    set_number(m, "frame_stack", e->sample.frame_stack);
    set_number(m, "actions", p->agent->actions);
    set_json(m, "choices", choices(p->agent));
    if (p->agent->boxes)
        set_json(m, "reals", reals(p));
    if (p->net->shape.history.queries)
        set_json(m, "history", history(&p->net->shape));
    set_number(m, "masks", p->agent->has_mask);
    set_number(m, "seed", e->seed);
    set_number(m, "updates", p->updates);
    set_number(m, "env_steps", p->env_steps);
    json_decref(config);
    return m;
}

int rm_policy_file_write(const struct rm_policy_file *p, const char *directory,
                         struct rm_error *error)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s.safetensors", directory, p->policy) >= (int)sizeof path)
        return rm_fail(error, -ENAMETOOLONG, "%s/%s: path too long", directory, p->policy);
    int rc = rm_file_folder(directory, true, NULL, error);
    if (rc < 0)
        return rc;
    close(rc);
    const struct rm_net_tensor *from;
    const size_t count = rm_net_tensors(p->net, &from);
    struct rm_tensor *tensors = calloc(count, sizeof *tensors);
    if (!tensors)
        return rm_fail(error, -ENOMEM, "%s: no memory for %zu tensors", path, count);
    for (size_t i = 0; i < count; i++) {
        tensors[i].name = from[i].name;
        tensors[i].dims = from[i].dims;
        for (uint32_t d = 0; d < from[i].dims; d++)
            tensors[i].shape[d] = from[i].shape[d];
        tensors[i].data = p->params + from[i].offset;
    }
    json_t *metadata = make_metadata(p);
    rc = rm_safetensors_write(path, tensors, count, metadata, error);
    json_decref(metadata);
    free(tensors);
    return rc;
}

/* --- reading --------------------------------------------------------------------------------- */

static int open_policy(struct rm_safetensors *file, const char *path, struct rm_error *error)
{
    int rc = rm_safetensors_read(file, path, error);
    if (rc)
        return rc;
    const json_t *metadata = json_object_get(file->header, "__metadata__");
    const char *format = json_string_value(json_object_get(metadata, "format"));
    if (format && !strcmp(format, RM_POLICY_FORMAT))
        return 0;
    rm_safetensors_close(file);
    return rm_fail(error, -EPROTO, "%s: is not a policy file: its format must be " RM_POLICY_FORMAT,
                   path);
}

int rm_policy_file_facts(const char *path, struct rm_policy_file_facts *facts,
                         struct rm_error *error)
{
    struct rm_safetensors file;
    int rc = open_policy(&file, path, error);
    if (rc)
        return rc;
    const json_t *metadata = json_object_get(file.header, "__metadata__");
    const char *policy = json_string_value(json_object_get(metadata, "policy"));
    const char *steps = json_string_value(json_object_get(metadata, "env_steps"));
    snprintf(facts->name, sizeof facts->name, "%s", policy ? policy : "");
    facts->env_steps = steps ? strtoull(steps, NULL, 10) : 0;
    rm_safetensors_close(&file);
    return 0;
}

/* "(64, 4)" */
static void shape_text(char *text, size_t size, const uint64_t *shape, uint32_t dims)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (uint32_t d = 0; d < dims && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRIu64, d ? ", " : "", shape[d]);
    if (used < size)
        snprintf(text + used, size - used, ")");
}

/* A file being compared with a network. */
struct reading {
    const struct rm_safetensors *file;
    const char *path;
    struct rm_error *error; /* a line for each mismatch, as long as there is room */
    size_t used;
    uint32_t mismatches;
};

static void mismatch(struct reading *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void mismatch(struct reading *r, const char *format, ...)
{
    char line[RM_ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    const size_t needs = strlen(r->path) + strlen(line) + 3;
    if (r->error && (r->mismatches++ == 0 || r->used + needs < sizeof r->error->text))
        r->used += (size_t)snprintf(r->error->text + r->used, sizeof r->error->text - r->used,
                                    "%s%s: %s", r->used ? "\n" : "", r->path, line);
}

static const struct rm_tensor *find_tensor(const struct rm_safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (!strcmp(file->tensors[i].name, name))
            return &file->tensors[i];
    return NULL;
}

static void read_tensor(struct reading *r, const struct rm_net_tensor *wanted, float *params)
{
    const struct rm_tensor *found = find_tensor(r->file, wanted->name);
    uint64_t shape[RM_TENSOR_DIMS] = {0}, count = 1;
    char has[96], needs[96];
    bool same = found && wanted->dims == found->dims;
    for (uint32_t d = 0; d < wanted->dims; d++) {
        shape[d] = wanted->shape[d];
        count *= shape[d];
        same = same && found->shape[d] == shape[d];
    }
    if (same && params)
        memcpy(params + wanted->offset, found->data, count * sizeof *params);
    if (same)
        return;
    shape_text(needs, sizeof needs, shape, wanted->dims);
    if (found) {
        shape_text(has, sizeof has, found->shape, found->dims);
        mismatch(r, "tensor %s has shape %s; the experiment's network needs %s", wanted->name, has,
                 needs);
    } else {
        mismatch(r, "has no tensor %s, which the experiment's network has with shape %s",
                 wanted->name, needs);
    }
}

/* What the network does not have would be lost without a word. */
static void find_foreign(struct reading *r, const struct rm_net_tensor *wanted, size_t count)
{
    for (size_t i = 0; i < r->file->count; i++) {
        bool known = false;
        for (size_t k = 0; !known && k < count; k++)
            known = !strcmp(r->file->tensors[i].name, wanted[k].name);
        if (!known)
            mismatch(r, "has a tensor %.96s, which the experiment's network has not",
                     r->file->tensors[i].name);
    }
}

int rm_policy_file_read(const struct rm_net *net, const char *path, float *params,
                        struct rm_error *error)
{
    const struct rm_net_tensor *wanted;
    struct rm_safetensors file;
    const size_t count = rm_net_tensors(net, &wanted);
    int rc = open_policy(&file, path, error);
    if (rc)
        return rc;
    struct rm_error none = {""};
    struct reading r = {.file = &file, .path = path, .error = error ? error : &none};
    for (size_t i = 0; i < count; i++)
        read_tensor(&r, &wanted[i], params);
    find_foreign(&r, wanted, count);
    rm_safetensors_close(&file);
    return r.mismatches ? -EPROTO : 0;
}
