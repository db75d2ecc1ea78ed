/* tictactoe: a worked example of a world outside Ringmaster's tree. It needs only env.h:
 *
 *     cc -std=c11 -O2 -fPIC -shared -I <where env.h is> -o tictactoe.so tictactoe.c
 *
 * Two agents take turns, so there are two phases: x (agent 0) moves in phase 0, o (agent 1) in
 * phase 1. Cells are numbered 0..8, row by row; action c puts a mark on cell c, and the mask allows
 * the empty ones. Each agent sees the board as {empty, mine, theirs}. Rewards: `win` for a win, its
 * negative for a loss, `draw` for a draw.
 *
 * The end of an episode. All agents get their last observation in the same step. If o ends the
 * game, the next step's observations are the last ones. If x ends it, o still has its turn in this
 * step: it sees the final board and is paid, but its move is a formality (every action is legal,
 * none has an effect), and the last observations follow. */
#include "env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 9, AGENTS = 2, FULL = (1 << CELLS) - 1 };

/* One game. Plain data, so saving and loading states is copying. */
struct game {
    uint64_t episode;
    uint16_t marks[AGENTS]; /* bit per cell */
    uint8_t over;           /* a line is made, or the board is full */
    uint8_t last;           /* the last observations are being given out */
    uint8_t first;          /* no agent has moved since the beginning */
    uint8_t unused;
    float reward[AGENTS]; /* earned and not yet given out */
};

struct rm_env {
    uint32_t worlds;
    uint64_t seed, first_world;
    float win, draw;
    uint32_t opening;
    struct rm_env_agent agent[AGENTS];
    struct rm_env_spec spec;
    char error[128];
    struct game game[]; /* [worlds] */
};

/* {mine, theirs} for each code. */
static const float codebook[3][2] = {{0, 0}, {1, 0}, {0, 1}};

static const uint16_t lines[8] = {0007, 0070, 0700, 0111, 0222, 0444, 0421, 0124};

static const struct rm_env_option_doc options[] = {
    {.key = "win", .fallback = 1, .low = 0, .high = 100, .doc = "reward for a win, a loss is -win"},
    {.key = "draw", .fallback = 0, .low = -100, .high = 100, .doc = "reward for a draw"},
    {.key = "opening", .fallback = 0, .low = 0, .high = 1, .doc = "1: a random mark of each agent"},
    {.key = NULL},
};

/* A number for (seed, world id, episode, draw) and nothing else: so a game goes the same way in
 * whatever batch its world is. The finaliser is SplitMix64's (Steele et al., 2014). */
static uint64_t random_number(const struct rm_env *env, uint32_t w, uint64_t draw)
{
    uint64_t parts[4] = {env->seed, env->first_world + w, env->game[w].episode, draw};
    uint64_t x = 0;
    for (int i = 0; i < 4; i++) {
        x = (x ^ parts[i]) + 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return x;
}

static void begin(struct rm_env *env, uint32_t w, uint64_t episode)
{
    struct game *game = &env->game[w];
    memset(game, 0, sizeof(*game));
    game->episode = episode;
    game->first = 1;
    if (!env->opening)
        return;
    uint32_t x = (uint32_t)(random_number(env, w, 0) % 9),
             o = (uint32_t)(random_number(env, w, 1) % 8);
    game->marks[0] = (uint16_t)(1 << x);
    game->marks[1] = (uint16_t)(1 << (o < x ? o : o + 1));
}

static void play(struct rm_env *env, struct game *game, uint32_t agent, int32_t cell)
{
    game->first = 0;
    game->marks[agent] |= (uint16_t)(1 << cell);
    for (int i = 0; i < 8; i++) {
        if ((game->marks[agent] & lines[i]) == lines[i]) {
            game->over = 1;
            game->reward[agent] += env->win;
            game->reward[!agent] -= env->win;
            return;
        }
    }
    if ((game->marks[0] | game->marks[1]) == FULL) {
        game->over = 1;
        game->reward[0] += env->draw;
        game->reward[1] += env->draw;
    }
}

/* Observation, mask, reward and flags of agent a, for every world. */
static void give(struct rm_env *env, uint32_t a, const struct rm_env_buffers *out)
{
    for (uint32_t w = 0; w < env->worlds; w++) {
        struct game *game = &env->game[w];
        uint8_t *obs = (uint8_t *)out->obs + (ptrdiff_t)w * out->obs_stride;
        uint8_t *mask = out->mask + (ptrdiff_t)w * out->mask_stride;
        for (int c = 0; c < CELLS; c++) {
            int mine = game->marks[a] >> c & 1, theirs = game->marks[!a] >> c & 1;
            obs[c] = (uint8_t)(mine + 2 * theirs);
            mask[c] = game->over || !(mine || theirs);
        }
        /* o's first observation of a game comes after x's first move. */
        uint8_t first =
            game->first || (a == 1 && __builtin_popcount(game->marks[0]) == 1 + (int)env->opening);
        out->flags[w] = game->last ? RM_ENV_TERMINATED : first ? RM_ENV_FIRST : 0;
        out->reward[w] = game->reward[a];
        game->reward[a] = 0;
    }
}

static int reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    for (uint32_t w = 0; w < env->worlds; w++)
        begin(env, w, 0);
    give(env, 0, &out[0]);
    return 0;
}

static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out)
{
    for (uint32_t w = 0; w < env->worlds; w++) {
        struct game *game = &env->game[w];
        int32_t cell = actions[phase][w];
        if (!game->over) {
            if (cell < 0 || cell >= CELLS || ((game->marks[0] | game->marks[1]) >> cell & 1)) {
                snprintf(env->error, sizeof(env->error),
                         "world %" PRIu64 ": agent %u may not play %d", env->first_world + w, phase,
                         cell);
                return -1;
            }
            play(env, game, phase, cell);
        }
        if (phase == 1 && game->last)
            begin(env, w, game->episode + 1);
        else if (phase == 1 && game->over)
            game->last = 1;
    }
    uint32_t next = !phase;
    give(env, next, &out[next]);
    return 0;
}

static size_t state_size(const struct rm_env *env)
{
    return env->worlds * sizeof(struct game);
}

static int save_state(const struct rm_env *env, void *state)
{
    memcpy(state, env->game, state_size(env));
    return 0;
}

static int load_state(struct rm_env *env, const void *state)
{
    memcpy(env->game, state, state_size(env));
    return 0;
}

static double option(const struct rm_env_config *config, const struct rm_env_option_doc *doc)
{
    for (uint32_t i = 0; i < config->option_count; i++)
        if (strcmp(config->options[i].key, doc->key) == 0)
            return config->options[i].value;
    return doc->fallback;
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    struct rm_env *env = calloc(1, sizeof(*env) + config->worlds * sizeof(struct game));
    if (!env) {
        snprintf(error, error_size, "no memory for %u games", config->worlds);
        return NULL;
    }
    env->worlds = config->worlds;
    env->seed = config->seed;
    env->first_world = config->first_world;
    env->win = (float)option(config, &options[0]);
    env->draw = (float)option(config, &options[1]);
    env->opening = option(config, &options[2]) != 0;

    for (uint32_t a = 0; a < AGENTS; a++) {
        env->agent[a] = (struct rm_env_agent){
            .name = a == 0 ? "x" : "o",
            .phase = a,
            .dtype = RM_ENV_CODE8,
            .dims = 2,
            .shape = {3, 3},
            .low = 0,
            .high = 1,
            .codes = 3,
            .channels = 2,
            .codebook = &codebook[0][0],
            .actions = CELLS,
            .has_mask = 1,
        };
    }
    env->spec = (struct rm_env_spec){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof(struct rm_env_spec),
        .name = "tictactoe",
        .doc = "noughts and crosses for two agents",
        .agents = AGENTS,
        .phases = AGENTS,
        .agent = env->agent,
        .max_steps = 5,
        .score_low = 2 * env->draw < 0 ? 2 * env->draw : 0, /* of both agents together */
        .score_high = 2 * env->draw > 0 ? 2 * env->draw : 0,
        .score_random = __builtin_nan(""),
        .score_solved = __builtin_nan(""),
    };
    return env;
}

static const struct rm_env_spec *describe(const struct rm_env *env)
{
    return &env->spec;
}

static void close_env(struct rm_env *env)
{
    free(env);
}

static const char *last_error(const struct rm_env *env)
{
    return env->error;
}

static const struct rm_env_ops ops = {
    .abi_version = RM_ENV_ABI_VERSION,
    .struct_size = sizeof(struct rm_env_ops),
    .name = "tictactoe",
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
};

/* The one symbol that Ringmaster looks up. */
const struct rm_env_ops *rm_env_entry(void);
const struct rm_env_ops *rm_env_entry(void)
{
    return &ops;
}
