/* run_directory: where a run leaves its files.
 *
 *   PARENT/NAME/20260131-235959/     and PARENT/NAME/latest -> it
 *     config.json                    the resolved configuration
 *     log.txt                        the journal, and what workers print
 *     settings.jsonl                 what was set since (kept.h)
 *     stacks/                        of workers that crashed or hung (inspect.h)
 *     metrics.csv                    a row every metrics.interval_s
 *     events.out.tfevents...         the same for TensorBoard
 *     summary.json                   how it ended
 *     policies/, checkpoints/        by the learners */
#ifndef RM_DAEMON_RUN_DIRECTORY_H
#define RM_DAEMON_RUN_DIRECTORY_H

#include "config/experiment.h"
#include "shm/base/error.h"

#include <jansson.h>

struct rm_run_directory {
    char path[RM_PATH_TEXT_MAX + 128]; /* absolute */
};

/* Makes the directory (a suffix -2, -3 .. when two start in one second) and the link. */
int rm_run_directory_create(struct rm_run_directory *directory, const char *parent,
                            const char *name, struct rm_error *error);

/* Opens PATH/file for appending, close-on-exec. Descriptor or negative errno. */
int rm_run_directory_open(const struct rm_run_directory *directory, const char *file,
                          struct rm_error *error);

/* Writes a JSON file whole: temporary file, fsync, rename, fsync of the directory. */
int rm_run_directory_json(const struct rm_run_directory *directory, const char *file,
                          const json_t *value, struct rm_error *error);

#endif
