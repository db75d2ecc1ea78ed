/* resume: resumes the latest run of that name from a checkpoint, in its run directory. Takes the
 * newest complete checkpoint; damaged ones are skipped with a warning. A column of the table of
 * keys (config/schema.h) says which keys may differ from the checkpoint's. */
#ifndef RM_DAEMON_RESUME_H
#define RM_DAEMON_RESUME_H

#include "config/experiment.h"
#include "shm/base/error.h"
#include "shm/session/session.h"

struct rm_daemon;

/* The checkpoint that a run resumes from. */
struct rm_resumed {
    char from[RM_SESSION_DIRECTORY_MAX]; /* its folder, "" = none */
    char changes[1024];                  /* keys that differ from its, "" = none */
    uint64_t number;                     /* of that checkpoint */
    uint64_t step;                       /* where it was */
    uint64_t evaluations;                /* of a run that had come to its end, 0 = unknown */
    char passed_over[1024]; /* why the run was not resumed, or which checkpoints were skipped */
};

/* Finds and checks a checkpoint, by the options. Sets daemon->resumed and the run directory, or
 * changes neither: then a new run is started, and daemon->resumed.passed_over may have the reason.
 * Errors: -EINVAL: the configuration does not match the checkpoint; -EBADMSG: all checkpoints are
 * damaged, and the service manager kept no session; -ENOENT: no checkpoint, but the options require
 * one; -ENOMEM. */
int rm_daemon_find_checkpoint(struct rm_daemon *daemon, const struct rm_experiment *experiment,
                              struct rm_error *error);

/* Loads the shared part into a new session, and the settings that were changed during the run into
 * its experiment. Errors: those of rm_state_read() and rm_state_end(), and -EPROTO if its step is
 * not the manifest's. The caller then closes the session. */
int rm_daemon_load_shared(struct rm_daemon *daemon, struct rm_error *error);

/* After an error `why` of rm_daemon_load_shared(): if the checkpoint is damaged, skips it and finds
 * the one before it, like rm_daemon_find_checkpoint(); otherwise returns `why`. */
int rm_daemon_go_back(struct rm_daemon *daemon, const struct rm_experiment *experiment, int why,
                      struct rm_error *error);

#endif
