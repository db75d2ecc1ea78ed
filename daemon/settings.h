/* settings: changes of hot keys, made one after the other. A change with --keep is made, and its
 * client answered, when it is on the disk. Meanwhile the loop continues, and further changes wait,
 * so that each is checked against the configuration after the one before. A client has at most one
 * waiting change. A reload of the file waits for its turn as well. */
#ifndef RM_DAEMON_SETTINGS_H
#define RM_DAEMON_SETTINGS_H

#include "config/config.h"
#include "daemon/kept.h"
#include "daemon/log.h"
#include "daemon/progress.h"
#include "daemon/protocol.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct rm_reading;
struct rm_setting_change;

#define RM_OVERRIDES_MAX 256 /* most keys that a command line sets */

/* Callbacks to the run. */
struct rm_settings_ops {
    void (*changed)(void *user); /* workers were woken for new values */
    /* For subscribers; takes `data`. */
    void (*event)(void *user, const char *name, json_t *data);
    /* The late answer to a client; takes `reply`, which may be NULL. */
    void (*answer)(void *user, uint64_t client, enum rm_refusal refusal, json_t *reply,
                   const struct rm_error *error);
};

/* All of it outlives the settings. */
struct rm_settings_spec {
    struct rm_session *session; /* its experiment's hot keys are kept current */
    const struct rm_progress *progress;
    struct rm_log *log;
    struct rm_writer *files;
    uv_loop_t *loop;
    const char *file; /* the configuration, with `overrides` of the command line */
    const struct rm_override *overrides;
    size_t override_count;
    const struct rm_settings_ops *ops;
    void *user;
};

struct rm_settings {
    struct rm_settings_spec spec;
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

void rm_settings_init(struct rm_settings *settings, const struct rm_settings_spec *spec);
/* Drops pending changes without replies. */
void rm_settings_close(struct rm_settings *settings);

struct rm_setting {
    const char *key;
    json_t *value; /* "default": the configuration's value */
    bool keep;     /* over restarts of this run as well */
    uid_t who;     /* for the journal */
    uint64_t client;
};

/* Sets one key while running; refused unless hot. 0: done, with the answer in *reply; 1: the client
 * is answered later; negative: refused. */
int rm_settings_set(struct rm_settings *settings, const struct rm_setting *setting, json_t **reply,
                    struct rm_error *error);
/* Before workers start: applies settings kept from an earlier daemon of that run. `adopted`: its
 * session was taken over. */
void rm_settings_restore(struct rm_settings *settings, const char *run_directory, bool adopted);
/* Reads the file again, in a thread, and applies changes of hot keys. */
void rm_settings_reload(struct rm_settings *settings);

#endif
