/* taxi: Gymnasium's Taxi-v4 (Dietterich 2000, "Hierarchical reinforcement learning with the MAXQ
 * value function decomposition"). A taxi in a 5 x 5 town with walls drives a passenger from one of
 * four stands to another. Without rain and fickle passengers Taxi-v3 is the same.
 *
 * State: ((row * 5 + column) * 5 + passenger) * 4 + destination; passenger 4 is in the taxi.
 * Actions: 0 down, 1 up, 2 right, 3 left, 4 pick up, 5 drop off. -1 a step, +20 for the right
 * drop-off, which ends the episode, -10 for picking up or dropping off where that can't be done. In
 * rain a move goes ahead with probability `rainy_probability`, else to its left or right; where the
 * way ahead is blocked nothing moves. With probability `fickle_probability` the passenger of an
 * episode is fickle, and wants to go to one of the three other stands once the taxi has moved with
 * them aboard for the first time: until then the state is its twin. */
#include "actor/worlds/builtin/single.h"
#include "actor/worlds/builtin/tabular.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 5, STANDS = 4, ABOARD = 4, ACTIONS = 6, PICK_UP = 4, DROP_OFF = 5 };
enum { STATES = SIDE * SIDE * 5 * STANDS };
enum { DOWN = 0, UP, RIGHT, LEFT };

/* Gymnasium's 8 is more than the best policy's mean, 7.93: that no mean of many episodes reaches.
 */
#define SOLVED 7.7

struct place {
    int row, column;
};

static const struct place stands[STANDS] = {{0, 0}, {0, 4}, {4, 0}, {4, 3}};
static const struct place steps[4] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};

/* Which direction lies to the left and to the right of each. */
static const uint8_t left_of[4] = {RIGHT, LEFT, UP, DOWN}, right_of[4] = {LEFT, RIGHT, DOWN, UP};

/* Bit c of row r: a wall east of column c. */
static const uint8_t wall_east[SIDE] = {1 << 1, 1 << 1, 0, 1 << 0 | 1 << 2, 1 << 0 | 1 << 2};

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("mask", 1, 0, 1,
                    "0: all actions are allowed, and impossible ones do nothing at a price"),
    RM_OPTION_WHOLE("rain", 0, 0, 1, "1: moves may go astray"),
    RM_OPTION_NUMBER("rainy_probability", 0.8, 0, 1,
                     "in rain, probability of going ahead; else left or right"),
    RM_OPTION_WHOLE("fickle_passenger", 0, 0, 1, "1: passengers may change their mind on the way"),
    RM_OPTION_NUMBER("fickle_probability", 0.3, 0, 1,
                     "probability that the passenger of an episode does"),
    RM_OPTION_WHOLE("max_steps", 200, 1, 1e6, "steps after which the episode is truncated"),
    {.key = NULL},
};

struct weather {
    bool rain;
    double ahead; /* in rain: probability of going where one wants to */
};

static uint32_t encode(struct place at, uint32_t passenger, uint32_t destination)
{
    return (uint32_t)((at.row * SIDE + at.column) * 5 + (int)passenger) * STANDS + destination;
}

static bool open_way(struct place at, uint32_t direction)
{
    switch (direction) {
    case DOWN:
        return at.row < SIDE - 1;
    case UP:
        return at.row > 0;
    case RIGHT:
        return at.column < SIDE - 1 && !(wall_east[at.row] >> at.column & 1);
    default:
        return at.column > 0 && !(wall_east[at.row] >> (at.column - 1) & 1);
    }
}

static struct place go(struct place at, uint32_t direction)
{
    if (open_way(at, direction)) {
        at.row += steps[direction].row;
        at.column += steps[direction].column;
    }
    return at;
}

/* The stand at a place, or STANDS. */
static uint32_t stand_at(struct place at)
{
    uint32_t stand = 0;
    while (stand < STANDS && (stands[stand].row != at.row || stands[stand].column != at.column))
        stand++;
    return stand;
}

static void fill_move(struct rm_tabular_move *move, struct place at, uint32_t passenger,
                      uint32_t destination, uint32_t direction, const struct weather *weather)
{
    if (!weather->rain) {
        rm_tabular_add(move, 1, encode(go(at, direction), passenger, destination), -1, 0);
        return;
    }
    bool open = open_way(at, direction);
    struct place left = open ? go(at, left_of[direction]) : at;
    struct place right = open ? go(at, right_of[direction]) : at;
    const double ahead = weather->ahead, aside = (1 - ahead) / 2;
    rm_tabular_add(move, ahead, encode(go(at, direction), passenger, destination), -1, 0);
    rm_tabular_add(move, aside, encode(left, passenger, destination), -1, 0);
    rm_tabular_add(move, aside, encode(right, passenger, destination), -1, 0);
}

static void fill_state(struct rm_tabular *table, struct place at, uint32_t passenger,
                       uint32_t destination, const struct weather *weather)
{
    uint32_t state = encode(at, passenger, destination), here = stand_at(at);
    bool can_pick_up = passenger < ABOARD && here == passenger;
    bool can_drop_off = passenger == ABOARD && here < STANDS;
    for (uint32_t d = 0; d < 4; d++) {
        fill_move(&table->move[state][d], at, passenger, destination, d, weather);
        table->legal[state][d] = !table->has_mask || open_way(at, d);
    }
    table->legal[state][PICK_UP] = !table->has_mask || can_pick_up;
    table->legal[state][DROP_OFF] = !table->has_mask || can_drop_off;
    rm_tabular_add(&table->move[state][PICK_UP], 1,
                   can_pick_up ? encode(at, ABOARD, destination) : state, can_pick_up ? -1 : -10,
                   0);
    bool arrived = can_drop_off && here == destination;
    rm_tabular_add(&table->move[state][DROP_OFF], 1,
                   can_drop_off ? encode(at, here, destination) : state,
                   arrived        ? 20
                   : can_drop_off ? -1
                                  : -10,
                   arrived);
    if (passenger < ABOARD && passenger != destination)
        table->start[table->starts++] = (uint16_t)state;
}

/* Cells stand in odd columns, walls and open ways between them in even ones. */
static const struct rm_grid_look *look(const struct rm_tabular *table, uint32_t state, uint32_t row,
                                       uint32_t column)
{
    static const struct rm_grid_look wall = {"|", {90, 90, 96}}, way = {":", {226, 226, 226}},
                                     road = {" ", {226, 226, 226}}, taxi = {"@", {245, 200, 40}},
                                     full = {"#", {60, 150, 70}}, waiting = {"p", {50, 90, 200}},
                                     wanted = {"!", {200, 60, 170}};
    static const struct rm_grid_look names[STANDS] = {{"R", {250, 190, 190}},
                                                      {"G", {190, 240, 190}},
                                                      {"Y", {245, 240, 180}},
                                                      {"B", {190, 205, 250}}};
    const uint32_t passenger = state / STANDS % 5, destination = state % STANDS;
    const struct place here = {(int)row, (int)column / 2};
    (void)table;
    if (column % 2 == 0)
        return column == 0 || column == 2 * SIDE || (wall_east[row] >> (column / 2 - 1) & 1) ? &wall
                                                                                             : &way;
    const uint32_t stand = stand_at(here);
    if (state / (5 * STANDS) == row * SIDE + column / 2)
        return passenger == ABOARD ? &full : &taxi;
    return stand == STANDS        ? &road
           : stand == passenger   ? &waiting
           : stand == destination ? &wanted
                                  : &names[stand];
}

static void below(uint32_t state, char *text, size_t size)
{
    static const char names[] = "RGYB";
    const uint32_t passenger = state / STANDS % 5;
    if (passenger == ABOARD)
        snprintf(text, size, "passenger aboard, to %c", names[state % STANDS]);
    else
        snprintf(text, size, "passenger at %c, to %c", names[passenger], names[state % STANDS]);
}

static const char *const ends[] = {"delivered", "time", NULL};
static const struct rm_env_figure end = {"end", "what ended the episode", ends};

static void fill(struct rm_tabular *table, const struct weather *weather)
{
    table->end = &end;
    table->rows = SIDE;
    table->columns = 2 * SIDE + 1;
    table->look = look;
    table->below = below;
    table->states = STATES;
    table->actions = ACTIONS;
    for (struct place at = {0, 0}; at.row < SIDE; at.row++)
        for (at.column = 0; at.column < SIDE; at.column++)
            for (uint32_t passenger = 0; passenger <= ABOARD; passenger++)
                for (uint32_t destination = 0; destination < STANDS; destination++)
                    fill_state(table, at, passenger, destination, weather);
}

/* The fickle twin of a move: a passenger who is driven for the first time changes the
 * destination. */
static void fill_fickle_move(struct rm_tabular_move *twin, const struct rm_tabular_move *move,
                             uint32_t state)
{
    const uint32_t place = state / (5 * STANDS), destination = state % STANDS;
    const bool aboard = state / STANDS % 5 == ABOARD;
    for (uint32_t o = 0; o < move->outcomes; o++) {
        const struct rm_tabular_outcome *out = &move->outcome[o];
        if (!aboard || out->next / (5 * STANDS) == place) {
            rm_tabular_add(twin, out->probability, out->next + STATES, (double)out->reward,
                           out->terminated);
            continue;
        }
        for (uint32_t d = 0; d < STANDS; d++)
            if (d != destination)
                rm_tabular_add(twin, out->probability / (STANDS - 1), out->next - destination + d,
                               (double)out->reward, 0);
    }
}

static void fill_fickle(struct rm_tabular *table, double probability)
{
    table->twins = probability;
    for (uint32_t s = 0; s < STATES; s++)
        for (uint32_t a = 0; a < ACTIONS; a++) {
            fill_fickle_move(&table->move[STATES + s][a], &table->move[s][a], s);
            table->legal[STATES + s][a] = table->legal[s][a];
        }
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    uint32_t max_steps = rm_env_option_u32(config, options, "max_steps");
    const struct weather weather = {
        .rain = rm_env_option(config, options, "rain") != 0,
        .ahead = rm_env_option(config, options, "rainy_probability"),
    };
    const bool fickle = rm_env_option(config, options, "fickle_passenger") != 0;
    struct rm_tabular *table = rm_tabular_alloc(error, error_size);
    if (!table)
        return NULL;
    table->has_mask = rm_env_option_u32(config, options, "mask");
    fill(table, &weather);
    if (fickle)
        fill_fickle(table, rm_env_option(config, options, "fickle_probability"));
    const bool plain = !weather.rain && !fickle && max_steps == 200;
    struct rm_env *env = rm_tabular_create(
        config, "taxi", "fetch a passenger and drive to the destination (Taxi-v4)", table,
        max_steps, plain ? SOLVED : NAN, error, error_size);
    free(table);
    return env;
}

extern const struct rm_env_ops rm_taxi_ops;
const struct rm_env_ops rm_taxi_ops = {
    RM_TABULAR_OPS,
    .name = "taxi",
    .options = options,
    .create = create,
};
