/* sokoban: a keeper pushes boxes onto goals in a small warehouse. The saved state of a world, and
 * the generator of levels. The rules are in sokoban.c.
 *
 * The cells inside the outer wall, at most 8 x 8, are bits: row y, column x from 0 is bit 8 y + x.
 * Directions: 0 up, 1 down, 2 left, 3 right. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_SOKOBAN_H
#define RM_ACTOR_WORLDS_BUILTIN_SOKOBAN_H

#include "actor/worlds/builtin/single.h"

enum { RM_SOKOBAN_INSIDE_MAX = 8, RM_SOKOBAN_BOXES_MAX = 6, RM_SOKOBAN_DIRECTIONS = 4 };

/* Codes of an observation, row by row, outer wall included. */
enum rm_sokoban_code {
    RM_SOKOBAN_FLOOR = 0,
    RM_SOKOBAN_GOAL,
    RM_SOKOBAN_BOX,
    RM_SOKOBAN_BOX_ON_GOAL,
    RM_SOKOBAN_KEEPER,
    RM_SOKOBAN_KEEPER_ON_GOAL,
    RM_SOKOBAN_WALL,
    RM_SOKOBAN_CODES
};

struct rm_sokoban_level {
    uint64_t floor; /* cells without wall; goals, boxes and keeper are on floor */
    uint64_t goals, boxes;
    uint64_t keeper; /* one bit */
};

struct rm_sokoban_world {
    struct rm_single_world head;
    struct rm_sokoban_level level;
};

/* How levels are made. */
struct rm_sokoban_making {
    uint32_t inside; /* side of the square inside the outer wall */
    uint32_t boxes, pulls;
    double walls; /* probability that a cell inside is wall */
};

/* All cells of a set, moved by one; cells outside of the 8 x 8 are dropped. */
static inline uint64_t rm_sokoban_moved(uint64_t cells, int direction)
{
    const uint64_t left_column = 0x0101010101010101u, right_column = 0x8080808080808080u;
    switch (direction) {
    case 0:
        return cells >> 8;
    case 1:
        return cells << 8;
    case 2:
        return (cells & ~left_column) >> 1;
    default:
        return (cells & ~right_column) << 1;
    }
}

/* The cells that the keeper can reach without pushing. */
uint64_t rm_sokoban_reach(const struct rm_sokoban_level *level);

/* One move; 1, or 0 if nothing can move that way. */
int rm_sokoban_move(struct rm_sokoban_level *level, int direction);

/* Makes a level that can be solved, by playing backwards: the boxes are put on the goals, and then
 * pulled, each pull drawn from all that are possible. Boxes all begin off the goals. */
void rm_sokoban_make(struct rm_sokoban_level *level, const struct rm_sokoban_making *making,
                     struct rm_rng *rng);

#endif
