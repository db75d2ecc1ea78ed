/* prover_engine: proofs as episodes. A state is a list of goals (atoms); an action chooses one of
 * the states that a step of resolution leads to. No strings, no allocation after the engine is
 * made.
 *
 * An engine has memory for its searches and serves one thread; an episode is plain bytes, which may
 * be copied. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PROVER_ENGINE_H
#define RM_ACTOR_WORLDS_BUILTIN_PROVER_ENGINE_H

#include "actor/worlds/builtin/prover_kb.h"

enum {
    RM_PROVER_ACTIONS = 20,
    RM_PROVER_GOALS = 10,  /* of an observed state; successors have fewer */
    RM_PROVER_STEPS = 20,  /* of an episode */
    RM_PROVER_FOLLOW = 20, /* consecutive states without a choice, after which it gives up */
    /* The automatic advance may add a body to a state of GOALS goals, and its successors one more.
     */
    RM_PROVER_WIDE = RM_PROVER_GOALS + 2 * RM_PROVER_BODY,
    /* The query, and the states of each call of next(): its own and FOLLOW + 1 more. */
    RM_PROVER_VISITS = 1 + (RM_PROVER_STEPS + 1) * (RM_PROVER_FOLLOW + 2)
};

struct rm_prover_goals {
    uint32_t count;
    uint32_t zero;
    rm_prover_atom atom[RM_PROVER_WIDE];
};

struct rm_prover_episode {
    rm_prover_atom query, excluded; /* excluded: a fact that may not be used; 0: none */
    uint32_t label;                 /* 1: the query is true; 0: it is corrupted */
    uint32_t depth;                 /* steps done */
    uint32_t next_variable;
    uint32_t gave_up; /* following found no choice */
    uint32_t proved;
    uint32_t successors, visits;
    uint8_t size[RM_PROVER_ACTIONS]; /* of each successor */
    uint32_t zero;
    struct rm_prover_goals shown; /* the state that is observed */
    rm_prover_atom successor[RM_PROVER_ACTIONS][RM_PROVER_GOALS - 1];
    uint64_t visited[RM_PROVER_VISITS]; /* keys of states */
};

struct rm_prover_engine;

/* compat: the rules of the original program (docs/prover.md). NULL: no memory. The caller owns the
 * knowledge base and frees it after the engine. */
struct rm_prover_engine *rm_prover_engine_create(const struct rm_prover_kb *kb, bool compat);
void rm_prover_engine_destroy(struct rm_prover_engine *engine);

/* Begins an episode. The proof of a true query may not use the query as a fact. */
void rm_prover_begin(struct rm_prover_engine *engine, struct rm_prover_episode *episode,
                     rm_prover_atom query, bool label);

enum rm_prover_end { RM_PROVER_TERMINATED = 1, RM_PROVER_TRUNCATED = 2 };

/* Moves to successor `action` (< successors). Returns flags of the end (enum rm_prover_end); 0: the
 * episode continues. With compat an episode that is cut has both flags. */
int rm_prover_play(struct rm_prover_engine *engine, struct rm_prover_episode *episode,
                   uint32_t action, float *reward);

#endif
