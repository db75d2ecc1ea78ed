/* platformer: a ninja with momentum runs and jumps to a switch, then to the exit it opens, through
 * generated corridors and mazes or levels of text. The physics are those of N++ as nclone writes
 * them down (github.com/Tetramputechture/nclone, 5c4c886). docs/platformer.md has the rules. */
#include "actor/worlds/builtin/platformer.h"
#include "actor/worlds/builtin/grid.h"

#include <math.h>
#include <stdlib.h>

enum { GAME_STATE = 64, REACH = 8, DOOR_VALUES = 8 };
enum { FAST = 100 }; /* pixels a frame; no ninja gets there */

/* Observations, in the world's order. */
enum {
    STATE,
    PHYSICS,
    OBJECTIVES,
    MINES,
    PROGRESS,
    SEQUENCE,
    DEATH,
    REACHED,
    DOORS,
    GRAPH,
    GRAPH_EDGES,
    GRAPH_NODE,
    GRAPH_VERSION,
    OBSERVATIONS
};

/* Numbers of each part of the game state, one after another. */
static const uint32_t part_values[DEATH + 1] = {
    [PHYSICS] = 29, [OBJECTIVES] = 15, [MINES] = 8, [PROGRESS] = 3, [SEQUENCE] = 3, [DEATH] = 6};

_Static_assert(sizeof(struct rm_platformer_world) % 8 == 0, "worlds of a batch lie side by side");

struct rm_env {
    struct rm_single single;
    struct rm_env_observation observation[OBSERVATIONS];
    uint32_t sees, graph_nodes;      /* graph_nodes: for which there is room */
    size_t at[OBSERVATIONS];         /* in an entry of the buffer */
    bool compat, speed_bonus, given; /* given: the one level is that of `level` */
    enum rm_platformer_stage stage;
    uint32_t split;
    uint64_t first_level, levels;
    struct rm_platformer_level level;
    struct rm_platformer_place *place; /* [worlds] */
};

static const char *const stages[] = {"c0", "c1", "c2", "c3", "m0", "m1", NULL};
static const char *const splits[] = {"train", "valid", "test", NULL};
static const char *const observation_names[] = {"game_state", "physics",  "objectives", "mines",
                                                "progress",   "sequence", "death",      "reach",
                                                "doors",      "graph",    NULL};

static const struct rm_env_option_doc options[] = {
    {.key = "stage",
     .doc = "which levels: corridors plain (c0), with hills (c1), mines (c2), a door (c3); mazes "
            "small (m0), large (m1)",
     .type = RM_ENV_WORD,
     .words = stages,
     .fallback_text = "c0"},
    {.key = "level", .doc = "file of a level, in place of generated ones", .type = RM_ENV_PATH},
    {.key = "split",
     .doc = "levels to train, validate or test with: no two have a level in common",
     .type = RM_ENV_WORD,
     .words = splits,
     .fallback_text = "train"},
    RM_OPTION_WHOLE("levels", 0, 0, 1e9, "how many levels there are; 0: a new one each episode"),
    RM_OPTION_WHOLE("first_level", 0, 0, 1e15, "number of the first of them"),
    {.key = "observe",
     .doc = "what the agent sees; by default game_state and reach. physics, objectives, mines, "
            "progress, sequence and death are the parts of game_state",
     .type = RM_ENV_WORD,
     .most = GRAPH + 1,
     .words = observation_names},
    RM_OPTION_WHOLE("graph_nodes", 0, 0, RM_PLATFORMER_NODES_INSIDE,
                    "nodes that there is room for in graph; 0: as many as the levels can have"),
    RM_OPTION_WHOLE("max_steps", 2000, 1, 1e9, "frames in an episode"),
    RM_OPTION_WHOLE("compat", 0, 0, 1, "1: as the program that this world is modelled on"),
    RM_OPTION_WHOLE("speed_bonus", 1, 0, 1, "with compat, 0: none for speed in a direction"),
    {.key = NULL},
};

struct rm_platformer_place *rm_platformer_place_of(const struct rm_env *env,
                                                   const struct rm_platformer_world *world)
{
    return &env->place[world - (const struct rm_platformer_world *)env->single.world];
}

/* --- ways ------------------------------------------------------------------------------------- */

static uint32_t objective(const struct rm_platformer_state *state)
{
    return state->active ? RM_PLATFORMER_TO_EXIT : RM_PLATFORMER_TO_OPENER;
}

static bool is_cut_off(const struct rm_platformer_paths *paths, uint32_t field, int node)
{
    return node == RM_PLATFORMER_NOWHERE || paths->field[field].hops[node] == RM_PLATFORMER_NO_WAY;
}

/* Hops from a node as a part of the most there are, 1 where there is no way. */
static double share(const struct rm_platformer_paths *paths, uint32_t field, int node)
{
    const struct rm_platformer_field *f = &paths->field[field];
    return is_cut_off(paths, field, node) ? 1 : f->hops[node] / (double)f->farthest;
}

/* Where the ninja is, and the fields: again after a change, and without regard to mines where the
 * mines cut the ninja off. */
static void find_ways(const struct rm_env *env, struct rm_platformer_world *world,
                      struct rm_platformer_place *place, bool begins)
{
    const struct rm_platformer_map *map = &place->map;
    struct rm_platformer_paths *paths = place->paths;
    if (begins)
        rm_platformer_paths_begin(paths, map);
    const int node = rm_platformer_node(paths, world->state.ninja.x, world->state.ninja.y);
    if (begins || world->version != world->state.version) {
        world->version = world->state.version;
        world->loose = 0;
        rm_platformer_paths_find(paths, map, &world->state, 0);
    }
    if (place->graph)
        rm_platformer_graph_update(place->graph, paths, map, &world->state, begins);
    world->node = node == RM_PLATFORMER_NOWHERE ? world->node : node;
    if (env->compat || map->level.mines == 0)
        return;
    uint64_t cut = 0;
    for (uint32_t f = 0; f < 2 + 3 * map->level.doors; f++)
        if (!(world->loose >> f & 1) && is_cut_off(paths, f, world->node))
            cut |= (uint64_t)1 << f;
    if (cut) {
        rm_platformer_paths_loosen(paths, map, cut);
        world->loose |= cut;
    }
}

/* --- rewards ---------------------------------------------------------------------------------- */

#define SHAPING_GAMMA 0.995

static double nearest_mine(const struct rm_platformer_map *map,
                           const struct rm_platformer_state *state, uint32_t *which)
{
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < map->level.mines; i++) {
        const double dx = map->level.mine[i].at.x - state->ninja.x;
        const double dy = map->level.mine[i].at.y - state->ninja.y;
        if (dx * dx + dy * dy < least) {
            least = dx * dx + dy * dy;
            *which = i;
        }
    }
    return sqrt(least);
}

static double potential_of(const struct rm_env *env, const struct rm_platformer_world *world,
                           const struct rm_platformer_place *place)
{
    const struct rm_platformer_paths *paths = place->paths;
    const uint32_t field = objective(&world->state);
    uint32_t which = 0;
    if (!env->compat)
        return 2 * (1 - share(paths, field, world->node));
    const double far =
        is_cut_off(paths, field, world->node)
            ? 1
            : paths->field[field].hops[world->node] / (12 * sqrt((double)paths->reachable));
    const double mine = nearest_mine(&place->map, &world->state, &which);
    const double safe = mine <= 14 ? 0 : 1 - exp(-mine / 100);
    const double sum = 2 * fmax(0, 1 - far) + 0.8 * safe + 0.6;
    return fmin(fmax(sum, 0), 1);
}

static double reward_correct(const struct rm_env *env, struct rm_platformer_world *world,
                             const struct rm_platformer_place *place, bool switched)
{
    const struct rm_platformer_ninja *ninja = &world->state.ninja;
    const bool over = ninja->state >= RM_PLATFORMER_DEAD;
    const double before = world->potential;
    double reward = -0.001;
    world->potential = over ? 0 : potential_of(env, world, place);
    if (switched)
        reward += 2;
    else
        reward += SHAPING_GAMMA * world->potential - before;
    if (ninja->state == RM_PLATFORMER_WON)
        reward += 20;
    else if (over)
        reward -= ninja->death == RM_PLATFORMER_BY_MINE ? 2.5 : 1;
    return reward;
}

static int within(int value, int high)
{
    return value < 0 ? 0 : value > high ? high : value;
}

/* New cells that the ninja is in, of four sizes. */
static uint32_t explore(struct rm_platformer_world *world)
{
    static const uint8_t size[RM_PLATFORMER_SCALES] = {1, 4, 8, 16};
    const int x = within(rm_platformer_tile_at(world->state.ninja.x), RM_PLATFORMER_COLUMNS - 1);
    const int y = within(rm_platformer_tile_at(world->state.ninja.y), RM_PLATFORMER_ROWS - 1);
    uint32_t found = 0, base = 0;
    for (int i = 0; i < RM_PLATFORMER_SCALES; i++) {
        const uint32_t columns = (uint32_t)(RM_PLATFORMER_COLUMNS + size[i] - 1) / size[i];
        const uint32_t rows = (uint32_t)(RM_PLATFORMER_ROWS + size[i] - 1) / size[i];
        const uint32_t bit = base + (uint32_t)(y / size[i]) * columns + (uint32_t)(x / size[i]);
        uint8_t *const byte = &world->visited[bit / 8];
        found += !(*byte >> bit % 8 & 1);
        *byte |= (uint8_t)(1 << bit % 8);
        base += columns * rows;
    }
    return found;
}

/* 1 if the way gets shorter in the direction of the speed, -1 if longer. */
static int8_t speed_sign(const struct rm_platformer_world *world,
                         const struct rm_platformer_place *place, double speed)
{
    const struct rm_platformer_ninja *ninja = &world->state.ninja;
    const uint32_t field = objective(&world->state);
    if (speed < 1e-6 || is_cut_off(place->paths, field, world->node))
        return 0;
    const int ahead = rm_platformer_node(place->paths, ninja->x + 20 * ninja->vx / speed,
                                         ninja->y + 20 * ninja->vy / speed);
    if (is_cut_off(place->paths, field, ahead))
        return 0;
    const uint16_t *hops = place->paths->field[field].hops;
    return (int8_t)((hops[ahead] < hops[world->node]) - (hops[ahead] > hops[world->node]));
}

static double reward_compat(const struct rm_env *env, struct rm_platformer_world *world,
                            const struct rm_platformer_place *place, uint32_t action, bool switched)
{
    const struct rm_platformer_ninja *ninja = &world->state.ninja;
    const double t = world->state.frame, before = world->potential;
    double reward = -1e-5;
    world->potential = potential_of(env, world, place);
    if (ninja->death)
        return ninja->death == RM_PLATFORMER_BY_MINE ? -2.5 : -1;
    if (action == 0)
        reward -= 0.05;
    if (ninja->buffered)
        reward += 0.02;
    if (ninja->state == RM_PLATFORMER_WON)
        reward += 20 + 2 * fmax(0, 1 - t / 5000);
    if (switched) {
        reward += 2;
        memset(world->visited, 0, sizeof world->visited);
    }
    const double scale = t <= 500 ? 1 : t >= 2000 ? 0.2 : 1 - 0.8 * (t - 500) / 1500;
    reward += 0.005 * scale * explore(world);
    const double speed = sqrt(ninja->vx * ninja->vx + ninja->vy * ninja->vy);
    if (world->state.frame % 5 == 0)
        world->speed_sign = speed_sign(world, place, speed);
    if (env->speed_bonus)
        reward += world->speed_sign > 0   ? 0.0005 * speed
                  : world->speed_sign < 0 ? -0.0003 * speed
                                          : 0;
    if (!switched && world->state.frame > 1)
        reward += SHAPING_GAMMA * world->potential - before;
    return reward;
}

/* --- episodes --------------------------------------------------------------------------------- */

static void make_level(const struct rm_env *env, const struct rm_platformer_world *world,
                       struct rm_platformer_place *place)
{
    if (env->given)
        place->map.level = env->level;
    else
        rm_platformer_generate(&place->map.level, env->stage, world->level_seed);
    rm_platformer_build(&place->map);
}

static void begin(const struct rm_env *env, uint32_t w, void *of)
{
    struct rm_platformer_world *world = of;
    struct rm_rng *rng = &world->head.rng;
    struct rm_platformer_place *place = &env->place[w];
    const uint64_t high = rm_draw_u32(rng), low = rm_draw_u32(rng);
    const uint64_t number =
        env->levels ? env->first_level + (high << 32 | low) % env->levels : (high << 32 | low) >> 2;
    world->level_seed = number | (uint64_t)env->split << 62;
    make_level(env, world, place);
    rm_platformer_begin(&place->map, &world->state);
    world->node = RM_PLATFORMER_NOWHERE;
    world->speed_sign = 0;
    memset(world->visited, 0, sizeof world->visited);
    find_ways(env, world, place, true);
    world->potential = potential_of(env, world, place);
    rm_platformer_mask(&place->map, &world->state, env->compat, world->mask);
}

static int play(struct rm_env *env, uint32_t w, void *of, int32_t action, float *reward)
{
    struct rm_platformer_world *world = of;
    struct rm_platformer_state *state = &world->state;
    struct rm_platformer_place *place = &env->place[w];
    const bool active = state->active;
    if (!world->mask[action])
        return rm_single_refuse(env, w, action);
    rm_platformer_frame(&place->map, state, (uint32_t)action);
    find_ways(env, world, place, false);
    const bool switched = state->active && !active;
    *reward = (float)(env->compat ? reward_compat(env, world, place, (uint32_t)action, switched)
                                  : reward_correct(env, world, place, switched));
    rm_platformer_mask(&place->map, state, env->compat, world->mask);
    const bool late = env->compat && world->head.step + 1 >= env->single.max_steps;
    return state->ninja.state >= RM_PLATFORMER_DEAD || late ? RM_ENV_TERMINATED : 0;
}

/* --- observations ----------------------------------------------------------------------------- */

static float clip(double value)
{
    return (float)(value < -1 ? -1 : value > 1 ? 1 : value);
}

static float sign(bool yes)
{
    return yes ? 1 : -1;
}

static float age(int8_t buffer)
{
    return (float)(buffer < 0 ? 0 : buffer) / 5 * 2 - 1;
}

/* Where something is, as seen from the ninja. */
static void write_towards(float out[2], const struct rm_platformer_ninja *ninja,
                          struct rm_platformer_point at)
{
    out[0] = clip((at.x - ninja->x) * (1.0 / 528));
    out[1] = clip((at.y - ninja->y) * (1.0 / 300));
}

static double distance_to(const struct rm_platformer_ninja *ninja, struct rm_platformer_point at)
{
    const double dx = at.x - ninja->x, dy = at.y - ninja->y;
    return sqrt(dx * dx + dy * dy);
}

static void write_ninja(float *f, const struct rm_env *env, const struct rm_platformer_ninja *ninja)
{
    const double speed = sqrt(ninja->vx * ninja->vx + ninja->vy * ninja->vy);
    const double per_speed = speed > 1e-9 ? 1 / speed : 0;
    f[0] = (float)(fmin(speed * (1 / 6.666), 1) * 2 - 1);
    f[1] = (float)(ninja->vx * per_speed);
    f[2] = (float)(ninja->vy * per_speed);
    f[3] = sign(ninja->state <= RM_PLATFORMER_SLIDE);
    f[4] = sign(ninja->state == RM_PLATFORMER_JUMP || ninja->state == RM_PLATFORMER_FALL);
    f[5] = sign(ninja->state == RM_PLATFORMER_WALL);
    f[6] = sign(ninja->state >= RM_PLATFORMER_DEAD);
    f[7] = sign(ninja->airborne);
    f[8] = ninja->turn;
    f[9] = sign(ninja->jump_held);
    f[10] = age(ninja->jump_buffer);
    f[11] = age(ninja->floor_buffer);
    f[12] = age(ninja->wall_buffer);
    f[13] = sign(ninja->floors);
    f[14] = env->compat ? -1 : sign(ninja->wall != 0);
    f[15] = sign(ninja->ceilings);
    f[16] = 1;
    f[17] = env->compat ? 0 : ninja->wall;
    f[18] = (float)ninja->floor_y;
    f[19] = clip((ninja->vx - ninja->old_vx) * (1 / 3.333));
    f[20] = clip((ninja->vy - ninja->old_vy) * (1 / 3.333));
    f[21] = sign(ninja->state != RM_PLATFORMER_JUMP); /* gravity: that of falling */
    f[22] = (float)(ninja->jump_duration < 45 ? ninja->jump_duration : 45) / 45 * 2 - 1;
    f[23] = sign(ninja->wall != 0);
    f[24] = (float)ninja->floor_x;
    f[25] = (float)ninja->ceiling_x;
    f[26] = (float)ninja->ceiling_y;
    f[27] = sign(ninja->state != RM_PLATFORMER_WON || ninja->airborne); /* drag: the regular one */
    f[28] = 1;
}

/* On which side of a door the ninja is. */
static bool is_beyond(const struct rm_platformer_ninja *ninja,
                      const struct rm_platformer_door *door)
{
    return door->vertical ? ninja->x > door->at.x : ninja->y > door->at.y;
}

struct doors {
    uint32_t opened;
    int nearest; /* that is closed; -1: none */
};

static struct doors count_doors(const struct rm_platformer_level *level,
                                const struct rm_platformer_state *state)
{
    struct doors doors = {.nearest = -1};
    double least = HUGE_VAL;
    for (uint32_t d = 0; d < level->doors; d++) {
        const double distance = distance_to(&state->ninja, level->door[d].at);
        doors.opened += state->open[d];
        if (!state->open[d] && distance < least) {
            least = distance;
            doors.nearest = (int)d;
        }
    }
    return doors;
}

static void write_goals(float *f, const struct rm_platformer_world *world,
                        const struct rm_platformer_place *place)
{
    const struct rm_platformer_state *state = &world->state;
    const struct rm_platformer_level *level = &place->map.level;
    const struct rm_platformer_ninja *ninja = &state->ninja;
    const struct doors doors = count_doors(level, state);
    f[29] = state->active;
    write_towards(&f[30], ninja, level->opener);
    f[32] = (float)share(place->paths, RM_PLATFORMER_TO_OPENER, world->node);
    write_towards(&f[33], ninja, level->exit);
    f[35] = (float)share(place->paths, RM_PLATFORMER_TO_EXIT, world->node);
    memset(&f[36], 0, 8 * sizeof *f);
    if (doors.nearest >= 0) {
        const uint32_t d = (uint32_t)doors.nearest;
        const struct rm_platformer_door *door = &level->door[d];
        f[36] = 1;
        write_towards(&f[38], ninja, door->opener);
        f[40] = (float)share(place->paths, rm_platformer_to_key(d), world->node);
        write_towards(&f[41], ninja, door->at);
        f[43] = (float)share(place->paths, rm_platformer_to_door(d, is_beyond(ninja, door)),
                             world->node);
    }
    f[52] = !state->active ? 0 : doors.nearest >= 0 ? 0.33f : 0.67f;
    f[53] = (float)doors.opened / (float)(1 + level->doors);
    f[54] = (f[32] + f[35]) / 2;
    f[55] = !state->active ? -1 : distance_to(ninja, level->exit) <= 50;
    f[56] = !state->active;
    f[57] = state->active;
}

static void write_mines(float *f, const struct rm_platformer_world *world,
                        const struct rm_platformer_place *place)
{
    static const float looks[3] = {
        [RM_PLATFORMER_DEADLY] = 0, [RM_PLATFORMER_TOGGLING] = 0.5f, [RM_PLATFORMER_SAFE] = 1};
    const struct rm_platformer_state *state = &world->state;
    const struct rm_platformer_level *level = &place->map.level;
    const struct rm_platformer_ninja *ninja = &state->ninja;
    uint32_t nearest = 0, deadly = 0, near_deadly = 0, near_safe = 0;
    memset(&f[44], 0, 8 * sizeof *f);
    f[46] = -1;
    f[47] = f[49] = 1;
    if (level->mines == 0)
        return;
    for (uint32_t i = 0; i < level->mines; i++) {
        const bool near = distance_to(ninja, level->mine[i].at) <= 100;
        deadly += state->mine[i] == RM_PLATFORMER_DEADLY;
        near_deadly += near && state->mine[i] == RM_PLATFORMER_DEADLY;
        near_safe += near && state->mine[i] == RM_PLATFORMER_SAFE;
    }
    const double distance = nearest_mine(&place->map, state, &nearest);
    const struct rm_platformer_point at = level->mine[nearest].at;
    f[44] = clip((at.x - ninja->x) / 100);
    f[45] = clip((at.y - ninja->y) / 100);
    f[46] = looks[state->mine[nearest]];
    f[47] = (float)fmin(distance / 200, 1);
    f[48] = clip(near_deadly / 10.0);
    f[49] = (float)(1 - fmin(distance / 150, 1));
    f[50] = clip(near_safe / 10.0);
    f[51] = clip(0.7 * deadly / level->mines + 0.03 * level->mines);
}

static void write_threats(float *f, const struct rm_env *env,
                          const struct rm_platformer_world *world,
                          const struct rm_platformer_place *place)
{
    uint8_t frame[RM_PLATFORMER_ACTIONS];
    if (!env->compat) {
        for (int a = 0; a < RM_PLATFORMER_ACTIONS; a++)
            f[58 + a] = 1 - world->mask[a];
        return;
    }
    rm_platformer_doom(&place->map, &world->state, frame);
    for (int a = 0; a < RM_PLATFORMER_ACTIONS; a++)
        f[58 + a] = frame[a] ? (float)(11 - frame[a]) / 10 : 0;
}

static void write_reach(float *f, const struct rm_env *env, const struct rm_platformer_world *world,
                        const struct rm_platformer_place *place)
{
    const struct rm_platformer_paths *paths = place->paths;
    const struct rm_platformer_level *level = &place->map.level;
    const struct rm_platformer_ninja *ninja = &world->state.ninja;
    const uint32_t field = objective(&world->state);
    const double part = share(paths, field, world->node);
    const double way = 12 * part * paths->field[field].farthest;
    const double straight = distance_to(ninja, world->state.active ? level->exit : level->opener);
    uint32_t near = 0;
    for (uint32_t i = 0; i < level->mines; i++)
        near += world->state.mine[i] == RM_PLATFORMER_DEADLY &&
                distance_to(ninja, level->mine[i].at) <= way + 50;
    f[0] = clip(paths->reachable * (1.0 / (env->compat ? 42 * 23 : RM_PLATFORMER_NODES_INSIDE)));
    f[1] = (float)(1 - part);
    f[2] = (float)(1 - share(paths, RM_PLATFORMER_TO_EXIT, world->node));
    f[3] = (float)fmin(fmax(2 - way / fmax(straight, 1e-9), 0), 1);
    f[4] = clip(near / 5.0);
    f[5] = paths->reachable ? (float)paths->edges / (float)(4 * paths->reachable) : 0;
    f[6] = !is_cut_off(paths, field, world->node);
    f[7] = 1;
}

/* A count, and a row for each door. */
static void write_doors(void *out, const struct rm_platformer_world *world,
                        const struct rm_platformer_place *place)
{
    const struct rm_platformer_level *level = &place->map.level;
    const struct rm_platformer_ninja *ninja = &world->state.ninja;
    float *row = (float *)out + 1;
    memcpy(out, &level->doors, sizeof level->doors);
    memset(row, 0, sizeof(float) * DOOR_VALUES * RM_PLATFORMER_DOORS);
    for (uint32_t d = 0; d < level->doors; d++, row += DOOR_VALUES) {
        const struct rm_platformer_door *door = &level->door[d];
        write_towards(&row[0], ninja, door->opener);
        row[2] = row[6] = world->state.open[d];
        row[3] = (float)share(place->paths, rm_platformer_to_key(d), world->node);
        write_towards(&row[4], ninja, door->at);
        row[7] = (float)share(place->paths, rm_platformer_to_door(d, is_beyond(ninja, door)),
                              world->node);
    }
}

static void write_counted(void *out, uint32_t count, const void *elements, size_t bytes)
{
    memcpy(out, &count, sizeof count);
    memcpy((uint8_t *)out + sizeof count, elements, count * bytes);
}

static void write_graph(void *obs, const struct rm_env *env,
                        const struct rm_platformer_world *world,
                        const struct rm_platformer_graph *graph)
{
    const uint32_t numbers = graph->nodes + 1 + graph->edges;
    const int32_t node = world->node == RM_PLATFORMER_NOWHERE ? -1 : graph->place[world->node];
    write_counted(rm_env_at(obs, (ptrdiff_t)env->at[GRAPH], 1), graph->nodes, graph->node,
                  sizeof graph->node[0]);
    write_counted(rm_env_at(obs, (ptrdiff_t)env->at[GRAPH_EDGES], 1), numbers, graph->row,
                  sizeof graph->row[0]);
    memcpy(rm_env_at(obs, (ptrdiff_t)env->at[GRAPH_NODE], 1), &node, sizeof node);
    memcpy(rm_env_at(obs, (ptrdiff_t)env->at[GRAPH_VERSION], 1), &graph->version,
           sizeof graph->version);
}

static bool is_seen(const struct rm_env *env, uint32_t observation)
{
    return env->sees >> observation & 1;
}

/* Whole, or those of its parts that are seen. */
static void write_game_state(void *obs, const struct rm_env *env,
                             const struct rm_platformer_world *world,
                             const struct rm_platformer_place *place)
{
    float f[GAME_STATE];
    write_ninja(f, env, &world->state.ninja);
    write_goals(f, world, place);
    write_mines(f, world, place);
    write_threats(f, env, world, place);
    if (is_seen(env, STATE))
        memcpy(obs, f, sizeof f);
    for (uint32_t i = PHYSICS, at = 0; i <= DEATH; at += part_values[i++])
        if (is_seen(env, i))
            memcpy(rm_env_at(obs, (ptrdiff_t)env->at[i], 1), f + at, part_values[i] * sizeof *f);
}

static void observe(const struct rm_env *env, const void *of, void *obs)
{
    const struct rm_platformer_world *world = of;
    const struct rm_platformer_place *place = rm_platformer_place_of(env, world);
    if (env->sees & ((1u << (DEATH + 1)) - 1))
        write_game_state(obs, env, world, place);
    if (is_seen(env, REACHED))
        write_reach(rm_env_at(obs, (ptrdiff_t)env->at[REACHED], 1), env, world, place);
    if (is_seen(env, DOORS))
        write_doors(rm_env_at(obs, (ptrdiff_t)env->at[DOORS], 1), world, place);
    if (is_seen(env, GRAPH))
        write_graph(obs, env, world, place->graph);
}

static void write_mask(const struct rm_env *env, const void *of, uint8_t *mask)
{
    (void)env;
    memcpy(mask, ((const struct rm_platformer_world *)of)->mask, RM_PLATFORMER_ACTIONS);
}

static const char *const ends[] = {"exit", "mine", "impact", "time", NULL};

static const struct rm_env_figure figures[] = {
    {"success", "1: the exit was reached", NULL},
    {"switch", "1: the switch of the exit was touched", NULL},
    {"end", NULL, ends},
};

static void write_figures(const struct rm_env *env, const void *of, double *out)
{
    const struct rm_platformer_state *state = &((const struct rm_platformer_world *)of)->state;
    (void)env;
    out[0] = state->ninja.state == RM_PLATFORMER_WON;
    out[1] = state->active;
    out[2] = out[0] != 0 ? 0 : state->ninja.death ? state->ninja.death : 3;
}

static const struct rm_single_rules rules = {
    .begin = begin, .play = play, .observe = observe, .mask = write_mask, .figures = write_figures};

static int reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    return rm_single_reset(env, out, &rules);
}

static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out)
{
    return rm_single_step(env, phase, actions, out, &rules);
}

/* --- showing ---------------------------------------------------------------------------------- */

static bool is_at(struct rm_platformer_point at, uint32_t row, uint32_t column)
{
    return (uint32_t)at.x / RM_PLATFORMER_TILE == column &&
           (uint32_t)at.y / RM_PLATFORMER_TILE == row;
}

static const struct rm_grid_look *look(const struct rm_env *env, const void *of, uint32_t row,
                                       uint32_t column)
{
    static const struct rm_grid_look tiles[10] = {
        [RM_PLATFORMER_EMPTY] = {" ", {236, 236, 228}},
        [RM_PLATFORMER_FULL] = {"█", {96, 104, 112}},
        [RM_PLATFORMER_UPPER_LEFT] = {"◤", {150, 156, 160}},
        [RM_PLATFORMER_UPPER_RIGHT] = {"◥", {150, 156, 160}},
        [RM_PLATFORMER_LOWER_RIGHT] = {"◢", {150, 156, 160}},
        [RM_PLATFORMER_LOWER_LEFT] = {"◣", {150, 156, 160}},
    };
    static const struct rm_grid_look ninja = {"@", {20, 20, 20}}, opener = {"s", {220, 180, 40}};
    static const struct rm_grid_look pressed = {"S", {150, 130, 60}}, exit = {"x", {150, 190, 220}};
    static const struct rm_grid_look way_out = {"X", {40, 120, 220}}, key = {"k", {200, 120, 40}};
    static const struct rm_grid_look door = {"|", {130, 70, 30}}, deadly = {"*", {210, 40, 40}};
    static const struct rm_grid_look safe = {"o", {60, 170, 90}};
    const struct rm_platformer_world *world = of;
    const struct rm_platformer_state *state = &world->state;
    const struct rm_platformer_level *level = &rm_platformer_place_of(env, world)->map.level;
    if (rm_platformer_tile_at(state->ninja.x) == (int)column &&
        rm_platformer_tile_at(state->ninja.y) == (int)row)
        return &ninja;
    if (is_at(level->exit, row, column))
        return state->active ? &way_out : &exit;
    if (is_at(level->opener, row, column))
        return state->active ? &pressed : &opener;
    for (uint32_t i = 0; i < level->mines; i++)
        if (is_at(level->mine[i].at, row, column))
            return state->mine[i] == RM_PLATFORMER_DEADLY ? &deadly : &safe;
    for (uint32_t d = 0; d < level->doors; d++) {
        if (!state->open[d] && is_at(level->door[d].at, row, column))
            return &door;
        if (!state->open[d] && is_at(level->door[d].opener, row, column))
            return &key;
    }
    return &tiles[level->tile[row][column]];
}

static struct rm_grid grid_of(const struct rm_env *env, const void *world)
{
    return (struct rm_grid){.rows = RM_PLATFORMER_ROWS,
                            .columns = RM_PLATFORMER_COLUMNS,
                            .look = look,
                            .env = env,
                            .world = world};
}

static int show_text(const struct rm_env *env, uint32_t w, char *text, size_t size)
{
    const struct rm_platformer_world *world = rm_single_world_at(env, w);
    const struct rm_platformer_ninja *ninja = &world->state.ninja;
    const struct rm_grid grid = grid_of(env, world);
    char below[96];
    snprintf(below, sizeof below, "frame %u, at (%.1f, %.1f), speed (%.2f, %.2f)%s",
             world->state.frame, ninja->x, ninja->y, ninja->vx, ninja->vy,
             world->state.active ? ", the exit is open" : "");
    return rm_grid_text(&grid, below, text, size);
}

static int show_picture(const struct rm_env *env, uint32_t w, uint8_t *rgb)
{
    const struct rm_grid grid = grid_of(env, rm_single_world_at(env, w));
    return rm_grid_picture(&grid, rgb);
}

/* --- a batch ---------------------------------------------------------------------------------- */

static bool is_inside(double x, double y)
{
    return x > RM_PLATFORMER_TILE && x < RM_PLATFORMER_TILE * (RM_PLATFORMER_COLUMNS - 1) &&
           y > RM_PLATFORMER_TILE && y < RM_PLATFORMER_TILE * (RM_PLATFORMER_ROWS - 1);
}

/* A coordinate of a normal. */
static bool is_normal(double n)
{
    return fabs(n) < 1 + 1e-9;
}

static const char *fault(const struct rm_env *env, const void *of)
{
    const struct rm_platformer_world *world = of;
    const struct rm_platformer_state *state = &world->state;
    const struct rm_platformer_ninja *ninja = &state->ninja;
    uint32_t flags = state->active, allowed = 0;
    (void)env;
    for (uint32_t i = 0; i < RM_PLATFORMER_MINES; i++)
        if (state->mine[i] > RM_PLATFORMER_TOGGLING)
            return "one of its mines has an unknown state";
    for (uint32_t d = 0; d < RM_PLATFORMER_DOORS; d++)
        flags |= state->open[d];
    for (uint32_t a = 0; a < RM_PLATFORMER_ACTIONS; a++)
        allowed |= world->mask[a];
    if (flags > 1 || allowed != 1)
        return "its flags or its mask are impossible";
    if (!is_inside(ninja->x, ninja->y) || !(fabs(ninja->vx) < FAST) || !(fabs(ninja->vy) < FAST))
        return "its ninja is outside of the level, or too fast";
    if (!(fabs(ninja->gravity) <= 1) || !(fabs(ninja->drag) <= 1) || !is_normal(ninja->floor_x) ||
        !is_normal(ninja->floor_y) || !is_normal(ninja->ceiling_x) || !is_normal(ninja->ceiling_y))
        return "its gravity, its drag or a normal is impossible";
    if (ninja->state > RM_PLATFORMER_WON || ninja->death > RM_PLATFORMER_BY_IMPACT)
        return "its ninja has an unknown state";
    if (world->node < RM_PLATFORMER_NOWHERE || world->node >= RM_PLATFORMER_NODES)
        return "its node is not one of the level";
    return NULL;
}

/* Maps and paths again. */
static int load_state(struct rm_env *env, const void *state)
{
    const int rc = rm_single_load_state(env, state);
    for (uint32_t w = 0; rc == 0 && w < env->single.batch.worlds; w++) {
        const struct rm_platformer_world *world = rm_single_world_at(env, w);
        struct rm_platformer_place *place = &env->place[w];
        make_level(env, world, place);
        rm_platformer_paths_begin(place->paths, &place->map);
        rm_platformer_paths_find(place->paths, &place->map, &world->state, world->loose);
        if (place->graph)
            rm_platformer_graph_update(place->graph, place->paths, &place->map, &world->state,
                                       true);
    }
    return rc;
}

static void platformer_close(struct rm_env *env)
{
    for (uint32_t w = 0; env->place && w < env->single.batch.worlds; w++) {
        free(env->place[w].paths);
        free(env->place[w].graph);
    }
    free(env->place);
    rm_single_close(env);
}

static int make_places(struct rm_env *env)
{
    const uint32_t worlds = env->single.batch.worlds;
    const uint32_t doors = env->given ? env->level.doors : env->stage == RM_PLATFORMER_C3;
    env->place = calloc(worlds, sizeof *env->place);
    for (uint32_t w = 0; env->place && w < worlds; w++) {
        env->place[w].paths = calloc(1, rm_platformer_paths_bytes(doors));
        if (env->sees >> GRAPH & 1)
            env->place[w].graph = calloc(1, sizeof *env->place[w].graph);
        if (!env->place[w].paths || (env->sees >> GRAPH & 1 && !env->place[w].graph))
            return -ENOMEM;
        env->place[w].paths->compat = env->compat;
    }
    return env->place ? 0 : -ENOMEM;
}

static uint32_t place_in(const char *const *words, const char *word)
{
    uint32_t i = 0;
    while (words[i] && strcmp(words[i], word) != 0)
        i++;
    return words[i] ? i : 0;
}

static uint32_t word_option(const struct rm_env_config *config, const char *key,
                            const char *const *words)
{
    const struct rm_env_option *option = rm_env_find_option(config, key);
    return option ? place_in(words, option->text) : 0;
}

/* Nodes that a level can have: four in a tile that is not full. */
static uint32_t most_nodes(const struct rm_env *env)
{
    uint32_t tiles = 0;
    if (!env->given)
        return rm_platformer_graph_most(env->stage);
    for (int row = 1; row < RM_PLATFORMER_ROWS - 1; row++)
        for (int column = 1; column < RM_PLATFORMER_COLUMNS - 1; column++)
            tiles += env->level.tile[row][column] != RM_PLATFORMER_FULL;
    return 4 * (tiles ? tiles : 1);
}

/* What the agent sees, in the world's order whatever the option's. */
static void describe_observations(struct rm_env *env, const struct rm_env_config *config)
{
    static const struct rm_env_observation all[OBSERVATIONS] = {
        [STATE] = {.name = "game_state",
                   .dtype = RM_ENV_F32,
                   .dims = 1,
                   .shape = {GAME_STATE},
                   .low = -1,
                   .high = 1},
        [REACHED] = {.name = "reach", .dtype = RM_ENV_F32, .dims = 1, .shape = {REACH}, .high = 1},
        [DOORS] = {.name = "doors",
                   .dtype = RM_ENV_F32,
                   .dims = 2,
                   .shape = {RM_PLATFORMER_DOORS, DOOR_VALUES},
                   .low = -1,
                   .high = 1,
                   .counted = 1},
        [GRAPH] = {.name = "graph",
                   .dtype = RM_ENV_F32,
                   .dims = 2,
                   .shape = {0, RM_PLATFORMER_NODE_VALUES},
                   .high = 33,
                   .counted = 1},
        [GRAPH_EDGES] = {.name = "graph_edges",
                         .dtype = RM_ENV_I16,
                         .dims = 1,
                         .shape = {0},
                         .high = RM_PLATFORMER_EDGES_PER_NODE * RM_PLATFORMER_NODES_INSIDE,
                         .counted = 1},
        [GRAPH_NODE] = {.name = "graph_node",
                        .dtype = RM_ENV_I32,
                        .dims = 1,
                        .shape = {1},
                        .low = -1,
                        .high = RM_PLATFORMER_NODES_INSIDE},
        [GRAPH_VERSION] = {.name = "graph_version",
                           .dtype = RM_ENV_I32,
                           .dims = 1,
                           .shape = {1},
                           .high = INT32_MAX},
    };
    const uint32_t nodes = env->graph_nodes;
    const uint32_t numbers = nodes + 1 + RM_PLATFORMER_EDGES_PER_NODE * nodes;
    const size_t bytes[OBSERVATIONS] = {
        [STATE] = sizeof(float) * GAME_STATE,
        [REACHED] = sizeof(float) * REACH,
        [DOORS] = sizeof(float) * (1 + DOOR_VALUES * RM_PLATFORMER_DOORS),
        [GRAPH] = sizeof(float) * (1 + RM_PLATFORMER_NODE_VALUES * nodes),
        [GRAPH_EDGES] = sizeof(uint32_t) + (numbers + 1) / 2 * 2 * sizeof(int16_t),
        [GRAPH_NODE] = sizeof(int32_t),
        [GRAPH_VERSION] = sizeof(int32_t)};
    const struct rm_env_option *option = rm_env_find_option(config, "observe");
    struct rm_single *single = &env->single;
    size_t at = 0;
    for (uint32_t i = 0; option && i < option->count; i++)
        env->sees |= 1u << place_in(observation_names, option->texts[i]);
    if (env->sees == 0)
        env->sees = 1u << STATE | 1u << REACHED;
    single->agent.observation = env->observation;
    for (uint32_t i = 0; i < OBSERVATIONS; i++) {
        struct rm_env_observation *of = &env->observation[single->agent.observations];
        if (!is_seen(env, i < GRAPH ? i : GRAPH))
            continue;
        const bool is_part = i >= PHYSICS && i <= DEATH;
        *of = all[is_part ? STATE : i];
        if (is_part) {
            of->name = observation_names[i];
            of->shape[0] = part_values[i];
        }
        of->shape[0] = i == GRAPH ? nodes : i == GRAPH_EDGES ? numbers : of->shape[0];
        single->agent.observations++;
        env->at[i] = at;
        at += is_part ? sizeof(float) * part_values[i] : bytes[i];
    }
}

static void describe(struct rm_env *env)
{
    struct rm_single *single = &env->single;
    struct rm_env_spec *spec = &single->batch.spec;
    single->fault = fault;
    single->agent.actions = RM_PLATFORMER_ACTIONS;
    single->agent.has_mask = 1;
    spec->name = "platformer";
    spec->doc = "run and jump to a switch, then to the exit";
    spec->max_steps = single->max_steps;
    spec->figures = sizeof figures / sizeof figures[0];
    spec->figure = figures;
    spec->score_low = -0.001 * single->max_steps - 4.5;
    spec->score_high = 24;
    spec->score_random = NAN;
    spec->score_solved = NAN;
    const struct rm_grid grid = grid_of(env, NULL);
    rm_grid_describe(&grid, spec);
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    const struct rm_env_option *level = rm_env_find_option(config, "level");
    struct rm_env *env = rm_single_create(config, sizeof(*env), sizeof(struct rm_platformer_world),
                                          error, error_size);
    if (!env)
        return NULL;
    env->single.max_steps = rm_env_option_u32(config, options, "max_steps");
    env->stage = (enum rm_platformer_stage)word_option(config, "stage", stages);
    env->split = word_option(config, "split", splits);
    env->levels = (uint64_t)rm_env_option(config, options, "levels");
    env->first_level = (uint64_t)rm_env_option(config, options, "first_level");
    env->compat = rm_env_option_u32(config, options, "compat") != 0;
    env->speed_bonus = rm_env_option_u32(config, options, "speed_bonus") != 0;
    env->given = level != NULL;
    if (level && rm_platformer_read(&env->level, level->text, error, error_size) < 0) {
        platformer_close(env);
        return NULL;
    }
    const uint32_t most = most_nodes(env);
    env->graph_nodes = rm_env_option_u32(config, options, "graph_nodes");
    if (env->graph_nodes && env->graph_nodes < most) {
        snprintf(error, error_size, "graph_nodes is %u, but a level can have %u", env->graph_nodes,
                 most);
        platformer_close(env);
        return NULL;
    }
    env->graph_nodes = env->graph_nodes ? env->graph_nodes : most;
    describe_observations(env, config);
    if (make_places(env) < 0) {
        rm_env_batch_no_memory(config, error, error_size);
        platformer_close(env);
        return NULL;
    }
    describe(env);
    return env;
}

extern const struct rm_env_ops rm_platformer_ops;
const struct rm_env_ops rm_platformer_ops = {
    RM_ENV_BATCH_OPS,
    .name = "platformer",
    .options = options,
    .create = create,
    .reset = reset,
    .step = step,
    .state_size = rm_single_state_size,
    .save_state = rm_single_save_state,
    .load_state = load_state,
    .close = platformer_close,
    .show_text = show_text,
    .show_picture = show_picture,
};
