/* trial: plays a world and checks the rules of docs/worlds.md: `ringctl check-world`. Batches of a
 * few worlds are stepped with random legal actions into buffers with known bytes, several times in
 * different ways, and every row is compared. */
#ifndef RM_ACTOR_WORLDS_TRIAL_H
#define RM_ACTOR_WORLDS_TRIAL_H

#include "actor/worlds/worlds.h"

/* The rules, in the order of reports. To add a rule: a value, and a line in trial.c's table. */
enum rm_rule {
    RM_RULE_RETURNS,  /* legal actions are not refused */
    RM_RULE_WRITTEN,  /* every value of a row */
    RM_RULE_BOUNDS,   /* nothing outside of the buffers, nothing for others */
    RM_RULE_VALUES,   /* finite, within what the spec says */
    RM_RULE_FIRST,    /* FIRST where an episode begins and nowhere else */
    RM_RULE_LAST,     /* TERMINATED or TRUNCATED, never both */
    RM_RULE_TOGETHER, /* all agents get their last row in one step */
    RM_RULE_LENGTH,   /* at most max_steps */
    RM_RULE_MASK,     /* an action in every choice */
    RM_RULE_IGNORED,  /* actions after a last row */
    RM_RULE_SEED,     /* the same rows again */
    RM_RULE_PROCESS,  /* in another process too; for who runs two of them */
    RM_RULE_BATCH,    /* the same rows in other batches */
    RM_RULE_RESET,    /* is the beginning */
    RM_RULE_SAVED,    /* a loaded state goes on */
    RM_RULE_COUNT
};

/* The text of each rule; [RM_RULE_COUNT]. */
extern const char *const rm_rule_words[];

struct rm_trial {
    uint64_t steps, episodes; /* of the first batch */
    uint64_t digest;          /* of all its rows */
    bool seedless;            /* another seed gives the same rows */
    struct {
        bool tried;
        uint64_t times; /* broken */
        char text[320]; /* the first place, or why nothing was tried */
    } rule[RM_RULE_COUNT];
};

/* Plays the world. `steps` 0: as many as its episodes need. Returns 0 when all trials were made,
 * whatever their result; -ENOMEM, or an error if the world cannot be created. */
int rm_trial_run(struct rm_trial *trial, const struct rm_world *world,
                 const struct rm_world_config *config, uint64_t seed, uint64_t steps,
                 struct rm_error *error);

/* The result as JSON text, with the world's description (described.h), which the caller frees;
 * NULL: no memory. */
char *rm_trial_write(const struct rm_trial *trial, const struct rm_world *world,
                     const struct rm_env_spec *spec);

#endif
