#include "actor/worlds/builtin/platformer_path.h"

#include <math.h>
#include <string.h>

enum { WIDTH = RM_PLATFORMER_NODE_COLUMNS, SPACING = 12, DIRECTIONS = 4 };

static const int8_t step_of[DIRECTIONS] = {-WIDTH, 1, WIDTH, -1}; /* north, east, south, west */

/* Which of the four nodes of a tile are there: bits upper left, upper right, lower left, lower
 * right. */
static const uint8_t room_in[10] = {
    [RM_PLATFORMER_EMPTY] = 15,      [RM_PLATFORMER_UPPER_LEFT] = 8,
    [RM_PLATFORMER_UPPER_RIGHT] = 4, [RM_PLATFORMER_LOWER_RIGHT] = 1,
    [RM_PLATFORMER_LOWER_LEFT] = 2,
};

size_t rm_platformer_paths_bytes(uint32_t doors)
{
    return sizeof(struct rm_platformer_paths) +
           (2 + 3 * doors) * sizeof(struct rm_platformer_field);
}

void rm_platformer_paths_begin(struct rm_platformer_paths *paths,
                               const struct rm_platformer_map *map)
{
    memset(paths->valid, 0, sizeof paths->valid);
    for (int row = 1; row < RM_PLATFORMER_ROWS - 1; row++)
        for (int column = 1; column < RM_PLATFORMER_COLUMNS - 1; column++) {
            const int tile = map->level.tile[row][column];
            if (tile == RM_PLATFORMER_FULL)
                continue;
            /* compat: a mistake of the original. */
            const int room = paths->compat && tile == RM_PLATFORMER_UPPER_RIGHT ? 2 : room_in[tile];
            uint8_t *const node = &paths->valid[2 * row * WIDTH + 2 * column];
            node[0] = room & 1;
            node[1] = room >> 1 & 1;
            node[WIDTH] = room >> 2 & 1;
            node[WIDTH + 1] = room >> 3 & 1;
        }
}

/* --- edges ------------------------------------------------------------------------------------ */

/* Closes the edges between nodes on the two sides of a door. */
static void close_door(struct rm_platformer_paths *paths, const struct rm_platformer_door *door)
{
    const int half = RM_PLATFORMER_TILE / 2, x = door->at.x, y = door->at.y;
    for (int j = 0; j < RM_PLATFORMER_NODES / WIDTH - 1; j++)
        for (int i = 0; i < WIDTH - 1; i++) {
            const int nx = SPACING * i + SPACING / 2, ny = SPACING * j + SPACING / 2;
            const int at = j * WIDTH + i;
            const int across = door->vertical ? nx : ny, along = door->vertical ? ny : nx;
            const int line = door->vertical ? x : y, middle = door->vertical ? y : x;
            if (across > line || across + SPACING < line || along < middle - half ||
                along > middle + half)
                continue;
            const int forth = door->vertical ? 1 : 2, back = door->vertical ? 3 : 0;
            paths->loose[at] &= (uint8_t) ~(1 << forth);
            paths->loose[at + step_of[forth]] &= (uint8_t) ~(1 << back);
        }
}

static void find_edges(struct rm_platformer_paths *paths, const struct rm_platformer_map *map,
                       const struct rm_platformer_state *state)
{
    const uint8_t *valid = paths->valid;
    memset(paths->loose, 0, sizeof paths->loose);
    for (int at = WIDTH; at < RM_PLATFORMER_NODES - WIDTH; at++)
        if (valid[at])
            paths->loose[at] = (uint8_t)(valid[at - WIDTH] | valid[at + 1] << 1 |
                                         valid[at + WIDTH] << 2 | valid[at - 1] << 3);
    for (uint32_t d = 0; d < map->level.doors; d++)
        if (!state->open[d])
            close_door(paths, &map->level.door[d]);
    memcpy(paths->tight, paths->loose, sizeof paths->tight);
    for (uint32_t m = 0; m < map->level.mines; m++) {
        if (state->mine[m] != RM_PLATFORMER_DEADLY)
            continue;
        const struct rm_platformer_point p = map->level.mine[m].at;
        const int tile = p.y / RM_PLATFORMER_TILE * 2 * WIDTH + p.x / RM_PLATFORMER_TILE * 2;
        for (int corner = 0; corner < 4; corner++) {
            const int at = tile + (corner & 1) + (corner >> 1) * WIDTH;
            for (int d = 0; d < DIRECTIONS; d++)
                paths->tight[at - step_of[d]] &= (uint8_t) ~(1 << d);
        }
    }
}

/* --- fields ----------------------------------------------------------------------------------- */

/* Breadth first. Returns how many nodes were reached; they stand in paths->queue. */
static uint32_t spread(struct rm_platformer_paths *paths, const uint8_t *edges, int from,
                       uint16_t *hops, uint16_t *farthest)
{
    uint32_t head = 0, tail = 0;
    memset(hops, 0xff, RM_PLATFORMER_NODES * sizeof *hops);
    *farthest = 1;
    if (from == RM_PLATFORMER_NOWHERE)
        return 0;
    hops[from] = 0;
    paths->queue[tail++] = (uint16_t)from;
    while (head < tail) {
        const int at = paths->queue[head++];
        for (uint32_t ways = edges[at]; ways; ways &= ways - 1) {
            const int next = at + step_of[__builtin_ctz(ways)];
            if (hops[next] == RM_PLATFORMER_NO_WAY) {
                hops[next] = (uint16_t)(hops[at] + 1);
                paths->queue[tail++] = (uint16_t)next;
            }
        }
    }
    if (hops[paths->queue[tail - 1]] > 1)
        *farthest = hops[paths->queue[tail - 1]];
    return tail;
}

static int nearest_of(const struct rm_platformer_paths *paths, double x, double y, double left,
                      double top, double right, double bottom)
{
    const int ci = (int)(x / SPACING), cj = (int)(y / SPACING);
    int best = RM_PLATFORMER_NOWHERE;
    double least = HUGE_VAL;
    for (int j = cj - 1; j <= cj + 1; j++)
        for (int i = ci - 1; i <= ci + 1; i++) {
            if (i < 0 || i >= WIDTH || j < 0 || j >= RM_PLATFORMER_NODES / WIDTH ||
                !paths->valid[j * WIDTH + i])
                continue;
            const double nx = SPACING * (i + 0.5), ny = SPACING * (j + 0.5);
            const double distance = (nx - x) * (nx - x) + (ny - y) * (ny - y);
            if (nx >= left && nx <= right && ny >= top && ny <= bottom && distance < least) {
                least = distance;
                best = j * WIDTH + i;
            }
        }
    return best;
}

int rm_platformer_node(const struct rm_platformer_paths *paths, double x, double y)
{
    /* The node whose square the place lies in is the nearest. */
    const double u = x / SPACING, v = y / SPACING;
    int i = (int)u, j = (int)v;
    i -= u == i && i > 0; /* between two nodes: the first */
    j -= v == j && j > 0;
    if (i >= 0 && i < WIDTH && j >= 0 && j < RM_PLATFORMER_NODES / WIDTH &&
        paths->valid[j * WIDTH + i])
        return j * WIDTH + i;
    return nearest_of(paths, x, y, -HUGE_VAL, -HUGE_VAL, HUGE_VAL, HUGE_VAL);
}

static int node_at(const struct rm_platformer_paths *paths, struct rm_platformer_point p)
{
    return rm_platformer_node(paths, p.x, p.y);
}

/* The place that a field leads to. */
static int goal_of(const struct rm_platformer_paths *paths, const struct rm_platformer_map *map,
                   uint32_t field)
{
    const struct rm_platformer_level *level = &map->level;
    if (field < 2)
        return node_at(paths, field == RM_PLATFORMER_TO_EXIT ? level->exit : level->opener);
    const struct rm_platformer_door *door = &level->door[(field - 2) / 3];
    const uint32_t which = (field - 2) % 3;
    if (which == 0)
        return node_at(paths, door->opener);
    const double x = door->at.x, y = door->at.y;
    const bool beyond = which == 2, v = door->vertical;
    return nearest_of(paths, x, y, v && beyond ? x : -HUGE_VAL, !v && beyond ? y : -HUGE_VAL,
                      v && !beyond ? x : HUGE_VAL, !v && !beyond ? y : HUGE_VAL);
}

static void find_field(struct rm_platformer_paths *paths, const struct rm_platformer_map *map,
                       uint32_t field, const uint8_t *edges)
{
    spread(paths, edges, goal_of(paths, map, field), paths->field[field].hops,
           &paths->field[field].farthest);
}

void rm_platformer_paths_find(struct rm_platformer_paths *paths,
                              const struct rm_platformer_map *map,
                              const struct rm_platformer_state *state, uint64_t loose)
{
    const uint32_t fields = 2 + 3 * map->level.doors;
    struct rm_platformer_field *const spare = &paths->field[0];
    find_edges(paths, map, state);
    paths->reachable = spread(paths, paths->tight, node_at(paths, map->level.spawn), spare->hops,
                              &spare->farthest);
    paths->edges = 0;
    memset(paths->reached, 0, sizeof paths->reached);
    for (uint32_t i = 0; i < paths->reachable; i++) {
        paths->reached[paths->queue[i]] = 1;
        paths->edges += (uint32_t)__builtin_popcount(paths->tight[paths->queue[i]]);
    }
    for (uint32_t f = 0; f < fields; f++)
        find_field(paths, map, f, loose >> f & 1 ? paths->loose : paths->tight);
}

void rm_platformer_paths_loosen(struct rm_platformer_paths *paths,
                                const struct rm_platformer_map *map, uint64_t fields)
{
    for (uint32_t f = 0; f < 2 + 3 * map->level.doors; f++)
        if (fields >> f & 1)
            find_field(paths, map, f, paths->loose);
}
