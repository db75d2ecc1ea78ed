/* rule_check: plays a world and checks the rules of docs/worlds.md, for `ringctl check-world`.
 * Steps small batches of worlds with random legal actions, several times in different ways, and
 * compares every row. The buffers contain known bytes before each step. */
#ifndef RM_ACTOR_WORLDS_RULE_CHECK_H
#define RM_ACTOR_WORLDS_RULE_CHECK_H

#include "actor/worlds/worlds.h"

/* The rules, in the order of reports. To add a rule: a value, and a line in rule_check.c's table.
 */
enum rm_rule {
    RM_RULE_RETURNS,  /* legal actions are not refused */
    RM_RULE_WRITTEN,  /* every value of a row is written */
    RM_RULE_BOUNDS,   /* no bytes outside of the buffers or of other agents are written */
    RM_RULE_VALUES,   /* values are finite and within the spec's bounds */
    RM_RULE_FIRST,    /* FIRST is set in an episode's first row and no other */
    RM_RULE_LAST,     /* TERMINATED or TRUNCATED, never both */
    RM_RULE_TOGETHER, /* all agents get their last row in one step */
    RM_RULE_LENGTH,   /* an episode has at most max_steps */
    RM_RULE_MASK,     /* a mask allows an action in every choice */
    RM_RULE_IGNORED,  /* actions after a last row have no effect */
    RM_RULE_SEED,     /* the same seed gives the same rows again */
    RM_RULE_PROCESS,  /* also in another process; for callers that run two of them */
    RM_RULE_BATCH,    /* other batches give the same rows */
    RM_RULE_RESET,    /* reset() begins as a new batch does */
    RM_RULE_SAVED,    /* a loaded state continues as the saved one */
    RM_RULE_COUNT
};

/* The text of each rule; [RM_RULE_COUNT]. */
extern const char *const rm_rule_words[];

struct rm_rule_check {
    uint64_t steps, episodes; /* of the first batch */
    uint64_t digest;          /* of all its rows */
    bool seedless;            /* another seed gives the same rows */
    struct {
        bool tried;
        uint64_t times; /* broken */
        char text[320]; /* the first row that breaks the rule, or why it was not tried */
    } rule[RM_RULE_COUNT];
};

/* Plays the world. `steps` 0: as many as its episodes need. Returns 0 when all trials were made,
 * with any result; -ENOMEM, or an error if the world cannot be created. */
int rm_rule_check_run(struct rm_rule_check *check, const struct rm_world *world,
                      const struct rm_world_config *config, uint64_t seed, uint64_t steps,
                      struct rm_error *error);

/* The result as JSON text, with the world's description (described.h), which the caller frees;
 * NULL: no memory. */
char *rm_rule_check_write(const struct rm_rule_check *check, const struct rm_world *world,
                          const struct rm_env_spec *spec);

#endif
