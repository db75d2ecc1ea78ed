/* checkpoint: has every worker write its part of a checkpoint, without stopping training for the
 * disk. One stage and one table of stage by event.
 *
 * clang-format off
 *   waiting     one is asked for, and cannot be begun yet: a worker is being started, or still
 * writes its part of an earlier one beginning   a thread makes the folder holding     actors and
 * learners come to the end of a turn, copy their own state and hold; a thread of each writes the
 * copy from then on (shm/session/saver.h) copying     a thread copies what is shared writing     a
 * thread writes the copy; workers go on awaiting    the daemon's part is written, those of some
 * workers are not sealing     a thread adds hashes and manifest, renames the folder
 * (checkpoint_files.h) and removes old checkpoints abandoning  it is given up, and a thread has not
 * come back yet clang-format on
 *
 * All workers hold at once, so a checkpoint is a state that the whole run was in, in every mode. A
 * checkpoint that fails (a worker dies, the disk is full) is given up, with a line in the log, and
 * training goes on. Used by the event loop's thread. */
#ifndef RM_DAEMON_CHECKPOINT_H
#define RM_DAEMON_CHECKPOINT_H

#include "daemon/checkpoint_files.h"
#include "daemon/log.h"
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

/* What the run does once the checkpoint is made, or cannot be. The highest that was asked for. */
enum rm_checkpoint_after {
    RM_AFTER_CONTINUE = 0,
    RM_AFTER_PAUSE,    /* put all workers to sleep */
    RM_AFTER_EVALUATE, /* play the final evaluation */
    RM_AFTER_STOP
};

/* Where the run is. */
enum rm_checkpoint_run { RM_RUN_IS_STARTING = 0, RM_RUN_IS_TRAINING, RM_RUN_IS_ENDING };

/* What a checkpointer needs of the run around it. */
struct rm_checkpointer_ops {
    enum rm_checkpoint_run (*where)(void *user);
    /* For RM_AFTER_PAUSE and above: `why` is what rm_checkpointer_end() was given. */
    void (*then)(void *user, enum rm_checkpoint_after after, const char *why);
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
    const double *file_hot; /* [RM_HOT_COUNT] hot keys as the file has them */
    bool adopted;           /* a daemon was killed: the run goes on where that one was */
    const struct rm_checkpointer_ops *ops;
    void *user;
};

struct rm_checkpointer {
    struct rm_checkpointer_spec spec;
    enum rm_checkpoint_stage stage;
    uint64_t number;         /* of the one in hand, or of the latest */
    uint64_t asked;          /* the highest number that was asked for */
    uint64_t made, failed;   /* by this daemon */
    uint64_t last;           /* number of the latest that was made, 0 = none */
    uint64_t step, updates;  /* of the latest that was made */
    char why[RM_ERROR_TEXT]; /* the latest one was given up; "" = it was not */
    enum rm_checkpoint_after after;
    bool insists; /* who asked cannot ask again: one that is lost with a worker is made again */
    char end_why[64];
    uint64_t end_by_ns; /* when what comes after it is done without it */
    uint64_t due_ns;    /* the next one by interval; 0 = not known yet */
    uint64_t held_from_ns, held_until_ns;
    uint64_t starts;                    /* of actors' and learners' processes, when it was begun */
    uint64_t written[RM_BOARD_WORKERS]; /* which one each has written, as it was last seen */

    struct rm_state *shared;
    struct rm_checkpoint_facts facts;
    uint32_t keep;
    bool keep_best;
    int rc; /* the thread's, and its words */
    struct rm_error error;
    struct rm_error missing,
        missed; /* of a checkpoint that is not whole: now, and logged already */
    uv_work_t work;
    uint32_t removals; /* threads that remove what was given up */
    uv_timer_t timer;
};

/* At the beginning of a run: numbers go on after those that are there. */
void rm_checkpointer_open(struct rm_checkpointer *checkpointer,
                          const struct rm_checkpointer_spec *spec);

/* Asks for one; one that is in hand is finished first. *number: which it will be; the event
 * "checkpoint" says whether it was made. Errors: -EAGAIN: a worker is being started, or still
 * writes its part of an earlier one, so there can be one in a moment; -ENODATA: there is nothing to
 * save yet, or any more. */
int rm_checkpointer_ask(struct rm_checkpointer *checkpointer, uint64_t *number,
                        struct rm_error *error);

/* Asks for one on behalf of a signal: it is made as soon as there can be one. */
void rm_checkpointer_insist(struct rm_checkpointer *checkpointer);

/* Asks for one and does `after` (not RM_AFTER_CONTINUE) once it is made, or at once if there can be
 * none. It waits for a moment in which there can be one as long as supervisor.stop_grace_s;
 * RM_AFTER_STOP is done by then even if a checkpoint is in hand. `why` is for RM_AFTER_STOP. */
void rm_checkpointer_end(struct rm_checkpointer *checkpointer, enum rm_checkpoint_after after,
                         const char *why);

/* Is the latest that this daemon made the state that the run is in? */
bool rm_checkpointer_is_current(const struct rm_checkpointer *checkpointer);

/* When the run is over: warns if the newest checkpoint has lost files; if the final evaluation was
 * of its weights (`evaluated`), it gets its score, so that it may be the best one. May wait for the
 * disk. */
void rm_checkpointer_close(struct rm_checkpointer *checkpointer, bool evaluated);

/* Once a second: by interval. */
void rm_checkpointer_tick(struct rm_checkpointer *checkpointer, uint64_t now_ns);

/* The daemon was away for so long: limits of time are so much later. */
void rm_checkpointer_away(struct rm_checkpointer *checkpointer, uint64_t away_ns);

/* The run ends: what is in hand is given up, and nothing comes after it. */
void rm_checkpointer_cancel(struct rm_checkpointer *checkpointer, const char *why);

const char *rm_checkpoint_stage_name(enum rm_checkpoint_stage stage);

#endif
