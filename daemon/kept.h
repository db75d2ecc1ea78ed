/* kept: what was set while a run goes on, in RUN/settings.jsonl, so that it can be set again after
 * a restart if that was asked for, and said to be gone if not. One object a line, later ones count:
 *
 *   {"key": "optimizer.learning_rate", "value": 0.0001, "configuration": 0.001, "keep": true,
 *    "user": 1000, "time": 1767322985}
 *   {"key": "optimizer.learning_rate", "dropped": true}
 *
 * Only ever appended to: a line is there, for whoever comes after a kill, when the write has
 * returned, and nothing of it waits for the disk (replacing a file may, for its blocks). The event
 * loop's thread only. */
#ifndef RM_DAEMON_KEPT_H
#define RM_DAEMON_KEPT_H

#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct rm_kept {
    json_t *settings; /* by path; NULL = nothing */
    int fd;           /* -1 = not written down */
};

/* One of them. */
struct rm_kept_setting {
    const json_t *value;
    const json_t *configuration; /* what the configuration had for it */
    bool keep;
    uid_t user;  /* who set it */
    double time; /* since 1970 */
};

/* Nothing, and not written down. */
void rm_kept_init(struct rm_kept *kept);

/* Reads DIRECTORY/settings.jsonl, if it is there, and goes on with it. -EPROTO: lines of it are
 * damaged and count as nothing, the others do not. */
int rm_kept_open(struct rm_kept *kept, const char *directory, struct rm_error *error);
void rm_kept_close(struct rm_kept *kept);

/* Notes that `path` was set, now: `time` is not read. Nothing is noted on an error. */
int rm_kept_note(struct rm_kept *kept, const char *path, const struct rm_kept_setting *setting,
                 struct rm_error *error);
int rm_kept_drop(struct rm_kept *kept, const char *path, struct rm_error *error);

/* Is `path` noted? */
bool rm_kept_find(const struct rm_kept *kept, const char *path, struct rm_kept_setting *setting);

#endif
