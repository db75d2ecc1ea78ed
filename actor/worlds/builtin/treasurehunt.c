#include "actor/worlds/builtin/treasurehunt.h"
#include "actor/worlds/builtin/env_batch.h"
#include "actor/worlds/builtin/grid.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    STRIDE = 16, /* of the padded map; its row 0, column 0 is (-1, -1) */
    MAP = (RM_TREASUREHUNT_SIZE_MAX + 2) * STRIDE,
    OBS = RM_TREASUREHUNT_VIEW * RM_TREASUREHUNT_VIEW,
    BLOCKS_PER_TURN = 16, /* Philox blocks: 64 draws. Blocks below 16 place the agents. */
};

struct world {
    uint8_t map[MAP]; /* code of every cell, two rings of wall included */
    uint64_t empty;   /* bit per cell inside */
    uint64_t episode;
    uint64_t key; /* of this episode's stream */
    uint32_t counter[4];
    uint32_t turn;
    uint8_t last;
    uint8_t at[RM_TREASUREHUNT_AGENTS_MAX]; /* index into map */
    int32_t reward[RM_TREASUREHUNT_AGENTS_MAX];
    uint32_t collected[RM_TREASUREHUNT_AGENTS_MAX], bumps[RM_TREASUREHUNT_AGENTS_MAX];
};

enum { COLLECTED, BUMPS, FIGURES };
static const struct rm_env_figure figures[FIGURES] = {
    [COLLECTED] = {"gems", "collected", NULL},
    [BUMPS] = {"bumps", "moves into a wall", NULL},
};

struct rm_env {
    struct rm_env_batch batch;
    uint32_t agents, turns, side; /* side: of the square inside */
    uint32_t final_observation, threshold;
    struct rm_env_agent agent[RM_TREASUREHUNT_AGENTS_MAX];
    char name[RM_TREASUREHUNT_AGENTS_MAX][24];
    uint8_t place[64]; /* cell inside -> index into map */
    uint8_t cell[MAP]; /* and back */
    uint8_t blank[MAP];
    struct world world[];
};

/* Channels: empty (always 0), wall, sand, gem, agent; summed over the two layers of the map. */
static const float codebook[RM_TREASUREHUNT_CODES][5] = {
    [RM_TREASUREHUNT_SAND] = {0, 0, 1, 0, 0},  [RM_TREASUREHUNT_GEM] = {0, 0, 1, 1, 0},
    [RM_TREASUREHUNT_AGENT] = {0, 0, 1, 0, 1}, [RM_TREASUREHUNT_WALL2] = {0, 2, 0, 0, 0},
    [RM_TREASUREHUNT_WALL1] = {0, 1, 0, 0, 0},
};

static const int32_t reward_of[RM_TREASUREHUNT_CODES] = {0, 10, 0, -1, -1};
static const uint8_t may_enter[RM_TREASUREHUNT_CODES] = {1, 1, 0, 0, 0};
static const int8_t delta[4] = {-STRIDE, STRIDE, -1, 1};

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("turns", 50, 1, 1e9, "turns in an episode"),
    RM_OPTION_NUMBER("spawn", 0.02, 0, 1, "probability that an empty cell becomes a gem, per turn"),
    RM_OPTION_WHOLE("agents", 5, 1, RM_TREASUREHUNT_AGENTS_MAX, "number of agents"),
    RM_OPTION_WHOLE("size", 10, 4, RM_TREASUREHUNT_SIZE_MAX, "side of the map, walls included"),
    RM_OPTION_WHOLE("final_observation", 0, 0, 1,
                    "1: the last row is a true observation, not void"),
    {.key = NULL},
};

static void spawn(const struct rm_env *env, struct world *world)
{
    uint32_t counter[4] = {BLOCKS_PER_TURN * (world->turn + 1), world->counter[1],
                           world->counter[2], world->counter[3]};
    uint32_t words[4 * BLOCKS_PER_TURN];
    rm_philox_blocks(world->key, counter, words, BLOCKS_PER_TURN);
    uint64_t gems =
        rm_treasurehunt_spawn(world->empty, rm_treasurehunt_hits(words, env->threshold));
    world->empty &= ~gems;
    for (; gems; gems &= gems - 1)
        world->map[env->place[__builtin_ctzll(gems)]] = RM_TREASUREHUNT_GEM;
}

static uint64_t all_cells(const struct rm_env *env)
{
    uint32_t cells = env->side * env->side;
    return cells == 64 ? ~(uint64_t)0 : ((uint64_t)1 << cells) - 1;
}

static struct rm_rng open_stream(const struct rm_env *env, uint32_t w, struct world *world)
{
    struct rm_rng rng = rm_env_rng(env->batch.seed, env->batch.first_world + w, world->episode);
    world->key = rng.key;
    memcpy(world->counter, rng.counter, sizeof(world->counter));
    return rng;
}

static void begin_episode(const struct rm_env *env, uint32_t w, uint64_t episode)
{
    struct world *world = (struct world *)&env->world[w];
    world->episode = episode;
    struct rm_rng rng = open_stream(env, w, world);
    memcpy(world->map, env->blank, MAP);
    world->empty = all_cells(env);
    world->turn = 0;
    world->last = 0;
    for (uint32_t a = 0, cells = env->side * env->side; a < env->agents; a++) {
        uint32_t cell = rm_treasurehunt_nth_bit(world->empty, rm_rng_below(&rng, cells - a));
        world->empty &= ~((uint64_t)1 << cell);
        world->at[a] = env->place[cell];
        world->map[world->at[a]] = RM_TREASUREHUNT_AGENT;
        world->reward[a] = 0;
        world->collected[a] = world->bumps[a] = 0;
    }
    spawn(env, world);
}

/* After the last agent of a turn: the next turn, the last row, or a new episode. */
static void end_turn(const struct rm_env *env, uint32_t w)
{
    struct world *world = (struct world *)&env->world[w];
    if (world->last) {
        begin_episode(env, w, world->episode + 1);
        return;
    }
    world->turn++;
    world->last = world->turn >= env->turns;
    if (!world->last || env->final_observation)
        spawn(env, world);
}

static void move(const struct rm_env *env, struct world *world, uint32_t a, int32_t action)
{
    uint32_t from = world->at[a], to = (uint32_t)((int32_t)from + delta[action]);
    uint32_t code = world->map[to];
    world->reward[a] = reward_of[code];
    world->collected[a] += code == RM_TREASUREHUNT_GEM;
    world->bumps[a] += reward_of[code] < 0;
    if (!may_enter[code])
        return;
    world->map[from] = RM_TREASUREHUNT_SAND;
    world->map[to] = RM_TREASUREHUNT_AGENT;
    world->empty |= (uint64_t)1 << env->cell[from];
    world->empty &= ~((uint64_t)1 << env->cell[to]);
    world->at[a] = (uint8_t)to;
}

/* The 5 x 5 window. Eight bytes a row overlap the next one, except in the last. */
static void observe(const struct world *world, uint32_t a, uint8_t *obs)
{
    const uint8_t *from = world->map + world->at[a] - 2 * STRIDE - 2;
    for (int r = 0; r < 4; r++)
        memcpy(obs + 5 * r, from + r * STRIDE, 8);
    memcpy(obs + 20, from + 4 * STRIDE, 5);
}

static void write_out(const struct rm_env *env, uint32_t a, const struct rm_env_buffers *out)
{
    uint8_t ending = RM_ENV_TRUNCATED | (env->final_observation ? 0 : RM_ENV_VOID);
    for (uint32_t w = 0; w < env->batch.worlds; w++) {
        const struct world *world = &env->world[w];
        observe(world, a, rm_env_at(out->obs, out->obs_stride, w));
        out->reward[w] = (float)world->reward[a];
        out->flags[w] = world->last ? ending : world->turn == 0 ? RM_ENV_FIRST : 0;
        if (world->last && out->figures) {
            out->figures[FIGURES * w + COLLECTED] = world->collected[a];
            out->figures[FIGURES * w + BUMPS] = world->bumps[a];
        }
    }
}

static int reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    for (uint32_t w = 0; w < env->batch.worlds; w++)
        begin_episode(env, w, 0);
    write_out(env, 0, &out[0]);
    return 0;
}

static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out)
{
    if (phase >= env->agents)
        return rm_env_fail(env->batch.error, -EINVAL, "phase %u: there are %u", phase, env->agents);
    for (uint32_t w = 0; w < env->batch.worlds; w++) {
        int32_t action = actions[phase][w];
        if (env->world[w].last)
            continue;
        if ((uint32_t)action > 3)
            return rm_env_fail(env->batch.error, -EINVAL,
                               "action %d of agent %u in world %" PRIu64 ": must be 0..3", action,
                               phase, env->batch.first_world + w);
        move(env, &env->world[w], phase, action);
    }
    uint32_t next = (phase + 1) % env->agents;
    if (next == 0)
        for (uint32_t w = 0; w < env->batch.worlds; w++)
            end_turn(env, w);
    write_out(env, next, &out[next]);
    return 0;
}

static size_t state_size(const struct rm_env *env)
{
    return env->batch.worlds * sizeof(struct rm_treasurehunt_state);
}

static int save_state(const struct rm_env *env, void *state)
{
    struct rm_treasurehunt_state *saved = state;
    memset(saved, 0, state_size(env));
    for (uint32_t w = 0; w < env->batch.worlds; w++, saved++) {
        const struct world *world = &env->world[w];
        saved->episode = world->episode;
        saved->turn = world->turn;
        saved->last = world->last;
        saved->agents = (uint8_t)env->agents;
        saved->gems = all_cells(env) & ~world->empty;
        for (uint32_t a = 0; a < env->agents; a++) {
            saved->gems &= ~((uint64_t)1 << env->cell[world->at[a]]);
            saved->y[a] = (uint8_t)(world->at[a] / STRIDE - 1);
            saved->x[a] = (uint8_t)(world->at[a] % STRIDE - 1);
            saved->reward[a] = world->reward[a];
            saved->collected[a] = world->collected[a];
            saved->bumps[a] = world->bumps[a];
        }
    }
    return 0;
}

static int load_world(struct rm_env *env, uint32_t w, const struct rm_treasurehunt_state *saved)
{
    struct world *world = &env->world[w];
    uint64_t taken = saved->gems;
    if (saved->agents != env->agents)
        return rm_env_fail(env->batch.error, -EINVAL,
                           "state of world %u: %u agents, this batch has %u", w, saved->agents,
                           env->agents);
    if (saved->turn > env->turns || saved->last != (saved->turn == env->turns))
        return rm_env_fail(env->batch.error, -EINVAL, "state of world %u: turn %u of %u, last %u",
                           w, saved->turn, env->turns, saved->last);
    if (taken & ~all_cells(env))
        return rm_env_fail(env->batch.error, -EINVAL, "state of world %u: a gem outside the map",
                           w);
    for (uint32_t a = 0; a < env->agents; a++) {
        uint32_t y = saved->y[a] - 1u, x = saved->x[a] - 1u;
        if (y >= env->side || x >= env->side)
            return rm_env_fail(env->batch.error, -EINVAL, "state of world %u: agent %u at (%u, %u)",
                               w, a, saved->y[a], saved->x[a]);
        uint64_t bit = (uint64_t)1 << (y * env->side + x);
        if (taken & bit)
            return rm_env_fail(env->batch.error, -EINVAL,
                               "state of world %u: two things at (%u, %u)", w, saved->y[a],
                               saved->x[a]);
        taken |= bit;
    }
    world->episode = saved->episode;
    world->turn = saved->turn;
    world->last = saved->last;
    world->empty = all_cells(env) & ~taken;
    open_stream(env, w, world);
    memcpy(world->map, env->blank, MAP);
    for (uint64_t gems = saved->gems; gems; gems &= gems - 1)
        world->map[env->place[__builtin_ctzll(gems)]] = RM_TREASUREHUNT_GEM;
    for (uint32_t a = 0; a < env->agents; a++) {
        world->at[a] = env->place[(saved->y[a] - 1u) * env->side + saved->x[a] - 1u];
        world->map[world->at[a]] = RM_TREASUREHUNT_AGENT;
        world->reward[a] = saved->reward[a];
        world->collected[a] = saved->collected[a];
        world->bumps[a] = saved->bumps[a];
    }
    return 0;
}

static int load_state(struct rm_env *env, const void *state)
{
    const struct rm_treasurehunt_state *saved = state;
    for (uint32_t w = 0; w < env->batch.worlds; w++) {
        int rc = load_world(env, w, &saved[w]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void draw_map(struct rm_env *env)
{
    uint32_t size = env->side + 2;
    memset(env->blank, RM_TREASUREHUNT_WALL1, MAP);
    for (uint32_t y = 0; y < size; y++) {
        for (uint32_t x = 0; x < size; x++) {
            uint32_t at = (y + 1) * STRIDE + x + 1;
            bool inside = y > 0 && x > 0 && y <= env->side && x <= env->side;
            env->blank[at] = inside ? RM_TREASUREHUNT_SAND : RM_TREASUREHUNT_WALL2;
            if (!inside)
                continue;
            uint32_t cell = (y - 1) * env->side + x - 1;
            env->place[cell] = (uint8_t)at;
            env->cell[at] = (uint8_t)cell;
        }
    }
}

/* --- showing ---------------------------------------------------------------------------------- */

static const struct rm_grid_look *look(const struct rm_env *env, const void *of, uint32_t row,
                                       uint32_t column)
{
    static const struct rm_grid_look sand = {".", {236, 222, 184}}, gem = {"*", {32, 178, 120}},
                                     wall = {"#", {92, 84, 76}};
    static const struct rm_grid_look agents[RM_TREASUREHUNT_AGENTS_MAX] = {
        {"0", {214, 69, 65}}, {"1", {31, 119, 180}},  {"2", {255, 140, 0}}, {"3", {148, 103, 189}},
        {"4", {23, 60, 120}}, {"5", {227, 119, 194}}, {"6", {60, 60, 60}},  {"7", {140, 86, 75}},
    };
    const struct world *world = of;
    const uint32_t at = (row + 1) * STRIDE + column + 1;
    for (uint32_t a = 0; a < env->agents; a++)
        if (world->at[a] == at)
            return &agents[a];
    return world->map[at] == RM_TREASUREHUNT_GEM    ? &gem
           : world->map[at] == RM_TREASUREHUNT_SAND ? &sand
                                                    : &wall;
}

static struct rm_grid grid_of(const struct rm_env *env, uint32_t w)
{
    return (struct rm_grid){.rows = env->side + 2,
                            .columns = env->side + 2,
                            .look = look,
                            .env = env,
                            .world = &env->world[w]};
}

static int show_text(const struct rm_env *env, uint32_t w, char *text, size_t size)
{
    const struct rm_grid grid = grid_of(env, w);
    char below[48];
    snprintf(below, sizeof(below), "turn %u of %u", env->world[w].turn, env->turns);
    return rm_grid_text(&grid, below, text, size);
}

static int show_picture(const struct rm_env *env, uint32_t w, uint8_t *rgb)
{
    const struct rm_grid grid = grid_of(env, w);
    return rm_grid_picture(&grid, rgb);
}

static void describe_agents(struct rm_env *env)
{
    for (uint32_t a = 0; a < env->agents; a++) {
        snprintf(env->name[a], sizeof(env->name[a]), "agent_%u", a);
        env->agent[a] = (struct rm_env_agent){
            .name = env->name[a],
            .phase = a,
            .dtype = RM_ENV_CODE8,
            .dims = 2,
            .shape = {RM_TREASUREHUNT_VIEW, RM_TREASUREHUNT_VIEW},
            .low = 0,
            .high = 2,
            .codes = RM_TREASUREHUNT_CODES,
            .channels = 5,
            .codebook = &codebook[0][0],
            .actions = 4,
        };
    }
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    uint32_t agents = rm_env_option_u32(config, options, "agents");
    uint32_t side = rm_env_option_u32(config, options, "size") - 2;
    double p = rm_env_option(config, options, "spawn");
    if (agents > side * side) {
        snprintf(error, error_size, "%u agents do not fit into the %u cells of a map of size %u",
                 agents, side * side, side + 2);
        return NULL;
    }
    struct rm_env *env = rm_env_batch_create(
        config, sizeof(*env) + config->worlds * sizeof(env->world[0]), error, error_size);
    if (!env)
        return NULL;
    env->agents = agents;
    env->side = side;
    env->turns = rm_env_option_u32(config, options, "turns");
    env->final_observation = rm_env_option_u32(config, options, "final_observation");
    env->threshold = rm_treasurehunt_threshold(p);
    draw_map(env);
    describe_agents(env);

    /* Random: simulated, 100,000 episodes, for the default options only. The upper end is what
     * spawns on average, all collected. */
    bool standard = agents == 5 && side == 8 && env->turns == 50 && p == 0.02;
    env->batch.spec = (struct rm_env_spec){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof(struct rm_env_spec),
        .name = "treasurehunt",
        .doc = "agents collect gems in a walled grid, acting in order",
        .agents = agents,
        .phases = agents,
        .agent = env->agent,
        .max_steps = env->turns,
        RM_ENV_FIGURES(figures),
        .score_low = -(double)env->turns * agents,
        .score_high = 10.0 * p * (side * side - agents) * env->turns,
        .score_random = standard ? 257.65 : NAN,
        .score_solved = NAN,
    };
    const struct rm_grid grid = grid_of(env, 0);
    rm_grid_describe(&grid, &env->batch.spec);
    return env;
}

extern const struct rm_env_ops rm_treasurehunt_ops;
const struct rm_env_ops rm_treasurehunt_ops = {
    RM_ENV_BATCH_OPS,         .name = "treasurehunt",
    .options = options,       .create = create,
    .reset = reset,           .step = step,
    .state_size = state_size, .save_state = save_state,
    .load_state = load_state, .close = rm_env_batch_close,
    .show_text = show_text,   .show_picture = show_picture,
};
