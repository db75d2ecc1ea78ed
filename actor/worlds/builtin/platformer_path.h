/* platformer_path: ways through a level - nodes every 12 pixels where there is room, edges to the
 * four neighbours, and fields: from every node the hops to a place. Internal to
 * actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_PATH_H
#define RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_PATH_H

#include "actor/worlds/builtin/platformer_sim.h"

enum {
    RM_PLATFORMER_NODE_COLUMNS = 2 * RM_PLATFORMER_COLUMNS,
    RM_PLATFORMER_NODES = RM_PLATFORMER_NODE_COLUMNS * 2 * RM_PLATFORMER_ROWS,
    RM_PLATFORMER_NODES_INSIDE = 42 * 23 * 4, /* that can be valid */
    RM_PLATFORMER_FIELDS = 2 + 3 * RM_PLATFORMER_DOORS,
    RM_PLATFORMER_NO_WAY = UINT16_MAX,
    RM_PLATFORMER_NOWHERE = -1
};

/* Fields: to the switch, to the exit, and of door d these. */
enum { RM_PLATFORMER_TO_OPENER = 0, RM_PLATFORMER_TO_EXIT = 1 };
static inline uint32_t rm_platformer_to_key(uint32_t door)
{
    return 2 + 3 * door;
}
/* To the door, on its side with lower coordinates, or on the other. */
static inline uint32_t rm_platformer_to_door(uint32_t door, bool beyond)
{
    return 3 + 3 * door + beyond;
}

struct rm_platformer_field {
    uint16_t farthest; /* hops, at least 1 */
    uint16_t hops[RM_PLATFORMER_NODES];
};

/* Of the doors and mines at one time. Node (i, j) is at 12 (i, j) + 6 pixels. */
struct rm_platformer_paths {
    bool compat;
    uint32_t reachable, edges;          /* nodes that can be reached from the spawn, their edges */
    uint8_t valid[RM_PLATFORMER_NODES]; /* 1: the node is there */
    uint8_t reached[RM_PLATFORMER_NODES]; /* 1: it can be reached from the spawn */
    uint8_t tight[RM_PLATFORMER_NODES];   /* edges, a bit for each direction: into no mine's tile */
    uint8_t loose[RM_PLATFORMER_NODES];   /* the same with those */
    uint16_t queue[RM_PLATFORMER_NODES_INSIDE];
    struct rm_platformer_field field[]; /* 2, and 3 for each door */
};

/* Bytes for a level with so many doors. */
size_t rm_platformer_paths_bytes(uint32_t doors);

/* Of a new level. */
void rm_platformer_paths_begin(struct rm_platformer_paths *paths,
                               const struct rm_platformer_map *map);

/* Edges and all fields, after doors or mines changed. A field whose bit is in `loose` ignores
 * mines. */
void rm_platformer_paths_find(struct rm_platformer_paths *paths,
                              const struct rm_platformer_map *map,
                              const struct rm_platformer_state *state, uint64_t loose);

/* Some of the fields again, without regard to mines. */
void rm_platformer_paths_loosen(struct rm_platformer_paths *paths,
                                const struct rm_platformer_map *map, uint64_t fields);

/* The valid node nearest to a place, among the nine around it; RM_PLATFORMER_NOWHERE: none. */
int rm_platformer_node(const struct rm_platformer_paths *paths, double x, double y);

#endif
