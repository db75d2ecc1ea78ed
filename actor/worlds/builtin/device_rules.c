#include "actor/worlds/builtin/device_rules.h"

#include "actor/worlds/builtin/cartpole_rules.h"
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/goodhart.h"

#include <string.h>

_Static_assert(sizeof(struct rm_goodhart_rules) <= RM_DEVICE_RULES_BYTES &&
                   sizeof(struct rm_cartpole_rules) <= RM_DEVICE_RULES_BYTES,
               "rules fit");

static void cartpole_rules(const struct rm_env *env, void *rules)
{
    const struct rm_env_spec *spec = rm_classic_describe(env);
    const struct rm_cartpole_rules r = {spec->max_steps, spec->agent->shape[0]};
    memcpy(rules, &r, sizeof r);
}

static const struct rm_device_rules worlds[] = {
    {"goodhart", RM_DEVICE_GOODHART, rm_goodhart_rules_of},
    {"cartpole", RM_DEVICE_CARTPOLE, cartpole_rules},
};
_Static_assert(sizeof worlds / sizeof *worlds == RM_DEVICE_WORLD_KINDS, "a row per world");

const struct rm_device_rules *rm_device_rules_of(const char *name)
{
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
        if (strcmp(worlds[i].name, name) == 0)
            return &worlds[i];
    return NULL;
}

const char *rm_device_rules_names(void)
{
    return "goodhart, cartpole";
}
