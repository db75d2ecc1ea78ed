/* connect: two players put marks on a board in turn; who first has `line` of them in a row, column
 * or diagonal wins 1 from the other, and a full board without one is a draw. With gravity a player
 * chooses a column and the mark falls to its lowest empty cell (the default is connect four), else
 * an empty cell, row by row (3 x 3 with lines of 3 is noughts and crosses).
 *
 * x, agent 0, acts in phase 0, and o, agent 1, in phase 1. Each sees {empty, mine, theirs}. If o
 * ends the game, the next step's rows are the last ones. If x ends it, o still has its turn in the
 * step: it sees the final board and is paid, every action is legal and none has an effect, and the
 * last rows follow. With `opponent` there is one agent and one phase, and the world plays the other
 * side, uniformly at random.
 *
 * A board is two masks of bits, row by row from the top, each row followed by a bit that is always
 * 0, so that lines do not run on over the side. */
#include "actor/worlds/builtin/connect.h"
#include "actor/worlds/builtin/env_batch.h"
#include "actor/worlds/builtin/grid.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { AGENTS = 2, SIDE_MAX = 8, CELLS_MAX = SIDE_MAX * SIDE_MAX, OPENING_TRIES = 16 };

struct rm_env {
    struct rm_env_batch batch;
    uint32_t agents, actions;
    uint32_t rows, columns, stride, line, gravity, opening, opponent, second;
    uint64_t board; /* all cells */
    uint64_t column_mask[SIDE_MAX];
    uint64_t cell_bit[CELLS_MAX]; /* row by row */
    float draw;
    struct rm_env_agent agent[AGENTS];
    struct rm_connect_game game[]; /* [worlds] */
};

/* {mine, theirs} for each code. */
static const float codebook[3][2] = {{0, 0}, {1, 0}, {0, 1}};

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("columns", 7, 3, SIDE_MAX, "columns of the board"),
    RM_OPTION_WHOLE("rows", 6, 3, SIDE_MAX, "rows of the board"),
    RM_OPTION_WHOLE("line", 4, 3, SIDE_MAX, "marks in a line that win"),
    RM_OPTION_WHOLE("gravity", 1, 0, 1,
                    "1: marks fall to the bottom of a column; 0: they stay where they are put"),
    RM_OPTION_NUMBER("draw", 0, -1, 1, "what a draw pays both"),
    RM_OPTION_WHOLE("opening", 0, 0, 8,
                    "marks of each player that are on the board at the start, at random"),
    RM_OPTION_WHOLE("opponent", 0, 0, 1,
                    "1: one agent, and the world plays the other side at random"),
    RM_OPTION_WHOLE("second", 0, 0, 1, "with opponent 1, 1: the opponent begins"),
    {.key = NULL},
};

/* --- the rules -------------------------------------------------------------------------------- */

static int has_line(const struct rm_env *env, uint64_t marks)
{
    const uint32_t directions[4] = {1, env->stride, env->stride + 1, env->stride - 1};
    for (int d = 0; d < 4; d++) {
        uint64_t run = marks;
        for (uint32_t i = 1; i < env->line && run; i++) {
            uint32_t shift = i * directions[d];
            run &= shift < 64 ? marks >> shift : 0;
        }
        if (run)
            return 1;
    }
    return 0;
}

/* The bit that an action sets, 0 if it is not legal. */
static uint64_t target(const struct rm_env *env, const struct rm_connect_game *game,
                       uint32_t action)
{
    uint64_t taken = game->marks[0] | game->marks[1];
    if (!env->gravity)
        return env->cell_bit[action] & ~taken;
    uint64_t room = env->column_mask[action] & ~taken;
    return room ? (uint64_t)1 << (63 - __builtin_clzll(room)) : 0;
}

static void place(const struct rm_env *env, struct rm_connect_game *game, uint32_t player,
                  uint64_t bit)
{
    game->marks[player] |= bit;
    if (has_line(env, game->marks[player])) {
        game->over = 1;
        game->reward[player] += 1;
        game->reward[!player] -= 1;
    } else if ((game->marks[0] | game->marks[1]) == env->board) {
        game->over = 1;
        game->reward[0] += env->draw;
        game->reward[1] += env->draw;
    }
}

/* A legal move, each with equal probability. */
static void place_random(const struct rm_env *env, struct rm_connect_game *game, uint32_t player)
{
    uint64_t bits[CELLS_MAX];
    uint32_t legal = 0;
    for (uint32_t a = 0; a < env->actions; a++) {
        bits[legal] = target(env, game, a);
        legal += bits[legal] != 0;
    }
    place(env, game, player, bits[rm_rng_below(&game->rng, legal)]);
}

static void clear(struct rm_connect_game *game)
{
    game->marks[0] = game->marks[1] = 0;
    game->reward[0] = game->reward[1] = 0;
    game->over = 0;
}

static void begin(struct rm_env *env, uint32_t w, uint64_t episode)
{
    struct rm_connect_game *game = &env->game[w];
    memset(game, 0, sizeof(*game));
    game->episode = episode;
    game->rng = rm_env_rng(env->batch.seed, env->batch.first_world + w, episode);
    game->fresh[0] = game->fresh[1] = 1;
    /* An opening that ends the game is drawn again; after some tries the board stays empty. */
    for (int tries = 0; tries < OPENING_TRIES; tries++) {
        clear(game);
        for (uint32_t ply = 0; ply < 2 * env->opening && !game->over; ply++)
            place_random(env, game, ply % 2);
        if (!game->over)
            break;
    }
    if (game->over)
        clear(game);
    if (env->second)
        place_random(env, game, 0);
}

/* --- rows ------------------------------------------------------------------------------------- */

static const char *const results[] = {"won", "lost", "drawn", NULL};
static const struct rm_env_figure figures[] = {{"result", "of the game", results}};

/* Place of the word for how the game ended for `player`. */
static uint32_t result_of(const struct rm_env *env, const struct rm_connect_game *game,
                          uint32_t player)
{
    return has_line(env, game->marks[player]) ? 0 : has_line(env, game->marks[!player]) ? 1 : 2;
}

/* Observation, mask, reward and flags of one agent, who plays `player`, for every world. */
static void write_rows(struct rm_env *env, uint32_t player, const struct rm_env_buffers *out)
{
    const uint32_t cells = env->rows * env->columns;
    for (uint32_t w = 0; w < env->batch.worlds; w++) {
        struct rm_connect_game *game = &env->game[w];
        uint8_t *obs = rm_env_at(out->obs, out->obs_stride, w);
        uint8_t *mask = rm_env_at(out->mask, out->mask_stride, w);
        for (uint32_t c = 0; c < cells; c++) {
            uint32_t mine = (game->marks[player] & env->cell_bit[c]) != 0;
            uint32_t theirs = (game->marks[!player] & env->cell_bit[c]) != 0;
            obs[c] = (uint8_t)(mine + 2 * theirs);
        }
        for (uint32_t a = 0; a < env->actions; a++)
            mask[a] = game->over || target(env, game, a);
        out->flags[w] = game->last ? RM_ENV_TERMINATED : game->fresh[player] ? RM_ENV_FIRST : 0;
        if (game->last && out->figures)
            out->figures[w] = result_of(env, game, player);
        out->reward[w] = game->reward[player];
        game->reward[player] = 0;
        game->fresh[player] = 0;
    }
}

static int reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    for (uint32_t w = 0; w < env->batch.worlds; w++)
        begin(env, w, 0);
    write_rows(env, env->second, &out[0]);
    return 0;
}

static int play(struct rm_env *env, uint32_t w, uint32_t player, int32_t action)
{
    struct rm_connect_game *game = &env->game[w];
    uint64_t bit = (uint32_t)action < env->actions ? target(env, game, (uint32_t)action) : 0;
    if (!bit)
        return rm_env_fail(env->batch.error, -EINVAL, "action %d of %s in world %" PRIu64 " is %s",
                           action, player ? "o" : "x", env->batch.first_world + w,
                           (uint32_t)action < env->actions ? "masked out" : "out of range");
    place(env, game, player, bit);
    if (env->opponent && !game->over)
        place_random(env, game, !player);
    return 0;
}

static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out)
{
    if (phase >= env->agents)
        return rm_env_fail(env->batch.error, -EINVAL, "phase %u: there are %u", phase, env->agents);
    uint32_t player = env->opponent ? env->second : phase, next = (phase + 1) % env->agents;
    for (uint32_t w = 0; w < env->batch.worlds; w++) {
        struct rm_connect_game *game = &env->game[w];
        if (!game->over) {
            int rc = play(env, w, player, actions[phase][w]);
            if (rc < 0)
                return rc;
        }
        if (next == 0 && game->last)
            begin(env, w, game->episode + 1);
        else if (next == 0 && game->over)
            game->last = 1;
    }
    write_rows(env, env->opponent ? env->second : next, &out[next]);
    return 0;
}

/* --- showing ---------------------------------------------------------------------------------- */

static const struct rm_grid_look *look(const struct rm_env *env, const void *of, uint32_t row,
                                       uint32_t column)
{
    static const struct rm_grid_look none = {".", {236, 236, 240}}, x = {"x", {214, 69, 65}},
                                     o = {"o", {240, 190, 40}};
    const struct rm_connect_game *game = of;
    const uint64_t bit = env->cell_bit[row * env->columns + column];
    return game->marks[0] & bit ? &x : game->marks[1] & bit ? &o : &none;
}

static struct rm_grid grid_of(const struct rm_env *env, uint32_t w)
{
    return (struct rm_grid){.rows = env->rows,
                            .columns = env->columns,
                            .look = look,
                            .env = env,
                            .world = &env->game[w]};
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

static size_t state_size(const struct rm_env *env)
{
    return env->batch.worlds * sizeof(struct rm_connect_game);
}

static int save_state(const struct rm_env *env, void *state)
{
    memcpy(state, env->game, state_size(env));
    return 0;
}

static int load_state(struct rm_env *env, const void *state)
{
    const struct rm_connect_game *game = state;
    for (uint32_t w = 0; w < env->batch.worlds; w++)
        if (((game[w].marks[0] | game[w].marks[1]) & ~env->board) ||
            (game[w].marks[0] & game[w].marks[1]) || game[w].rng.used > 4)
            return rm_env_fail(env->batch.error, -EINVAL,
                               "state of world %u: not a board of this game", w);
    memcpy(env->game, state, state_size(env));
    return 0;
}

static void draw_board(struct rm_env *env)
{
    for (uint32_t r = 0; r < env->rows; r++) {
        for (uint32_t c = 0; c < env->columns; c++) {
            uint64_t bit = (uint64_t)1 << (r * env->stride + c);
            env->cell_bit[r * env->columns + c] = bit;
            env->column_mask[c] |= bit;
            env->board |= bit;
        }
    }
}

/* Random against random at noughts and crosses: x wins 737 of 1260 games, o 363, the rest are
 * drawn. */
static void fill_scores(struct rm_env *env)
{
    const double draw = env->draw;
    struct rm_env_spec *spec = &env->batch.spec;
    spec->score_random = spec->score_solved = NAN;
    if (!env->opponent) { /* of both agents together */
        spec->score_low = 2 * draw < 0 ? 2 * draw : 0;
        spec->score_high = 2 * draw > 0 ? 2 * draw : 0;
        return;
    }
    spec->score_low = -1;
    spec->score_high = 1;
    spec->score_solved = 0.9;
    if (env->rows == 3 && env->columns == 3 && !env->gravity && !env->opening)
        spec->score_random =
            (env->second ? 363.0 - 737.0 : 737.0 - 363.0) / 1260 + draw * 160 / 1260;
}

static void describe_game(struct rm_env *env)
{
    for (uint32_t a = 0; a < env->agents; a++) {
        uint32_t player = env->opponent ? env->second : a;
        env->agent[a] = (struct rm_env_agent){
            .name = player == 0 ? "x" : "o",
            .phase = a,
            .dtype = RM_ENV_CODE8,
            .dims = 2,
            .shape = {env->rows, env->columns},
            .low = 0,
            .high = 1,
            .codes = 3,
            .channels = 2,
            .codebook = &codebook[0][0],
            .actions = env->actions,
            .has_mask = 1,
        };
    }
    env->batch.spec = (struct rm_env_spec){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof(struct rm_env_spec),
        .name = "connect",
        .doc = "two players connect marks to a line: connect four, noughts and crosses",
        .agents = env->agents,
        .phases = env->agents,
        .agent = env->agent,
        .max_steps = (env->rows * env->columns + 1) / 2,
        RM_ENV_FIGURES(figures),
    };
    const struct rm_grid grid = grid_of(env, 0);
    rm_grid_describe(&grid, &env->batch.spec);
    fill_scores(env);
}

/* What the ranges of options cannot say; NULL if nothing is wrong. */
static const char *options_fault(const struct rm_env *env)
{
    if (env->rows * env->stride > 64)
        return "columns and rows: rows * (columns + 1) must be at most 64";
    if (env->line > env->rows && env->line > env->columns)
        return "line: longer than the board";
    if (2 * env->opening + 1 >= env->rows * env->columns)
        return "opening: fills the board";
    if (env->second && !env->opponent)
        return "second: needs opponent 1";
    return NULL;
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    struct rm_env *env = rm_env_batch_create(
        config, sizeof(*env) + config->worlds * sizeof(env->game[0]), error, error_size);
    if (!env)
        return NULL;
    env->rows = rm_env_option_u32(config, options, "rows");
    env->columns = rm_env_option_u32(config, options, "columns");
    env->stride = env->columns + 1;
    env->line = rm_env_option_u32(config, options, "line");
    env->gravity = rm_env_option_u32(config, options, "gravity");
    env->opening = rm_env_option_u32(config, options, "opening");
    env->opponent = rm_env_option_u32(config, options, "opponent");
    env->second = rm_env_option_u32(config, options, "second");
    env->draw = (float)rm_env_option(config, options, "draw");
    env->agents = env->opponent ? 1 : AGENTS;
    env->actions = env->gravity ? env->columns : env->rows * env->columns;
    const char *fault = options_fault(env);
    if (fault) {
        snprintf(error, error_size, "world.options.%s", fault);
        rm_env_batch_close(env);
        return NULL;
    }
    draw_board(env);
    describe_game(env);
    return env;
}

extern const struct rm_env_ops rm_connect_ops;
const struct rm_env_ops rm_connect_ops = {
    RM_ENV_BATCH_OPS,         .name = "connect",
    .options = options,       .create = create,
    .reset = reset,           .step = step,
    .state_size = state_size, .save_state = save_state,
    .load_state = load_state, .close = rm_env_batch_close,
    .show_text = show_text,   .show_picture = show_picture,
};
