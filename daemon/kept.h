/* kept: settings that were changed during a run, in RUN/settings.jsonl. After a restart, those with
 * "keep" are set again, and the log names the others. One object a line; a later line replaces
 * earlier ones of its key:
 *
 *   {"key": "optimizer.learning_rate", "value": 0.0001, "configuration": 0.001, "keep": true,
 *    "user": 1000, "time": 1767322985}
 *   {"key": "optimizer.learning_rate", "dropped": true, "user": 1000, "time": 1767323100}
 *
 * The file is only appended to, with all lines of a change in one write. A change is prepared with
 * all the memory that it needs, passed to the thread that writes (writer.h), and made current once
 * it is written. So a change is both on the disk and current, or neither. One change at a time. For
 * the event loop's thread only. */
#ifndef RM_DAEMON_KEPT_H
#define RM_DAEMON_KEPT_H

#include "daemon/writer.h"
#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct rm_kept {
    json_t *settings; /* by path; NULL: none */
    int fd;           /* -1: changes are not written */
};

/* One setting. */
struct rm_kept_setting {
    const json_t *value;
    const json_t *configuration; /* the configuration's value */
    bool keep;
    uid_t user;  /* the user who set it */
    double time; /* seconds since 1970 */
};

/* No settings, and no file. */
void rm_kept_init(struct rm_kept *kept);

/* Reads DIRECTORY/settings.jsonl if it exists; later changes are appended to it. -EPROTO: damaged
 * lines are ignored, and the others are read. */
int rm_kept_open(struct rm_kept *kept, const char *directory, struct rm_error *error);
void rm_kept_close(struct rm_kept *kept);

/* A change that is being prepared. */
struct rm_kept_change {
    json_t *settings; /* all settings after the change */
    char *text;       /* the lines, NULL = nothing changes */
    size_t bytes, room;
};

/* Begins a change of the current settings. -ENOMEM. */
int rm_kept_begin(const struct rm_kept *kept, struct rm_kept_change *change,
                  struct rm_error *error);
void rm_kept_forget(struct rm_kept_change *change);

/* rm_kept_note(): `path` is set to this value now; `time` is not read. rm_kept_drop(): `user` gives
 * `path` the configuration's value now, which it may have had before. -ENOMEM. */
int rm_kept_note(struct rm_kept_change *change, const char *path,
                 const struct rm_kept_setting *setting, struct rm_error *error);
int rm_kept_drop(struct rm_kept_change *change, const char *path, uid_t user,
                 struct rm_error *error);

/* Writes the lines. With `write` they are on the disk when write->done is called, and *change must
 * stay until then. Returns as rm_writer_put(); 0 also if there is nothing to write. */
int rm_kept_write(const struct rm_kept *kept, struct rm_writer *files,
                  const struct rm_kept_change *change, struct rm_write *write,
                  struct rm_error *error);

/* Makes the change current, and empties *change. */
void rm_kept_take(struct rm_kept *kept, struct rm_kept_change *change);

/* Finds the setting of `path`; false: it was not set. */
bool rm_kept_find(const struct rm_kept *kept, const char *path, struct rm_kept_setting *setting);

#endif
