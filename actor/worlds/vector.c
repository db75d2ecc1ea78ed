#include "actor/worlds/vector.h"

#include "actor/worlds/described.h"
#include "actor/worlds/worlds.h"
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rm_vector {
    struct rm_experiment experiment;
    struct rm_world world;
    struct rm_env *env;
    const struct rm_env_spec *spec;
    struct rm_env_buffers *out; /* [agents] */
    const int32_t **actions;    /* [agents] */
    char *described;
};

static int open_world(struct rm_vector *v, const char *text, uint64_t seed, uint32_t worlds,
                      struct rm_error *error)
{
    int rc = rm_config_parse(&v->experiment, "world", text, strlen(text), NULL, 0, error);
    if (rc == 0)
        rc = rm_world_open_configured(&v->world, &v->experiment.world, error);
    if (rc == 0)
        rc = rm_world_create(&v->world, &v->experiment.world, seed, 0, worlds, &v->env, error);
    if (rc < 0)
        return rc;
    v->spec = v->world.ops->describe(v->env);
    v->out = calloc(v->spec->agents, sizeof *v->out);
    v->actions = calloc(v->spec->agents, sizeof *v->actions);
    v->described = rm_described_write(&v->world, v->spec);
    return v->out && v->actions && v->described
               ? 0
               : rm_fail(error, -ENOMEM, "no memory for %u worlds", worlds);
}

struct rm_vector *rm_vector_open(const char *experiment, uint64_t seed, uint32_t worlds,
                                 char *error, size_t size)
{
    struct rm_error why = {"no memory for a world"};
    struct rm_vector *v = calloc(1, sizeof *v);
    const int rc = v ? open_world(v, experiment, seed, worlds, &why) : -ENOMEM;
    if (rc == 0)
        return v;
    snprintf(error, size, "%s", why.text);
    rm_vector_close(v);
    return NULL;
}

const char *rm_vector_describe(const struct rm_vector *v)
{
    return v->described;
}

size_t rm_vector_obs_bytes(const struct rm_vector *v, uint32_t agent)
{
    return rm_env_obs_bytes(&v->spec->agent[agent]);
}

void rm_vector_bind(struct rm_vector *v, uint32_t agent, void *obs, uint8_t *mask, float *reward,
                    uint8_t *flags, double *figures, const int32_t *actions)
{
    const struct rm_env_agent *spec = &v->spec->agent[agent];
    v->out[agent] = (struct rm_env_buffers){
        .obs = obs,
        .obs_stride = (ptrdiff_t)rm_env_obs_bytes(spec),
        .mask = spec->has_mask ? mask : NULL,
        .mask_stride = spec->actions,
        .reward = reward,
        .flags = flags,
        .figures = v->spec->figures ? figures : NULL,
    };
    v->actions[agent] = actions;
}

int rm_vector_reset(struct rm_vector *v)
{
    return v->world.ops->reset(v->env, v->out);
}

int rm_vector_step(struct rm_vector *v, uint32_t phase)
{
    return v->world.ops->step(v->env, phase, v->actions, v->out);
}

int rm_vector_text(const struct rm_vector *v, uint32_t world, char *text, size_t size)
{
    const struct rm_env_ops *ops = v->world.ops;
    return ops->show_text ? ops->show_text(v->env, world, text, size) : -ENOTSUP;
}

int rm_vector_picture(const struct rm_vector *v, uint32_t world, uint8_t *rgb)
{
    const struct rm_env_ops *ops = v->world.ops;
    return ops->show_picture && v->spec->picture_width ? ops->show_picture(v->env, world, rgb)
                                                       : -ENOTSUP;
}

const char *rm_vector_error(const struct rm_vector *v)
{
    return v->world.ops->last_error(v->env);
}

void rm_vector_close(struct rm_vector *v)
{
    if (!v)
        return;
    if (v->env)
        v->world.ops->close(v->env);
    if (v->world.ops)
        rm_world_close(&v->world);
    free(v->out);
    free(v->actions);
    free(v->described);
    free(v);
}
