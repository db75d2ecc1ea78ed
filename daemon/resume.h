/* resume: resumes the latest run of that name from a checkpoint, in its run directory. Takes the
 * newest complete checkpoint; damaged ones are skipped with a warning. A column of the table of
 * keys (config/schema.h) says which keys may differ from the checkpoint's. */
#ifndef RM_DAEMON_RESUME_H
#define RM_DAEMON_RESUME_H

#include "config/experiment.h"
#include "shm/base/error.h"

struct rm_daemon;
struct rm_session;

/* Finds and checks a checkpoint, by the options. Sets daemon->resume and the run directory, or
 * changes neither: then a new run is started, and daemon->not_resumed may have the reason. Errors:
 * -EINVAL: the configuration does not match the checkpoint; -EBADMSG: all checkpoints are damaged,
 * and the service manager kept no session; -ENOENT: no checkpoint, but the options require one;
 * -ENOMEM. */
int rm_daemon_find_checkpoint(struct rm_daemon *daemon, const struct rm_experiment *experiment,
                              struct rm_error *error);

/* Loads the shared part into a new session, and the settings that were changed during the run into
 * its experiment. */
int rm_daemon_load_shared(struct rm_daemon *daemon, struct rm_error *error);

#endif
