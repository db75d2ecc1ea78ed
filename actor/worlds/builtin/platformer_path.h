/* platformer_path: paths through a level. Free places have a node every 12 pixels, with edges to
 * the four neighbours. A field has the number of hops from every node to one place. Internal to
 * actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_PATH_H
#define RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_PATH_H

#include "actor/worlds/builtin/platformer_sim.h"

enum {
    RM_PLATFORMER_NODE_COLUMNS = 2 * RM_PLATFORMER_COLUMNS,
    RM_PLATFORMER_NODES = RM_PLATFORMER_NODE_COLUMNS * 2 * RM_PLATFORMER_ROWS,
    RM_PLATFORMER_NODES_INSIDE = 42 * 23 * 4, /* nodes that can be valid */
    RM_PLATFORMER_FIELDS = 2 + 3 * RM_PLATFORMER_DOORS,
    RM_PLATFORMER_NO_WAY = UINT16_MAX,
    RM_PLATFORMER_NOWHERE = -1
};

/* Fields: to the switch, to the exit, then three for each door. */
enum { RM_PLATFORMER_TO_OPENER = 0, RM_PLATFORMER_TO_EXIT = 1 };
static inline uint32_t rm_platformer_to_key(uint32_t door)
{
    return 2 + 3 * door;
}
/* The field to the door, on its side with lower coordinates or on the other side. */
static inline uint32_t rm_platformer_to_door(uint32_t door, bool beyond)
{
    return 3 + 3 * door + beyond;
}

struct rm_platformer_field {
    uint16_t farthest; /* hops, at least 1 */
    uint16_t hops[RM_PLATFORMER_NODES];
};

/* Paths for one state of doors and mines. Node (i, j) is at 12 (i, j) + 6 pixels. */
struct rm_platformer_paths {
    bool compat;
    uint32_t reachable, edges;          /* nodes that can be reached from the spawn, their edges */
    uint8_t valid[RM_PLATFORMER_NODES]; /* 1: the node exists */
    uint8_t reached[RM_PLATFORMER_NODES]; /* 1: it can be reached from the spawn */
    uint8_t tight[RM_PLATFORMER_NODES];   /* edges, a bit for each direction: avoid mines' tiles */
    uint8_t loose[RM_PLATFORMER_NODES];   /* edges, a bit for each direction: all */
    uint16_t queue[RM_PLATFORMER_NODES_INSIDE];
    struct rm_platformer_field field[]; /* 2, and 3 for each door */
};

/* Bytes of the paths of a level with `doors` doors. */
size_t rm_platformer_paths_bytes(uint32_t doors);

/* Initialises the paths of a new level. */
void rm_platformer_paths_begin(struct rm_platformer_paths *paths,
                               const struct rm_platformer_map *map);

/* Computes edges and all fields, after doors or mines changed. A field whose bit is in `loose`
 * ignores mines. */
void rm_platformer_paths_find(struct rm_platformer_paths *paths,
                              const struct rm_platformer_map *map,
                              const struct rm_platformer_state *state, uint64_t loose);

/* Computes some of the fields again, ignoring mines. */
void rm_platformer_paths_loosen(struct rm_platformer_paths *paths,
                                const struct rm_platformer_map *map, uint64_t fields);

/* The valid node nearest to a place, among the nine around it; RM_PLATFORMER_NOWHERE: none. */
int rm_platformer_node(const struct rm_platformer_paths *paths, double x, double y);

#endif
