/* checkpoint: has everybody write a checkpoint, without stopping training for the disk.
 *
 *   holding   actors and learners hold between two turns, each having copied its own state, which a
 *             thread of its own writes from then on (shm/session/saver.h)
 *   writing   what is shared was copied and all go on; it is written by a thread of the daemon's
 *   sealing   everybody has written: hashes, manifest, rename (checkpoint_files.h), old ones
 * removed
 *
 * Everybody holds at once, so a checkpoint is a state that the whole run was in, in every mode.
 * What goes wrong - a worker that dies, a full disk - gives the checkpoint up, says so and lets
 * training go on. Used by the event loop's thread. */
#ifndef RM_DAEMON_CHECKPOINT_H
#define RM_DAEMON_CHECKPOINT_H

#include "daemon/checkpoint_files.h"
#include "shm/base/state.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct rm_daemon;

enum rm_checkpoint_stage {
    RM_CHECKPOINT_IDLE = 0,
    RM_CHECKPOINT_BEGINNING, /* its folder is made */
    RM_CHECKPOINT_HOLDING,
    RM_CHECKPOINT_COPYING, /* what is shared, while all of them hold */
    RM_CHECKPOINT_WRITING,
    RM_CHECKPOINT_SEALING,
};

struct rm_checkpointer {
    enum rm_checkpoint_stage stage;
    uint64_t number;        /* of the one in hand, or of the latest */
    uint64_t made, failed;  /* by this daemon */
    uint64_t last;          /* number of the latest that was made, 0 = none */
    uint64_t step, updates; /* of the latest that was made */
    char why[512];          /* the latest one failed; "" = it did not */
    bool again;             /* another one was asked for meanwhile */
    bool then_stop;         /* and then the run is stopped */
    bool then_sleep;        /* and then it is paused */
    bool then_evaluate;     /* it is the last of the run, and then comes the final evaluation */
    bool wanted;            /* by a signal: as soon as there can be one */
    bool lost;              /* the latest one failed because a worker died: the next one may not */
    char stop_why[64];
    uint64_t stop_by_ns; /* the stop, or the sleep, if it has not begun: not later */
    uint64_t due_ns;     /* the next one by interval; 0 = not known yet */
    uint64_t asked_ns, held_ns, released_ns;
    uint64_t starts;                    /* of actors' and learners' processes, when it was begun */
    uint64_t written[RM_BOARD_WORKERS]; /* which one each has written, as it was last seen */

    struct rm_state *shared;
    struct rm_checkpoint_facts facts;
    char run_directory[RM_SESSION_DIRECTORY_MAX];
    uint32_t keep;
    bool keep_best;
    bool working; /* a thread has it */
    bool cancelled;
    char cancel_why[96];
    int rc;
    struct rm_error error;
    struct rm_error missing, missed; /* of a checkpoint that is not whole: now, and said already */
    uv_work_t work;
    uv_work_t removal;                      /* of what is left of those that were given up */
    uint64_t remove_first, remove_last;     /* their numbers, and of others that are made */
    uint64_t removing_first, removing_last; /* those that a thread has in hand; 0: none */
    uv_timer_t timer;
};

/* At the beginning of a run: numbers go on after those that are there. */
void rm_daemon_open_checkpoints(struct rm_daemon *daemon);

/* Asks for one; one that is in hand is finished first. *number: which it will be; the event
 * "checkpoint" says what came of it. Errors: -EAGAIN: a worker is being started (anew), so there
 * can be one in a moment; -ENODATA: there is nothing to save yet, or any more. */
int rm_daemon_checkpoint(struct rm_daemon *daemon, uint64_t *number, struct rm_error *error);

/* The same for who cannot ask again: it is made as soon as there can be one. */
void rm_daemon_checkpoint_soon(struct rm_daemon *daemon);

/* Asks for one and stops the run after it, or at once if there can be none, and in any case before
 * supervisor.stop_grace_s have passed. A worker that is being started anew is waited for. */
void rm_daemon_checkpoint_and_stop(struct rm_daemon *daemon, const char *why);

/* Asks for one and puts everybody to sleep after it, or at once if there can be none, or when
 * supervisor.stop_grace_s have passed before one could be begun. */
void rm_daemon_checkpoint_and_sleep(struct rm_daemon *daemon);

/* Has one made, for what is to come after it (then_stop, then_sleep, wanted), as soon as there can
 * be one. */
void rm_daemon_await_checkpoint(struct rm_daemon *daemon);

/* The budget is spent: makes the last one, where checkpoint.at_end says so, and then begins the
 * final evaluation; at once if there is or can be none. */
void rm_daemon_checkpoint_and_evaluate(struct rm_daemon *daemon);

/* When everything is over: the checkpoint of the end has the score of the final evaluation, so that
 * it may be the best one. May wait for the disk. */
void rm_daemon_score_last_checkpoint(struct rm_daemon *daemon);

/* Has what is left of the one that was just given up removed. */
void rm_daemon_abandon_checkpoint(struct rm_daemon *daemon);

/* Once a second: by interval. */
void rm_daemon_checkpoint_tick(struct rm_daemon *daemon, uint64_t now_ns);

/* The daemon was away for so long: what has a limit of time has so much more. */
void rm_daemon_delay_checkpoint(struct rm_daemon *daemon, uint64_t away_ns);

/* The run ends: what is in hand is given up. */
void rm_daemon_cancel_checkpoint(struct rm_daemon *daemon, const char *why);

#endif
