/* sokoban: the rules. The keeper moves up, down, left or right by one cell; a box in the way is
 * pushed along if the cell behind it is free. A step costs 0.1, a box pushed onto a goal pays 1 and
 * one pushed off it costs 1; with all boxes on goals the episode ends, which pays 10 (the rewards
 * of Weber et al. 2017, "Imagination-augmented agents for deep reinforcement learning"). */
#include "actor/worlds/builtin/sokoban.h"
#include "actor/worlds/builtin/grid.h"

#include <math.h>
#include <stdbool.h>

enum { ACTIONS = RM_SOKOBAN_DIRECTIONS, CHANNELS = 4 };

struct rm_env {
    struct rm_single single;
    struct rm_sokoban_making making;
    uint32_t side; /* with the outer wall */
};

/* Channels: wall, goal, box, keeper. */
static const float codebook[RM_SOKOBAN_CODES][CHANNELS] = {
    [RM_SOKOBAN_FLOOR] = {0, 0, 0, 0},  [RM_SOKOBAN_GOAL] = {0, 1, 0, 0},
    [RM_SOKOBAN_BOX] = {0, 0, 1, 0},    [RM_SOKOBAN_BOX_ON_GOAL] = {0, 1, 1, 0},
    [RM_SOKOBAN_KEEPER] = {0, 0, 0, 1}, [RM_SOKOBAN_KEEPER_ON_GOAL] = {0, 1, 0, 1},
    [RM_SOKOBAN_WALL] = {1, 0, 0, 0},
};

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("size", 7, 5, RM_SOKOBAN_INSIDE_MAX + 2,
                    "side of the warehouse, outer wall included"),
    RM_OPTION_WHOLE("boxes", 2, 1, RM_SOKOBAN_BOXES_MAX, "number of boxes, and of goals"),
    RM_OPTION_NUMBER("walls", 0.1, 0, 0.5, "probability that a cell inside is wall"),
    RM_OPTION_WHOLE("pulls", 12, 1, 1000, "backward moves by which a level is made"),
    RM_OPTION_WHOLE("mask", 1, 0, 1,
                    "0: all actions are allowed; those that move nothing only cost the step"),
    RM_OPTION_WHOLE("max_steps", 100, 1, 1e9, "steps after which the episode is truncated"),
    {.key = NULL},
};

static void begin(const struct rm_env *env, uint32_t w, void *of)
{
    struct rm_sokoban_world *world = of;
    (void)w;
    rm_sokoban_make(&world->level, &env->making, &world->head.rng);
}

static int play(struct rm_env *env, uint32_t w, void *of, int32_t action, float *reward)
{
    struct rm_sokoban_level *level = &((struct rm_sokoban_world *)of)->level;
    int before = __builtin_popcountll(level->boxes & level->goals);
    if (!rm_sokoban_move(level, action) && env->single.agent.has_mask)
        return rm_single_refuse(env, w, action);
    int after = __builtin_popcountll(level->boxes & level->goals);
    bool solved = level->boxes == level->goals;
    *reward = (float)(-0.1 + (after - before) + (solved ? 10 : 0));
    return solved ? RM_ENV_TERMINATED : 0;
}

static void observe(const struct rm_env *env, const void *of, void *obs)
{
    const struct rm_sokoban_level *level = &((const struct rm_sokoban_world *)of)->level;
    uint8_t *row = obs;
    memset(row, RM_SOKOBAN_WALL, (size_t)env->side * env->side);
    for (uint32_t y = 0; y < env->making.inside; y++) {
        row += env->side;
        for (uint32_t x = 0; x < env->making.inside; x++) {
            uint32_t bit = 8 * y + x;
            uint32_t goal = level->goals >> bit & 1, box = level->boxes >> bit & 1;
            uint32_t keeper = level->keeper >> bit & 1;
            if (level->floor >> bit & 1)
                row[x + 1] = (uint8_t)(goal + RM_SOKOBAN_BOX * box + RM_SOKOBAN_KEEPER * keeper);
        }
    }
}

static void write_mask(const struct rm_env *env, const void *of, uint8_t *mask)
{
    (void)env;
    for (int d = 0; d < ACTIONS; d++) {
        struct rm_sokoban_level level = ((const struct rm_sokoban_world *)of)->level;
        mask[d] = (uint8_t)rm_sokoban_move(&level, d);
    }
}

static const struct rm_env_figure figures[] = {
    {"solved", "1: all boxes are on goals", NULL},
    {"on_goals", "boxes on goals at the end", NULL},
};

static void write_figures(const struct rm_env *env, const void *of, double *out)
{
    const struct rm_sokoban_level *level = &((const struct rm_sokoban_world *)of)->level;
    (void)env;
    out[0] = level->boxes == level->goals;
    out[1] = __builtin_popcountll(level->boxes & level->goals);
}

static const struct rm_single_rules rules = {
    .begin = begin, .play = play, .observe = observe, .mask = write_mask, .figures = write_figures};

RM_SINGLE_STEPS(rules)

/* --- showing ---------------------------------------------------------------------------------- */

/* As levels are written: # wall, . goal, $ box, * box on goal, @ keeper, + keeper on goal. */
static const struct rm_grid_look *look(const struct rm_env *env, const void *of, uint32_t row,
                                       uint32_t column)
{
    static const struct rm_grid_look looks[RM_SOKOBAN_CODES] = {
        [RM_SOKOBAN_FLOOR] = {" ", {240, 234, 214}},
        [RM_SOKOBAN_GOAL] = {".", {250, 180, 160}},
        [RM_SOKOBAN_BOX] = {"$", {190, 130, 60}},
        [RM_SOKOBAN_BOX_ON_GOAL] = {"*", {60, 160, 70}},
        [RM_SOKOBAN_KEEPER] = {"@", {40, 90, 190}},
        [RM_SOKOBAN_KEEPER_ON_GOAL] = {"+", {90, 60, 190}},
        [RM_SOKOBAN_WALL] = {"#", {80, 80, 90}},
    };
    uint8_t cells[(RM_SOKOBAN_INSIDE_MAX + 2) * (RM_SOKOBAN_INSIDE_MAX + 2)];
    observe(env, of, cells);
    return &looks[cells[row * env->side + column]];
}

static struct rm_grid grid_of(const struct rm_env *env, uint32_t w)
{
    return (struct rm_grid){.rows = env->side,
                            .columns = env->side,
                            .look = look,
                            .env = env,
                            .world = rm_single_world_at(env, w)};
}

static int show_text(const struct rm_env *env, uint32_t w, char *text, size_t size)
{
    const struct rm_grid grid = grid_of(env, w);
    return rm_grid_text(&grid, NULL, text, size);
}

static int show_picture(const struct rm_env *env, uint32_t w, uint8_t *rgb)
{
    const struct rm_grid grid = grid_of(env, w);
    return rm_grid_picture(&grid, rgb);
}

/* --- a batch ---------------------------------------------------------------------------------- */

static const char *fault(const struct rm_env *env, const void *of)
{
    const struct rm_sokoban_level *level = &((const struct rm_sokoban_world *)of)->level;
    uint64_t inside = 0;
    for (uint32_t y = 0; y < env->making.inside; y++)
        inside |= (((uint64_t)1 << env->making.inside) - 1) << (8 * y);
    if (level->floor & ~inside)
        return "its floor goes beyond the walls";
    if ((level->goals | level->boxes | level->keeper) & ~level->floor)
        return "something stands in a wall";
    if (__builtin_popcountll(level->keeper) != 1 || (level->keeper & level->boxes))
        return "its keeper is outside of the floor, or in a box";
    if (__builtin_popcountll(level->goals) != __builtin_popcountll(level->boxes))
        return "it does not have as many boxes as goals";
    return NULL;
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    const uint32_t side = rm_env_option_u32(config, options, "size");
    const struct rm_sokoban_making making = {
        .inside = side - 2,
        .boxes = rm_env_option_u32(config, options, "boxes"),
        .pulls = rm_env_option_u32(config, options, "pulls"),
        .walls = rm_env_option(config, options, "walls"),
    };
    if (making.boxes > making.inside) {
        snprintf(error, error_size, "%u boxes: at most %u in a warehouse of size %u", making.boxes,
                 making.inside, side);
        return NULL;
    }
    struct rm_env *env =
        rm_single_create(config, sizeof(*env), sizeof(struct rm_sokoban_world), error, error_size);
    if (!env)
        return NULL;
    env->side = side;
    env->making = making;
    struct rm_single *single = &env->single;
    single->max_steps = rm_env_option_u32(config, options, "max_steps");
    single->fault = fault;
    single->agent.dtype = RM_ENV_CODE8;
    single->agent.dims = 2;
    single->agent.shape[0] = single->agent.shape[1] = side;
    single->agent.high = 1;
    single->agent.codes = RM_SOKOBAN_CODES;
    single->agent.channels = CHANNELS;
    single->agent.codebook = &codebook[0][0];
    single->agent.actions = ACTIONS;
    single->agent.has_mask = rm_env_option_u32(config, options, "mask");
    struct rm_env_spec *spec = &single->batch.spec;
    spec->name = "sokoban";
    spec->doc = "push boxes onto goals, in levels that can be solved";
    spec->max_steps = single->max_steps;
    spec->figures = sizeof figures / sizeof figures[0];
    spec->figure = figures;
    const struct rm_grid grid = grid_of(env, 0);
    rm_grid_describe(&grid, spec);
    /* No box begins on a goal, so pushing adds up to what stands on goals in the end, and each box
     * takes a push at least. */
    spec->score_low = -0.1 * single->max_steps;
    spec->score_high = 10 + 0.9 * making.boxes;
    /* Random: simulated, 180,000 episodes of the default options. Solved: nine levels of ten, of
     * which the shortest ways earn 10.8 on average. */
    bool standard = side == 7 && making.boxes == 2 && making.walls == 0.1 && making.pulls == 12 &&
                    single->agent.has_mask && single->max_steps == 100;
    spec->score_random = standard ? -9.21 : NAN;
    spec->score_solved = standard ? 8.5 : NAN;
    return env;
}

extern const struct rm_env_ops rm_sokoban_ops;
const struct rm_env_ops rm_sokoban_ops = {
    RM_SINGLE_OPS,  .name = "sokoban", .options = options,     .create = create,
    .reset = reset, .step = step,      .show_text = show_text, .show_picture = show_picture,
};
