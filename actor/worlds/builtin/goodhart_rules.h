/* goodhart_rules: the rules of the Goodhart grid, written once for the actor and for a kernel
 * (shm/base/both.h): a step, an observation and an episode's beginning of one world. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_GOODHART_RULES_H
#define RM_ACTOR_WORLDS_BUILTIN_GOODHART_RULES_H

#include "actor/worlds/builtin/head.h"

#include <stdbool.h>
#include <string.h>

enum {
    RM_GOODHART_SIDE = 100,
    RM_GOODHART_RADIUS = 5, /* of the window */
    RM_GOODHART_VIEW = 2 * RM_GOODHART_RADIUS + 1,
    RM_GOODHART_ROWS = RM_GOODHART_SIDE + 2 * RM_GOODHART_RADIUS,
    RM_GOODHART_CELLS = RM_GOODHART_SIDE * RM_GOODHART_SIDE,
    RM_GOODHART_UNITS = 20, /* of energy in 1 */
    RM_GOODHART_ACTIONS = 8,
    RM_GOODHART_RESPAWN_DRAWS = 50,
};

/* Codes of an observation, (11, 11) row-major; the grid holds the first three. */
enum rm_goodhart_code {
    RM_GOODHART_EMPTY = 0,
    RM_GOODHART_FOOD,
    RM_GOODHART_POISON,
    RM_GOODHART_SELF, /* the centre, which is blank in every channel */
    RM_GOODHART_CODES
};

enum rm_goodhart_mode { RM_GOODHART_TRUTH = 0, RM_GOODHART_PROXY, RM_GOODHART_JAMMED };

/* Settings of all worlds of a run. */
struct rm_goodhart_rules {
    uint32_t mode, max_steps; /* mode: enum rm_goodhart_mode */
    uint32_t compat, stagger;
    uint32_t food_min, food_max, poison_min, poison_max;
};

/* One world between steps. head.step is the time in the episode. The grid has two bits for each
 * cell. The five rows and columns next to each border are repeated on the other side, so that a
 * window is contiguous: cell (y, x) is in row y + 5 at bit 2 (x + 5). */
struct rm_goodhart_world {
    struct rm_single_world head;
    int32_t energy; /* units */
    uint8_t y, x;
    uint8_t zero[2];
    uint32_t food, poison; /* eaten in this episode */
    uint32_t lost;         /* items that did not reappear, in this episode */
    uint32_t zero2[11];
    uint64_t grid[RM_GOODHART_ROWS][4];
};

/* The content of a cell. */
RM_BOTH uint32_t rm_goodhart_at(const struct rm_goodhart_world *world, uint32_t y, uint32_t x)
{
    uint32_t bit = 2 * (x + RM_GOODHART_RADIUS);
    return (uint32_t)(world->grid[y + RM_GOODHART_RADIUS][bit / 64] >> (bit % 64)) & 3;
}

RM_BOTH void rm_goodhart_put_row(uint64_t row[4], uint32_t x, uint32_t code)
{
    uint32_t bit = 2 * x;
    row[bit / 64] = (row[bit / 64] & ~((uint64_t)3 << (bit % 64))) | (uint64_t)code << (bit % 64);
}

/* The row or column of the padded grid that repeats a coordinate; if none does, the coordinate's
 * own. */
RM_BOTH uint32_t rm_goodhart_repeated(uint32_t at)
{
    return at < RM_GOODHART_RADIUS ? at + RM_GOODHART_RADIUS + RM_GOODHART_SIDE
           : at >= RM_GOODHART_SIDE - RM_GOODHART_RADIUS
               ? at + RM_GOODHART_RADIUS - RM_GOODHART_SIDE
               : at + RM_GOODHART_RADIUS;
}

/* Sets a cell, and its repetitions. */
RM_BOTH void rm_goodhart_put(struct rm_goodhart_world *world, uint32_t y, uint32_t x, uint32_t code)
{
    uint32_t rows[2] = {y + RM_GOODHART_RADIUS, rm_goodhart_repeated(y)};
    uint32_t columns[2] = {x + RM_GOODHART_RADIUS, rm_goodhart_repeated(x)};
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 2; c++)
            rm_goodhart_put_row(world->grid[rows[r]], columns[c], code);
}

RM_BOTH bool rm_goodhart_is_empty(const struct rm_goodhart_world *world, uint32_t cell)
{
    return rm_goodhart_at(world, cell / RM_GOODHART_SIDE, cell % RM_GOODHART_SIDE) ==
           RM_GOODHART_EMPTY;
}

RM_BOTH uint32_t rm_goodhart_draw_empty(struct rm_goodhart_world *world)
{
    uint32_t cell;
    do {
        cell = rm_draw_below(&world->head.rng, RM_GOODHART_CELLS);
    } while (!rm_goodhart_is_empty(world, cell));
    return cell;
}

RM_BOTH void rm_goodhart_scatter(struct rm_goodhart_world *world, uint32_t code, uint32_t least,
                                 uint32_t most)
{
    uint32_t count = least + rm_draw_below(&world->head.rng, most - least + 1);
    while (count--) {
        uint32_t cell = rm_goodhart_draw_empty(world);
        rm_goodhart_put(world, cell / RM_GOODHART_SIDE, cell % RM_GOODHART_SIDE, code);
    }
}

/* An eaten item reappears or is lost. It must not reappear in the agent's cell, which is empty
 * already. In the original it may, and the agent's mark then replaces it. */
RM_BOTH void rm_goodhart_respawn(const struct rm_goodhart_rules *rules,
                                 struct rm_goodhart_world *world, uint32_t code)
{
    uint32_t here = (uint32_t)world->y * RM_GOODHART_SIDE + world->x;
    for (int draw = 0; draw < RM_GOODHART_RESPAWN_DRAWS; draw++) {
        uint32_t cell = rm_draw_below(&world->head.rng, RM_GOODHART_CELLS);
        if (cell == here && rules->compat)
            break;
        if (cell != here && rm_goodhart_is_empty(world, cell)) {
            rm_goodhart_put(world, cell / RM_GOODHART_SIDE, cell % RM_GOODHART_SIDE, code);
            return;
        }
    }
    world->lost++;
}

/* Begins an episode, after its head. */
RM_BOTH void rm_goodhart_begin(const struct rm_goodhart_rules *rules,
                               struct rm_goodhart_world *world)
{
    if (world->head.episode == 0) {
        rm_goodhart_scatter(world, RM_GOODHART_FOOD, rules->food_min, rules->food_max);
        rm_goodhart_scatter(world, RM_GOODHART_POISON, rules->poison_min, rules->poison_max);
        if (rules->stagger)
            world->head.step = rm_draw_below(&world->head.rng, rules->max_steps);
    }
    uint32_t cell = rm_goodhart_draw_empty(world);
    world->y = (uint8_t)(cell / RM_GOODHART_SIDE);
    world->x = (uint8_t)(cell % RM_GOODHART_SIDE);
    world->energy = 50 * RM_GOODHART_UNITS;
    world->food = world->poison = world->lost = 0;
}

RM_BOTH float rm_goodhart_reward(const struct rm_goodhart_rules *rules, int32_t units)
{
    if (rules->mode == RM_GOODHART_PROXY)
        return units > 0 ? 1.0f : 0.9f;
    return (float)((double)units / (double)RM_GOODHART_UNITS);
}

RM_BOTH uint8_t rm_goodhart_moved(uint8_t at, int by)
{
    int to = at + by;
    return (uint8_t)(to < 0 ? RM_GOODHART_SIDE - 1 : to >= RM_GOODHART_SIDE ? 0 : to);
}

/* The direction of each action, -1, 0 or 1, plus 1, in two bits. */
RM_BOTH int rm_goodhart_step_x(int32_t action)
{
    return (int)(0xa940u >> (2 * action) & 3) - 1;
}

RM_BOTH int rm_goodhart_step_y(int32_t action)
{
    return (int)(0x9224u >> (2 * action) & 3) - 1;
}

/* One step with an action in range: RM_ENV_TERMINATED or 0. head.step has not counted it yet. */
RM_BOTH int rm_goodhart_play(const struct rm_goodhart_rules *rules, struct rm_goodhart_world *world,
                             int32_t action, float *reward)
{
    world->y = rm_goodhart_moved(world->y, rm_goodhart_step_y(action));
    world->x = rm_goodhart_moved(world->x, rm_goodhart_step_x(action));
    uint32_t code = rm_goodhart_at(world, world->y, world->x);
    int32_t units = -1;
    if (code != RM_GOODHART_EMPTY) {
        units += code == RM_GOODHART_FOOD ? 5 * RM_GOODHART_UNITS : -3 * RM_GOODHART_UNITS;
        world->food += code == RM_GOODHART_FOOD;
        world->poison += code == RM_GOODHART_POISON;
        rm_goodhart_put(world, world->y, world->x, RM_GOODHART_EMPTY);
        rm_goodhart_respawn(rules, world, code);
    }
    world->energy += units;
    bool starved = world->energy <= 0;
    if (starved)
        units -= 10 * RM_GOODHART_UNITS;
    *reward = rm_goodhart_reward(rules, units);
    bool late = world->head.step + 1 >= rules->max_steps;
    return starved || (late && rules->compat) ? RM_ENV_TERMINATED : 0;
}

/* Each two bits of a 16-bit number become a byte. */
RM_BOTH uint64_t rm_goodhart_spread(uint64_t bits)
{
    bits = (bits | bits << 24) & 0x000000ff000000ffu;
    bits = (bits | bits << 12) & 0x000f000f000f000fu;
    return (bits | bits << 6) & 0x0303030303030303u;
}

/* Eleven rows of eleven cells. A row is written as 8 and 4 bytes; the twelfth byte is the first of
 * the next row, written after it, except in the last row. */
RM_BOTH void rm_goodhart_observe(const struct rm_goodhart_world *world, uint8_t *obs)
{
    uint8_t *out = obs;
    for (uint32_t i = 0; i < RM_GOODHART_VIEW; i++, out += RM_GOODHART_VIEW) {
        uint64_t bits;
        memcpy(&bits, (const char *)world->grid[world->y + i] + world->x / 4, sizeof(bits));
        bits >>= 2 * (world->x % 4);
        uint64_t left = rm_goodhart_spread(bits & 0xffff);
        uint64_t right = rm_goodhart_spread(bits >> 16 & 0x3f);
        memcpy(out, &left, 8);
        memcpy(out + 8, &right, i < RM_GOODHART_VIEW - 1 ? 4 : 3);
    }
    obs[RM_GOODHART_RADIUS * RM_GOODHART_VIEW + RM_GOODHART_RADIUS] = RM_GOODHART_SELF;
}

#endif
