/* run_directory: the files of a run.
 *
 *   PARENT/NAME/20260131-235959/     and PARENT/NAME/latest -> it
 *     config.json                    the resolved configuration
 *     log.txt                        the journal, and what workers print
 *     settings.jsonl                 what was set since (kept.h)
 *     stacks/                        of workers that crashed or hung (inspect.h)
 *     metrics.csv                    rows by time, by steps and for evaluations (metrics.h)
 *     summary.json                   how it ended
 *     policies/, checkpoints/        by the learners
 *     lock                           of the daemon that runs it (run_lock.h)
 *   PARENT/NAME/tensorboard/20260131-235959/
 *     events.out.tfevents...         metrics for TensorBoard */
#ifndef RM_DAEMON_RUN_DIRECTORY_H
#define RM_DAEMON_RUN_DIRECTORY_H

#include "config/experiment.h"
#include "daemon/run_lock.h"
#include "shm/base/error.h"

#include <jansson.h>

struct rm_run_directory {
    char path[RM_PATH_TEXT_MAX + 128]; /* absolute */
};

/* Makes the directory (a suffix -2, -3 .. when two start in one second), locks it, and then makes
 * the link. -EISDIR: `latest` is not a link, so it cannot name this run. */
int rm_run_directory_create(struct rm_run_directory *directory, const char *parent,
                            const char *name, struct rm_run_lock *lock, struct rm_error *error);

/* The run directory that PARENT/NAME/latest names. 0; 1: there is no link, or its target is gone,
 * and error->text says so. Errors: `latest` is not a link or belongs to another user, or the
 * directory cannot be read or belongs to another user. */
int rm_run_directory_latest(struct rm_run_directory *directory, const char *parent,
                            const char *name, struct rm_error *error);

/* PARENT/NAME/FOLDER/20260131-235959, created if missing. */
int rm_run_directory_beside(struct rm_run_directory *beside,
                            const struct rm_run_directory *directory, const char *folder,
                            struct rm_error *error);

/* Opens PATH/file for appending, close-on-exec. Descriptor or negative errno. */
int rm_run_directory_open(const struct rm_run_directory *directory, const char *file,
                          struct rm_error *error);

/* Writes a JSON file whole: temporary file, fsync, rename, fsync of the directory. Numbers read
 * back as the same numbers. */
int rm_run_directory_json(const struct rm_run_directory *directory, const char *file,
                          const json_t *value, struct rm_error *error);

#endif
