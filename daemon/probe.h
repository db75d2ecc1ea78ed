/* probe: tries a world of a shared object in a separate process, confined as an actor is, which
 * describes the world. Only processes that step worlds load it: learners, the daemon and ringctl
 * use that description (actor/worlds/described.h). */
#ifndef RM_DAEMON_PROBE_H
#define RM_DAEMON_PROBE_H

#include "actor/player.h"
#include "config/experiment.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <sys/types.h>

#define RM_PROBE_PATIENCE_S 60.0 /* for creating a world */

/* Does nothing for built-in worlds. 0: a process created the world, and
 * experiment->world.description is its description, to be freed by rm_probe_forget(). -EPROTO: it
 * crashed or ended the process; -ETIMEDOUT: it hung for `patience_s`; `error` names the call.
 * Another error: the refusal of the world or the loader, or the process could not be started.
 * `group`: the file of a control group's members, which the process enters first; NULL: none. */
int rm_probe_world(struct rm_experiment *experiment, double patience_s, const char *group,
                   struct rm_error *error);
void rm_probe_forget(struct rm_experiment *experiment);

/* The same without an experiment: the world of `library` with its default options. The caller frees
 * *description. */
int rm_probe_library(const char *library, double patience_s, char **description,
                     struct rm_error *error);

/* Plays the experiment's world, built-in or not, in such a process: `steps` steps, 0 for as many as
 * it takes. Its checks use the experiment's description of the world if there is one, because two
 * processes may describe a world differently. *report is the result of rm_rule_check_write()
 * (actor/worlds/rule_check.h), which the caller frees. Errors as above. */
int rm_probe_check(const struct rm_experiment *experiment, uint32_t steps, double patience_s,
                   char **report, struct rm_error *error);

/* A process that plays the experiment's world with policies of files, as actor/player.h has it. */
struct rm_probe_player {
    const struct rm_experiment *experiment;
    pid_t pid;
    int frames; /* the descriptor of the frames */
    int said;
};

int rm_probe_play(struct rm_probe_player *player, const struct rm_experiment *experiment,
                  uint32_t episodes, enum rm_player_purpose purpose, const char *const *files,
                  uint32_t count, struct rm_error *error);
/* With `over` waits for the process to end; otherwise ends it. -EPROTO: it ended with an error.
 * -ETIMEDOUT: it did not end. */
int rm_probe_play_end(struct rm_probe_player *player, bool over, struct rm_error *error);

#endif
