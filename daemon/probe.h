/* probe: a world of a shared object is tried in a process of its own, confined as an actor is, and
 * says what it is. No other process but those that step worlds ever loads it: learners, the daemon
 * and ringctl go by that description (actor/worlds/described.h). */
#ifndef RM_DAEMON_PROBE_H
#define RM_DAEMON_PROBE_H

#include "config/experiment.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <sys/types.h>

#define RM_PROBE_PATIENCE_S 60.0 /* for a world to be made */

/* Does nothing for built-in worlds. 0: a process made the world, and experiment->world.description
 * is what it said: to be given up by rm_probe_forget(). -EPROTO: it crashed, hung for `patience_s`,
 * or ended the process; `error` says in which call. Else what the world or the loader said against
 * it, or it could not be tried. `group`: the file of a control group's members, which the process
 * enters first; NULL: none. */
int rm_probe_world(struct rm_experiment *experiment, double patience_s, const char *group,
                   struct rm_error *error);
void rm_probe_forget(struct rm_experiment *experiment);

/* The same without an experiment: the world of `library` with its default options. *description is
 * the caller's to free. */
int rm_probe_library(const char *library, double patience_s, char **description,
                     struct rm_error *error);

/* Plays the experiment's world, a built-in one too, in such a process: `steps` of them, 0 for as
 * many as it takes. *report is what rm_trial_write() made of it (actor/worlds/trial.h), the
 * caller's to free. */
int rm_probe_check(const struct rm_experiment *experiment, uint32_t steps, double patience_s,
                   char **report, struct rm_error *error);

/* A process that plays the experiment's world with policies of files, as actor/player.h has it. */
struct rm_probe_player {
    const struct rm_experiment *experiment;
    pid_t pid;
    int frames; /* where they come from */
    int said;
};

int rm_probe_play(struct rm_probe_player *player, const struct rm_experiment *experiment,
                  uint32_t episodes, bool picture, const char *const *files, uint32_t count,
                  struct rm_error *error);
/* Waits until it has ended, `over`, or ends it. -EPROTO: it ended as it was not to. */
int rm_probe_play_end(struct rm_probe_player *player, bool over, struct rm_error *error);

#endif
