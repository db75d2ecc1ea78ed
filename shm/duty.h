/* duty: the work of a worker, divided into turns. do_work() does a bounded amount (one vector step,
 * one update, one evaluation episode) and returns how much; 0 means that there is nothing to do
 * until its wake is signalled. So the same actor and learner code runs in one process each (free,
 * lockstep) or in turn in one process (sequential). */
#ifndef RM_SHM_DUTY_H
#define RM_SHM_DUTY_H

#include "shm/base/error.h"
#include "shm/board.h"
#include "shm/wake.h"

#include <signal.h>
#include <stdbool.h>

/* The signal to a worker without a heartbeat. A worker that steps worlds records which call it is
 * in (actor/worlds/watch.h) and dies; any other worker just dies. */
#define RM_DUTY_REPORT SIGQUIT

/* How often duties check for work without a wake-up, in a run with a foreign world. */
#define RM_DUTY_LOOK_NS UINT64_C(50000000)

#define RM_DUTY_DONE  (-0x7fff) /* do_work: the duty's share of the run is finished */
#define RM_DUTY_NEVER (-0x7ffe) /* do_work: failed in a way that no restart mends */

/* Exit codes of a worker. */
enum rm_exit {
    RM_EXIT_OK = 0,      /* finished, or stopped as asked */
    RM_EXIT_FAILED = 1,  /* an error; may be restarted */
    RM_EXIT_USAGE = 2,   /* wrong command line */
    RM_EXIT_PROBED = 10, /* --probe: the world was tried; it was created, or refused with a
                          * message */
    RM_EXIT_CUDA = 70,   /* a sticky device error */
    RM_EXIT_NEVER = 125, /* must not be restarted: a restart cannot help */
};

/* A stopwatch that counts time by phase: rm_phase_enter() adds the time since the last call to the
 * current phase, makes `phase` current and writes a heartbeat. Process-local, one per duty. */
struct rm_phase_clock {
    struct rm_board_worker *slot;
    uint64_t since_ns;
    enum rm_phase current;
    enum rm_wait waits; /* what the duty waits for: it sets this where do_work returns 0 */
    bool traced;        /* the phase it is in has a mark */
    uint32_t longer;    /* phases that take longer, a bit each */
    double longer_by;
};
void rm_phase_start(struct rm_phase_clock *clock, struct rm_board_worker *slot);
enum rm_phase rm_phase_enter(struct rm_phase_clock *clock,
                             enum rm_phase phase); /* returns the old phase */

/* From now on work in these `phases`, a bit each, takes longer by this share of its time: its
 * thread keeps the core busy at the phase's end. Call this after rm_phase_start(). */
void rm_phase_lengthen(struct rm_phase_clock *clock, uint32_t phases, double by);

struct rm_duty {
    void *self;
    /* > 0: work done; 0: nothing to do now; RM_DUTY_DONE; any other negative errno: failed, with
     * the reason in `error`. Must not block. Must re-check in each call everything that it waits
     * for. */
    int (*do_work)(void *self, struct rm_error *error);
    /* For checkpoint `number`, between two turns: copies the duty's state and begins to write it.
     * 1: done, or failed, which the board shows; 0: call again after the next turn. NULL: the duty
     * has no state. */
    int (*checkpoint)(void *self, uint64_t number);
    uint64_t held; /* the checkpoint for which the duty holds, or held last. Private, because a
                      world can write the slot's copy */
    bool lingers;  /* set in a worker of a daemon: when its share is done, the duty stays for
                    * checkpoints until it is asked to stop */
    struct rm_board_run *run;     /* stop, pause and checkpoint requests */
    struct rm_board_worker *slot; /* heartbeat, state, phases */
    struct rm_wake wake;          /* what it sleeps on */
    struct rm_phase_clock *clock; /* the duty's own stopwatch; the runner books waiting to it */
    uint64_t look_ns; /* 0: the duty sleeps until it is woken. Otherwise it also checks for work
                       * this often, because a foreign world may damage the wake-ups of others */
    uint32_t poll_us; /* 0: sleep on the wake; otherwise sleep this long and check again
                       * (limiter.wake "poll", for comparison) */
};

/* Runs one duty until it is done (or longer: lingers), fails or is asked to stop (run->stop,
 * SIGTERM). After a turn without work it announces its sleep, checks once more and sleeps on the
 * wake. A paused duty sleeps. Returns an enum rm_exit value. The caller has called
 * rm_duty_signals(). */
int rm_duty_run(struct rm_duty *duty, struct rm_error *error);

/* Runs several (1 .. RM_ROUND_MAX) in turn in this thread until all are done or a stop is asked
 * for: sequential mode. After a turn in which no duty did anything, sleeps on duties[0].wake: only
 * the daemon can make work then. The first failure ends the run. Returns an enum rm_exit value. */
int rm_duty_run_in_turn(struct rm_duty *duties, size_t n, struct rm_error *error);

/* Writes the reason to the board, then marks the worker failed, so a reader that sees the mark sees
 * the reason. For a worker that fails outside of its turns; the runners call this themselves. */
void rm_duty_failed(struct rm_board_worker *slot, const struct rm_error *error);

/* Handles SIGTERM and SIGINT: the handler sets a flag and forces `wake`. With a `parent` (0: none)
 * SIGTERM counts only when the parent sent it and SIGINT is ignored, since both may be sent to all
 * processes of a run. Sets PR_SET_PDEATHSIG and checks getppid() again. Unblocks SIGTERM: a daemon
 * starts its workers with SIGTERM blocked, so that a signal that arrives before this call is
 * delivered after it. */
int rm_duty_signals(const struct rm_wake *wake, int parent, struct rm_error *error);

/* Signals force no wake from now on. Call this before the memory of the wake's word is unmapped. */
void rm_duty_signals_end(void);

/* For the daemon: asks all duties to hold for checkpoint `number`, and releases them. A duty holds
 * between two turns, as soon as its checkpoint() allows; once all hold, shared memory does not
 * change. The caller wakes all workers after either call. */
void rm_duty_hold_all(struct rm_board_run *run, uint64_t number);
void rm_duty_release_all(struct rm_board_run *run);

#endif
