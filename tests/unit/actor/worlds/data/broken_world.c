/* A world that is wrong in exactly one way, chosen by a macro. */
#include "env.h"

#include <math.h>
#include <stdlib.h>

#ifdef BROKEN_no_entry
extern int rm_not_an_entry;
int rm_not_an_entry;
#else

struct rm_env {
    int unused;
};

#if defined(BROKEN_box) || defined(BROKEN_reversed_box)
static const float low[] = {1};
#ifdef BROKEN_box
static const float high[] = {INFINITY};
#else
static const float high[] = {0};
#endif
static const struct rm_env_box box[] = {{"torque", 1, low, high}};
#endif

#if defined BROKEN_observation_twice || defined BROKEN_observation_name ||                         \
    defined BROKEN_observation_count
#define LISTED
#endif

#ifdef LISTED
static const struct rm_env_observation observation[] = {
    {.name = "board",
     .dtype = RM_ENV_U8,
     .dims = 1,
     .shape = {1},
#ifdef BROKEN_observation_count
     .counted = 2
#endif
    },
#ifdef BROKEN_observation_twice
    {.name = "board", .dtype = RM_ENV_I16, .dims = 1, .shape = {1}},
#else
    {.dtype = RM_ENV_I16, .dims = 1, .shape = {1}},
#endif
};
#endif

static const struct rm_env_agent agent[] = {{
                                                .name = "agent_0",
#ifdef BROKEN_bad_phase
                                                .phase = 3,
#endif
#ifdef BROKEN_bad_dtype
                                                .dtype = 99,
#else
                                                .dtype = RM_ENV_U8,
#endif
                                                .dims = 1,
                                                .shape = {1},
#ifndef BROKEN_no_actions
                                                .actions = 2,
#endif
#ifdef BROKEN_many_choices
                                                .choices = RM_ENV_MAX_CHOICES + 1,
#endif
#ifdef BROKEN_several_observations
                                                .observations = 2,
#endif
#ifdef LISTED
                                                .observations = 2,
                                                .observation = observation,
#endif
#ifdef BROKEN_box
                                                .boxes = 1,
                                                .box = box,
#endif
#ifdef BROKEN_reversed_box
                                                .boxes = 1,
                                                .box = box,
#endif
#ifdef BROKEN_unlisted_box
                                                .boxes = 1,
#endif
#ifdef BROKEN_empty_choice
                                                .choices = 2,
                                                .choice_actions = {2, 0},
#endif
#ifdef BROKEN_short_choices
                                                .choices = 2,
                                                .choice_actions = {2, 3},
#endif
                                            },
                                            {
                                                .name = "agent_1",
                                                .dtype = RM_ENV_U8,
                                                .dims = 1,
                                                .shape = {1},
                                                .actions = 2,
                                            }};

#ifdef RM_ENV_MAX_FIGURES /* since version 3 */
static const char *const words[] = {
#ifndef BROKEN_empty_words
    "hunger",
#endif
    NULL};
static const struct rm_env_figure figures[] = {
#ifdef BROKEN_figure_name
    {"../food", NULL, NULL},
#else
    {"food", NULL, NULL},
#endif
#ifdef BROKEN_figure_twice
    {"food", NULL, NULL},
#endif
    {"cause", NULL, words},
};
#endif

static const struct rm_env_spec spec = {
#ifdef RM_ENV_MAX_FIGURES
    .figures = sizeof figures / sizeof figures[0],
    .figure = figures,
#endif
#ifdef BROKEN_old_spec
    .abi_version = 1,
#else
    .abi_version = RM_ENV_ABI_VERSION,
#endif
    .struct_size = sizeof(struct rm_env_spec),
    .name = "broken",
    .doc = "",
    .agents = 2,
#ifdef BROKEN_idle_phase
    .phases = 2,
#else
    .phases = 1,
#endif
    .agent = agent,
};

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    (void)config, (void)error, (void)error_size;
#ifdef BROKEN_no_reason
    return NULL;
#else
    return calloc(1, sizeof(struct rm_env));
#endif
}

static const struct rm_env_spec *describe(const struct rm_env *env)
{
    (void)env;
    return &spec;
}

static int reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    (void)env, (void)out;
    return 0;
}

#ifndef BROKEN_no_step
static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out)
{
    (void)env, (void)phase, (void)actions, (void)out;
    return 0;
}
#endif

static size_t state_size(const struct rm_env *env)
{
    (void)env;
    return 0;
}

static int save_state(const struct rm_env *env, void *state)
{
    (void)env, (void)state;
    return -1;
}

static int load_state(struct rm_env *env, const void *state)
{
    (void)env, (void)state;
    return -1;
}

static void close_env(struct rm_env *env)
{
    free(env);
}

static const char *last_error(const struct rm_env *env)
{
    (void)env;
    return "";
}

static const struct rm_env_ops ops = {
#ifdef BROKEN_old_abi
    .abi_version = 1,
#else
    .abi_version = RM_ENV_ABI_VERSION,
#endif
#ifdef BROKEN_short_table
    .struct_size = sizeof(struct rm_env_ops) - 8,
#else
    .struct_size = sizeof(struct rm_env_ops),
#endif
    .name = "broken",
    .create = create,
    .describe = describe,
    .reset = reset,
#ifndef BROKEN_no_step
    .step = step,
#endif
    .state_size = state_size,
    .save_state = save_state,
    .load_state = load_state,
    .close = close_env,
    .last_error = last_error,
};

const struct rm_env_ops *rm_env_entry(void);
const struct rm_env_ops *rm_env_entry(void)
{
#ifdef BROKEN_null_table
    (void)ops;
    return NULL;
#else
    return &ops;
#endif
}
#endif
