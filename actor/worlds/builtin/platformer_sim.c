#include "actor/worlds/builtin/platformer_sim.h"

#include <math.h>
#include <string.h>

enum { ROWS = RM_PLATFORMER_ROWS, COLUMNS = RM_PLATFORMER_COLUMNS, TILE = RM_PLATFORMER_TILE };

#define GRAVITY_FALL   0.06666666666666665
#define GRAVITY_JUMP   0.01111111111111111
#define GROUND_ACCEL   0.06666666666666665
#define AIR_ACCEL      0.04444444444444444
#define DRAG           0.9933221725495059
#define DRAG_SLOW      0.8617738760127536
#define FRICTION       0.9459290248857720
#define FRICTION_SLOW  0.8617738760127536
#define FRICTION_WALL  0.9113380468927672
#define SPEED_MAX      3.333
#define IMPACT_MAX     6.0
#define RADIUS         10.0
#define MASK_FALL      4.6
#define MASK_COMPAT    5.0
#define MASK_MINE      30.0
#define MASK_MINE_NEAR 12.5

enum { BUFFER = 5, JUMP_LONGEST = 45, NEVER = -100 };
enum { MINE_LOOK = 6, IMPACT_LOOK = 10, DOOM_LOOK = 10 };

/* --- the segments of a level ------------------------------------------------------------------ */

enum kind { DIAGONAL, HORIZONTAL, VERTICAL, DOOR_HORIZONTAL, DOOR_VERTICAL };
enum { TOP = 1, LEFT = 2, BOTTOM = 4, RIGHT = 8 };

static const uint8_t legs[10] = {
    [RM_PLATFORMER_FULL] = TOP | LEFT | BOTTOM | RIGHT,
    [RM_PLATFORMER_UPPER_LEFT] = TOP | LEFT,
    [RM_PLATFORMER_UPPER_RIGHT] = TOP | RIGHT,
    [RM_PLATFORMER_LOWER_RIGHT] = BOTTOM | RIGHT,
    [RM_PLATFORMER_LOWER_LEFT] = BOTTOM | LEFT,
};

/* From where to where, as offsets in a tile: the solid side is on the right. */
static const struct {
    uint8_t x1, y1, x2, y2;
} diagonal[10] = {
    [RM_PLATFORMER_UPPER_LEFT] = {0, TILE, TILE, 0},
    [RM_PLATFORMER_UPPER_RIGHT] = {0, 0, TILE, TILE},
    [RM_PLATFORMER_LOWER_RIGHT] = {TILE, 0, 0, TILE},
    [RM_PLATFORMER_LOWER_LEFT] = {TILE, TILE, 0, 0},
};

static bool has_leg(const struct rm_platformer_level *level, int column, int row, int side)
{
    return column >= 0 && column < COLUMNS && row >= 0 && row < ROWS &&
           legs[level->tile[row][column]] & side;
}

/* The segments of a tile, in the order in which they are looked at: diagonal, top, bottom, left,
 * right. Two halves of an edge always go together, so they are one segment. */
static uint32_t tile_segments(const struct rm_platformer_level *level, int column, int row,
                              struct rm_platformer_segment *out)
{
    const int x = TILE * column, y = TILE * row, tile = level->tile[row][column];
    uint32_t count = 0;
    const struct {
        int side, dx, dy, opposite;
        int x1, y1, x2, y2, kind;
    } edges[] = {
        {TOP, 0, -1, BOTTOM, x + TILE, y, x, y, HORIZONTAL},
        {BOTTOM, 0, 1, TOP, x, y + TILE, x + TILE, y + TILE, HORIZONTAL},
        {LEFT, -1, 0, RIGHT, x, y, x, y + TILE, VERTICAL},
        {RIGHT, 1, 0, LEFT, x + TILE, y + TILE, x + TILE, y, VERTICAL},
    };
    if (tile > RM_PLATFORMER_FULL)
        out[count++] = (struct rm_platformer_segment){(int16_t)(x + diagonal[tile].x1),
                                                      (int16_t)(y + diagonal[tile].y1),
                                                      (int16_t)(x + diagonal[tile].x2),
                                                      (int16_t)(y + diagonal[tile].y2),
                                                      DIAGONAL,
                                                      0};
    for (int i = 0; i < 4; i++)
        if (legs[tile] & edges[i].side &&
            !has_leg(level, column + edges[i].dx, row + edges[i].dy, edges[i].opposite))
            out[count++] = (struct rm_platformer_segment){
                (int16_t)edges[i].x1, (int16_t)edges[i].y1,   (int16_t)edges[i].x2,
                (int16_t)edges[i].y2, (uint8_t)edges[i].kind, 0};
    return count;
}

static int door_cell(const struct rm_platformer_door *door)
{
    const int x = door->at.x - (door->vertical ? TILE / 2 : 0);
    const int y = door->at.y - (door->vertical ? 0 : TILE / 2);
    return rm_platformer_tile_at(x) * ROWS + rm_platformer_tile_at(y);
}

static struct rm_platformer_segment door_segment(const struct rm_platformer_door *door, uint8_t id)
{
    const int16_t half = TILE / 2, x = door->at.x, y = door->at.y;
    return door->vertical
               ? (struct rm_platformer_segment){x,
                                                (int16_t)(y - half),
                                                x,
                                                (int16_t)(y + half),
                                                DOOR_VERTICAL,
                                                id}
               : (struct rm_platformer_segment){(int16_t)(x - half), y, (int16_t)(x + half), y,
                                                DOOR_HORIZONTAL,     id};
}

void rm_platformer_build(struct rm_platformer_map *map)
{
    const struct rm_platformer_level *level = &map->level;
    uint32_t count = 0;
    for (int column = 0; column < COLUMNS; column++)
        for (int row = 0; row < ROWS; row++) {
            const int cell = column * ROWS + row;
            map->first[cell] = (uint16_t)count;
            if (level->tile[row][column] != RM_PLATFORMER_EMPTY)
                count += tile_segments(level, column, row, &map->segment[count]);
            for (uint32_t d = 0; d < level->doors; d++)
                if (door_cell(&level->door[d]) == cell)
                    map->segment[count++] = door_segment(&level->door[d], (uint8_t)d);
        }
    map->first[RM_PLATFORMER_CELLS] = (uint16_t)count;
}

/* --- collisions ------------------------------------------------------------------------------- */

/* Cells from (left, top) to (right, bottom), within the grid. */
struct cells {
    int left, top, right, bottom;
};

static int within(int value, int high)
{
    return value < 0 ? 0 : value > high ? high : value;
}

static struct cells cells_of(double left, double top, double right, double bottom)
{
    return (struct cells){within(rm_platformer_tile_at(left), COLUMNS - 1),
                          within(rm_platformer_tile_at(top), ROWS - 1),
                          within(rm_platformer_tile_at(right), COLUMNS - 1),
                          within(rm_platformer_tile_at(bottom), ROWS - 1)};
}

static bool closed(const struct rm_platformer_state *state,
                   const struct rm_platformer_segment *segment)
{
    return segment->kind < DOOR_HORIZONTAL || !state->open[segment->door];
}

/* Does the segment's box touch the box of these corners? */
static bool touches(const struct rm_platformer_segment *s, double left, double top, double right,
                    double bottom)
{
    const double x1 = s->x1, x2 = s->x2, y1 = s->y1, y2 = s->y2;
    return !((x1 < left && x2 < left) || (x1 > right && x2 > right) || (y1 < top && y2 < top) ||
             (y1 > bottom && y2 > bottom));
}

struct closest {
    double x, y;
    bool back; /* seen from behind */
};

static double between(double value, double a, double b)
{
    const double low = a < b ? a : b, high = a < b ? b : a;
    return value < low ? low : value > high ? high : value;
}

static struct closest closest_of(const struct rm_platformer_segment *s, double x, double y)
{
    switch (s->kind) {
    case HORIZONTAL:
        return (struct closest){between(x, s->x1, s->x2), s->y1, (y - s->y1) * (s->x2 - s->x1) < 0};
    case VERTICAL:
        return (struct closest){s->x1, between(y, s->y1, s->y2),
                                -(x - s->x1) * (s->y2 - s->y1) < 0};
    case DOOR_HORIZONTAL:
        return (struct closest){between(x, s->x1, s->x2), s->y1, false};
    case DOOR_VERTICAL:
        return (struct closest){s->x1, between(y, s->y1, s->y2), false};
    default: {
        const double ex = s->x2 - s->x1, ey = s->y2 - s->y1, rx = x - s->x1, ry = y - s->y1;
        const double u = between((rx * ex + ry * ey) / (ex * ex + ey * ey), 0, 1);
        return (struct closest){s->x1 + u * ex, s->y1 + u * ey, ry * ex - rx * ey < 0};
    }
    }
}

/* When a circle of radius r at (x, y) that moves by (dx, dy) touches a point: 0 to 1. */
static double point_hit(double x, double y, double dx, double dy, double r, double px, double py)
{
    const double qx = x - px, qy = y - py, outside = qx * qx + qy * qy - r * r;
    if (outside <= 0)
        return 0;
    const double speed = dx * dx + dy * dy, dot = qx * dx + qy * dy;
    const double discriminant = dot * dot - speed * outside;
    if (speed > 1e-4 && dot < 0 && discriminant >= 0)
        return (-dot - sqrt(discriminant)) / speed;
    return 1;
}

static double line_hit(double x, double y, double dx, double dy, double r,
                       const struct rm_platformer_segment *s)
{
    const double wx = s->x2 - s->x1, wy = s->y2 - s->y1;
    const double length = s->kind == DIAGONAL ? sqrt(wx * wx + wy * wy) : TILE;
    const double nx = wx / length, ny = wy / length, rx = x - s->x1, ry = y - s->y1;
    const double off = rx * ny - ry * nx, along = rx * nx + ry * ny, distance = fabs(off);
    if (distance < r)
        return along >= 0 && along <= length ? 0 : 1;
    const double away = dx * ny - dy * nx;
    if (away * off >= 0)
        return 1;
    double t = (distance - r) / fabs(away);
    if (t > 1)
        t = 1;
    const double foot = along + t * (dx * nx + dy * ny);
    return foot >= 0 && foot <= length ? t : 1;
}

/* How much of the move a circle of half the ninja's radius can make, 0 to 1. */
static double sweep(const struct rm_platformer_map *map, const struct rm_platformer_state *state,
                    double x, double y, double dx, double dy)
{
    const double r = RADIUS / 2;
    const double left = dx < 0 ? x + dx : x, right = dx < 0 ? x : x + dx;
    const double top = dy < 0 ? y + dy : y, bottom = dy < 0 ? y : y + dy;
    const struct cells c = cells_of(left - r - 1, top - r - 1, right + r + 1, bottom + r + 1);
    double time = 1;
    for (int column = c.left; column <= c.right; column++) {
        /* Cells of a column lie one after the other. */
        const uint32_t end = map->first[column * ROWS + c.bottom + 1];
        for (uint32_t i = map->first[column * ROWS + c.top]; i < end; i++) {
            const struct rm_platformer_segment *s = &map->segment[i];
            if (!closed(state, s) || !touches(s, left - r, top - r, right + r, bottom + r))
                continue;
            time = fmin(time, point_hit(x, y, dx, dy, r, s->x1, s->y1));
            time = fmin(time, point_hit(x, y, dx, dy, r, s->x2, s->y2));
            time = fmin(time, line_hit(x, y, dx, dy, r, s));
        }
    }
    return time;
}

enum { NEAR_MAX = 4 * (4 + RM_PLATFORMER_DOORS), PUSHES = 32, ROUNDS = 4 };

struct nearby {
    const struct rm_platformer_segment *segment[NEAR_MAX];
    uint32_t count;
};

/* The segments of the cells within `reach` of a place, in their order. */
static void collect(const struct rm_platformer_map *map, const struct rm_platformer_state *state,
                    double x, double y, double reach, struct nearby *near)
{
    const struct cells c = cells_of(x - reach, y - reach, x + reach, y + reach);
    near->count = 0;
    for (int column = c.left; column <= c.right; column++) {
        const uint32_t end = map->first[column * ROWS + c.bottom + 1];
        for (uint32_t i = map->first[column * ROWS + c.top]; i < end; i++)
            if (closed(state, &map->segment[i]))
                near->segment[near->count++] = &map->segment[i];
    }
}

/* Pushes the ninja out of what it overlaps. Returns whether there was anything to push from. */
static bool push_out(struct rm_platformer_ninja *ninja, const struct nearby *near,
                     double ceiling[2], double floor[2])
{
    bool pushed = false;
    for (int i = 0; i < PUSHES; i++) {
        const double x = ninja->x, y = ninja->y;
        struct closest best = {0};
        double least = HUGE_VAL;
        for (uint32_t n = 0; n < near->count; n++) {
            const struct rm_platformer_segment *s = near->segment[n];
            if (!touches(s, x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS))
                continue;
            const struct closest c = closest_of(s, x, y);
            const double distance =
                (x - c.x) * (x - c.x) + (y - c.y) * (y - c.y) - (c.back ? 0 : 0.1);
            if (distance < least) {
                least = distance;
                best = c;
            }
        }
        if (least == HUGE_VAL)
            return pushed;
        const double dx = fabs(x - best.x) <= 1e-7 ? 0 : x - best.x, dy = y - best.y;
        const double distance = sqrt(dx * dx + dy * dy);
        const double depth = RADIUS - (best.back ? -distance : distance);
        if (distance == 0 || depth < 1e-7)
            return pushed;
        const double nx = dx / distance, ny = dy / distance;
        pushed = true;
        ninja->x += nx * depth;
        ninja->y += ny * depth;
        if (ninja->vx * dx + ninja->vy * dy < 0) {
            const double along = (ninja->vx * dy - ninja->vy * dx) / (distance * distance);
            ninja->vx = along * dy;
            ninja->vy = along * -dx;
        }
        double *const sum = dy >= -0.0001 ? ceiling : floor;
        sum[0] += nx;
        sum[1] += ny;
        if (dy >= -0.0001)
            ninja->ceilings = 1;
        else
            ninja->floors = 1;
    }
    return pushed;
}

static void collide(const struct rm_platformer_map *map, struct rm_platformer_state *state,
                    double old_x, double old_y, double ceiling[2], double floor[2])
{
    struct rm_platformer_ninja *ninja = &state->ninja;
    struct nearby near;
    for (int round = 0; round < ROUNDS; round++) {
        const double x = ninja->x, y = ninja->y, dx = x - old_x, dy = y - old_y;
        const double time = sweep(map, state, old_x, old_y, dx, dy);
        ninja->x = old_x + time * dx;
        ninja->y = old_y + time * dy;
        collect(map, state, ninja->x, ninja->y, RADIUS, &near);
        /* A round that changes nothing is followed by others that change nothing. */
        if (!push_out(ninja, &near, ceiling, floor) && ninja->x == x && ninja->y == y)
            return;
    }
}

/* --- what happens in a frame ------------------------------------------------------------------ */

static bool overlaps(const struct rm_platformer_ninja *ninja, struct rm_platformer_point at,
                     double radius)
{
    const double dx = ninja->x - at.x, dy = ninja->y - at.y, reach = RADIUS + radius;
    return dx * dx + dy * dy < reach * reach;
}

/* Dying (7, which becomes dead) or winning. */
static void finish(struct rm_platformer_ninja *ninja, int state)
{
    if (ninja->state >= RM_PLATFORMER_DEAD)
        return;
    if (ninja->state == RM_PLATFORMER_JUMP)
        ninja->gravity = GRAVITY_FALL;
    ninja->state = (uint8_t)state;
}

static void die(struct rm_platformer_ninja *ninja, int cause)
{
    if (ninja->state < RM_PLATFORMER_DEAD)
        ninja->death = (uint8_t)cause;
    finish(ninja, RM_PLATFORMER_DYING);
}

static void toggle_mines(const struct rm_platformer_map *map, struct rm_platformer_state *state)
{
    for (uint32_t i = 0; i < map->level.mines; i++) {
        if (state->mine[i] == RM_PLATFORMER_DEADLY)
            continue;
        const struct rm_platformer_point at = map->level.mine[i].at;
        if (state->mine[i] == RM_PLATFORMER_SAFE) {
            if (overlaps(&state->ninja, at, 3.5))
                state->mine[i] = RM_PLATFORMER_TOGGLING;
        } else if (!overlaps(&state->ninja, at, 4.5)) {
            state->mine[i] = RM_PLATFORMER_DEADLY;
            state->version++;
        }
    }
}

static void touch_mine(const struct rm_platformer_map *map, struct rm_platformer_state *state,
                       uint32_t i)
{
    if (state->mine[i] == RM_PLATFORMER_DEADLY && state->ninja.state < RM_PLATFORMER_DEAD &&
        overlaps(&state->ninja, map->level.mine[i].at, 4)) {
        state->mine[i] = RM_PLATFORMER_SAFE;
        state->version++;
        die(&state->ninja, RM_PLATFORMER_BY_MINE);
    }
}

/* Whether b's cell comes before a's, by (x, y); of the same cell a comes first. */
static bool cell_before(struct rm_platformer_point b, struct rm_platformer_point a)
{
    const int bx = b.x / TILE, ax = a.x / TILE;
    return bx < ax || (bx == ax && b.y / TILE < a.y / TILE);
}

/* Only the exit and a deadly mine can come into each other's way, when the ninja touches both in
 * one frame: the first ends the episode. All else commutes. */
static void touch_entities(const struct rm_platformer_map *map, struct rm_platformer_state *state)
{
    const struct rm_platformer_level *level = &map->level;
    const bool wins = state->active && overlaps(&state->ninja, level->exit, 12);
    for (uint32_t i = 0; i < level->mines; i++)
        if (!wins || !cell_before(level->exit, level->mine[i].at))
            touch_mine(map, state, i);
    if (wins)
        finish(&state->ninja, RM_PLATFORMER_WON);
    if (!state->active && overlaps(&state->ninja, level->opener, 6))
        state->active = 1;
    for (uint32_t d = 0; d < level->doors; d++)
        if (!state->open[d] && overlaps(&state->ninja, level->door[d].opener, 5)) {
            state->open[d] = 1;
            state->version++;
        }
}

static void find_walls(const struct rm_platformer_map *map, struct rm_platformer_state *state)
{
    struct rm_platformer_ninja *ninja = &state->ninja;
    const double reach = RADIUS + 0.1;
    const struct cells c =
        cells_of(ninja->x - reach, ninja->y - reach, ninja->x + reach, ninja->y + reach);
    double sum = 0;
    for (int column = c.left; column <= c.right; column++) {
        const uint32_t end = map->first[column * ROWS + c.bottom + 1];
        for (uint32_t i = map->first[column * ROWS + c.top]; i < end; i++) {
            const struct rm_platformer_segment *s = &map->segment[i];
            if (!closed(state, s) ||
                !touches(s, ninja->x - reach, ninja->y - 1e-5, ninja->x + reach, ninja->y + 1e-5))
                continue;
            const struct closest at = closest_of(s, ninja->x, ninja->y);
            const double dx = ninja->x - at.x, dy = ninja->y - at.y;
            const double distance = sqrt(dx * dx + dy * dy);
            if (fabs(dy) < 1e-5 && distance > 0 && distance <= reach)
                sum += dx / distance;
        }
    }
    ninja->wall = sum > 0 ? 1 : sum < 0 ? -1 : 0;
}

/* Dies of hitting a surface too fast. */
static void strike(struct rm_platformer_ninja *ninja, double nx, double ny)
{
    const double impact = -(nx * ninja->old_vx + ny * ninja->old_vy);
    if (ninja->state < RM_PLATFORMER_DEAD && impact > IMPACT_MAX - 4.0 / 3.0 * fabs(ny)) {
        ninja->vx = ninja->old_vx;
        ninja->vy = ninja->old_vy;
        die(ninja, RM_PLATFORMER_BY_IMPACT);
    }
}

static void normalise(const double sum[2], double *nx, double *ny, double otherwise)
{
    const double length = sqrt(sum[0] * sum[0] + sum[1] * sum[1]);
    *nx = length > 0 ? sum[0] / length : 0;
    *ny = length > 0 ? sum[1] / length : otherwise;
}

static void settle(struct rm_platformer_ninja *ninja, const double ceiling[2],
                   const double floor[2])
{
    const bool was_airborne = ninja->airborne;
    ninja->airborne = true;
    if (ninja->floors) {
        ninja->airborne = false;
        normalise(floor, &ninja->floor_x, &ninja->floor_y, -1);
        if (was_airborne)
            strike(ninja, ninja->floor_x, ninja->floor_y);
    }
    if (ninja->ceilings) {
        normalise(ceiling, &ninja->ceiling_x, &ninja->ceiling_y, 1);
        strike(ninja, ninja->ceiling_x, ninja->ceiling_y);
    }
}

/* --- what the ninja does ---------------------------------------------------------------------- */

/* Jumps: the kick goes into the place as well. */
static void kick(struct rm_platformer_ninja *ninja, double x, double y)
{
    ninja->state = RM_PLATFORMER_JUMP;
    ninja->gravity = GRAVITY_JUMP;
    ninja->jump_duration = 0;
    ninja->jump_buffer = -1;
    if (ninja->vy > 0)
        ninja->vy = 0;
    ninja->vx += x;
    ninja->vy += y;
    ninja->x += x;
    ninja->y += y;
}

static void floor_jump(struct rm_platformer_ninja *ninja, double h)
{
    const double nx = ninja->floor_x, ny = ninja->floor_y;
    ninja->floor_buffer = -1;
    if (nx == 0) {
        kick(ninja, 0, -2);
        return;
    }
    const bool downhill = ninja->vx * nx >= 0;
    if (downhill ? ninja->vx * h < 0 : ninja->vx * h > 0) {
        kick(ninja, 0, -1.4);
        return;
    }
    if (!downhill)
        ninja->vx = 0;
    kick(ninja, 2.0 / 3.0 * nx, 2 * ny);
}

static void wall_jump(struct rm_platformer_ninja *ninja, double h, double wall, uint32_t frame)
{
    const bool sliding = ninja->state == RM_PLATFORMER_WALL && h * wall < 0;
    ninja->wall_buffer = -1;
    if (ninja->vx * wall < 0)
        ninja->vx = 0;
    kick(ninja, sliding ? 2.0 / 3.0 * wall : wall, sliding ? -1 : -1.4);
    ninja->wall_jump[1] = ninja->wall_jump[0];
    ninja->wall_jump[0] = (int32_t)frame;
}

static void set_state(struct rm_platformer_ninja *ninja, int state)
{
    ninja->state = (uint8_t)state;
}

static void leave_jump(struct rm_platformer_ninja *ninja, int state)
{
    if (ninja->state == RM_PLATFORMER_JUMP)
        ninja->gravity = GRAVITY_FALL;
    set_state(ninja, state);
}

static void slide(struct rm_platformer_ninja *ninja, double h, double along)
{
    const double nx = ninja->floor_x, ny = ninja->floor_y;
    if (h * along * ninja->vx > 0) {
        set_state(ninja, RM_PLATFORMER_RUN);
    } else if (along < 0.1 && nx == 0) {
        set_state(ninja, RM_PLATFORMER_STILL);
    } else if (ninja->vy < 0 && nx != 0) {
        const double speed = sqrt(ninja->vx * ninja->vx + ninja->vy * ninja->vy);
        const double friction = fabs(ninja->vx * (1 - FRICTION) * ny);
        const double rest = speed - friction * ny * ny;
        ninja->vx = ninja->vx / speed * rest;
        ninja->vy = ninja->vy / speed * rest;
    } else {
        ninja->vx *= FRICTION;
    }
}

static void run(struct rm_platformer_ninja *ninja, double h, double along, double wanted)
{
    const double nx = ninja->floor_x, ny = ninja->floor_y;
    if (h * along * ninja->vx <= 0) {
        set_state(ninja, RM_PLATFORMER_SLIDE);
    } else if (h * nx < 0 && fabs(wanted) < SPEED_MAX) { /* uphill */
        const double boost = GROUND_ACCEL / 2 * h;
        ninja->vx += boost * ny * ny;
        ninja->vy += boost * ny * -nx;
    }
}

static void on_ground(struct rm_platformer_ninja *ninja, double h, bool jumps, bool pressed)
{
    const double wanted = ninja->vx + GROUND_ACCEL * h;
    if (fabs(wanted) < SPEED_MAX)
        ninja->vx = wanted;
    if (ninja->state > RM_PLATFORMER_SLIDE)
        leave_jump(ninja, ninja->vx * h <= 0 ? RM_PLATFORMER_SLIDE : RM_PLATFORMER_RUN);
    if (jumps) {
        ninja->buffered = !pressed;
        floor_jump(ninja, h);
        return;
    }
    const double along = fabs(ninja->vy * ninja->floor_x - ninja->vx * ninja->floor_y);
    if (ninja->state == RM_PLATFORMER_SLIDE)
        slide(ninja, h, along);
    else if (ninja->state == RM_PLATFORMER_RUN)
        run(ninja, h, along, wanted);
    else if (h != 0)
        set_state(ninja, RM_PLATFORMER_RUN);
    else if (along < 0.1)
        ninja->vx *= FRICTION_SLOW;
    else
        set_state(ninja, RM_PLATFORMER_SLIDE);
}

static void at_wall(struct rm_platformer_ninja *ninja, double h)
{
    if (ninja->wall == 0) {
        if (ninja->state == RM_PLATFORMER_WALL)
            set_state(ninja, RM_PLATFORMER_FALL);
    } else if (ninja->state == RM_PLATFORMER_WALL) {
        if (h * ninja->wall <= 0)
            ninja->vy *= FRICTION_WALL;
        else
            set_state(ninja, RM_PLATFORMER_FALL);
    } else if (ninja->vy > 0 && h * ninja->wall < 0) {
        leave_jump(ninja, RM_PLATFORMER_WALL);
    }
}

static int8_t aged(int8_t buffer)
{
    return buffer >= 0 && buffer < BUFFER ? (int8_t)(buffer + 1) : -1;
}

static bool recent(int8_t buffer)
{
    return buffer >= 0 && buffer < BUFFER;
}

static void think(struct rm_platformer_ninja *ninja, int h, bool jump, uint32_t frame)
{
    const bool pressed = jump && !ninja->jump_held;
    const bool in_jump = recent(ninja->jump_buffer), in_floor = recent(ninja->floor_buffer);
    const bool in_wall = recent(ninja->wall_buffer), jumps = in_jump || pressed;
    ninja->jump_held = jump;
    ninja->jump_buffer = aged(ninja->jump_buffer);
    ninja->floor_buffer = aged(ninja->floor_buffer);
    ninja->wall_buffer = aged(ninja->wall_buffer);
    ninja->buffered = false;
    if (pressed && ninja->airborne)
        ninja->jump_buffer = 0;
    if (ninja->wall != 0) {
        ninja->wall_buffer = 0;
        ninja->last_wall = ninja->wall;
    }
    if (!ninja->airborne)
        ninja->floor_buffer = 0;
    if (ninja->state >= RM_PLATFORMER_DEAD) {
        if (ninja->state == RM_PLATFORMER_DYING)
            set_state(ninja, RM_PLATFORMER_DEAD);
        else if (!ninja->airborne)
            ninja->drag = DRAG_SLOW;
        return;
    }
    if (!ninja->airborne) {
        on_ground(ninja, h, jumps, pressed);
        return;
    }
    const double wanted = ninja->vx + AIR_ACCEL * h;
    if (fabs(wanted) < SPEED_MAX)
        ninja->vx = wanted;
    if (ninja->state < RM_PLATFORMER_JUMP) {
        set_state(ninja, RM_PLATFORMER_FALL);
        return;
    }
    if (ninja->state == RM_PLATFORMER_JUMP) {
        ninja->jump_duration++;
        if (!jump || ninja->jump_duration > JUMP_LONGEST) {
            leave_jump(ninja, RM_PLATFORMER_FALL);
            return;
        }
    }
    if (jumps && (ninja->wall != 0 || in_wall)) {
        ninja->buffered = !pressed;
        wall_jump(ninja, h, ninja->last_wall, frame);
    } else if (jumps && in_floor) {
        ninja->buffered = !pressed;
        floor_jump(ninja, h);
    } else {
        at_wall(ninja, h);
    }
}

/* --- frames ----------------------------------------------------------------------------------- */

void rm_platformer_begin(const struct rm_platformer_map *map, struct rm_platformer_state *state)
{
    const struct rm_platformer_level *level = &map->level;
    memset(state, 0, sizeof *state);
    for (uint32_t i = 0; i < level->mines; i++)
        state->mine[i] = level->mine[i].state;
    state->ninja = (struct rm_platformer_ninja){
        .x = level->spawn.x,
        .y = level->spawn.y,
        .gravity = GRAVITY_FALL,
        .drag = DRAG,
        .floor_y = -1,
        .ceiling_y = 1,
        .wall_jump = {NEVER, NEVER},
        .jump_buffer = -1,
        .floor_buffer = -1,
        .wall_buffer = -1,
    };
}

static const int8_t turns[RM_PLATFORMER_ACTIONS] = {0, -1, 1, 0, -1, 1};

static bool is_jump(uint32_t action)
{
    return action >= 3;
}

void rm_platformer_frame(const struct rm_platformer_map *map, struct rm_platformer_state *state,
                         uint32_t action)
{
    struct rm_platformer_ninja *ninja = &state->ninja;
    double ceiling[2] = {0, 0}, floor[2] = {0, 0};
    toggle_mines(map, state);
    ninja->turn = turns[action];
    ninja->vx *= ninja->drag;
    ninja->vy *= ninja->drag;
    ninja->vy += ninja->gravity;
    ninja->old_vx = ninja->vx;
    ninja->old_vy = ninja->vy;
    ninja->floors = ninja->ceilings = 0;
    const double old_x = ninja->x, old_y = ninja->y;
    ninja->x += ninja->vx;
    ninja->y += ninja->vy;
    collide(map, state, old_x, old_y, ceiling, floor);
    touch_entities(map, state);
    find_walls(map, state);
    settle(ninja, ceiling, floor);
    think(ninja, turns[action], is_jump(action), state->frame);
    state->frame++;
}

/* --- masks ------------------------------------------------------------------------------------ */

static double nearest_deadly(const struct rm_platformer_map *map,
                             const struct rm_platformer_state *state, double x, double y)
{
    double nearest = HUGE_VAL;
    for (uint32_t i = 0; i < map->level.mines; i++)
        if (state->mine[i] == RM_PLATFORMER_DEADLY) {
            const double dx = x - map->level.mine[i].at.x, dy = y - map->level.mine[i].at.y;
            nearest = fmin(nearest, dx * dx + dy * dy);
        }
    return sqrt(nearest);
}

/* Whether holding an action for some frames ends in this death. */
static bool dies(const struct rm_platformer_map *map, const struct rm_platformer_state *state,
                 uint32_t action, int frames, int cause)
{
    struct rm_platformer_state copy;
    memcpy(&copy, state, offsetof(struct rm_platformer_state, mine) + map->level.mines);
    for (int i = 0; i < frames && copy.ninja.state < RM_PLATFORMER_DEAD; i++)
        rm_platformer_frame(map, &copy, action);
    return copy.ninja.death == cause;
}

/* The frame in which an action that is held, without collisions, comes near a mine; 0: none. */
static int drifts_into_mine(const struct rm_platformer_map *map,
                            const struct rm_platformer_state *state, uint32_t action, int frames)
{
    struct rm_platformer_ninja ninja = state->ninja;
    for (int i = 1; i <= frames; i++) {
        think(&ninja, turns[action], is_jump(action), state->frame);
        ninja.vx *= ninja.drag;
        ninja.vy *= ninja.drag;
        ninja.vy += ninja.gravity;
        ninja.x += ninja.vx;
        ninja.y += ninja.vy;
        if (nearest_deadly(map, state, ninja.x, ninja.y) <= MASK_MINE_NEAR)
            return i;
    }
    return 0;
}

void rm_platformer_doom(const struct rm_platformer_map *map,
                        const struct rm_platformer_state *state,
                        uint8_t frame[RM_PLATFORMER_ACTIONS])
{
    for (uint32_t a = 0; a < RM_PLATFORMER_ACTIONS; a++)
        frame[a] = (uint8_t)drifts_into_mine(map, state, a, DOOM_LOOK);
}

static bool falls_fast(const struct rm_platformer_ninja *ninja, double limit)
{
    const int64_t apart = (int64_t)ninja->wall_jump[0] - ninja->wall_jump[1];
    return ninja->airborne &&
           (ninja->vy > limit || (ninja->vy < -limit && apart >= 1 && apart <= 6));
}

void rm_platformer_mask(const struct rm_platformer_map *map,
                        const struct rm_platformer_state *state, bool compat,
                        uint8_t mask[RM_PLATFORMER_ACTIONS])
{
    const struct rm_platformer_ninja *ninja = &state->ninja;
    memset(mask, 1, RM_PLATFORMER_ACTIONS);
    if (ninja->airborne && ninja->state != RM_PLATFORMER_JUMP && ninja->jump_held &&
        !recent(ninja->jump_buffer) && !recent(ninja->floor_buffer) && !recent(ninja->wall_buffer))
        mask[3] = mask[4] = mask[5] = 0;
    if (ninja->wall != 0 &&
        (!ninja->airborne || ninja->state == RM_PLATFORMER_WALL || ninja->vy < 0))
        mask[ninja->wall > 0 ? 1 : 2] = 0;
    if (map->level.mines && nearest_deadly(map, state, ninja->x, ninja->y) <= MASK_MINE)
        for (uint32_t a = 0; a < RM_PLATFORMER_ACTIONS; a++)
            mask[a] = mask[a] && !(compat ? drifts_into_mine(map, state, a, MINE_LOOK) != 0
                                          : dies(map, state, a, MINE_LOOK, RM_PLATFORMER_BY_MINE));
    if (falls_fast(ninja, compat ? MASK_COMPAT : MASK_FALL))
        for (uint32_t a = 0; a < RM_PLATFORMER_ACTIONS; a++)
            mask[a] = mask[a] && !dies(map, state, a, IMPACT_LOOK, RM_PLATFORMER_BY_IMPACT);
    for (uint32_t a = 1; a < RM_PLATFORMER_ACTIONS; a++)
        if (mask[a])
            return;
    mask[0] = 1;
}
