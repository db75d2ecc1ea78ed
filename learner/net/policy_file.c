#include "learner/net/policy_file.h"

#include "config/json_memory.h"
#include "config/config.h"
#include "config/schema.h"
#include "config/traits.h"
#include "learner/net/features.h"
#include "learner/net/safetensors.h"
#include "shm/base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
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

/* Takes `value` over, as JSON text. */
static void set_json(json_t *object, const char *key, json_t *value)
{
    char *text = rm_json_dump(value, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_object_set_new(object, key, json_string(text ? text : "null"));
    free(text);
    json_decref(value);
}

static json_t *finite_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *observation(const struct rm_env_agent *agent)
{
    json_t *o = json_object(), *shape = json_array();
    json_object_set_new(o, "dtype", json_string(dtype_names[agent->dtype]));
    for (uint32_t d = 0; d < agent->dims; d++)
        json_array_append_new(shape, json_integer(agent->shape[d]));
    json_object_set_new(o, "shape", shape);
    json_object_set_new(o, "low", finite_or_null(agent->low));
    json_object_set_new(o, "high", finite_or_null(agent->high));
    json_object_set_new(o, "features", json_integer(rm_features_count(agent)));
    if (agent->dtype != RM_ENV_CODE8)
        return o;
    json_t *book = json_array();
    for (uint32_t k = 0; k < agent->codes; k++) {
        json_t *row = json_array();
        for (uint32_t c = 0; c < agent->channels; c++)
            json_array_append_new(row, json_real((double)agent->codebook[k * agent->channels + c]));
        json_array_append_new(book, row);
    }
    json_object_set_new(o, "codes", json_integer(agent->codes));
    json_object_set_new(o, "channels", json_integer(agent->channels));
    json_object_set_new(o, "codebook", book);
    return o;
}

/* Actions of each choice, where an agent makes several in one step; else empty. */
static json_t *choices(const struct rm_env_agent *agent)
{
    json_t *list = json_array();
    for (uint32_t c = 0; c < agent->choices && agent->choices > 1; c++)
        json_array_append_new(list, json_integer(agent->choice_actions[c]));
    return list;
}

/* Quantiles of the network's output; 1 where it has none. */
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
    set_json(m, "observation", observation(p->agent));
    set_number(m, "quantiles", quantiles(p));
    set_number(m, "acting_quantiles", e->actor.quantiles);
    set_number(m, "frame_stack", e->sample.frame_stack);
    set_number(m, "actions", p->agent->actions);
    set_json(m, "choices", choices(p->agent));
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
