/* frozenlake: Gymnasium's FrozenLake-v1, on its two maps. Cells are numbered row by row from the
 * start, 0; the goal is the last one. Actions: 0 left, 1 down, 2 right, 3 up; at the border one
 * stays. On slippery ice the chosen direction is taken with probability `success`, and each of the
 * two at right angles to it with half of what is left. Arriving at the goal pays 1 and ends the
 * episode, a hole ends it. */
#include "actor/envs/single.h"
#include "actor/envs/tabular.h"

#include <math.h>
#include <stdbool.h>

enum { LEFT = 0, DOWN, RIGHT, UP, ACTIONS };

static const char *const map_4[] = {"SFFF", "FHFH", "FFFH", "HFFG"};
static const char *const map_8[] = {"SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF",
                                    "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"};

static const struct rm_env_option_doc options[] = {
    {"size", 4, 4, 8, "side of the map: 4 or 8"},
    {"slippery", 1, 0, 1, "0: one goes where one wants to"},
    {"success", 1.0 / 3, 0, 1, "probability of going where one wants to, on slippery ice"},
    {"max_steps", 0, 0, 1e6,
     "steps after which the episode is truncated; 0: 100, or 200 at size 8"},
    {NULL, 0, 0, 0, NULL},
};

/* Where one gets to from `cell`. */
static uint32_t go(uint32_t cell, uint32_t size, uint32_t direction)
{
    uint32_t row = cell / size, column = cell % size;
    if (direction == LEFT && column > 0)
        column--;
    else if (direction == DOWN && row < size - 1)
        row++;
    else if (direction == RIGHT && column < size - 1)
        column++;
    else if (direction == UP && row > 0)
        row--;
    return row * size + column;
}

static void add(struct rm_tabular_move *move, const char *const *map, uint32_t size, uint32_t cell,
                uint32_t direction, double probability)
{
    uint32_t next = go(cell, size, direction);
    char tile = map[next / size][next % size];
    rm_tabular_add(move, probability, next, tile == 'G', tile == 'G' || tile == 'H');
}

static void fill(struct rm_tabular *table, uint32_t size, bool slippery, double success)
{
    const char *const *map = size == 4 ? map_4 : map_8;
    table->states = size * size;
    table->actions = ACTIONS;
    table->starts = 1;
    memset(table->legal, 1, sizeof(table->legal));
    for (uint32_t cell = 0; cell < table->states; cell++) {
        char tile = map[cell / size][cell % size];
        for (uint32_t a = 0; a < ACTIONS; a++) {
            struct rm_tabular_move *move = &table->move[cell][a];
            if (tile == 'G' || tile == 'H') {
                rm_tabular_add(move, 1, cell, 0, 1);
            } else if (!slippery) {
                add(move, map, size, cell, a, 1);
            } else {
                add(move, map, size, cell, (a + 3) % 4, (1 - success) / 2);
                add(move, map, size, cell, a, success);
                add(move, map, size, cell, (a + 1) % 4, (1 - success) / 2);
            }
        }
    }
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    static const char *const real[] = {"success", NULL};
    if (rm_env_check_whole(config, real, error, error_size) < 0)
        return NULL;
    uint32_t size = rm_env_option_u32(config, options, "size");
    uint32_t max_steps = rm_env_option_u32(config, options, "max_steps");
    bool slippery = rm_env_option(config, options, "slippery") != 0;
    double success = rm_env_option(config, options, "success");
    if (size != 4 && size != 8) {
        snprintf(error, error_size, "world.options.size is %u, must be 4 or 8", size);
        return NULL;
    }
    struct rm_tabular table = {0};
    fill(&table, size, slippery, success);
    double solved = size == 4 ? 0.7 : 0.85;
    if (!slippery)
        solved = 1;
    else if (success != 1.0 / 3 || max_steps)
        solved = NAN;
    if (!max_steps)
        max_steps = size == 4 ? 100 : 200;
    return rm_tabular_create(config, "frozenlake",
                             "cross slippery ice without falling in (FrozenLake-v1)", &table,
                             max_steps, solved, error, error_size);
}

extern const struct rm_env_ops rm_frozenlake_ops;
const struct rm_env_ops rm_frozenlake_ops = {
    RM_SINGLE_OPS,    .name = "frozenlake",      .options = options,
    .create = create, .reset = rm_tabular_reset, .step = rm_tabular_step,
};
