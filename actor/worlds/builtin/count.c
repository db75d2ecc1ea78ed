/* count: a corridor that a small learner solves in seconds, and the world that tests break things
 * with. Each agent stands in its own corridor, at 0 in the beginning, and sees its place one-hot.
 * Action 1 goes on, action 0 goes back (staying at 0). Arriving at `length` gives 1; every other
 * move costs 0.01. An agent that has arrived stays there at no cost until all have
 * arrived, which terminates the episode; after `max_steps` steps it is truncated. Nothing is
 * random. Best score per agent: 1 - 0.01 (length - 1).
 *
 * With `choices` of 2 or 3 an agent makes more than one choice a step. Choice 0 is the move. Choice
 * c > 0 is one of c + 2 and has one right answer, (place + c) modulo (c + 2); each wrong one costs
 * 0.1. So the best score stays the same, and only who gets every choice right has it. The mask then
 * also forbids the answer that follows the right one.
 *
 * With `stamp` an observation is four numbers instead, {world id, episode, step, agent}, from which
 * a test can tell where any row came from.
 *
 * Faults happen when world `fault_world` is about to do its n-th step (from 1, over all episodes);
 * 0 is never. */
#include "actor/worlds/builtin/env_batch.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { AGENTS_MAX = 64, LENGTH_MAX = 1024, CHOICES_MAX = 3, ACTIONS = 2, STAMP = 4 };

struct walker {
    uint32_t place;
    float reward;
};

/* State of one world; followed by its walkers in a saved state. */
struct world {
    uint64_t episode, total_steps;
    uint32_t step;
    uint32_t ended; /* 0 or the flag of the last row that is being given out */
};

struct rm_env {
    struct rm_env_batch batch;
    uint32_t agents, phases, length, max_steps, choices, mask, stamp;
    uint64_t fault_world;
    uint64_t fail_step, nan_step, illegal_mask_step, hang_step, crash_step;
    struct rm_env_agent agent[AGENTS_MAX];
    char name[AGENTS_MAX][24];
    struct world *world;   /* [worlds] */
    struct walker *walker; /* [worlds][agents] */
};

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("agents", 1, 1, AGENTS_MAX, "number of agents"),
    RM_OPTION_WHOLE("phases", 1, 1, AGENTS_MAX,
                    "phases; agent a acts in phase a * phases / agents"),
    RM_OPTION_WHOLE("length", 5, 1, LENGTH_MAX, "moves to the end of the corridor"),
    RM_OPTION_WHOLE("max_steps", 50, 1, 1e9, "steps after which the episode is truncated"),
    RM_OPTION_WHOLE("choices", 1, 1, CHOICES_MAX,
                    "choices in one step: the move, then answers that can be wrong"),
    RM_OPTION_WHOLE("mask", 0, 0, 1,
                    "1: give a legal-action mask; going back at 0 is illegal and refused"),
    RM_OPTION_WHOLE("stamp", 0, 0, 1, "1: observe {world id, episode, step, agent} as int32"),
    RM_OPTION_WHOLE("fault_world", 0, 0, 9e15, "id of the world that faults happen in"),
    RM_OPTION_WHOLE("fail_step", 0, 0, 9e15, "step() returns an error"),
    RM_OPTION_WHOLE("nan_step", 0, 0, 9e15, "the rewards of this step are not a number"),
    RM_OPTION_WHOLE("illegal_mask_step", 0, 0, 9e15,
                    "the masks after this step allow nothing (with mask 1)"),
    RM_OPTION_WHOLE("hang_step", 0, 0, 9e15, "step() never returns"),
    RM_OPTION_WHOLE("crash_step", 0, 0, 9e15, "the process dies of SIGSEGV"),
    {.key = NULL},
};

static const char *const ends[] = {"arrived", "time", NULL};
static const struct rm_env_figure figures[] = {
    {"place", "where the agent stands in the end", NULL},
    {"end", "how its way ended", ends},
};

static struct walker *walkers(const struct rm_env *env, uint32_t w)
{
    return env->walker + (size_t)w * env->agents;
}

/* Actions of choice c. */
static uint32_t actions_of(uint32_t c)
{
    return ACTIONS + c;
}

/* The right answer to choice c > 0, and one that a mask forbids. */
static uint32_t right_answer(uint32_t place, uint32_t c)
{
    return (place + c) % actions_of(c);
}

static uint32_t illegal_answer(uint32_t place, uint32_t c)
{
    return (right_answer(place, c) + 1) % actions_of(c);
}

static void begin_episode(const struct rm_env *env, uint32_t w)
{
    env->world[w].step = 0;
    env->world[w].ended = 0;
    memset(walkers(env, w), 0, env->agents * sizeof(struct walker));
}

/* Is world w about to take the step that `at` names? */
static int fault_at(const struct rm_env *env, uint32_t w, uint64_t at)
{
    return at && env->batch.first_world + w == env->fault_world &&
           env->world[w].total_steps + 1 == at;
}

static int inject(struct rm_env *env, uint32_t w)
{
    uint64_t id = env->batch.first_world + w, at = env->world[w].total_steps + 1;
    if (fault_at(env, w, env->fail_step))
        return rm_env_fail(env->batch.error, -EIO,
                           "world %" PRIu64 " fails at its step %" PRIu64 ", as fail_step asks", id,
                           at);
    while (fault_at(env, w, env->hang_step))
        pause();
    if (fault_at(env, w, env->crash_step))
        raise(SIGSEGV);
    return 0;
}

static void write_mask(const struct rm_env *env, uint32_t w, uint32_t place, uint8_t *mask)
{
    const struct world *world = &env->world[w];
    /* total_steps has already counted the step */
    bool none = env->illegal_mask_step && world->total_steps == env->illegal_mask_step &&
                env->batch.first_world + w == env->fault_world;
    mask[0] = !none && place > 0;
    mask[1] = !none;
    mask += ACTIONS;
    for (uint32_t c = 1; c < env->choices; mask += actions_of(c++))
        for (uint32_t i = 0; i < actions_of(c); i++)
            mask[i] = !none && i != illegal_answer(place, c);
}

static void write_agent(const struct rm_env *env, uint32_t w, uint32_t a,
                        const struct rm_env_buffers *out)
{
    const struct world *world = &env->world[w];
    const struct walker *walker = &walkers(env, w)[a];
    void *obs = rm_env_at(out->obs, out->obs_stride, w);
    if (env->stamp) {
        const int32_t stamp[STAMP] = {(int32_t)(env->batch.first_world + w),
                                      (int32_t)world->episode, (int32_t)world->step, (int32_t)a};
        memcpy(obs, stamp, sizeof(stamp));
    } else {
        const float one = 1;
        memset(obs, 0, (env->length + 1) * sizeof(float));
        memcpy((float *)obs + walker->place, &one, sizeof(one));
    }
    out->reward[w] = walker->reward;
    out->flags[w] = world->ended ? (uint8_t)world->ended : world->step == 0 ? RM_ENV_FIRST : 0;
    if (world->ended && out->figures) {
        out->figures[2 * w] = walker->place;
        out->figures[2 * w + 1] = walker->place < env->length;
    }
    if (env->mask)
        write_mask(env, w, walker->place, rm_env_at(out->mask, out->mask_stride, w));
}

static void write_phase(const struct rm_env *env, uint32_t phase, const struct rm_env_buffers *out)
{
    for (uint32_t a = 0; a < env->agents; a++)
        if (env->agent[a].phase == phase)
            for (uint32_t w = 0; w < env->batch.worlds; w++)
                write_agent(env, w, a, &out[a]);
}

static int reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    for (uint32_t w = 0; w < env->batch.worlds; w++) {
        env->world[w] = (struct world){0};
        begin_episode(env, w);
    }
    write_phase(env, 0, out);
    return 0;
}

static int refuse(struct rm_env *env, uint32_t w, uint32_t a, uint32_t c, int32_t action,
                  bool illegal)
{
    char choice[32] = "";
    if (env->choices > 1)
        snprintf(choice, sizeof(choice), " of choice %u", c);
    if (illegal)
        return rm_env_fail(env->batch.error, -EINVAL,
                           "action %d%s of agent %u in world %" PRIu64 " is masked out", action,
                           choice, a, env->batch.first_world + w);
    return rm_env_fail(env->batch.error, -EINVAL,
                       "action %d%s of agent %u in world %" PRIu64 " is not one of 0..%u", action,
                       choice, a, env->batch.first_world + w, actions_of(c) - 1);
}

/* action: [choices] */
static int walk(struct rm_env *env, uint32_t w, uint32_t a, const int32_t *action)
{
    struct walker *walker = &walkers(env, w)[a];
    uint32_t wrong = 0;
    for (uint32_t c = 0; c < env->choices; c++) {
        uint32_t answer = (uint32_t)action[c];
        bool illegal = env->mask && (c == 0 ? answer == 0 && walker->place == 0
                                            : answer == illegal_answer(walker->place, c));
        if (answer >= actions_of(c) || illegal)
            return refuse(env, w, a, c, action[c], illegal);
        wrong += c > 0 && answer != right_answer(walker->place, c);
    }
    if (walker->place == env->length) {
        walker->reward = 0;
        return 0;
    }
    if (action[0] == 1)
        walker->place++;
    else if (walker->place > 0)
        walker->place--;
    walker->reward = (walker->place == env->length ? 1.0f : -0.01f) - 0.1f * (float)wrong;
    return 0;
}

/* After the last phase of a step. */
static void end_step(struct rm_env *env, uint32_t w)
{
    struct world *world = &env->world[w];
    struct walker *walker = walkers(env, w);
    if (world->ended) {
        world->episode++;
        begin_episode(env, w);
        return;
    }
    uint32_t arrived = 0;
    for (uint32_t a = 0; a < env->agents; a++) {
        arrived += walker[a].place == env->length;
        if (fault_at(env, w, env->nan_step))
            walker[a].reward = NAN;
    }
    world->step++;
    world->total_steps++;
    world->ended = arrived == env->agents          ? RM_ENV_TERMINATED
                   : world->step >= env->max_steps ? RM_ENV_TRUNCATED
                                                   : 0;
}

static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out)
{
    if (phase >= env->phases)
        return rm_env_fail(env->batch.error, -EINVAL, "phase %u: there are %u", phase, env->phases);
    for (uint32_t w = 0; w < env->batch.worlds; w++) {
        if (env->world[w].ended)
            continue;
        int rc = phase == 0 ? inject(env, w) : 0;
        for (uint32_t a = 0; rc == 0 && a < env->agents; a++)
            if (env->agent[a].phase == phase)
                rc = walk(env, w, a, actions[a] + (size_t)w * env->choices);
        if (rc < 0)
            return rc;
    }
    uint32_t next = (phase + 1) % env->phases;
    if (next == 0)
        for (uint32_t w = 0; w < env->batch.worlds; w++)
            end_step(env, w);
    write_phase(env, next, out);
    return 0;
}

static size_t state_size(const struct rm_env *env)
{
    return env->batch.worlds * (sizeof(struct world) + env->agents * sizeof(struct walker));
}

static int save_state(const struct rm_env *env, void *state)
{
    size_t worlds = env->batch.worlds * sizeof(struct world);
    memcpy(state, env->world, worlds);
    memcpy((char *)state + worlds, env->walker, state_size(env) - worlds);
    return 0;
}

static int load_state(struct rm_env *env, const void *state)
{
    size_t worlds = env->batch.worlds * sizeof(struct world);
    const struct walker *walker = (const void *)((const char *)state + worlds);
    for (size_t i = 0; i < (size_t)env->batch.worlds * env->agents; i++)
        if (walker[i].place > env->length)
            return rm_env_fail(env->batch.error, -EINVAL, "state: place %u of a corridor of %u",
                               walker[i].place, env->length);
    memcpy(env->world, state, worlds);
    memcpy(env->walker, walker, state_size(env) - worlds);
    return 0;
}

static void close_env(struct rm_env *env)
{
    free(env->world);
    free(env->walker);
    rm_env_batch_close(env);
}

static void read_options(struct rm_env *env, const struct rm_env_config *config)
{
    env->agents = rm_env_option_u32(config, options, "agents");
    env->phases = rm_env_option_u32(config, options, "phases");
    env->length = rm_env_option_u32(config, options, "length");
    env->max_steps = rm_env_option_u32(config, options, "max_steps");
    env->choices = rm_env_option_u32(config, options, "choices");
    env->mask = rm_env_option_u32(config, options, "mask");
    env->stamp = rm_env_option_u32(config, options, "stamp");
    env->fault_world = (uint64_t)rm_env_option(config, options, "fault_world");
    env->fail_step = (uint64_t)rm_env_option(config, options, "fail_step");
    env->nan_step = (uint64_t)rm_env_option(config, options, "nan_step");
    env->illegal_mask_step = (uint64_t)rm_env_option(config, options, "illegal_mask_step");
    env->hang_step = (uint64_t)rm_env_option(config, options, "hang_step");
    env->crash_step = (uint64_t)rm_env_option(config, options, "crash_step");
}

static void describe_agents(struct rm_env *env)
{
    for (uint32_t a = 0; a < env->agents; a++) {
        snprintf(env->name[a], sizeof(env->name[a]), "agent_%u", a);
        env->agent[a] = (struct rm_env_agent){
            .name = env->name[a],
            .phase = a * env->phases / env->agents,
            .dtype = env->stamp ? RM_ENV_I32 : RM_ENV_F32,
            .dims = 1,
            .shape = {env->stamp ? STAMP : env->length + 1},
            .low = 0,
            .high = env->stamp ? INT32_MAX : 1,
            .has_mask = env->mask,
            .choices = env->choices,
        };
        for (uint32_t c = 0; c < env->choices; c++) {
            env->agent[a].choice_actions[c] = actions_of(c);
            env->agent[a].actions += actions_of(c);
        }
    }
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    struct rm_env *env = rm_env_batch_create(config, sizeof(*env), error, error_size);
    if (!env)
        return NULL;
    read_options(env, config);
    if (env->phases > env->agents) {
        snprintf(error, error_size, "%u phases for %u agents: at most one phase an agent",
                 env->phases, env->agents);
        close_env(env);
        return NULL;
    }
    describe_agents(env);
    env->world = calloc(env->batch.worlds, sizeof(struct world));
    env->walker = calloc((size_t)env->batch.worlds * env->agents, sizeof(struct walker));
    if (!env->world || !env->walker) {
        rm_env_batch_no_memory(config, error, error_size);
        close_env(env);
        return NULL;
    }
    double best = 1 - 0.01 * (env->length - 1);
    env->batch.spec = (struct rm_env_spec){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof(struct rm_env_spec),
        .name = "count",
        .doc = "a corridor to walk along, and faults for tests",
        .agents = env->agents,
        .phases = env->phases,
        .agent = env->agent,
        .max_steps = env->max_steps,
        RM_ENV_FIGURES(figures),
        .score_low = -(0.01 + 0.1 * (env->choices - 1)) * env->max_steps * env->agents,
        .score_high = best * env->agents,
        .score_random = NAN,
        .score_solved = env->max_steps >= env->length ? best * env->agents : NAN,
    };
    return env;
}

extern const struct rm_env_ops rm_count_ops;
const struct rm_env_ops rm_count_ops = {
    RM_ENV_BATCH_OPS,         .name = "count",          .options = options,
    .create = create,         .reset = reset,           .step = step,
    .state_size = state_size, .save_state = save_state, .load_state = load_state,
    .close = close_env,
};
