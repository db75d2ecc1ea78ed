#include "actor/worlds/builtin/platformer_graph.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = RM_PLATFORMER_NODE_COLUMNS, SPACING = 12 };

enum kind { EMPTY = 0, MINE = 2, DOOR = 3, SPAWN = 4, SWITCH = 5, EXIT = 6 };

/* What stands at a node. */
struct thing {
    enum kind kind;
    float type, mine, radius;
    bool active, turned;
};

uint32_t rm_platformer_graph_most(enum rm_platformer_stage stage)
{
    static const uint32_t most[] = {
        [RM_PLATFORMER_C0] = 4 * 23 * 5, /* the largest corridor, in tiles of four nodes */
        [RM_PLATFORMER_C1] = 4 * 23 * 5,
        [RM_PLATFORMER_C2] = 4 * 23 * 5,
        [RM_PLATFORMER_C3] = 4 * 23 * 5,
        [RM_PLATFORMER_M0] = 4 * 18 * 14, /* 9 by 7 cells of two tiles */
        [RM_PLATFORMER_M1] = RM_PLATFORMER_NODES_INSIDE,
    };
    return most[stage];
}

static bool is_within(int x, int y, struct rm_platformer_point at, int distance)
{
    return abs(at.x - x) <= distance && abs(at.y - y) <= distance;
}

/* The first of spawn, exit, switch, mines and doors that is near. */
static struct thing thing_at(const struct rm_platformer_level *level,
                             const struct rm_platformer_state *state, int x, int y)
{
    static const float looks[3] = {
        [RM_PLATFORMER_DEADLY] = 0, [RM_PLATFORMER_TOGGLING] = 0.5f, [RM_PLATFORMER_SAFE] = 1};
    static const float radius[3] = {
        [RM_PLATFORMER_DEADLY] = 4, [RM_PLATFORMER_TOGGLING] = 4.5f, [RM_PLATFORMER_SAFE] = 3.5f};
    if (is_within(x, y, level->spawn, 2 * SPACING))
        return (struct thing){.kind = SPAWN};
    if (is_within(x, y, level->exit, SPACING))
        return (struct thing){.kind = EXIT, .type = 1, .radius = 12, .active = state->active};
    if (is_within(x, y, level->opener, SPACING))
        return (struct thing){.kind = SWITCH,
                              .type = 0.5f,
                              .radius = 6,
                              .active = !state->active,
                              .turned = state->active};
    for (uint32_t i = 0; i < level->mines; i++)
        if (is_within(x, y, level->mine[i].at, SPACING))
            return (struct thing){.kind = MINE,
                                  .type = 0.25f,
                                  .mine = looks[state->mine[i]],
                                  .radius = radius[state->mine[i]],
                                  .active = state->mine[i] == RM_PLATFORMER_DEADLY};
    for (uint32_t d = 0; d < level->doors; d++)
        if (is_within(x, y, level->door[d].at, SPACING))
            return (struct thing){.kind = DOOR,
                                  .type = 0.75f,
                                  .radius = 12,
                                  .active = !state->open[d],
                                  .turned = state->open[d]};
    return (struct thing){.kind = EMPTY};
}

static void write_node(float *f, const struct rm_platformer_paths *paths,
                       const struct rm_platformer_map *map, const struct rm_platformer_state *state,
                       int at)
{
    const int x = at % WIDTH * SPACING + SPACING / 2, y = at / WIDTH * SPACING + SPACING / 2;
    const int row = at / WIDTH / 2, column = at % WIDTH / 2; /* of the tile, 2 by 2 nodes */
    const struct thing thing = thing_at(&map->level, state, x, y);
    f[RM_PLATFORMER_NODE_X] = (float)x / 1056;
    f[RM_PLATFORMER_NODE_Y] = (float)y / 600;
    f[RM_PLATFORMER_NODE_HALF] = 0.5f;
    f[RM_PLATFORMER_NODE_TYPE] = thing.type;
    f[RM_PLATFORMER_NODE_MINE] = thing.mine;
    f[RM_PLATFORMER_NODE_ACTIVE] = thing.active;
    f[RM_PLATFORMER_NODE_TURNED] = thing.turned;
    f[RM_PLATFORMER_NODE_RADIUS] = thing.radius / 20;
    f[RM_PLATFORMER_NODE_REACHED] = paths->reached[at];
    f[RM_PLATFORMER_NODE_KIND] = (float)thing.kind;
    f[RM_PLATFORMER_NODE_TILE] = map->level.tile[row][column];
}

/* Nodes by y, then x. */
static void number_nodes(struct rm_platformer_graph *graph, const struct rm_platformer_paths *paths)
{
    graph->nodes = 0;
    for (int at = 0; at < RM_PLATFORMER_NODES; at++)
        graph->place[at] = paths->valid[at] ? (int16_t)graph->nodes++ : -1;
}

static void find_edges(struct rm_platformer_graph *graph, const struct rm_platformer_paths *paths)
{
    static const int16_t step_of[RM_PLATFORMER_EDGES_PER_NODE] = {-WIDTH, 1, WIDTH, -1};
    int16_t *const from = graph->row + graph->nodes + 1;
    graph->edges = 0;
    for (int at = 0; at < RM_PLATFORMER_NODES; at++) {
        if (graph->place[at] < 0)
            continue;
        graph->row[graph->place[at]] = (int16_t)graph->edges;
        for (int d = 0; d < RM_PLATFORMER_EDGES_PER_NODE; d++) {
            const int source = at - step_of[d];
            if (paths->tight[source] >> d & 1 && graph->place[source] >= 0)
                from[graph->edges++] = graph->place[source];
        }
    }
    graph->row[graph->nodes] = (int16_t)graph->edges;
}

void rm_platformer_graph_update(struct rm_platformer_graph *graph,
                                const struct rm_platformer_paths *paths,
                                const struct rm_platformer_map *map,
                                const struct rm_platformer_state *state, bool begins)
{
    const bool moved = begins || graph->version != state->version;
    if (!moved && graph->active == state->active &&
        !memcmp(graph->mine, state->mine, sizeof graph->mine))
        return;
    if (begins)
        number_nodes(graph, paths);
    if (moved)
        find_edges(graph, paths);
    for (int at = 0; at < RM_PLATFORMER_NODES; at++)
        if (graph->place[at] >= 0)
            write_node(graph->node[graph->place[at]], paths, map, state, at);
    graph->version = state->version;
    graph->active = state->active;
    memcpy(graph->mine, state->mine, sizeof graph->mine);
}
