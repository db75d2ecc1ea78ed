/* goodhart: an agent forages on a torus of 100 x 100 cells that hold food, poison or nothing.
 *
 * Coordinates are (y, x). A step moves the agent to one of the eight cells around it, always; costs
 * 0.05 of energy; eats what lies there (food +5, poison -3); lets each eaten thing appear anew in
 * the first empty one of 50 cells drawn uniformly, or be lost; and ends the episode if no energy is
 * left or after max_steps steps. The reward is the energy gained, less 10 for starving. A new
 * episode begins with energy 50 on an empty cell of the same grid: grids are filled only once.
 *
 * Energy is a whole number of units of 0.05, so sums are exact. */
#ifndef RM_ACTOR_ENVS_GOODHART_H
#define RM_ACTOR_ENVS_GOODHART_H

#include "actor/envs/single.h"

enum {
    RM_GOODHART_SIDE = 100,
    RM_GOODHART_RADIUS = 5, /* of the window */
    RM_GOODHART_VIEW = 2 * RM_GOODHART_RADIUS + 1,
    RM_GOODHART_ROWS = RM_GOODHART_SIDE + 2 * RM_GOODHART_RADIUS,
    RM_GOODHART_UNITS = 20, /* of energy in 1 */
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

/* One world between steps. head.step is the t of the episode. The grid has two bits a cell, with
 * the five rows and columns next to each border repeated on the other side, so that a window is one
 * piece: cell (y, x) is in row y + 5 at bit 2 (x + 5). */
struct rm_goodhart_world {
    struct rm_single_world head;
    int32_t energy; /* units */
    uint8_t y, x;
    uint8_t zero[2];
    uint32_t food, poison; /* eaten in this episode */
    uint32_t lost;         /* things that did not come back, in all episodes */
    uint32_t zero2[11];
    uint64_t grid[RM_GOODHART_ROWS][4];
};

/* What a cell holds. */
static inline uint32_t rm_goodhart_at(const struct rm_goodhart_world *world, uint32_t y, uint32_t x)
{
    uint32_t bit = 2 * (x + RM_GOODHART_RADIUS);
    return (uint32_t)(world->grid[y + RM_GOODHART_RADIUS][bit / 64] >> (bit % 64)) & 3;
}

/* Sets a cell, and its repetitions. */
void rm_goodhart_put(struct rm_goodhart_world *world, uint32_t y, uint32_t x, uint32_t code);

#endif
