/* settings: changes of hot keys, made one after the other. A change with --keep is made, and its
 * client answered, when it is on the disk. Meanwhile the loop continues, and further changes wait,
 * so that each is checked against the configuration after the one before. A client has at most one
 * waiting change. A reload of the file waits for its turn as well. */
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
    struct rm_kept kept;             /* settings changed since the start, and kept ones from
                                      * before */
    struct rm_setting_change *first; /* queue; the first change waits for the disk */
    struct rm_setting_change **end;
    double file_hot[RM_HOT_COUNT]; /* hot keys as in the file, without changes since */
    /* Reloading the file, each time in a new thread. */
    uv_poll_t read_bell;
    int read_fds[2];         /* pipe for results of reading threads; -1 = none */
    uint32_t readings;       /* threads that have not finished */
    uint64_t begun, taken;   /* numbers: of the latest reading, of the latest that was read whole */
    uint64_t begun_ns;       /* when the latest began */
    bool again;              /* read the file again when a thread finishes */
    struct rm_reading *read; /* a read file that waits for its turn; NULL = none */
};

void rm_settings_init(struct rm_settings *settings);
/* Drops pending changes without replies. */
void rm_settings_close(struct rm_settings *settings);

#endif
