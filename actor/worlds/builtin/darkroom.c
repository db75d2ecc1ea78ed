/* darkroom: a room of 9 x 9 cells with a hidden goal, as in work on learning in context (Laskin et
 * al. 2022, "In-context reinforcement learning with algorithm distillation"). An agent starts in
 * the middle, (4, 4); each step moves one of the two coordinates by one, within 0..8, or stays, and
 * pays 1 if the cell arrived at is the goal. Nothing ends before the 20th step, and nothing is
 * random.
 *
 * Cell (i, j) has number 9 i + j. Which one is a world's goal: the option `goal`, or else the
 * world's id chooses among all cells, or those of a fixed division into 73 to train on and 8 to
 * test with. */
#include "actor/worlds/builtin/darkroom.h"

#include <math.h>
#include <stdbool.h>

enum { SIDE = RM_DARKROOM_SIDE, CELLS = SIDE * SIDE, START = CELLS / 2, ACTIONS = 5, TESTS = 8 };

static const uint8_t test_goal[TESTS] = {5, 33, 38, 49, 51, 53, 62, 65};

struct rm_env {
    struct rm_single single;
    bool truncate, numbered, compat;
    uint32_t goals;
    uint8_t goal[CELLS]; /* of world id modulo goals */
};

static const struct rm_env_option_doc options[] = {
    {.key = "goal",
     .high = CELLS - 1,
     .doc = "the goal of every world: its coordinates [i, j], or its cell 9 i + j; []: by the "
            "world's id",
     .type = RM_ENV_WHOLE,
     .most = 2},
    RM_OPTION_WHOLE("goals", 0, 0, 2,
                    "without a goal, world id w has goal w modulo their number of: 0 all cells; "
                    "1 the 73 to train on; 2 the 8 to test with"),
    RM_OPTION_WHOLE("max_steps", 20, 1, 1e6, "steps in an episode"),
    RM_OPTION_WHOLE("truncate", 0, 0, 1,
                    "1: the last step truncates the episode; 0: it terminates it, since the "
                    "limit is part of the task"),
    RM_OPTION_WHOLE("numbered", 0, 0, 1,
                    "1: observe the number of the cell, for an embedding; 0: both coordinates"),
    RM_OPTION_WHOLE("compat", 0, 0, 1,
                    "1: an episode's last observation is the start, as where a batch of worlds "
                    "is reset before it is read; 0: the cell arrived at"),
    {.key = NULL},
};

/* Where an action leads. */
static uint8_t moved(uint8_t cell, int32_t action)
{
    uint8_t i = cell / SIDE, j = cell % SIDE;
    if (action == 0 && i < SIDE - 1)
        return (uint8_t)(cell + SIDE);
    if (action == 1 && i > 0)
        return (uint8_t)(cell - SIDE);
    if (action == 2 && j < SIDE - 1)
        return (uint8_t)(cell + 1);
    if (action == 3 && j > 0)
        return (uint8_t)(cell - 1);
    return cell;
}

static void begin(const struct rm_env *env, uint32_t w, void *of)
{
    struct rm_darkroom_world *world = of;
    world->cell = START;
    world->goal = env->goal[(env->single.batch.first_world + w) % env->goals];
}

static int play(struct rm_env *env, uint32_t w, void *of, int32_t action, float *reward)
{
    struct rm_darkroom_world *world = of;
    (void)w;
    world->cell = moved(world->cell, action);
    *reward = world->cell == world->goal ? 1.0f : 0.0f;
    bool late = world->head.step + 1 >= env->single.max_steps;
    return late && !env->truncate ? RM_ENV_TERMINATED : 0;
}

static void observe(const struct rm_env *env, const void *of, void *obs)
{
    const struct rm_darkroom_world *world = of;
    const uint8_t cell = env->compat && world->head.last ? START : world->cell;
    const int i = cell / SIDE, j = cell % SIDE;
    const float place[2] = {(float)i, (float)j};
    if (env->numbered)
        *(uint8_t *)obs = cell;
    else
        memcpy(obs, place, sizeof(place));
}

static const struct rm_single_rules rules = {.begin = begin, .play = play, .observe = observe};

RM_SINGLE_STEPS(rules)

/* --- a batch ---------------------------------------------------------------------------------- */

static const char *fault(const struct rm_env *env, const void *of)
{
    const struct rm_darkroom_world *world = of;
    (void)env;
    return world->cell >= CELLS || world->goal >= CELLS ? "a cell outside the room" : NULL;
}

/* The option `goal` as a cell; -1: there is none; -2 with a message. */
static int goal_option(const struct rm_env_config *config, char *error, size_t error_size)
{
    const struct rm_env_option *option = rm_env_find_option(config, "goal");
    if (!option || option->count == 0)
        return -1;
    const double *at = option->values;
    if (option->count == 1)
        return (int)at[0];
    if (at[0] < SIDE && at[1] < SIDE)
        return (int)at[0] * SIDE + (int)at[1];
    snprintf(error, error_size, "world.options.goal is [%g, %g], must be coordinates of 0 to %d",
             at[0], at[1], SIDE - 1);
    return -2;
}

static void choose_goals(struct rm_env *env, int goal, uint32_t set)
{
    if (goal >= 0) {
        env->goal[env->goals++] = (uint8_t)goal;
        return;
    }
    for (int cell = 0; cell < CELLS; cell++) {
        bool test = memchr(test_goal, cell, TESTS) != NULL;
        if (set == 0 || test == (set == 2))
            env->goal[env->goals++] = (uint8_t)cell;
    }
}

/* The mean return of uniformly random actions, exactly: where the agent is after t steps has a
 * distribution that all goals share. */
static double random_score(const struct rm_env *env)
{
    double at[CELLS] = {0}, score = 0;
    at[START] = 1;
    for (uint32_t t = 0; t < env->single.max_steps; t++) {
        double next[CELLS] = {0};
        for (int cell = 0; cell < CELLS; cell++)
            for (int32_t a = 0; a < ACTIONS; a++)
                next[moved((uint8_t)cell, a)] += at[cell] / ACTIONS;
        memcpy(at, next, sizeof(at));
        for (uint32_t g = 0; g < env->goals; g++)
            score += at[env->goal[g]] / env->goals;
    }
    return score;
}

/* Best returns, over the goals: of one at distance d all steps pay from the d-th on. */
static void fill_scores(struct rm_env *env)
{
    double sum = 0, most = 0;
    const int32_t steps = (int32_t)env->single.max_steps;
    for (uint32_t g = 0; g < env->goals; g++) {
        int32_t i = env->goal[g] / SIDE - SIDE / 2, j = env->goal[g] % SIDE - SIDE / 2;
        int32_t distance = (i < 0 ? -i : i) + (j < 0 ? -j : j);
        int32_t best = distance ? steps + 1 - distance : steps;
        best = best < 0 ? 0 : best;
        sum += best;
        most = best > most ? best : most;
    }
    env->single.batch.spec.score_low = 0;
    env->single.batch.spec.score_high = most;
    env->single.batch.spec.score_random = random_score(env);
    env->single.batch.spec.score_solved = 0.8 * sum / env->goals;
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    const int goal = goal_option(config, error, error_size);
    struct rm_env *env =
        goal < -1 ? NULL
                  : rm_single_create(config, sizeof(*env), sizeof(struct rm_darkroom_world), error,
                                     error_size);
    if (!env)
        return NULL;
    choose_goals(env, goal, rm_env_option_u32(config, options, "goals"));
    env->compat = rm_env_option(config, options, "compat") != 0;
    env->truncate = rm_env_option(config, options, "truncate") != 0;
    env->numbered = rm_env_option(config, options, "numbered") != 0;
    struct rm_single *single = &env->single;
    single->max_steps = rm_env_option_u32(config, options, "max_steps");
    single->fault = fault;
    single->agent.dtype = env->numbered ? RM_ENV_U8 : RM_ENV_F32;
    single->agent.dims = 1;
    single->agent.shape[0] = env->numbered ? 1 : 2;
    single->agent.high = env->numbered ? CELLS - 1 : SIDE - 1;
    single->agent.actions = ACTIONS;
    single->batch.spec.name = "darkroom";
    single->batch.spec.doc = "find a hidden goal in a dark room, again in every episode";
    single->batch.spec.max_steps = single->max_steps;
    fill_scores(env);
    return env;
}

extern const struct rm_env_ops rm_darkroom_ops;
const struct rm_env_ops rm_darkroom_ops = {
    RM_SINGLE_OPS,    .name = "darkroom", .options = options,
    .create = create, .reset = reset,     .step = step,
};
