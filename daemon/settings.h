/* settings: hot keys, changed one after the other. One that is to last is made when it is on the
 * disk, and its client answered then; meanwhile the loop goes on, and changes that come wait in
 * line, so that each is checked against what the one before made of the configuration. A client has
 * one in line at most. A reload of the file waits for its turn as well. */
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
    /* Reloading the file, each time in a new thread. */
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

#endif
