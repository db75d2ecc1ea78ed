/* platformer_sim: the physics of the platformer - the ninja, its collisions, one frame - and the
 * mask of actions. docs/platformer.md has the rules. Numbers are doubles, in pixels and frames.
 * Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_SIM_H
#define RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_SIM_H

#include "actor/worlds/builtin/platformer_level.h"

enum {
    RM_PLATFORMER_ACTIONS = 6, /* nothing, left, right, jump, jump left, jump right */
    RM_PLATFORMER_CELLS = RM_PLATFORMER_ROWS * RM_PLATFORMER_COLUMNS,
    /* Edges between two tiles, diagonals, doors. */
    RM_PLATFORMER_SEGMENTS = 1997 + 966 + RM_PLATFORMER_DOORS
};

/* An obstacle of the ninja: an edge that is solid on one side, or a closed door. */
struct rm_platformer_segment {
    int16_t x1, y1, x2, y2;
    uint8_t kind; /* enum in platformer_sim.c */
    uint8_t door; /* of a door: its number */
};

/* A level prepared for the physics. */
struct rm_platformer_map {
    struct rm_platformer_level level;
    uint16_t first[RM_PLATFORMER_CELLS + 1]; /* segments of a cell, column by column */
    struct rm_platformer_segment segment[RM_PLATFORMER_SEGMENTS];
};

void rm_platformer_build(struct rm_platformer_map *map); /* from map->level */

enum rm_platformer_ninja_state {
    RM_PLATFORMER_STILL = 0,
    RM_PLATFORMER_RUN = 1,
    RM_PLATFORMER_SLIDE = 2,
    RM_PLATFORMER_JUMP = 3,
    RM_PLATFORMER_FALL = 4,
    RM_PLATFORMER_WALL = 5,
    RM_PLATFORMER_DEAD = 6,
    RM_PLATFORMER_DYING = 7,
    RM_PLATFORMER_WON = 8
};

enum rm_platformer_death { RM_PLATFORMER_ALIVE, RM_PLATFORMER_BY_MINE, RM_PLATFORMER_BY_IMPACT };

struct rm_platformer_ninja {
    double x, y, vx, vy;
    double old_vx, old_vy; /* before the collisions of the frame */
    double gravity, drag;
    double floor_x, floor_y, ceiling_x, ceiling_y; /* normals, of the latest contact */
    int32_t jump_duration;
    int32_t wall_jump[2]; /* frames of the last two wall jumps, the last one first */
    int8_t jump_buffer, floor_buffer, wall_buffer; /* frames since; -1: off */
    uint8_t state;                                 /* enum rm_platformer_ninja_state */
    uint8_t airborne, jump_held;
    uint8_t floors, ceilings; /* 1: touched in this frame */
    uint8_t buffered;         /* 1: the jump of this frame was pressed in an earlier frame */
    uint8_t death;            /* enum rm_platformer_death */
    int8_t turn;              /* -1, 0, 1: the horizontal input of the frame */
    int8_t wall;              /* normal of the wall in contact, -1 or 1; 0: none */
    int8_t last_wall;         /* normal of the last wall in contact */
    uint8_t zero[7];
};

/* The state of an episode. */
struct rm_platformer_state {
    struct rm_platformer_ninja ninja;
    uint32_t frame;   /* frames done */
    uint32_t version; /* grows with every change of a door, or of which mines are deadly */
    uint8_t active;   /* the switch of the exit was touched */
    uint8_t open[RM_PLATFORMER_DOORS];
    uint8_t zero[7];
    uint8_t mine[RM_PLATFORMER_MINES]; /* enum rm_platformer_mine_state; the last member */
};

void rm_platformer_begin(const struct rm_platformer_map *map, struct rm_platformer_state *state);

/* One frame. The episode is over when the ninja's state is 6 or more. */
void rm_platformer_frame(const struct rm_platformer_map *map, struct rm_platformer_state *state,
                         uint32_t action);

/* Writes the mask of allowed actions, at least one. `compat`: by the rules of the original
 * program. */
void rm_platformer_mask(const struct rm_platformer_map *map,
                        const struct rm_platformer_state *state, bool compat,
                        uint8_t mask[RM_PLATFORMER_ACTIONS]);

/* For each action the frame, 1 to 10, in which the ninja touches a mine if the action is held; 0:
 * none. */
void rm_platformer_doom(const struct rm_platformer_map *map,
                        const struct rm_platformer_state *state,
                        uint8_t frame[RM_PLATFORMER_ACTIONS]);

#endif
