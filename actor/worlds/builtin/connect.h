/* connect: the state of a game, as it is saved; the rules are in connect.c. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_CONNECT_H
#define RM_ACTOR_WORLDS_BUILTIN_CONNECT_H

#include "shm/base/rng.h"

#include <stdint.h>

struct rm_connect_game {
    uint64_t episode;
    struct rm_rng rng;
    uint64_t marks[2]; /* of x and o: bit row * (columns + 1) + column, row 0 at the top */
    float reward[2];   /* earned and not yet given out */
    uint8_t fresh[2];  /* has not been given a row of this game yet */
    uint8_t over;      /* a line is made, or the board is full */
    uint8_t last;      /* the last rows are being given out */
    uint8_t zero[4];
};

#endif
