/* connect: the saved state of a game; the rules are in connect.c. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_CONNECT_H
#define RM_ACTOR_WORLDS_BUILTIN_CONNECT_H

#include "shm/base/rng.h"

#include <stdint.h>

struct rm_connect_game {
    uint64_t episode;
    struct rm_rng rng;
    uint64_t marks[2]; /* of x and o: bit row * (columns + 1) + column, row 0 at the top */
    float reward[2];   /* earned and not yet written */
    uint8_t fresh[2];  /* 1: no row of this game has been written for the player yet */
    uint8_t over;      /* a line is made, or the board is full */
    uint8_t last;      /* 1: the last rows are being written */
    uint8_t zero[4];
};

#endif
