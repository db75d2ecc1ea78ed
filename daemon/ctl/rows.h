/* rows: records the rows of an evaluation, which a confined process sends in parts
 * (actor/player.h), as the recorder records those of a run. Their contents are not checked: a
 * foreign world may have written them. */
#ifndef RM_DAEMON_CTL_ROWS_H
#define RM_DAEMON_CTL_ROWS_H

#include "config/experiment.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_evaluation_rows;

/* Rows of `worlds` worlds go to `folder`, where a recording begins with the first of them. -EEXIST:
 * there is a recording already. *rows is NULL after an error. The experiment and `folder` outlive
 * the rows. */
int rm_evaluation_rows_create(struct rm_evaluation_rows **rows, struct rm_experiment *experiment,
                              uint32_t worlds, const char *folder, struct rm_error *error);

/* Adds `count` bytes, a part of a row of a policy. -EPROTO: they are no such part. */
int rm_evaluation_rows_add(struct rm_evaluation_rows *rows, uint32_t policy, const void *bytes,
                           size_t count, struct rm_error *error);

/* Writes what is left, and closes the recording. `whole`: these are all rows. Negative: the
 * recording is incomplete. NULL: nothing. */
int rm_evaluation_rows_end(struct rm_evaluation_rows *rows, bool whole, struct rm_error *error);

#endif
