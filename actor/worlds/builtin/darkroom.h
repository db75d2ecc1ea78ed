/* darkroom: the saved state of a world; the rules are in darkroom.c. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_DARKROOM_H
#define RM_ACTOR_WORLDS_BUILTIN_DARKROOM_H

#include "actor/worlds/builtin/single.h"

#define RM_DARKROOM_SIDE 9

struct rm_darkroom_world {
    struct rm_single_world head;
    uint8_t cell, goal; /* 9 i + j */
    uint8_t zero[6];
};

#endif
