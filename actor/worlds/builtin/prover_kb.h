/* prover_kb: a knowledge base as numbers. Constants, variables and predicates have ids, atoms are
 * words of 64 bits, and facts are found by predicate and argument. Made once while a world is
 * created, and only read from then on.
 *
 * Ids: 0 padding; constants 1..C in the order of their bytes; variables C+1..C+V; predicates
 * 1..P in the order of their bytes, then True, False, Endf. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PROVER_KB_H
#define RM_ACTOR_WORLDS_BUILTIN_PROVER_KB_H

#include "actor/worlds/builtin/prover_text.h"

enum {
    RM_PROVER_CONSTANTS_MAX = 1 << 23, /* constants, and variables as many, take 24 bits */
    RM_PROVER_PREDICATES_MAX = 1 << 14,
    RM_PROVER_RULE_VARIABLES = 2 * (RM_PROVER_BODY + 1)
};

/* --- atoms ------------------------------------------------------------------------------------ */

/* pred << 48 | first << 24 | second; the second argument of a predicate of one argument is 0. */
typedef uint64_t rm_prover_atom;

static inline rm_prover_atom rm_prover_atom_of(uint32_t pred, uint32_t first, uint32_t second)
{
    return (uint64_t)pred << 48 | (uint64_t)first << 24 | second;
}

static inline uint32_t rm_prover_pred(rm_prover_atom atom)
{
    return (uint32_t)(atom >> 48);
}

static inline uint32_t rm_prover_first(rm_prover_atom atom)
{
    return (uint32_t)(atom >> 24) & 0xffffff;
}

static inline uint32_t rm_prover_second(rm_prover_atom atom)
{
    return (uint32_t)atom & 0xffffff;
}

/* The finaliser of SplitMix64 (Steele et al., 2014). */
static inline uint64_t rm_prover_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* --- tables ----------------------------------------------------------------------------------- */

/* From a key (never 0) to a run of facts. Open addressing; a power of two of slots, never full. */
struct rm_prover_runs {
    struct rm_prover_run {
        uint64_t key;
        uint32_t first, count;
    } * slot;
    uint64_t mask;
};

/* Facts one after another, and where those with a key are. */
struct rm_prover_index {
    rm_prover_atom *fact; /* [facts]: runs of one key, in file order within */
    struct rm_prover_runs runs;
};

/* An argument or predicate of a rule: a constant's id, or a variable of the rule. */
struct rm_prover_pattern {
    uint32_t pred;
    int32_t arg[2]; /* >= 0: an id (0: no argument); < 0: variable -1 - v of the rule */
};

struct rm_prover_rule {
    struct rm_prover_pattern head;
    uint32_t bodies, variables; /* variables: numbered in the order of appearance */
    struct rm_prover_pattern body[RM_PROVER_BODY];
};

enum rm_prover_split { RM_PROVER_TRAIN, RM_PROVER_VALID, RM_PROVER_TEST, RM_PROVER_SPLIT_COUNT };

struct rm_prover_names {
    char **name; /* [count] */
    uint32_t count, room;
    uint32_t *slot; /* 1 + index */
    uint32_t mask;
    uint8_t *arity; /* [count]: predicates only */
};

struct rm_prover_queries {
    rm_prover_atom *query;
    uint32_t count, room;
};

struct rm_prover_kb {
    uint32_t constants, variables, predicates;
    uint32_t proved, failed, gave_in; /* the predicates True, False and Endf */
    struct rm_prover_names constant, predicate;

    uint32_t facts;
    struct rm_prover_index all, by_first, by_second; /* key: pred; pred, first; pred, second */
    struct rm_prover_runs known; /* key: the whole fact; count 1: a fact, 0: a query of a split */

    uint32_t rules;
    struct rm_prover_rule *rule; /* [rules]: by predicate, in file order within */
    uint32_t *rule_at;           /* [predicates + 2]: first rule of a predicate */

    struct rm_prover_queries split[RM_PROVER_SPLIT_COUNT];

    /* Constants by domain: those of domain d are member[domain_at[d] .. domain_at[d + 1]). Domain 0
     * has all. */
    uint32_t domains;
    uint32_t *domain_at, *member, *domain_of; /* domain_of: [constants + 1] */
};

/* The folder of a data set, or NULL: the synthetic family. NULL with a message of one sentence; if
 * a line is to blame it names file and line. */
struct rm_prover_kb *rm_prover_kb_open(const char *folder, uint32_t variables, char *error,
                                       size_t error_size);
void rm_prover_kb_close(struct rm_prover_kb *kb);

/* The run of a key; one of no facts if there is none. */
static inline struct rm_prover_run rm_prover_find(const struct rm_prover_runs *runs, uint64_t key)
{
    for (uint64_t i = rm_prover_mix(key);; i++) {
        const struct rm_prover_run *run = &runs->slot[i & runs->mask];
        if (run->key == key || run->key == 0)
            return *run;
    }
}

static inline bool rm_prover_is_fact(const struct rm_prover_kb *kb, rm_prover_atom atom)
{
    return rm_prover_find(&kb->known, atom).count != 0;
}

/* Whether it is a fact or a query of any split. */
static inline bool rm_prover_is_known(const struct rm_prover_kb *kb, rm_prover_atom atom)
{
    return rm_prover_find(&kb->known, atom).key != 0;
}

static inline bool rm_prover_is_variable(const struct rm_prover_kb *kb, uint32_t id)
{
    return id > kb->constants;
}

/* True, False or Endf. */
static inline bool rm_prover_is_end(const struct rm_prover_kb *kb, rm_prover_atom atom)
{
    return rm_prover_pred(atom) > kb->predicates;
}

/* An atom as text, "son(p0001,V2)". Returns what it takes, without the NUL. */
size_t rm_prover_write(const struct rm_prover_kb *kb, rm_prover_atom atom, char *text, size_t size);

#endif
