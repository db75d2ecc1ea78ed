/* clang-format off: the table keeps its lines */
/* checkpoint: makes every worker write its part of a checkpoint, without stopping training for the
 * disk. It is in one stage, and one table of stages by events says what follows.
 *
 *   waiting     requested, but cannot begin yet: a worker is being started, or still writes its
 *               part of an earlier checkpoint
 *   beginning   a thread creates the folder
 *   holding     actors and learners reach the end of a turn, copy their own state and hold; then a
 *               thread of each writes the copy (shm/session/saver.h)
 *   copying     a thread copies the shared state
 *   writing     a thread writes that copy; workers continue
 *   awaiting    the daemon's part is written, those of some workers are not
 *   sealing     a thread adds hashes and manifest, renames the folder (checkpoint_files.h) and
 *               removes old checkpoints
 *   abandoning  the checkpoint has failed, and a thread has not finished yet
 *
 * All workers hold at once, so a checkpoint is one state of the whole run, in every mode. If a
 * worker dies or the disk is full, the checkpoint fails with a line in the log, and training
 * continues. Used by the event loop's thread. */
/* clang-format on */
#ifndef RM_DAEMON_CHECKPOINT_H
#define RM_DAEMON_CHECKPOINT_H

#include "daemon/checkpoint_files.h"
#include "daemon/log.h"
#include "daemon/run_lock.h"
#include "daemon/supervisor.h"
#include "shm/base/state.h"
#include "shm/session/session.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum rm_checkpoint_stage {
    RM_CHECKPOINT_IDLE = 0,
    RM_CHECKPOINT_WAITING,
    RM_CHECKPOINT_BEGINNING,
    RM_CHECKPOINT_HOLDING,
    RM_CHECKPOINT_COPYING,
    RM_CHECKPOINT_WRITING,
    RM_CHECKPOINT_AWAITING,
    RM_CHECKPOINT_SEALING,
    RM_CHECKPOINT_ABANDONING,
    RM_CHECKPOINT_STAGES
};

/* What the run does after the checkpoint is made or has failed. The highest requested value
 * counts. */
enum rm_checkpoint_after {
    RM_AFTER_CONTINUE = 0,
    RM_AFTER_PAUSE,    /* put all workers to sleep */
    RM_AFTER_EVALUATE, /* play the final evaluation */
    RM_AFTER_STOP
};

/* The phase of the run. */
enum rm_checkpoint_run { RM_RUN_IS_STARTING = 0, RM_RUN_IS_TRAINING, RM_RUN_IS_ENDING };

/* Callbacks to the run. */
struct rm_checkpointer_ops {
    enum rm_checkpoint_run (*where)(void *user);
    /* For RM_AFTER_PAUSE and above: `why` is the argument of rm_checkpointer_end(). */
    void (*then)(void *user, enum rm_checkpoint_after after, const char *why);
    /* Another daemon has the run's lock: calls rm_checkpointer_cancel(). */
    void (*lost)(void *user, const char *why);
    /* For subscribers; takes `data`, which may be NULL. */
    void (*event)(void *user, const char *name, json_t *data);
};

/* All of it outlives the checkpointer. */
struct rm_checkpointer_spec {
    struct rm_session *session;
    const struct rm_supervisor *supervisor;
    struct rm_log *log;
    uv_loop_t *loop;
    const char *run_directory;
    struct rm_run_lock *lock; /* of the run directory; NULL: none */
    const double *file_hot;   /* [RM_HOT_COUNT] hot keys as the file has them */
    bool adopted;             /* the session was taken over from a killed daemon */
    uint64_t whole; /* number of the newest checkpoint that was found whole, 0 = none; newer
                     * ones were found damaged */
    const struct rm_checkpointer_ops *ops;
    void *user;
};

struct rm_checkpointer {
    struct rm_checkpointer_spec spec;
    enum rm_checkpoint_stage stage;
    uint64_t number;         /* of the current checkpoint, or of the latest */
    uint64_t asked;          /* the highest requested number */
    uint64_t made, failed;   /* by this daemon */
    uint64_t last;           /* number of the latest finished checkpoint, 0 = none */
    uint64_t step, updates;  /* of the latest finished checkpoint */
    char why[RM_ERROR_TEXT]; /* why the latest one failed; "" = it did not */
    enum rm_checkpoint_after after;
    bool insists; /* requested by a signal: if it fails because of a worker, it is made again */
    char end_why[64];
    uint64_t end_by_ns; /* deadline after which `after` is done without it */
    uint64_t due_ns;    /* time of the next one by interval; 0 = unknown */
    uint64_t held_from_ns, held_until_ns;
    uint64_t turns, turned_ns;          /* while workers are to hold: turns of learners, and when
                                         * their number was last seen to grow */
    uint64_t opened_ns;                 /* when this daemon opened it */
    struct rm_checkpoint_facts opened;  /* the board's numbers then */
    uint64_t starts;                    /* starts of actors' and learners' processes when it
                                         * began */
    uint64_t written[RM_BOARD_WORKERS]; /* the latest number that each worker has written */

    struct rm_state *shared;
    struct rm_checkpoint_facts facts;
    struct rm_checkpoints_kept kept;
    bool lost;                      /* the thread found the run's lock with another daemon */
    _Atomic uint64_t read_until_ns; /* when the thread that seals ends reading files, 0 = never */
    int rc;                         /* the thread's result and message */
    struct rm_error error;
    struct rm_error warning, warned; /* of older checkpoints: now, and already logged */
    uv_work_t work;
    uint32_t removals; /* threads that remove failed checkpoints */
    uv_timer_t timer;
};

/* Call at the beginning of a run: numbers continue after the existing checkpoints. */
void rm_checkpointer_open(struct rm_checkpointer *checkpointer,
                          const struct rm_checkpointer_spec *spec);

/* Requests a checkpoint; a current one is finished first. *number: its number; the event
 * "checkpoint" says whether it was made. Errors: -EAGAIN: a worker is being started, or still
 * writes its part of an earlier one, so try again in a moment; -ENODATA: there is nothing to save
 * yet, or any more. */
int rm_checkpointer_ask(struct rm_checkpointer *checkpointer, uint64_t *number,
                        struct rm_error *error);

/* Requests a checkpoint for a signal: it is made as soon as possible. */
void rm_checkpointer_insist(struct rm_checkpointer *checkpointer);

/* Requests a checkpoint and does `after` (not RM_AFTER_CONTINUE) when it is made, or at once if
 * none is possible. Waits for workers at most supervisor.stop_grace_s; RM_AFTER_STOP is done then
 * even during a checkpoint. `why` is for RM_AFTER_STOP. */
void rm_checkpointer_end(struct rm_checkpointer *checkpointer, enum rm_checkpoint_after after,
                         const char *why);

/* Whether this daemon's latest checkpoint has the run's current state. */
bool rm_checkpointer_is_current(const struct rm_checkpointer *checkpointer);

/* When the run is over: warns if files of the newest checkpoint are missing; if the final
 * evaluation was of its weights (`evaluated`), writes the score into it, so that it may be the best
 * one. May wait for the disk. */
void rm_checkpointer_close(struct rm_checkpointer *checkpointer, bool evaluated);

/* Call once a second: begins checkpoints by interval. */
void rm_checkpointer_tick(struct rm_checkpointer *checkpointer, uint64_t now_ns);

/* After the daemon did not run for so long, until now: moves all deadlines. */
void rm_checkpointer_away(struct rm_checkpointer *checkpointer, uint64_t away_ns, uint64_t now_ns);

/* The run ends: cancels the current checkpoint and its `after`. One that is being sealed is
 * finished, if its files are read within supervisor.stop_grace_s. */
void rm_checkpointer_cancel(struct rm_checkpointer *checkpointer, const char *why);

#endif
