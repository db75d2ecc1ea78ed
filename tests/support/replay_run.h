/* A small experiment that learns from replay, as duties in the test's own process: one or two
 * actors and a learner, in a folder of their own. Helpers assert; they are called inside a cmocka
 * test. */
#ifndef RM_TESTS_SUPPORT_REPLAY_RUN_H
#define RM_TESTS_SUPPORT_REPLAY_RUN_H

#include "shm/session/session.h"
#include "shm/duty.h"

#include <stddef.h>

#define RM_REPLAY_RUN_ACTORS_MAX 2

struct rm_replay_run {
    struct rm_session session;
    struct rm_actor *actor[RM_REPLAY_RUN_ACTORS_MAX];
    struct rm_learner *learner;
    struct rm_duty duty[RM_REPLAY_RUN_ACTORS_MAX + 1]; /* actors, then the learner */
    uint32_t actors;
    char folder[64];
};

/* Members of the experiment's JSON: a kind of learner... */
#define RM_REPLAY_DQN                                                                              \
    "\"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"}]}, "   \
    "\"algorithm\": {\"name\": \"dqn\"}"
/* ...and how it runs. In rounds; "actor" is the caller's, and so may the steps be. */
#define RM_REPLAY_LOCKSTEP RM_REPLAY_LOCKSTEP_OF("2000")
#define RM_REPLAY_LOCKSTEP_OF(steps)                                                               \
    "\"run\": {\"steps\": " steps ", \"round_steps\": 8}, \"ring\": {\"capacity\": 512},"          \
    "\"sample\": {\"batch\": 16, \"n_step\": 2, \"min_fill\": 64,"                                 \
    " \"sequence\": 6, \"burn_in\": 3, \"period\": 3},"                                            \
    "\"limiter\": {\"updates_per_step\": 0.25}, \"publish\": {\"interval\": 4}"
/* Freely, with one actor, for as long as the test likes; ends with a comma. */
#define RM_REPLAY_FREE                                                                             \
    "\"run\": {\"steps\": 1000000}, \"ring\": {\"capacity\": 1024},"                               \
    "\"sample\": {\"batch\": 16, \"n_step\": 2, \"min_fill\": 64},"                                \
    "\"limiter\": {\"updates_per_step\": 0.25, \"slack_updates\": 4},"                             \
    "\"actor\": {\"count\": 1, \"worlds\": 4}, "

/* Opens the experiment: defaults of a small, quick one, `kind` and `more` after them. */
void rm_replay_run_start(struct rm_replay_run *run, const char *kind, const char *mode,
                         const char *more);

/* Takes everything down and removes the folder. */
void rm_replay_run_stop(struct rm_replay_run *run);

void rm_replay_run_to_its_end(struct rm_replay_run *run);

/* One turn of the learner. */
int rm_replay_run_learn(struct rm_replay_run *run);

/* Its learner dies, and another is made. */
void rm_replay_run_succeed(struct rm_replay_run *run);

/* The tensors in the file of policy 0, one after another, for the caller to free. */
char *rm_replay_run_tensors(const struct rm_replay_run *run, size_t *bytes);

#endif
