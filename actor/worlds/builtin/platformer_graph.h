/* platformer_graph: the nodes of a level and the edges between them as an observation. It follows
 * from level and state, and is made again only when those change. Internal to
 * actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_GRAPH_H
#define RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_GRAPH_H

#include "actor/worlds/builtin/platformer_path.h"

/* Numbers of a node: where it is, what is there, and last its kind and tile, as codes. */
enum {
    RM_PLATFORMER_NODE_X,       /* x / 1056 */
    RM_PLATFORMER_NODE_Y,       /* y / 600 */
    RM_PLATFORMER_NODE_HALF,    /* 0.5 */
    RM_PLATFORMER_NODE_TYPE,    /* of the thing: 0.25 mine, 0.5 switch, 0.75 door, 1 exit; else 0 */
    RM_PLATFORMER_NODE_MINE,    /* of a mine: 0 deadly, 0.5 toggling, 1 safe */
    RM_PLATFORMER_NODE_ACTIVE,  /* 1: deadly, not yet pressed, closed, open to leave by */
    RM_PLATFORMER_NODE_TURNED,  /* 1: the switch is pressed, the door is open */
    RM_PLATFORMER_NODE_RADIUS,  /* / 20 */
    RM_PLATFORMER_NODE_REACHED, /* 1: there is a way from the spawn */
    RM_PLATFORMER_NODE_KIND,    /* 0 empty, 2 mine, 3 door, 4 spawn, 5 switch, 6 exit */
    RM_PLATFORMER_NODE_TILE,
    RM_PLATFORMER_NODE_VALUES
};

enum { RM_PLATFORMER_EDGES_PER_NODE = 4 };

struct rm_platformer_graph {
    /* What it was made for. */
    uint32_t version;
    uint8_t active;
    uint8_t mine[RM_PLATFORMER_MINES];
    uint32_t nodes, edges;
    int16_t place[RM_PLATFORMER_NODES]; /* of a node of the path among the graph's, -1: none */
    /* Where each node's edges begin, nodes + 1 numbers; then the node that each comes from. */
    int16_t row[RM_PLATFORMER_NODES_INSIDE + 1 +
                RM_PLATFORMER_EDGES_PER_NODE * RM_PLATFORMER_NODES_INSIDE];
    float node[RM_PLATFORMER_NODES_INSIDE][RM_PLATFORMER_NODE_VALUES];
};

/* Nodes that levels of a stage can have. */
uint32_t rm_platformer_graph_most(enum rm_platformer_stage stage);

/* For the paths of now. `begins`: of a new level. */
void rm_platformer_graph_update(struct rm_platformer_graph *graph,
                                const struct rm_platformer_paths *paths,
                                const struct rm_platformer_map *map,
                                const struct rm_platformer_state *state, bool begins);

#endif
