/* goodhart: an agent forages on a torus of 100 x 100 cells that hold food, poison or nothing.
 *
 * Coordinates are (y, x). A step moves the agent to one of the eight cells around it, always; costs
 * 0.05 of energy; eats what lies there (food +5, poison -3); lets each eaten item reappear in the
 * first empty one of 50 cells drawn uniformly, or be lost; and ends the episode if no energy is
 * left or after max_steps steps. The reward is the energy gained, less 10 for starving. A new
 * episode begins with energy 50 on an empty cell of the same grid: grids are filled only once.
 *
 * Energy is a whole number of units of 0.05, so sums are exact. The rules are in
 * goodhart_rules.h. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_GOODHART_H
#define RM_ACTOR_WORLDS_BUILTIN_GOODHART_H

#include "actor/worlds/builtin/goodhart_rules.h"
#include "actor/worlds/builtin/single.h"

/* What the worlds of a batch have in common, for a device that steps them. */
void rm_goodhart_rules_of(const struct rm_env *env, void *rules);

#endif
