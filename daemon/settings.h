/* settings: hot keys, changed one after the other. One that is to last is made when it is on the
 * disk, and its client answered then; meanwhile the loop goes on, and changes that come wait in
 * line, so that each is checked against what the one before made of the configuration. A client has
 * one in line at most. A reload of the file (reload.c) waits for its turn as well. */
#ifndef RM_DAEMON_SETTINGS_H
#define RM_DAEMON_SETTINGS_H

#include "config/config.h"
#include "daemon/kept.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct rm_daemon;
struct rm_reading;
struct rm_setting_change;

struct rm_settings {
    struct rm_kept kept;             /* what was set since the start, and before it to be kept */
    struct rm_setting_change *first; /* in line; the first one waits for the disk */
    struct rm_setting_change **end;
    double file_hot[RM_HOT_COUNT]; /* hot keys as the file has them, whatever was set since */
    /* Reloading the file, each time in a new thread (reload.c). */
    uv_poll_t read_bell;
    int read_fds[2];         /* by which threads hand over what they have read; -1 = none */
    uint32_t readings;       /* threads that have not come back */
    uint64_t begun, taken;   /* numbers: of the latest reading, of the latest that was read whole */
    uint64_t begun_ns;       /* when the latest began */
    bool again;              /* the file is read once more when a thread comes back */
    struct rm_reading *read; /* what was read, until its turn comes; NULL = nothing */
};

void rm_settings_init(struct rm_settings *settings);
/* Drops pending changes without replies. */
void rm_settings_close(struct rm_settings *settings);

/* Goes through the differences of two configurations: what may not change is listed, what may is
 * counted, and told to the journal and to subscribers if `tell`. */
struct rm_setting_changes {
    struct rm_daemon *daemon;
    uid_t who;
    const char *source;
    bool tell;
    char cold[512]; /* keys that may not change now */
    unsigned hot_count, cold_count;
};
int rm_settings_compare(struct rm_setting_changes *changes, const struct rm_experiment *before,
                        const struct rm_experiment *after);

/* Everything that follows from the hot keys of the session's experiment. */
void rm_settings_apply(struct rm_daemon *daemon);

/* No change is pending: a read file may be applied now. */
void rm_settings_apply_file(struct rm_daemon *daemon);

#endif
