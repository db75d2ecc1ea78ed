/* platformer: the state of a world, for the world and its tests. Internal to actor/worlds/builtin.
 */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_H
#define RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_H

#include "actor/worlds/builtin/platformer_graph.h"
#include "actor/worlds/builtin/single.h"

enum {
    RM_PLATFORMER_SCALES = 4, /* of exploration with compat: cells of 1, 4, 8 and 16 tiles */
    RM_PLATFORMER_VISITS = 44 * 25 + 11 * 7 + 6 * 4 + 3 * 2
};

/* The saved state. */
struct rm_platformer_world {
    struct rm_single_world head;
    uint64_t level_seed;
    uint64_t loose;   /* fields that ignore mines: a bit for each */
    double potential; /* of the last step */
    int32_t node;
    uint32_t version; /* version of the state for which the fields were computed */
    uint8_t mask[RM_PLATFORMER_ACTIONS];
    int8_t speed_sign; /* with compat */
    uint8_t zero[1];
    uint8_t visited[(RM_PLATFORMER_VISITS + 63) / 64 * 8]; /* with compat, a bit for each cell */
    struct rm_platformer_state state;
};

/* Data derived from a world's state. */
struct rm_platformer_place {
    struct rm_platformer_map map;
    struct rm_platformer_paths *paths;
    struct rm_platformer_graph *graph; /* NULL: it is not observed */
};

/* The data of a world of the batch. */
struct rm_platformer_place *rm_platformer_place_of(const struct rm_env *env,
                                                   const struct rm_platformer_world *world);

#endif
