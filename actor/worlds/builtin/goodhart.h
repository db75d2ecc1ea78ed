/* goodhart: an agent forages on a torus of 100 x 100 cells that hold food, poison or nothing.
 *
 * Coordinates are (y, x). In a step the agent moves to one of the eight cells around it, pays 0.05
 * of energy, and eats the item of the cell (food +5, poison -3). Each eaten item reappears in the
 * first empty one of 50 cells drawn uniformly, or is lost. The episode ends if no energy remains,
 * or after max_steps steps. The reward is the energy gained, less 10 for starving. A new episode
 * begins with energy 50 on an empty cell of the same grid: grids are filled only once.
 *
 * Energy is a whole number of units of 0.05, so sums are exact. The rules are in
 * goodhart_rules.h. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_GOODHART_H
#define RM_ACTOR_WORLDS_BUILTIN_GOODHART_H

#include "actor/worlds/builtin/goodhart_rules.h"
#include "actor/worlds/builtin/single.h"

/* Writes the rules of all worlds of a batch, for a device that steps them. */
void rm_goodhart_rules_of(const struct rm_env *env, void *rules);

#endif
