/* watch: records which call into a world is in progress, and reports the call if the world crashes
 * the process or never returns. Entering and leaving a call costs a few relaxed stores, and a check
 * of state that the world may have changed (actor/worlds/ambient.h). The signal handler reads the
 * record.
 *
 * The report goes to standard error with the stack, and in short form to the worker's slot on the
 * board: signal, call, worlds, seed, vector step, and each world's episode and step, counted as in
 * other messages (actor/worlds/arrivals.h). Then the process dies of the signal.
 *
 * A process makes one call at a time, in the thread that steps worlds. A fault in a thread that the
 * world created is reported too. */
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

/* A batch of worlds. It must exist while a call is in progress. */
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

/* Installs handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS and RM_DUTY_REPORT, with a
 * separate stack. Lines on standard error begin with `program`. */
int rm_watch_install(const char *program, struct rm_error *error);

/* Sets the slot for the report; NULL: none. If a debugger is to inspect this process (enum
 * rm_inspect), the handler rings `bell_fd`, the daemon's bell, and waits at most ten seconds after
 * the report. */
void rm_watch_set_slot(struct rm_board_worker *slot, int bell_fd);

/* Writes a heartbeat, for calls that wait for another process with a time limit. */
void rm_watch_beat(void);

/* Adds processor time of other processes, which step the worlds of this one. */
void rm_watch_add_world_cpu(uint64_t ns);

/* Sets the function that names a SIGSYS's system call; it must be safe in a signal handler. */
void rm_watch_name_calls(const char *(*name)(unsigned architecture, int number));

/* Writes the report on `signal` as one line, of at most `size` bytes with its NUL; worlds that do
 * not fit are counted. Safe in a signal handler. */
void rm_watch_describe(int signal, char *text, size_t size);

#endif
