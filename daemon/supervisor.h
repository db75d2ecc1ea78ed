/* supervisor: keeps workers alive. One state per worker and one table of state by event;
 * transitions act through three callbacks, and the time is an argument, so that tests need no
 * processes and no sleeps.
 *
 * The code that reaps processes reports deaths; the supervisor detects hangs from the board. The
 * first restart waits only for the floor between two starts; each further death within the window
 * doubles the delay, up to a limit; too many deaths within the window, or an exit with
 * RM_EXIT_NEVER, fail the worker for good.
 *
 * One thread. No allocation. */
#ifndef RM_DAEMON_SUPERVISOR_H
#define RM_DAEMON_SUPERVISOR_H

#include "config/experiment.h"
#include "shm/base/error.h"
#include "shm/board.h"

#include <stdbool.h>
#include <stdint.h>

enum rm_supervised {
    RM_SUPERVISED_DOWN = 0,    /* no process: not started, finished, or stopped */
    RM_SUPERVISED_STARTING,    /* the process runs, but does not work yet */
    RM_SUPERVISED_UP,          /* it has worked */
    RM_SUPERVISED_STOPPING,    /* was asked to stop; killed at the end of the grace */
    RM_SUPERVISED_BACKING_OFF, /* dead, waiting for its restart */
    RM_SUPERVISED_FAILED,      /* will not be restarted */
    RM_SUPERVISED_COUNT
};

enum rm_supervisor_event {
    RM_EVENT_START = 0,     /* the worker should run */
    RM_EVENT_READY,         /* the board says that it works or waits */
    RM_EVENT_FINISHED,      /* exited 0, its share done */
    RM_EVENT_DIED,          /* any other exit, or the process could not be started */
    RM_EVENT_DIED_FOR_GOOD, /* RM_EXIT_NEVER, or there is no such program */
    RM_EVENT_HUNG,          /* no heartbeat for too long */
    RM_EVENT_STOP,          /* the worker should stop */
    RM_EVENT_TIMER,         /* its due time has passed */
    RM_EVENT_COUNT
};

struct rm_supervisor_limits {
    uint64_t heartbeat_ns;     /* longest time without a heartbeat of a busy worker */
    uint64_t start_ns;         /* maximum time from start to ready */
    uint64_t report_ns;        /* time for a hung worker's report, before SIGKILL */
    uint64_t respawn_floor_ns; /* minimum time between two starts */
    uint64_t backoff_max_ns;
    uint64_t deaths_window_ns;
    uint64_t stop_grace_ns;
    uint32_t deaths_max; /* this many deaths in the window fail the worker */
};

#define RM_SUPERVISOR_LOOKS  4    /* minimum checks within limits.heartbeat_ns */
#define RM_DEATHS_REMEMBERED 1024 /* maximum of deaths_max */

/* Why a process ended, for the log; filled in by the reaper. */
struct rm_exit_report {
    int64_t status; /* exit code */
    int signal;     /* or the signal that ended it, 0 = none */
    bool done;      /* the board said that its share of the run is done */
};

struct rm_supervised_worker {
    enum rm_supervised state;
    bool finished;       /* down because its share is done */
    bool hung;           /* being killed because it was silent */
    int pid;             /* 0 = none */
    uint64_t generation; /* starts so far */
    uint64_t deaths;     /* in all */
    uint64_t started_ns;
    uint64_t due_ns;                        /* when RM_EVENT_TIMER is due, 0 = never */
    uint64_t graced_ns;                     /* silence before this time does not count */
    uint64_t died_ns[RM_DEATHS_REMEMBERED]; /* the latest deaths, a ring at deaths % size */
    char reason[320];                       /* why it died last */
    char failure[400]; /* why it is not started again; "" unless RM_SUPERVISED_FAILED */
};

/* Effects of transitions. */
struct rm_supervisor_ops {
    /* Starts worker `index` as its generation-th process. Returns its pid or a negative errno. */
    int (*spawn)(void *user, uint32_t index, uint64_t generation, struct rm_error *error);
    void (*kill)(void *user, uint32_t index, int pid, int signal);
    /* Called after each change of state. `worker` is valid until the call returns. */
    void (*changed)(void *user, uint32_t index, enum rm_supervised before,
                    const struct rm_supervised_worker *worker);
};

struct rm_supervisor {
    struct rm_supervisor_limits limits;
    const struct rm_supervisor_ops *ops;
    void *user;
    uint32_t count;
    struct rm_supervised_worker workers[RM_BOARD_WORKERS];
};

/* The limits of an experiment. */
struct rm_supervisor_limits rm_supervisor_limits_of(const struct rm_experiment *experiment);

/* Initialises all workers as down. -EINVAL: count exceeds RM_BOARD_WORKERS. */
int rm_supervisor_init(struct rm_supervisor *supervisor, uint32_t count,
                       const struct rm_supervisor_limits *limits,
                       const struct rm_supervisor_ops *ops, void *user, struct rm_error *error);

void rm_supervisor_start(struct rm_supervisor *supervisor, uint32_t index, uint64_t now_ns);
void rm_supervisor_stop(struct rm_supervisor *supervisor, uint32_t index, uint64_t now_ns);
void rm_supervisor_stop_all(struct rm_supervisor *supervisor, uint64_t now_ns);

/* Sends SIGKILL to all processes now. */
void rm_supervisor_kill_all(struct rm_supervisor *supervisor);

/* Call after the process of `index` has ended. `words` is the worker's own last error, "" if
 * none. */
void rm_supervisor_exited(struct rm_supervisor *supervisor, uint32_t index,
                          const struct rm_exit_report *report, const char *words, uint64_t now_ns);

/* Reads the board's words of `index`, and raises READY or HUNG. Only a busy worker can hang; a
 * waiting one writes no heartbeat. */
void rm_supervisor_observe(struct rm_supervisor *supervisor, uint32_t index,
                           enum rm_worker_state state, uint64_t heartbeat_ns, uint64_t now_ns);

/* Call after the supervisor itself did not run for so long, until now: stopped, frozen, or without
 * a processor. Moves all deadlines by that time. After a quarter of limits.heartbeat_ns or more,
 * silence counts from now on, because workers may have been stopped as well, and the function
 * returns true. */
bool rm_supervisor_away(struct rm_supervisor *supervisor, uint64_t away_ns, uint64_t now_ns);

/* Runs timers that are due. Returns the time of the next one, 0 = none. */
uint64_t rm_supervisor_tick(struct rm_supervisor *supervisor, uint64_t now_ns);
uint64_t rm_supervisor_due(const struct rm_supervisor *supervisor);

/* Workers that have a process or will have one again. */
uint32_t rm_supervisor_alive(const struct rm_supervisor *supervisor);

/* The worker's delay before its next start, given its deaths; pure, for tests and docs. */
uint64_t rm_supervisor_backoff(const struct rm_supervisor_limits *limits,
                               const struct rm_supervised_worker *worker, uint64_t now_ns);

const char *rm_supervised_name(enum rm_supervised state);

#endif
