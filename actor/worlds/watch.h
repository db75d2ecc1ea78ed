/* watch: where a process is among the calls into its worlds, and the report that says so when a
 * world crashes it or never returns. Entering and leaving a call are some relaxed stores and a look
 * at what the world may have changed (actor/worlds/ambient.h); the rest is read by the handler of
 * the signal.
 *
 * The report goes to standard error, with the stack, and in short to the worker's slot on the
 * board: signal, call, worlds, seed, vector step, and of each world the episode and the step in it,
 * counted as in other messages (actor/worlds/arrivals.h). Then the process dies as it would have
 * without.
 *
 * One call at a time in a process: the thread that steps worlds. A fault in a thread that a world
 * made itself is reported as well. */
#ifndef RM_ACTOR_WORLDS_WATCH_H
#define RM_ACTOR_WORLDS_WATCH_H

#include "actor/worlds/ambient.h"
#include "actor/worlds/arrivals.h"
#include "shm/board.h"

#include <stdatomic.h>
#include <stdint.h>

enum rm_watch_call {
    RM_WATCH_NONE = 0,
    RM_WATCH_LOAD, /* dlopen() and the entry function */
    RM_WATCH_CREATE,
    RM_WATCH_RESET,
    RM_WATCH_STEP,
    RM_WATCH_STATE, /* saving or loading the state of the worlds */
    RM_WATCH_CLOSE,
    RM_WATCH_SHOW,
    RM_WATCH_COUNT
};

/* A batch of worlds. It must exist as long as a call is in progress. */
struct rm_watch {
    const char *world; /* name */
    uint64_t seed, first_world;
    uint32_t worlds;
    const uint64_t *steps; /* vector steps made; NULL: none yet */
    const struct rm_arrivals
        *arrivals; /* episodes of the worlds; NULL, or without memory: none yet */
};

/* The call in progress. */
struct rm_watch_place {
    _Atomic(const struct rm_watch *) watch;
    _Atomic uint32_t call; /* enum rm_watch_call */
};
extern struct rm_watch_place rm_watch_place;

static inline void rm_watch_enter(const struct rm_watch *watch, enum rm_watch_call call)
{
    if (call != RM_WATCH_STEP)
        rm_ambient_note();
    atomic_store_explicit(&rm_watch_place.watch, watch, memory_order_relaxed);
    atomic_store_explicit(&rm_watch_place.call, call, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* before the world's own code */
}

static inline void rm_watch_leave(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    rm_ambient_restore(atomic_load_explicit(&rm_watch_place.call, memory_order_relaxed) ==
                       RM_WATCH_STEP);
    atomic_store_explicit(&rm_watch_place.call, RM_WATCH_NONE, memory_order_relaxed);
}

/* Installs handlers, on a stack of their own, of SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS
 * and RM_DUTY_REPORT. Lines on standard error begin with `program`. */
int rm_watch_install(const char *program, struct rm_error *error);

/* Sets the slot for the report; NULL: none. If a debugger shall inspect this process (enum
 * rm_inspect), rings `bell_fd`, the daemon's, and waits after the report at most ten seconds. */
void rm_watch_tell(struct rm_board_worker *slot, int bell_fd);

/* Writes a heartbeat during a call that waits for another process, and ends by itself. */
void rm_watch_beat(void);

/* Sets the function that names a SIGSYS's system call; it must be safe in a signal handler. */
void rm_watch_name_calls(const char *(*name)(int number));

/* Writes the report on `signal` as one line, of at most `size` bytes with its NUL; worlds that do
 * not fit are counted. Safe in a signal handler. */
void rm_watch_describe(int signal, char *text, size_t size);

#endif
