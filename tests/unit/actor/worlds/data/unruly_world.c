/* A world of two agents in two phases that breaks one rule of docs/worlds.md, chosen by its option
 * `breaks`; 0: none. Agent 0 guesses, agent 1 looks on; the episode ends after a few steps. */
#include "env.h"

#include "actor/player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As numbered in unit/actor/test_rule_check.c. */
enum {
    NOTHING = 0,
    BOTH_FLAGS,     /* TERMINATED with TRUNCATED */
    VOID_ALONE,     /* VOID without TRUNCATED */
    EMPTY_MASK,     /* in last rows */
    NO_REWARD,      /* not written in last rows */
    NO_FLAGS,       /* not written in one step */
    NO_OBSERVATION, /* one element of it */
    RAND,           /* draws from rand() */
    CLOCK,          /* a seed of the time */
    PROCESS,        /* a seed of the process's number */
    ADDRESS,        /* a seed of where the batch is */
    ONE_GENERATOR,  /* of the batch */
    LATE_FIRST,     /* FIRST a step too late */
    FIRST_PAID,     /* a reward with FIRST */
    NOT_FINITE,     /* a reward */
    OUT_OF_BOUNDS,  /* a code that is not there */
    BEHIND,         /* a byte behind an observation */
    OF_OTHERS,      /* flags of the other phase */
    APART,          /* agent 1 gets its last row a step later */
    TOO_LONG,       /* more than max_steps */
    ANSWERED,       /* the action that answers a last row counts */
    RESET_GOES_ON,  /* reset() keeps the number of the episode */
    HALF_A_STATE,   /* what is saved lacks the step */
    SAVING_COUNTS,  /* saving a state changes it */
    REFUSES,        /* a legal action */
    STATELESS,      /* state_size() is 0: no rule is broken */
    CRASHES,
    HANGS,
    NO_SEED,      /* chance that is the same for every seed: a notice, as it may be meant */
    NO_FIGURE,    /* not written in last rows */
    EARLY_FIGURE, /* written before them */
    NO_SUCH_WORD, /* of a figure */
    ENDLESS,      /* a figure without bound */
    SHOWN,        /* crashes when it is to be shown */
    FORGES        /* a frame of the player (actor/player.h): a part of a row */
};

enum { CELLS = 3, ACTIONS = 3, LENGTH = 6 };

static const char *const ends[] = {"left", "middle", "right", NULL};
static const struct rm_env_figure figures[] = {{"steps", NULL, NULL}, {"end", NULL, ends}};

struct world {
    uint64_t episode;
    uint32_t step, place, last, over, answered;
    float reward;
};

struct rm_env {
    uint32_t worlds;
    int breaks;
    uint64_t seed, first_world, drawn, steps;
    struct rm_env_agent agent[2];
    struct rm_env_spec spec;
    struct world world[];
};

static const struct rm_env_option_doc options[] = {
    {.key = "breaks", .fallback = 0, .low = 0, .high = 100, .doc = "which rule"},
    {.key = NULL},
};

static const float codebook[] = {0, 1, 2};

static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint32_t draw(struct rm_env *env, uint32_t w)
{
    const struct world *world = &env->world[w];
    uint64_t x = env->seed + 0x9e3779b97f4a7c15u * (env->first_world + w);
    if (env->breaks == RAND)
        return (uint32_t)rand() % CELLS; /* NOLINT(cert-msc30-c,cert-msc50-cpp,concurrency-*) */
    if (env->breaks == CLOCK)
        x += mixed((uint64_t)time(NULL));
    if (env->breaks == PROCESS)
        x += mixed((uint64_t)getpid());
    if (env->breaks == ADDRESS)
        x += mixed((uint64_t)(uintptr_t)env);
    if (env->breaks == ONE_GENERATOR)
        return (uint32_t)(mixed(env->seed + ++env->drawn) % CELLS);
    return (uint32_t)(mixed(mixed(mixed(x) + world->episode) + world->step + 7 * world->answered) %
                      CELLS);
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    struct rm_env *env = calloc(1, sizeof(*env) + config->worlds * sizeof(struct world));
    if (!env) {
        snprintf(error, error_size, "no memory");
        return NULL;
    }
    env->worlds = config->worlds;
    env->seed = config->seed;
    env->first_world = config->first_world;
    for (uint32_t i = 0; i < config->option_count; i++)
        env->breaks = (int)config->options[i].value;
    if (env->breaks == NO_SEED)
        env->seed = 42;
    for (uint32_t a = 0; a < 2; a++)
        env->agent[a] = (struct rm_env_agent){
            .name = a ? "looker" : "guesser",
            .phase = a,
            .dtype = RM_ENV_CODE8,
            .dims = 1,
            .shape = {CELLS},
            .high = 2,
            .codes = 3,
            .channels = 1,
            .codebook = codebook,
            .actions = ACTIONS,
            .has_mask = 1,
        };
    env->spec = (struct rm_env_spec){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof(struct rm_env_spec),
        .name = "unruly",
        .doc = "breaks a rule",
        .agents = 2,
        .phases = 2,
        .agent = env->agent,
        .max_steps = LENGTH,
        .figures = 2,
        .figure = figures,
        .score_low = 0,
        .score_high = 2 * LENGTH,
    };
    return env;
}

static const struct rm_env_spec *describe(const struct rm_env *env)
{
    return &env->spec;
}

static void begin(struct rm_env *env, uint32_t w)
{
    struct world *world = &env->world[w];
    world->step = world->last = world->over = 0;
    world->reward = 0;
    world->place = draw(env, w);
}

static void observe(struct rm_env *env, uint32_t w, uint32_t a, const struct rm_env_buffers *out)
{
    const struct world *world = &env->world[w];
    const int breaks = env->breaks;
    uint8_t *obs = (uint8_t *)out->obs + out->obs_stride * w,
            *mask = out->mask + out->mask_stride * w;
    const int last = world->last && !(breaks == APART && a == 1 && world->step == LENGTH);
    const int first = world->step == (breaks == LATE_FIRST ? 1 : 0);

    for (uint32_t c = 0; c < CELLS - (breaks == NO_OBSERVATION); c++)
        obs[c] = c == world->place;
    if (breaks == OUT_OF_BOUNDS && world->step == 2)
        obs[0] = 3;
    if (breaks == BEHIND)
        obs[CELLS] = 0;
    memset(mask, 1, ACTIONS);
    mask[world->place] = 0;
    if (breaks == EMPTY_MASK && last)
        memset(mask, 0, ACTIONS);
    if (out->figures && (last || breaks == EARLY_FIGURE)) {
        out->figures[2 * w] = breaks == ENDLESS ? 1.0 / 0.0 : world->step;
        if (breaks != NO_FIGURE)
            out->figures[2 * w + 1] = breaks == NO_SUCH_WORD ? 3 : world->place;
    }
    if (!(breaks == NO_REWARD && last))
        out->reward[w] = first ? (breaks == FIRST_PAID ? 1 : 0) : world->reward;
    if (breaks == NOT_FINITE && world->step == 3)
        out->reward[w] = 1.0f / 0.0f;
    if (breaks == NO_FLAGS && world->step == 2)
        return;
    out->flags[w] = first ? RM_ENV_FIRST : last ? RM_ENV_TRUNCATED : 0;
    if (last && breaks == BOTH_FLAGS)
        out->flags[w] |= RM_ENV_TERMINATED;
    if (last && breaks == VOID_ALONE)
        out->flags[w] = RM_ENV_TERMINATED | RM_ENV_VOID;
}

static void observe_all(struct rm_env *env, uint32_t phase, const struct rm_env_buffers *out)
{
    for (uint32_t w = 0; w < env->worlds; w++) {
        observe(env, w, phase, &out[phase]);
        if (env->breaks == OF_OTHERS)
            out[!phase].flags[w] = 0;
    }
}

static int reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    for (uint32_t w = 0; w < env->worlds; w++) {
        env->world[w].episode = env->breaks == RESET_GOES_ON ? env->world[w].episode + 1 : 0;
        env->world[w].answered = 0;
        begin(env, w);
    }
    env->drawn = 0;
    observe_all(env, 0, out);
    return 0;
}

static void move(struct rm_env *env, uint32_t w, int32_t action)
{
    struct world *world = &env->world[w];
    const uint32_t length = LENGTH + (env->breaks == TOO_LONG);
    if (world->last && env->breaks == APART && world->step == LENGTH) {
        world->step++;
        return;
    }
    if (world->last) {
        world->episode++;
        if (env->breaks == ANSWERED)
            world->answered = (uint32_t)action;
        begin(env, w);
        return;
    }
    world->step++;
    world->reward = (uint32_t)action == (world->place + 1) % CELLS;
    world->place = draw(env, w);
    world->last = world->step == length;
}

static void forge(void)
{
    static const char text[] = "\033[2J!";
    const struct rm_player_head head = {
        .magic = RM_PLAYER_MAGIC, .kind = RM_PLAYER_ROWS, .text_bytes = sizeof text - 1};
    (void)!write(RM_FD_ANSWER, &head, sizeof head);
    (void)!write(RM_FD_ANSWER, text, sizeof text - 1);
}

static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out)
{
    /* The steps are made between phase 1 and phase 0. */
    for (uint32_t w = 0; w < env->worlds && phase == 1; w++)
        move(env, w, (int32_t)env->world[w].over);
    for (uint32_t w = 0; w < env->worlds && phase == 0; w++)
        env->world[w].over = (uint32_t)actions[0][w];
    env->steps++;
    if (env->breaks == REFUSES && env->steps > 9)
        return -1;
    if (env->breaks == CRASHES && env->steps > 9)
        abort();
    while (env->breaks == HANGS && env->steps > 9)
        pause();
    if (env->breaks == FORGES && env->steps == 9)
        forge();
    observe_all(env, !phase, out);
    return 0;
}

static size_t state_size(const struct rm_env *env)
{
    return env->breaks == STATELESS ? 0 : env->worlds * sizeof(struct world);
}

static int save_state(const struct rm_env *env, void *state)
{
    memcpy(state, env->world, state_size(env));
    for (uint32_t w = 0; w < env->worlds && env->breaks == HALF_A_STATE; w++)
        ((struct world *)state)[w].step = 0;
    for (uint32_t w = 0; w < env->worlds && env->breaks == SAVING_COUNTS; w++)
        ((struct rm_env *)env)->world[w].place = (env->world[w].place + 1) % CELLS;
    return 0;
}

static int load_state(struct rm_env *env, const void *state)
{
    memcpy(env->world, state, state_size(env));
    return 0;
}

static void close_env(struct rm_env *env)
{
    free(env);
}

static const char *last_error(const struct rm_env *env)
{
    (void)env;
    return "it \033[31mwill not";
}

static int show_text(const struct rm_env *env, uint32_t world, char *text, size_t size)
{
    if (env->breaks == SHOWN)
        abort();
    return snprintf(text, size, "\033[2J\033[31mplace %u\n", env->world[world].place);
}

static const struct rm_env_ops ops = {
    .abi_version = RM_ENV_ABI_VERSION,
    .struct_size = sizeof(struct rm_env_ops),
    .name = "unruly",
    .options = options,
    .create = create,
    .describe = describe,
    .reset = reset,
    .step = step,
    .state_size = state_size,
    .save_state = save_state,
    .load_state = load_state,
    .close = close_env,
    .last_error = last_error,
    .show_text = show_text,
};

const struct rm_env_ops *rm_env_entry(void);
const struct rm_env_ops *rm_env_entry(void)
{
    return &ops;
}
