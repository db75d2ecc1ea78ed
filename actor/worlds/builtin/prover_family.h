/* prover_family: the synthetic family, the data set of the world prover if it is given none. 2,968
 * people of 141 founding couples and what they are to each other, made from a seed by a fixed
 * recipe: the same bytes everywhere. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PROVER_FAMILY_H
#define RM_ACTOR_WORLDS_BUILTIN_PROVER_FAMILY_H

#include <stddef.h>

enum rm_prover_family_text {
    RM_PROVER_FAMILY_TRAIN, /* the facts, which are also the queries to train with */
    RM_PROVER_FAMILY_VALID,
    RM_PROVER_FAMILY_TEST,
    RM_PROVER_FAMILY_RULES,
    RM_PROVER_FAMILY_COUNT
};

/* The texts as files of a data set have them, each to be freed. 0 or -ENOMEM. */
int rm_prover_family_make(char *text[RM_PROVER_FAMILY_COUNT], size_t bytes[RM_PROVER_FAMILY_COUNT]);

#endif
