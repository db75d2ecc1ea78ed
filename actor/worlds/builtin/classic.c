#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/common.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct rm_env {
    const struct rm_classic_problem *problem;
    rm_classic_kernel kernel;
    rm_classic_flags_fn write_flags;
    rm_classic_rows_fn write_rows;
    uint32_t worlds, max_steps, elements;
    uint64_t seed, first_world;
    struct rm_classic_arrays arrays;
    float *row[RM_CLASSIC_FRAME]; /* the arrays of arrays.frame that are observed */
    uint32_t *step;               /* [padded] done in this episode */
    uint8_t *flags;               /* [padded] of the row given out last */
    uint64_t *episode;            /* [worlds] */
    uint32_t *ended;              /* [worlds] those given their last row, ended_count of them */
    uint32_t ended_count;
    struct rm_env_spec spec;
    struct rm_env_agent agent;
    char error[RM_ENV_ERROR_TEXT];
    void *memory;
};

int rm_isa_v2_classic_flags(uint32_t, uint32_t, const float *, uint32_t *, uint8_t *);
int rm_isa_v3_classic_flags(uint32_t, uint32_t, const float *, uint32_t *, uint8_t *);
int rm_isa_v4_classic_flags(uint32_t, uint32_t, const float *, uint32_t *, uint8_t *);
void rm_isa_v2_classic_rows(uint32_t, uint32_t, float *const *, void *, ptrdiff_t);
void rm_isa_v3_classic_rows(uint32_t, uint32_t, float *const *, void *, ptrdiff_t);
void rm_isa_v4_classic_rows(uint32_t, uint32_t, float *const *, void *, ptrdiff_t);

const rm_classic_flags_fn rm_classic_flags[RM_LEVEL_COUNT] = {
    rm_isa_v2_classic_flags, rm_isa_v3_classic_flags, rm_isa_v4_classic_flags};
const rm_classic_rows_fn rm_classic_rows[RM_LEVEL_COUNT] = {
    rm_isa_v2_classic_rows, rm_isa_v3_classic_rows, rm_isa_v4_classic_rows};

static void set_state(struct rm_env *env, uint32_t w, const double state[RM_CLASSIC_STATES])
{
    float frame[RM_CLASSIC_FRAME] = {0};
    env->problem->observe(state, frame);
    for (int i = 0; i < RM_CLASSIC_STATES; i++)
        env->arrays.state[i][w] = state[i];
    for (int i = 0; i < RM_CLASSIC_FRAME; i++)
        env->arrays.frame[i][w] = frame[i];
}

static void begin_episode(struct rm_env *env, uint32_t w, uint64_t episode)
{
    struct rm_rng rng = rm_env_rng(env->seed, env->first_world + w, episode);
    double state[RM_CLASSIC_STATES] = {0};
    env->problem->begin(&rng, state);
    set_state(env, w, state);
    env->episode[w] = episode;
    env->step[w] = 0;
    env->flags[w] = RM_ENV_FIRST;
    env->arrays.reward[w] = 0;
}

static void list_ended(struct rm_env *env)
{
    const uint64_t last = 0x0101010101010101u * (RM_ENV_TERMINATED | RM_ENV_TRUNCATED);
    env->ended_count = 0;
    for (uint32_t w = 0; w < env->worlds; w += 8) { /* flags are padded */
        uint64_t flags;
        memcpy(&flags, env->flags + w, 8);
        for (flags &= last; flags; flags &= flags - 1) {
            uint32_t world = w + (uint32_t)__builtin_ctzll(flags) / 8;
            if (world < env->worlds)
                env->ended[env->ended_count++] = world;
        }
    }
}

static void write_out(struct rm_env *env, const struct rm_env_buffers *out)
{
    env->write_rows(env->worlds, env->elements, env->row, out->obs, out->obs_stride);
    memcpy(out->reward, env->arrays.reward, env->worlds * sizeof(float));
    memcpy(out->flags, env->flags, env->worlds);
}

int rm_classic_reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    for (uint32_t w = 0; w < env->worlds; w++)
        begin_episode(env, w, 0);
    env->ended_count = 0;
    write_out(env, out);
    return 0;
}

/* Numbers of a box are bounded by the kernel; what is none is refused. */
static bool wrong_action(const struct rm_classic_problem *problem, int32_t action)
{
    return problem->box ? !isfinite(rm_float_of_word(action))
                        : (uint32_t)action >= problem->actions;
}

static int refuse_actions(struct rm_env *env, const int32_t *action)
{
    for (uint32_t w = 0; w < env->worlds; w++) {
        bool last = env->flags[w] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED);
        if (last || !wrong_action(env->problem, action[w]))
            continue;
        if (env->problem->box)
            return rm_env_fail(env->error, -EINVAL, "%s in world %" PRIu64 ": not a finite number",
                               env->problem->box->name, env->first_world + w);
        return rm_env_fail(env->error, -EINVAL, "action %d in world %" PRIu64 ": must be 0..%u",
                           action[w], env->first_world + w, env->problem->actions - 1);
    }
    return 0;
}

int rm_classic_step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                    const struct rm_env_buffers *out)
{
    if (phase != 0)
        return rm_env_fail(env->error, -EINVAL, "phase %u: must be 0", phase);
    uint32_t wrong = 0;
    for (uint32_t w = 0; w < env->worlds; w++) {
        env->arrays.action[w] = actions[0][w];
        wrong |= wrong_action(env->problem, actions[0][w]);
    }
    if (wrong && refuse_actions(env, actions[0]) < 0)
        return -EINVAL;

    env->kernel(&env->arrays);
    int any = env->write_flags(env->arrays.padded, env->max_steps, env->arrays.terminated,
                               env->step, env->flags);
    /* Ended worlds were stepped with the rest, without effect; begin their next episode here. */
    for (uint32_t i = 0; i < env->ended_count; i++)
        begin_episode(env, env->ended[i], env->episode[env->ended[i]] + 1);
    env->ended_count = 0;
    if (any)
        list_ended(env);
    write_out(env, out);
    return 0;
}

size_t rm_classic_state_size(const struct rm_env *env)
{
    return env->worlds * sizeof(struct rm_classic_state);
}

int rm_classic_save_state(const struct rm_env *env, void *state)
{
    struct rm_classic_state *saved = state;
    for (uint32_t w = 0; w < env->worlds; w++) {
        for (int i = 0; i < RM_CLASSIC_STATES; i++)
            saved[w].state[i] = env->arrays.state[i][w];
        saved[w].episode = env->episode[w];
        saved[w].step = env->step[w];
        saved[w].ended = env->flags[w] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED);
    }
    return 0;
}

int rm_classic_load_state(struct rm_env *env, const void *state)
{
    const struct rm_classic_state *saved = state;
    for (uint32_t w = 0; w < env->worlds; w++) {
        for (int i = 0; i < RM_CLASSIC_STATES; i++)
            if (!isfinite(saved[w].state[i]))
                return rm_env_fail(env->error, -EINVAL, "state of world %u: not finite", w);
        if (saved[w].ended & ~(uint32_t)(RM_ENV_TERMINATED | RM_ENV_TRUNCATED))
            return rm_env_fail(env->error, -EINVAL, "state of world %u: ended is %u", w,
                               saved[w].ended);
    }
    for (uint32_t w = 0; w < env->worlds; w++) {
        set_state(env, w, saved[w].state);
        env->episode[w] = saved[w].episode;
        env->step[w] = saved[w].step;
        env->flags[w] = (uint8_t)saved[w].ended;
    }
    list_ended(env);
    return 0;
}

/* Carves `count` entries of `size` bytes, on a cache line of their own, out of a block. With a NULL
 * block it only counts. */
static void *carve(char *block, size_t *at, size_t count, size_t size)
{
    size_t start = *at;
    *at += (count * size + 63) / 64 * 64;
    return block ? block + start : NULL;
}

static size_t lay_out(struct rm_env *env, char *block)
{
    size_t at = 0, padded = env->arrays.padded;
    for (int i = 0; i < RM_CLASSIC_STATES; i++)
        env->arrays.state[i] = carve(block, &at, padded, sizeof(double));
    for (int i = 0; i < RM_CLASSIC_FRAME; i++)
        env->arrays.frame[i] = carve(block, &at, padded, sizeof(float));
    env->arrays.reward = carve(block, &at, padded, sizeof(float));
    env->arrays.terminated = carve(block, &at, padded, sizeof(float));
    env->arrays.action = carve(block, &at, padded, sizeof(int32_t));
    env->step = carve(block, &at, padded, sizeof(uint32_t));
    env->flags = carve(block, &at, padded, 1);
    env->episode = carve(block, &at, padded, sizeof(uint64_t));
    env->ended = carve(block, &at, padded, sizeof(uint32_t));
    return at;
}

static void fill_spec(struct rm_env *env, uint32_t default_steps)
{
    const struct rm_classic_problem *problem = env->problem;
    bool standard = env->max_steps == default_steps;
    double all = problem->score_per_step * env->max_steps;
    env->agent = (struct rm_env_agent){
        .name = "agent_0",
        .dtype = RM_ENV_F32,
        .dims = 1,
        .shape = {env->elements},
        .low = problem->low,
        .high = problem->high,
        .actions = problem->actions,
        .boxes = problem->box ? 1 : 0,
        .box = problem->box,
    };
    env->spec = (struct rm_env_spec){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof(struct rm_env_spec),
        .name = problem->name,
        .doc = problem->doc,
        .agents = 1,
        .phases = 1,
        .agent = &env->agent,
        .max_steps = env->max_steps,
        .score_low = all < 0 ? all : 0,
        .score_high = (all < 0 ? 0 : all) + problem->score_end,
        .score_random = standard ? problem->score_random : NAN,
        .score_solved = standard ? problem->score_solved : NAN,
    };
}

struct rm_env *rm_classic_create(const struct rm_classic_problem *problem,
                                 const struct rm_env_config *config, char *error, size_t error_size)
{
    const bool whole =
        !problem->positions || rm_env_option(config, problem->options, "velocities") != 0;
    struct rm_env *env = calloc(1, sizeof(*env));
    if (env) {
        env->arrays.padded =
            (config->worlds + RM_CLASSIC_GROUP - 1) / RM_CLASSIC_GROUP * RM_CLASSIC_GROUP;
        size_t bytes = lay_out(env, NULL);
        env->memory = aligned_alloc(64, bytes);
        if (env->memory)
            memset(env->memory, 0, bytes);
    }
    if (!env || !env->memory) {
        snprintf(error, error_size, "no memory for %u worlds", config->worlds);
        free(env);
        return NULL;
    }
    lay_out(env, env->memory);
    const enum rm_isa_level isa = rm_isa_level();
    env->problem = problem;
    env->kernel = problem->kernel[isa];
    env->write_flags = rm_classic_flags[isa];
    env->write_rows = rm_classic_rows[isa];
    env->worlds = config->worlds;
    env->seed = config->seed;
    env->first_world = config->first_world;
    env->max_steps = rm_env_option_u32(config, problem->options, "max_steps");
    env->elements = whole ? problem->elements : problem->positions;
    for (uint32_t i = 0; i < env->elements; i++)
        env->row[i] = env->arrays.frame[whole ? i : problem->position[i]];
    struct rm_env_config defaults = {0};
    fill_spec(env, rm_env_option_u32(&defaults, problem->options, "max_steps"));
    return env;
}

const struct rm_env_spec *rm_classic_describe(const struct rm_env *env)
{
    return &env->spec;
}

void rm_classic_close(struct rm_env *env)
{
    free(env->memory);
    free(env);
}

const char *rm_classic_last_error(const struct rm_env *env)
{
    return env->error;
}
