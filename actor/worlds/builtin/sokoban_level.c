/* Levels: moving in them, and making them. */
#include "actor/worlds/builtin/sokoban.h"

#include <stdbool.h>

enum { TRIES = 64 };

int rm_sokoban_move(struct rm_sokoban_level *level, int direction)
{
    uint64_t to = rm_sokoban_moved(level->keeper, direction) & level->floor;
    if (to & level->boxes) {
        uint64_t behind = rm_sokoban_moved(to, direction) & level->floor & ~level->boxes;
        if (!behind)
            return 0;
        level->boxes ^= to | behind;
    }
    if (!to)
        return 0;
    level->keeper = to;
    return 1;
}

/* All of `room` that hangs together with `from`. */
static uint64_t flood(uint64_t from, uint64_t room)
{
    for (;;) {
        uint64_t more = from;
        for (int d = 0; d < RM_SOKOBAN_DIRECTIONS; d++)
            more |= rm_sokoban_moved(from, d) & room;
        if (more == from)
            return from;
        from = more;
    }
}

uint64_t rm_sokoban_reach(const struct rm_sokoban_level *level)
{
    return flood(level->keeper, level->floor & ~level->boxes);
}

static uint32_t count(uint64_t cells)
{
    return (uint32_t)__builtin_popcountll(cells);
}

/* The n-th cell of a set, as a set. */
static uint64_t nth(uint64_t cells, uint32_t n)
{
    while (n--)
        cells &= cells - 1;
    return cells & (~cells + 1);
}

static uint64_t draw_cell(struct rm_rng *rng, uint64_t cells)
{
    return nth(cells, rm_rng_below(rng, count(cells)));
}

static uint64_t square(uint32_t side)
{
    uint64_t cells = 0;
    for (uint32_t y = 0; y < side; y++)
        cells |= (((uint64_t)1 << side) - 1) << (8 * y);
    return cells;
}

/* Floor in one piece, around a cell drawn from what is not wall; 0 if all is. */
static uint64_t draw_floor(const struct rm_sokoban_making *making, struct rm_rng *rng)
{
    uint64_t floor = square(making->inside);
    for (uint64_t rest = floor; rest; rest &= rest - 1)
        if (rm_rng_double(rng) < making->walls)
            floor &= ~(rest & (~rest + 1));
    return floor ? flood(draw_cell(rng, floor), floor) : 0;
}

/* One backward move: the keeper, wherever it can get to, steps back from a box and takes it along.
 * False if no box can be pulled. */
static bool pull(struct rm_sokoban_level *level, struct rm_rng *rng)
{
    uint64_t reach = rm_sokoban_reach(level), room = level->floor & ~level->boxes;
    uint64_t from[RM_SOKOBAN_DIRECTIONS]; /* where the keeper would stand: beside a box */
    uint32_t ways = 0;
    for (int d = 0; d < RM_SOKOBAN_DIRECTIONS; d++) {
        uint64_t beside = rm_sokoban_moved(level->boxes, d) & reach;
        from[d] = beside & rm_sokoban_moved(room, d ^ 1);
        ways += count(from[d]);
    }
    if (ways == 0)
        return false;
    uint32_t way = rm_rng_below(rng, ways);
    int d = 0;
    while (way >= count(from[d]))
        way -= count(from[d++]);
    uint64_t at = nth(from[d], way);
    level->boxes ^= at | rm_sokoban_moved(at, d ^ 1);
    level->keeper = rm_sokoban_moved(at, d);
    return true;
}

static bool try_level(struct rm_sokoban_level *level, const struct rm_sokoban_making *making,
                      struct rm_rng *rng)
{
    *level = (struct rm_sokoban_level){.floor = draw_floor(making, rng)};
    if (count(level->floor) < making->boxes + 2)
        return false;
    for (uint32_t b = 0; b < making->boxes; b++)
        level->goals |= draw_cell(rng, level->floor & ~level->goals);
    level->boxes = level->goals;
    level->keeper = draw_cell(rng, level->floor & ~level->boxes);
    for (uint32_t p = 0; p < making->pulls && pull(level, rng); p++)
        continue;
    level->keeper = draw_cell(rng, rm_sokoban_reach(level));
    return !(level->boxes & level->goals);
}

/* When no drawn level will do: boxes in the second column, to be pushed left by one. */
static void plain_level(struct rm_sokoban_level *level, const struct rm_sokoban_making *making)
{
    *level = (struct rm_sokoban_level){.floor = square(making->inside), .keeper = 1 << 2};
    for (uint32_t b = 0; b < making->boxes; b++)
        level->goals |= (uint64_t)1 << (8 * b);
    level->boxes = level->goals << 1;
}

void rm_sokoban_make(struct rm_sokoban_level *level, const struct rm_sokoban_making *making,
                     struct rm_rng *rng)
{
    for (int tries = 0; tries < TRIES; tries++)
        if (try_level(level, making, rng))
            return;
    plain_level(level, making);
}
