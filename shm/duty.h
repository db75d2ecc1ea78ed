/* duty: what a worker does, cut into turns. do_work() does a bounded amount (one vector step, one
 * update, one evaluation episode) and returns how much; 0 means that there is nothing to do until
 * somebody signals its wake. So the same actor and learner run in a process each (free, lockstep)
 * or all in turn in one process (sequential). */
#ifndef RM_SHM_DUTY_H
#define RM_SHM_DUTY_H

#include "shm/base/error.h"
#include "shm/board.h"
#include "shm/wake.h"

#include <signal.h>
#include <stdbool.h>

/* To a worker that is silent for too long: one that steps worlds writes down in which call it is
 * (actor/worlds/watch.h) and dies of it; any other just dies of it. */
#define RM_DUTY_REPORT SIGQUIT

/* How often duties look by themselves in a run whose worlds may be anybody's. */
#define RM_DUTY_LOOK_NS UINT64_C(50000000)

#define RM_DUTY_DONE (-0x7fff) /* do_work: my share of the run is finished */

/* Exit codes of a worker. */
enum rm_exit {
    RM_EXIT_OK = 0,      /* finished, or stopped as asked */
    RM_EXIT_FAILED = 1,  /* an error; may be restarted */
    RM_EXIT_USAGE = 2,   /* wrong command line */
    RM_EXIT_PROBED = 10, /* --probe: tried, whether the world was made or refused in words */
    RM_EXIT_CUDA = 70,   /* a sticky device error */
    RM_EXIT_NEVER = 125, /* do not restart me: restarting cannot help */
};

/* A stopwatch that books time to phases: rm_phase_enter() books what passed since the last call to
 * the phase that was current, and makes `phase` current. Process-local, one per duty. */
struct rm_phase_clock {
    struct rm_board_worker *slot;
    uint64_t since_ns;
    enum rm_phase current;
};
void rm_phase_start(struct rm_phase_clock *clock, struct rm_board_worker *slot);
enum rm_phase rm_phase_enter(struct rm_phase_clock *clock,
                             enum rm_phase phase); /* returns the old */

struct rm_duty {
    void *self;
    /* > 0: did that much; 0: nothing to do now; RM_DUTY_DONE; other negative errno: failed, with
     * the reason in `error`. Must not block. Must re-check everything it waits for each call. */
    int (*do_work)(void *self, struct rm_error *error);
    /* For checkpoint `number`, between two turns: copies its state and begins to write it. 1: done,
     * or given up, which is on the board then; 0: not now, after another turn. NULL: it has none.
     */
    int (*checkpoint)(void *self, uint64_t number);
    uint64_t held; /* the checkpoint that it holds for, or held for last: its own word, where the
                      slot's is one that a world can write */
    bool lingers;  /* set by who runs it for a daemon: when its share is done, it stays for
                     checkpoints until it is asked to stop */
    struct rm_board_run *run;     /* stop, pause and checkpoint requests */
    struct rm_board_worker *slot; /* heartbeat, state, phases */
    struct rm_wake wake;          /* what it sleeps on */
    struct rm_phase_clock *clock; /* the duty's own stopwatch; the runner books waiting to it */
    uint64_t look_ns; /* 0: sleeps until it is woken; else it looks by itself that often,
                         because others may lose its wake-ups: who runs a world */
    uint32_t poll_us; /* 0: sleep on the wake; else sleep this long and look again
                         (limiter.wake "poll", to compare with) */
};

/* Runs one duty until it is done (or longer: lingers), fails or is asked to stop (run->stop,
 * SIGTERM). Sleeps on the wake when it did nothing, twice checked; honours pause. Returns an enum
 * rm_exit value. The caller has called rm_duty_signals(). */
int rm_duty_run(struct rm_duty *duty, struct rm_error *error);

/* Runs several (1 .. RM_ROUND_MAX) in turn in this thread until all are done or a stop is asked
 * for: sequential mode. When a whole turn of all did nothing, sleeps on duties[0].wake: only the
 * daemon can bring something to do then. The first that fails ends it. Returns an enum rm_exit
 * value. */
int rm_duty_run_in_turn(struct rm_duty *duties, size_t n, struct rm_error *error);

/* Puts the reason on the board, then marks the worker failed: in that order for whoever looks. For
 * a worker that fails outside of its turns; the runners do it themselves. */
void rm_duty_failed(struct rm_board_worker *slot, const struct rm_error *error);

/* SIGTERM and SIGINT: set a flag and force `wake`. With a `parent` (0: none) SIGTERM counts only
 * from there and SIGINT not at all, since both may be sent to all processes of a run; and
 * PR_SET_PDEATHSIG, with a getppid re-check. SIGTERM is unblocked: a daemon starts its workers with
 * it held, so that one that comes before this call comes after it. */
int rm_duty_signals(const struct rm_wake *wake, int parent, struct rm_error *error);

/* Signals wake nobody from now on: before the memory goes in which the wake's word stands. */
void rm_duty_signals_end(void);

/* For the daemon: asks all duties to hold for checkpoint `number`, and lets them go again. They
 * hold between two turns, each at its next one where it can, so what is shared stands still once
 * all do. Wake everybody after either. */
void rm_duty_hold_all(struct rm_board_run *run, uint64_t number);
void rm_duty_release_all(struct rm_board_run *run);

#endif
