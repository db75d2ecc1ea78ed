/* prover_queries: chooses the query of an episode, true or corrupted. Internal to
 * actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PROVER_QUERIES_H
#define RM_ACTOR_WORLDS_BUILTIN_PROVER_QUERIES_H

#include "actor/worlds/builtin/prover_kb.h"
#include "shm/base/rng.h"

enum rm_prover_labels { RM_PROVER_BOTH, RM_PROVER_POSITIVE, RM_PROVER_CORRUPTED };

struct rm_prover_asking {
    const struct rm_prover_kb *kb;
    enum rm_prover_split split;
    enum rm_prover_labels labels; /* BOTH: true and corrupted in turn */
    bool compat;                  /* corrupts by the rules of the original program */
};

struct rm_prover_question {
    rm_prover_atom query;
    bool label; /* true, not corrupted */
};

/* NULL if there are queries, and for corrupted ones a constant that can replace another; else a
 * text that names what is missing. */
const char *rm_prover_nothing_to_ask(const struct rm_prover_asking *asking);

/* The question of episode `turn` of a world. */
struct rm_prover_question rm_prover_ask(const struct rm_prover_asking *asking, uint64_t turn,
                                        struct rm_rng *rng);

/* For rankings: candidate 0 is query number `query` of the split, candidates 1 .. corruptions have
 * another head, the next `corruptions` another tail. The corruptions of a side differ and are drawn
 * by (seed, query, side). If there are fewer, the query itself replaces the missing ones. */
struct rm_prover_question rm_prover_candidate(const struct rm_prover_asking *asking, uint64_t seed,
                                              uint32_t query, uint32_t candidate,
                                              uint32_t corruptions);

#endif
