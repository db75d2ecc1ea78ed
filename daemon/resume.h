/* resume: goes on from a checkpoint of the latest run of that name, in its run directory. The
 * newest one that is whole is taken; those that are damaged are passed over, loudly. Keys that
 * decide what the run is must be those of the checkpoint; which ones may have changed is a column
 * of the table of keys (config/schema.h). */
#ifndef RM_DAEMON_RESUME_H
#define RM_DAEMON_RESUME_H

#include "config/experiment.h"
#include "shm/base/error.h"

struct rm_daemon;
struct rm_session;

/* Looks for what there is to go on from and checks it, as the options say. Sets daemon->resume and
 * the run directory, or leaves both alone: then a new run is started, and daemon->not_resumed says
 * why where that is not plain. Errors: -EINVAL: there is something, and it cannot be gone on from
 * with this configuration; -EBADMSG: there is nothing but damage, and nothing that the service
 * manager kept; -ENOENT: there is nothing, and it was asked for; -ENOMEM. */
int rm_daemon_find_checkpoint(struct rm_daemon *daemon, const struct rm_experiment *experiment,
                              struct rm_error *error);

/* Loads what is shared into a session that was just created, and the settings that were changed
 * while it ran into its experiment. */
int rm_daemon_load_shared(struct rm_daemon *daemon, struct rm_error *error);

#endif
