/* prover: the state of a world, for the world and its tests. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PROVER_H
#define RM_ACTOR_WORLDS_BUILTIN_PROVER_H

#include "actor/worlds/builtin/prover_engine.h"
#include "actor/worlds/builtin/single.h"

struct rm_prover_world {
    struct rm_single_world head;
    struct rm_prover_episode episode;
};

#endif
