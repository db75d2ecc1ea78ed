/* platformer_level: a level of the platformer - tiles and positions of objects - and its sources:
 * two generators, whose draws are part of the definition, and text files. Positions are in whole
 * pixels, y down. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_LEVEL_H
#define RM_ACTOR_WORLDS_BUILTIN_PLATFORMER_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RM_PLATFORMER_COLUMNS = 44, /* of tiles, with the border */
    RM_PLATFORMER_ROWS = 25,
    RM_PLATFORMER_TILE = 24, /* pixels */
    RM_PLATFORMER_MINES = 128,
    RM_PLATFORMER_DOORS = 16
};

/* Half-tiles are named by the corner that is solid. */
enum rm_platformer_tile {
    RM_PLATFORMER_EMPTY = 0,
    RM_PLATFORMER_FULL = 1,
    RM_PLATFORMER_UPPER_LEFT = 6,
    RM_PLATFORMER_UPPER_RIGHT = 7,
    RM_PLATFORMER_LOWER_RIGHT = 8,
    RM_PLATFORMER_LOWER_LEFT = 9
};

enum rm_platformer_mine_state {
    RM_PLATFORMER_DEADLY = 0,
    RM_PLATFORMER_SAFE = 1,
    RM_PLATFORMER_TOGGLING = 2
};

struct rm_platformer_point {
    int16_t x, y;
};

struct rm_platformer_mine {
    struct rm_platformer_point at;
    uint8_t state; /* at the start */
};

struct rm_platformer_door {
    struct rm_platformer_point at, opener; /* the middle of the door, its switch */
    bool vertical;
};

struct rm_platformer_level {
    uint8_t tile[RM_PLATFORMER_ROWS][RM_PLATFORMER_COLUMNS];
    struct rm_platformer_point spawn, opener, exit; /* opener: the switch of the exit */
    uint32_t mines, doors;
    struct rm_platformer_mine mine[RM_PLATFORMER_MINES];
    struct rm_platformer_door door[RM_PLATFORMER_DOORS];
};

/* splitmix64, and a number below n from its high half. */
uint64_t rm_platformer_next(uint64_t *state);
uint32_t rm_platformer_below(uint64_t *state, uint32_t n);

enum rm_platformer_stage {
    RM_PLATFORMER_C0, /* a corridor */
    RM_PLATFORMER_C1, /* with hills */
    RM_PLATFORMER_C2, /* with mines */
    RM_PLATFORMER_C3, /* with a door */
    RM_PLATFORMER_M0, /* a small maze */
    RM_PLATFORMER_M1  /* a large one */
};

void rm_platformer_generate(struct rm_platformer_level *level, enum rm_platformer_stage stage,
                            uint64_t seed);

/* Reads a level's text. 0, or -EINVAL (or the file's error) with a message that names file and
 * line. */
int rm_platformer_read(struct rm_platformer_level *level, const char *path, char *error,
                       size_t error_size);

/* The column or row of the tile at a pixel, border included. */
static inline int rm_platformer_tile_at(double pixel)
{
    return (int)(pixel * (1.0 / RM_PLATFORMER_TILE) + 64) - 64; /* also of pixels just below 0 */
}

#endif
