/* prover_family: the synthetic family, the prover's default data set: the relations of 2,968 people
 * with 141 founding couples. A fixed recipe makes them from a seed, with the same bytes on every
 * host. Internal to actor/worlds/builtin. */
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

/* Makes the texts of a data set's files; the caller frees each. 0 or -ENOMEM. */
int rm_prover_family_make(char *text[RM_PROVER_FAMILY_COUNT], size_t bytes[RM_PROVER_FAMILY_COUNT]);

#endif
