/* kept: what was set while a run goes on, in RUN/settings.json, so that it can be set again after a
 * restart if that was asked for, and said to be gone if not.
 *
 *   {"optimizer.learning_rate": {"value": 0.0001, "configuration": 0.001, "keep": true,
 *                                "user": 1000, "time": 1767322985}}
 *
 * Written through a temporary file and renamed: whoever comes after a kill finds the whole of it.
 * The event loop's thread only; it does not wait for the disk. */
#ifndef RM_DAEMON_KEPT_H
#define RM_DAEMON_KEPT_H

#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct rm_kept {
    json_t *settings; /* by path; NULL = nothing */
};

/* One of them. */
struct rm_kept_setting {
    const json_t *value;
    const json_t *configuration; /* what the configuration had for it */
    bool keep;
    uid_t user;  /* who set it */
    double time; /* since 1970 */
};

/* Reads DIRECTORY/settings.json; none is nothing. -EPROTO: it is damaged, and counts as nothing. */
int rm_kept_read(struct rm_kept *kept, const char *directory, struct rm_error *error);
int rm_kept_write(const struct rm_kept *kept, const char *directory, struct rm_error *error);
void rm_kept_free(struct rm_kept *kept);

/* Notes that `path` was set, now: `time` is not read. -ENOMEM. */
int rm_kept_note(struct rm_kept *kept, const char *path, const struct rm_kept_setting *setting);
void rm_kept_drop(struct rm_kept *kept, const char *path);

/* Is `path` noted? */
bool rm_kept_find(const struct rm_kept *kept, const char *path, struct rm_kept_setting *setting);

#endif
