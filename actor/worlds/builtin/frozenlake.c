/* frozenlake: Gymnasium's FrozenLake-v1, on its two maps or one of the user's own. Cells are
 * numbered row by row from the top left, 0. Actions: 0 left, 1 down, 2 right, 3 up; at the border
 * one stays. On slippery ice the chosen direction is taken with probability `success`, and each of
 * the two at right angles to it with half of what is left. Arriving at the goal pays 1 and ends the
 * episode, a hole ends it. */
#include "actor/worlds/builtin/single.h"
#include "actor/worlds/builtin/tabular.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { LEFT = 0, DOWN, RIGHT, UP, ACTIONS };

enum { SIDE_MAX = 8 };

/* Letters of a map: start, ice, hole, goal. */
#define TILES "SFHG"

static const char *const map_4[] = {"SFFF", "FHFH", "FFFH", "HFFG"};
static const char *const map_8[] = {"SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF",
                                    "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"};

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("size", 4, 4, 8, "side of the map: 4 or 8"),
    RM_OPTION_WHOLE("slippery", 1, 0, 1, "0: one goes where one wants to"),
    RM_OPTION_NUMBER("success", 1.0 / 3, 0, 1,
                     "probability of going where one wants to, on slippery ice"),
    RM_OPTION_WHOLE("max_steps", 0, 0, 1e6,
                    "steps after which the episode is truncated; 0: 100, or 200 at size 8"),
    RM_OPTION_NUMBER("reward_goal", 1, -1e6, 1e6, "reward of arriving at a goal"),
    RM_OPTION_NUMBER("reward_hole", 0, -1e6, 1e6, "reward of falling into a hole"),
    RM_OPTION_NUMBER("reward_ice", 0, -1e6, 1e6, "reward of every other step"),
    {.key = "desc",
     .doc = "a map of your own in place of `size`: its rows from the top, a letter per cell: S "
            "start, F ice, H hole, G goal",
     .type = RM_ENV_WORD,
     .most = SIDE_MAX},
    {.key = NULL},
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

static const struct rm_grid_look *look(const struct rm_tabular *table, uint32_t state, uint32_t row,
                                       uint32_t column)
{
    static const struct rm_grid_look start = {"S", {200, 220, 200}}, ice = {"F", {214, 234, 248}},
                                     hole = {"H", {40, 60, 110}}, goal = {"G", {240, 200, 60}},
                                     agent = {"@", {214, 69, 65}};
    const uint32_t cell = row * table->columns + column;
    const char tile = table->tile[cell];
    return state == cell ? &agent
           : tile == 'S' ? &start
           : tile == 'H' ? &hole
           : tile == 'G' ? &goal
                         : &ice;
}

enum { AT_GOAL = 0, IN_HOLE };
static const char *const ends[] = {"goal", "hole", "time", NULL};
static const struct rm_env_figure end = {"end", "where the episode ended", ends};

static void fill(struct rm_tabular *table, const struct lake *lake)
{
    table->end = &end;
    table->rows = lake->rows;
    table->columns = lake->columns;
    table->look = look;
    table->states = lake->rows * lake->columns;
    table->actions = ACTIONS;
    memset(table->legal, 1, sizeof(table->legal));
    for (uint32_t cell = 0; cell < table->states; cell++) {
        char tile = lake->tile[cell / lake->columns][cell % lake->columns];
        if (tile == 'S')
            table->start[table->starts++] = (uint16_t)cell;
        table->tile[cell] = tile;
        table->end_word[cell] = tile == 'G' ? AT_GOAL : IN_HOLE;
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

/* Takes a map. -1 with a message. */
static int draw(struct lake *lake, const char *const *rows, uint32_t count, char *error,
                size_t error_size)
{
    lake->rows = count;
    lake->columns = (uint32_t)strlen(rows[0]);
    for (uint32_t row = 0; row < count; row++) {
        const size_t n = strlen(rows[row]);
        if (n < 1 || n > SIDE_MAX || strspn(rows[row], TILES) != n || n != lake->columns) {
            snprintf(error, error_size,
                     "world.options.desc[%u] is \"%.20s\", must be 1 to %d letters S (start), F "
                     "(ice), H (hole) and G (goal), as many in every row",
                     row, rows[row], SIDE_MAX);
            return -1;
        }
        memcpy(lake->tile[row], rows[row], n);
    }
    if (!has_start(lake)) {
        snprintf(error, error_size, "world.options.desc has no start, the letter S");
        return -1;
    }
    return 0;
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    struct lake lake = {
        .slippery = rm_env_option(config, options, "slippery") != 0,
        .success = rm_env_option(config, options, "success"),
        .goal = rm_env_option(config, options, "reward_goal"),
        .hole = rm_env_option(config, options, "reward_hole"),
        .ice = rm_env_option(config, options, "reward_ice"),
    };
    uint32_t size = rm_env_option_u32(config, options, "size");
    uint32_t max_steps = rm_env_option_u32(config, options, "max_steps");
    const struct rm_env_option *desc = rm_env_find_option(config, "desc");
    const bool is_own = desc && desc->count > 0;
    if (size != 4 && size != 8) {
        snprintf(error, error_size, "world.options.size is %u, must be 4 or 8", size);
        return NULL;
    }
    const char *const *map = is_own ? desc->texts : size == 4 ? map_4 : map_8;
    if (draw(&lake, map, is_own ? desc->count : size, error, error_size) < 0)
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
    RM_TABULAR_OPS,
    .name = "frozenlake",
    .options = options,
    .create = create,
};
