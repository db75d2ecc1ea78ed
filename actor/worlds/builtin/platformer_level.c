#include "actor/worlds/builtin/platformer_level.h"

#include <stdlib.h>
#include <string.h>

enum { INNER_COLUMNS = RM_PLATFORMER_COLUMNS - 2, INNER_ROWS = RM_PLATFORMER_ROWS - 2 };

uint64_t rm_platformer_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

uint32_t rm_platformer_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((rm_platformer_next(state) >> 32) * n >> 32);
}

static int draw(uint64_t *state, int n)
{
    return (int)rm_platformer_below(state, (uint32_t)n);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static struct rm_platformer_point middle(int column, int row)
{
    return (struct rm_platformer_point){
        (int16_t)(RM_PLATFORMER_TILE * column + RM_PLATFORMER_TILE / 2),
        (int16_t)(RM_PLATFORMER_TILE * row + RM_PLATFORMER_TILE / 2)};
}

static void clear_box(struct rm_platformer_level *level, int x, int y, int width, int height)
{
    for (int row = y; row < y + height; row++)
        memset(&level->tile[row][x], RM_PLATFORMER_EMPTY, (size_t)width);
}

/* --- a corridor ------------------------------------------------------------------------------- */

enum { HILLS = 2, TRIES = 64 };

struct corridor {
    struct rm_platformer_level *level;
    uint64_t rng;
    int width, height, x0, y0, bottom;
    bool left;       /* the spawn is at the left end; columns are counted from it */
    int hill[HILLS]; /* their middles */
    int hills;
    int opener, exit; /* columns */
};

static int column(const struct corridor *c, int k)
{
    return c->left ? c->x0 + k : c->x0 + c->width - 1 - k;
}

static bool near_hill(const struct corridor *c, int k, int distance)
{
    for (int i = 0; i < c->hills; i++)
        if (abs(k - c->hill[i]) <= distance)
            return true;
    return false;
}

static void put_door(struct corridor *c)
{
    const int a = 2 + draw(&c->rng, c->width - 8);
    const int at = column(c, a + 2) + !c->left; /* the edge that is nearer to the spawn */
    struct rm_platformer_point centre = middle(at, c->bottom);
    centre.x = (int16_t)(RM_PLATFORMER_TILE * at);
    c->level->doors = 1;
    c->level->door[0] = (struct rm_platformer_door){
        .at = centre, .opener = middle(column(c, a), c->bottom), .vertical = true};
    c->level->opener = middle(column(c, a + 3), c->bottom);
    c->level->exit = middle(column(c, c->width - 1), c->bottom);
}

static void put_hills(struct corridor *c)
{
    const int wanted = 1 + draw(&c->rng, HILLS);
    for (int i = 0; i < wanted; i++) {
        const int first = 2 + draw(&c->rng, c->width - 6);
        if (near_hill(c, first + 1, 3))
            continue;
        const int from = smaller(column(c, first), column(c, first + 2));
        uint8_t *row = c->level->tile[c->bottom];
        row[from] = RM_PLATFORMER_LOWER_RIGHT;
        row[from + 1] = RM_PLATFORMER_FULL;
        row[from + 2] = RM_PLATFORMER_LOWER_LEFT;
        c->hill[c->hills++] = first + 1;
    }
}

/* A place in column k, above the bottom. */
static struct rm_platformer_point draw_place(struct corridor *c, int k)
{
    int above = draw(&c->rng, smaller(c->height, 3));
    if (near_hill(c, k, 1))
        above = larger(above, 1);
    return middle(column(c, k), c->bottom - above);
}

static void put_ends(struct corridor *c)
{
    c->opener = 2;
    c->exit = c->width - 1;
    for (int i = 0; i < TRIES; i++) {
        const int a = 2 + draw(&c->rng, c->width - 2), b = 2 + draw(&c->rng, c->width - 2);
        if (abs(a - b) >= 2) {
            c->opener = a;
            c->exit = b;
            break;
        }
    }
    c->level->opener = draw_place(c, c->opener);
    c->level->exit = draw_place(c, c->exit);
}

static bool mine_fits(const struct corridor *c, int k)
{
    bool fits = abs(k - c->opener) > 1 && abs(k - c->exit) > 1 && !near_hill(c, k, 2);
    for (uint32_t i = 0; i < c->level->mines; i++)
        fits = fits && abs(middle(column(c, k), 0).x - c->level->mine[i].at.x) >= 72;
    return fits;
}

static void put_mines(struct corridor *c)
{
    const int attempts = 1 + draw(&c->rng, 1 + c->width / 6);
    for (int i = 0; i < attempts; i++) {
        const int k = 3 + draw(&c->rng, c->width - 3);
        if (!mine_fits(c, k))
            continue;
        struct rm_platformer_point at = middle(column(c, k), c->bottom);
        at.y = (int16_t)(draw(&c->rng, 4) == 0 ? RM_PLATFORMER_TILE * c->y0 + 6
                                               : RM_PLATFORMER_TILE * c->bottom + 18);
        c->level->mine[c->level->mines++] = (struct rm_platformer_mine){.at = at};
    }
}

static void make_corridor(struct rm_platformer_level *level, uint64_t seed, bool slopes, bool mines,
                          bool door)
{
    struct corridor c = {.level = level, .rng = seed};
    c.width = 6 + draw(&c.rng, 18);
    c.height = 2 + draw(&c.rng, 4);
    if (door)
        c.height = 1;
    if (slopes)
        c.height = larger(c.height, 3);
    if (door || slopes)
        c.width = larger(c.width, 10);
    c.x0 = 1 + draw(&c.rng, INNER_COLUMNS + 1 - c.width);
    c.y0 = 1 + draw(&c.rng, INNER_ROWS + 1 - c.height);
    c.bottom = c.y0 + c.height - 1;
    c.left = draw(&c.rng, 2) == 0;
    clear_box(level, c.x0, c.y0, c.width, c.height);
    level->spawn = middle(column(&c, 0), c.bottom);
    if (door) {
        put_door(&c);
        return;
    }
    if (slopes)
        put_hills(&c);
    put_ends(&c);
    if (mines)
        put_mines(&c);
}

/* --- a maze ----------------------------------------------------------------------------------- */

/* Cells: rooms are those with even coordinates, w and h are odd. Rooms are numbered by (x, y). */
enum { MAZE_SIDE = 21, ROOMS_SIDE = 11, ROOMS = ROOMS_SIDE * ROOMS_SIDE, DIRECTIONS = 4 };
static const int8_t maze_dx[DIRECTIONS] = {0, 1, 0, -1}, maze_dy[DIRECTIONS] = {1, 0, -1, 0};

struct maze {
    uint64_t rng;
    int columns, rows; /* of rooms */
    bool seen[ROOMS];
    uint8_t open[ROOMS]; /* a bit for each direction */
};

static int neighbour(const struct maze *m, int room, int direction)
{
    const int x = room / m->rows + maze_dx[direction], y = room % m->rows + maze_dy[direction];
    return x >= 0 && x < m->columns && y >= 0 && y < m->rows ? x * m->rows + y : -1;
}

static void carve(struct maze *m)
{
    int stack[ROOMS], depth = 0;
    const int x = draw(&m->rng, m->columns), y = draw(&m->rng, m->rows);
    stack[depth++] = x * m->rows + y;
    m->seen[stack[0]] = true;
    while (depth) {
        const int room = stack[depth - 1];
        int ways[DIRECTIONS], count = 0;
        for (int d = 0; d < DIRECTIONS; d++) {
            const int next = neighbour(m, room, d);
            if (next >= 0 && !m->seen[next])
                ways[count++] = d;
        }
        if (count == 0) {
            depth--;
            continue;
        }
        const int way = ways[draw(&m->rng, count)], next = neighbour(m, room, way);
        m->open[room] |= (uint8_t)(1 << way);
        m->open[next] |= (uint8_t)(1 << (way + 2) % DIRECTIONS);
        m->seen[next] = true;
        stack[depth++] = next;
    }
}

/* Rooms on the way from `from` to each room. */
static int distances(const struct maze *m, int from, int distance[ROOMS])
{
    int queue[ROOMS], head = 0, tail = 0;
    for (int i = 0; i < ROOMS; i++)
        distance[i] = -1;
    distance[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const int room = queue[head++];
        for (int d = 0; d < DIRECTIONS; d++) {
            const int next = neighbour(m, room, d);
            if (m->open[room] >> d & 1 && distance[next] < 0) {
                distance[next] = distance[room] + 1;
                queue[tail++] = next;
            }
        }
    }
    return distance[queue[tail - 1]];
}

/* A room in the farther half as seen from `from`, other than `from` and `taken`. */
static int draw_far(struct maze *m, int from, int taken)
{
    int distance[ROOMS], chosen[ROOMS] = {0}, count = 0;
    const int rooms = m->columns * m->rows, far = distances(m, from, distance);
    for (int least = larger(1, far / 2); least >= 0 && count == 0; least = least ? 0 : -1)
        for (int i = 0; i < rooms; i++)
            if (i != from && i != taken && distance[i] >= least)
                chosen[count++] = i;
    return chosen[draw(&m->rng, count)];
}

static void make_maze(struct rm_platformer_level *level, uint64_t seed, bool small)
{
    struct maze m = {.rng = seed};
    const int c = 1 + draw(&m.rng, 2); /* tiles along a side of a cell */
    const int base = small ? 0 : 2;
    int w = 5 + base + 2 * draw(&m.rng, small ? 3 : 7);
    int h = 3 + base + 2 * draw(&m.rng, small ? 2 : c == 1 ? 4 : 3);
    w = smaller(w, (INNER_COLUMNS / c - 1) / 2 * 2 + 1);
    h = smaller(h, (INNER_ROWS / c - 1) / 2 * 2 + 1);
    m.columns = (w + 1) / 2;
    m.rows = (h + 1) / 2;
    const int x0 = 1 + draw(&m.rng, INNER_COLUMNS + 1 - w * c);
    const int y0 = 1 + draw(&m.rng, INNER_ROWS + 1 - h * c);
    carve(&m);
    for (int room = 0; room < m.columns * m.rows; room++) {
        const int x = room / m.rows * 2, y = room % m.rows * 2;
        clear_box(level, x0 + x * c, y0 + y * c, c, c);
        for (int d = 0; d < DIRECTIONS; d++)
            if (m.open[room] >> d & 1)
                clear_box(level, x0 + (x + maze_dx[d]) * c, y0 + (y + maze_dy[d]) * c, c, c);
    }
    const int spawn = draw(&m.rng, m.columns * m.rows);
    const int opener = draw_far(&m, spawn, spawn);
    const int exit = draw_far(&m, opener, spawn);
    struct rm_platformer_point *const places[] = {&level->spawn, &level->opener, &level->exit};
    const int rooms[] = {spawn, opener, exit};
    for (int i = 0; i < 3; i++)
        *places[i] = middle(x0 + rooms[i] / m.rows * 2 * c, y0 + rooms[i] % m.rows * 2 * c + c - 1);
}

void rm_platformer_generate(struct rm_platformer_level *level, enum rm_platformer_stage stage,
                            uint64_t seed)
{
    memset(level, 0, offsetof(struct rm_platformer_level, mine));
    memset(level->tile, RM_PLATFORMER_FULL, sizeof level->tile);
    if (stage >= RM_PLATFORMER_M0)
        make_maze(level, seed, stage == RM_PLATFORMER_M0);
    else
        make_corridor(level, seed, stage == RM_PLATFORMER_C1, stage == RM_PLATFORMER_C2,
                      stage == RM_PLATFORMER_C3);
}
