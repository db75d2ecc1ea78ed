/* kept: what was set while a run goes on, in RUN/settings.jsonl, so that it can be set again after
 * a restart if that was asked for, and said to be gone if not. One object a line, later ones count:
 *
 *   {"key": "optimizer.learning_rate", "value": 0.0001, "configuration": 0.001, "keep": true,
 *    "user": 1000, "time": 1767322985}
 *   {"key": "optimizer.learning_rate", "dropped": true, "user": 1000, "time": 1767323100}
 *
 * Only ever appended to, all lines of one change as one piece. A change is prepared with all the
 * memory it takes, handed to the thread that writes (writer.h), and taken when it is written: so it
 * is either both on the disk and known here, or neither. One at a time. The event loop's thread
 * only. */
#ifndef RM_DAEMON_KEPT_H
#define RM_DAEMON_KEPT_H

#include "daemon/writer.h"
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

/* What is to be noted. */
struct rm_kept_change {
    json_t *settings; /* as they will be */
    char *text;       /* the lines, NULL = nothing changes */
    size_t bytes, room;
};

/* Begins with what there is. -ENOMEM. */
int rm_kept_begin(const struct rm_kept *kept, struct rm_kept_change *change,
                  struct rm_error *error);
void rm_kept_forget(struct rm_kept_change *change);

/* That `path` was set, now: `time` is not read. And that it is the configuration's again, which it
 * may have been all the time: because of `user`, now. -ENOMEM. */
int rm_kept_note(struct rm_kept_change *change, const char *path,
                 const struct rm_kept_setting *setting, struct rm_error *error);
int rm_kept_drop(struct rm_kept_change *change, const char *path, uid_t user,
                 struct rm_error *error);

/* Has the lines written. With `write` they are on the disk when that is over, and *change must stay
 * until then. Returns as rm_writer_put(); 0 also where nothing is to be written. */
int rm_kept_write(const struct rm_kept *kept, struct rm_writer *files,
                  const struct rm_kept_change *change, struct rm_write *write,
                  struct rm_error *error);

/* From now on that is what was set. Nothing is left in *change. */
void rm_kept_take(struct rm_kept *kept, struct rm_kept_change *change);

/* Is `path` noted? */
bool rm_kept_find(const struct rm_kept *kept, const char *path, struct rm_kept_setting *setting);

#endif
