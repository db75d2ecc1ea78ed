/* frozenlake: Gymnasium's FrozenLake-v1, on its two maps or one of the user's own. Cells are
 * numbered row by row from the top left, 0. Actions: 0 left, 1 down, 2 right, 3 up; at the border
 * one stays. On slippery ice the chosen direction is taken with probability `success`, and each of
 * the two at right angles to it with half of what is left. Arriving at the goal pays 1 and ends the
 * episode, a hole ends it.
 *
 * Options are numbers, so a map of one's own is a number per row, with a digit per cell. */
#include "actor/worlds/builtin/single.h"
#include "actor/worlds/builtin/tabular.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { LEFT = 0, DOWN, RIGHT, UP, ACTIONS };

enum { SIDE_MAX = 8 };

/* The digits of a row's number: their letters in Gymnasium's `desc`. */
static const char tiles[] = "?SFHG";

static const uint32_t map_4[SIDE_MAX] = {1222, 2323, 2223, 3224};
static const uint32_t map_8[SIDE_MAX] = {12222222, 22222222, 22232222, 22222322,
                                         22232222, 23322232, 23223232, 22232224};

#define ROW(number)                                                                                \
    {                                                                                              \
        "row_" number, 0, 0, 44444444, "the next row"                                              \
    }

static const struct rm_env_option_doc options[] = {
    {"size", 4, 4, 8, "side of the map: 4 or 8"},
    {"slippery", 1, 0, 1, "0: one goes where one wants to"},
    {"success", 1.0 / 3, 0, 1, "probability of going where one wants to, on slippery ice"},
    {"max_steps", 0, 0, 1e6,
     "steps after which the episode is truncated; 0: 100, or 200 at size 8"},
    {"reward_goal", 1, -1e6, 1e6, "reward of arriving at a goal"},
    {"reward_hole", 0, -1e6, 1e6, "reward of falling into a hole"},
    {"reward_ice", 0, -1e6, 1e6, "reward of every other step"},
    {"row_1", 0, 0, 44444444,
     "a map of your own in place of `size`: its top row, a digit per cell: 1 start, 2 ice, 3 hole, "
     "4 goal; 0: none"},
    ROW("2"),
    ROW("3"),
    ROW("4"),
    ROW("5"),
    ROW("6"),
    ROW("7"),
    ROW("8"),
    {NULL, 0, 0, 0, NULL},
};

struct lake {
    uint32_t rows, columns;
    char tile[SIDE_MAX][SIDE_MAX]; /* S, F, H, G */
    bool slippery;
    double success;
    double goal, hole, ice; /* rewards */
};

/* Where one gets to from `cell`. */
static uint32_t go(const struct lake *lake, uint32_t cell, uint32_t direction)
{
    uint32_t row = cell / lake->columns, column = cell % lake->columns;
    if (direction == LEFT && column > 0)
        column--;
    else if (direction == DOWN && row < lake->rows - 1)
        row++;
    else if (direction == RIGHT && column < lake->columns - 1)
        column++;
    else if (direction == UP && row > 0)
        row--;
    return row * lake->columns + column;
}

static void add(struct rm_tabular_move *move, const struct lake *lake, uint32_t cell,
                uint32_t direction, double probability)
{
    uint32_t next = go(lake, cell, direction);
    char tile = lake->tile[next / lake->columns][next % lake->columns];
    rm_tabular_add(move, probability, next,
                   tile == 'G'   ? lake->goal
                   : tile == 'H' ? lake->hole
                                 : lake->ice,
                   tile == 'G' || tile == 'H');
}

static void fill(struct rm_tabular *table, const struct lake *lake)
{
    table->states = lake->rows * lake->columns;
    table->actions = ACTIONS;
    memset(table->legal, 1, sizeof(table->legal));
    for (uint32_t cell = 0; cell < table->states; cell++) {
        char tile = lake->tile[cell / lake->columns][cell % lake->columns];
        if (tile == 'S')
            table->start[table->starts++] = (uint16_t)cell;
        for (uint32_t a = 0; a < ACTIONS; a++) {
            struct rm_tabular_move *move = &table->move[cell][a];
            const double aside = (1 - lake->success) / 2;
            if (tile == 'G' || tile == 'H') {
                rm_tabular_add(move, 1, cell, 0, 1);
            } else if (!lake->slippery) {
                add(move, lake, cell, a, 1);
            } else {
                add(move, lake, cell, (a + 3) % 4, aside);
                add(move, lake, cell, a, lake->success);
                add(move, lake, cell, (a + 1) % 4, aside);
            }
        }
    }
}

static bool has_start(const struct lake *lake)
{
    for (uint32_t row = 0; row < lake->rows; row++)
        if (memchr(lake->tile[row], 'S', lake->columns))
            return true;
    return false;
}

/* The map that the numbers of its rows say; rows end with the first 0. -1 with a message. */
static int draw(struct lake *lake, const uint32_t *numbers, char *error, size_t error_size)
{
    for (uint32_t row = 0; row < SIDE_MAX; row++) {
        char digits[12];
        const uint32_t n = (uint32_t)snprintf(digits, sizeof(digits), "%u", numbers[row]);
        if (numbers[row] == 0)
            continue;
        if (row > lake->rows) {
            snprintf(error, error_size, "world.options.row_%u is %u, but row_%u is not there",
                     row + 1, numbers[row], lake->rows + 1);
            return -1;
        }
        if (strspn(digits, "1234") != n || (row > 0 && n != lake->columns)) {
            snprintf(error, error_size,
                     "world.options.row_%u is %u, must be digits 1 (start), 2 (ice), 3 (hole) and "
                     "4 (goal), as many in every row",
                     row + 1, numbers[row]);
            return -1;
        }
        lake->columns = n;
        lake->rows = row + 1;
        for (uint32_t column = 0; column < n; column++)
            lake->tile[row][column] = tiles[digits[column] - '0'];
    }
    if (!has_start(lake)) {
        snprintf(error, error_size, "world.options.row_1 to row_%u have no start, the digit 1",
                 lake->rows);
        return -1;
    }
    return 0;
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    static const char *const real[] = {"success", "reward_goal", "reward_hole", "reward_ice", NULL};
    if (rm_env_check_whole(config, real, error, error_size) < 0)
        return NULL;
    struct lake lake = {
        .slippery = rm_env_option(config, options, "slippery") != 0,
        .success = rm_env_option(config, options, "success"),
        .goal = rm_env_option(config, options, "reward_goal"),
        .hole = rm_env_option(config, options, "reward_hole"),
        .ice = rm_env_option(config, options, "reward_ice"),
    };
    uint32_t size = rm_env_option_u32(config, options, "size");
    uint32_t max_steps = rm_env_option_u32(config, options, "max_steps");
    uint32_t own[SIDE_MAX];
    bool is_own = false;
    for (uint32_t row = 0; row < SIDE_MAX; row++) {
        char key[8];
        snprintf(key, sizeof(key), "row_%u", row + 1);
        own[row] = rm_env_option_u32(config, options, key);
        is_own |= own[row] != 0;
    }
    if (size != 4 && size != 8) {
        snprintf(error, error_size, "world.options.size is %u, must be 4 or 8", size);
        return NULL;
    }
    if (draw(&lake, is_own ? own : size == 4 ? map_4 : map_8, error, error_size) < 0)
        return NULL;
    const bool usual = !is_own && lake.goal == 1 && lake.hole == 0 && lake.ice == 0;
    double solved = NAN;
    if (usual && !lake.slippery)
        solved = 1;
    else if (usual && lake.success == 1.0 / 3 && !max_steps)
        solved = size == 4 ? 0.7 : 0.85;
    if (!max_steps)
        max_steps = size == 4 ? 100 : 200;
    struct rm_tabular *table = rm_tabular_alloc(error, error_size);
    if (!table)
        return NULL;
    fill(table, &lake);
    struct rm_env *env = rm_tabular_create(config, "frozenlake",
                                           "cross slippery ice without falling in (FrozenLake-v1)",
                                           table, max_steps, solved, error, error_size);
    free(table);
    return env;
}

extern const struct rm_env_ops rm_frozenlake_ops;
const struct rm_env_ops rm_frozenlake_ops = {
    RM_SINGLE_OPS,    .name = "frozenlake",      .options = options,
    .create = create, .reset = rm_tabular_reset, .step = rm_tabular_step,
};
