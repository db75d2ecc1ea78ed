/* clang-format off: the diagram keeps its lines */
/* wake: an eventfd and a shared 'sleeping' word. One sleeper per wake, any number of wakers.
 *
 *   The sleeper:   rm_wake_prepare(w);
 *                  if (still nothing to do) rm_wake_wait(w); else rm_wake_cancel(w);
 *   The waker:     make work visible (release);
 *                  rm_wake_signal(w);
 *
 * Both sides fence (seq_cst) between their store and their load, which x86 needs too; see the model
 * in tests/model/. No system call is made when the other side is awake. */
/* clang-format on */
#ifndef RM_SHM_WAKE_H
#define RM_SHM_WAKE_H

#include "shm/base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RM_PAGE 4096 /* a page: words that different processes may write are this far apart */

/* In shared memory (the board). 128 bytes, so that neighbours never share a cache line. */
struct rm_wake_word {
    _Alignas(128) _Atomic uint32_t sleeping; /* a ticket, odd from prepare to wake-up or signal: see
                                              * wake.c */
    _Atomic uint32_t signals;                /* number of eventfd writes, a system call each */
    _Atomic uint64_t threshold;              /* for the user of the wake: see limiter.h */
};

/* A process's handle. The eventfd is inherited or local. */
struct rm_wake {
    struct rm_wake_word *word;
    int fd; /* eventfd, non-blocking; the waiter polls it */
};

int rm_wake_create_fd(struct rm_error *error); /* eventfd or negative errno */

void rm_wake_prepare(struct rm_wake *wake);
void rm_wake_cancel(struct rm_wake *wake);

/* Sleeps until signalled or `timeout_ns` passed (0 = no limit). Returns 1 when signalled, 0 on
 * time-out, -EINTR when a signal handler ran. Clears 'sleeping' and drains the eventfd. */
int rm_wake_wait(struct rm_wake *wake, uint64_t timeout_ns);

/* Wakes the sleeper if it sleeps. Returns true when it made the system call. */
bool rm_wake_signal(struct rm_wake *wake);

/* Wakes regardless of 'sleeping': for stop and pause requests, and from signal handlers
 * (async-signal-safe). */
void rm_wake_force(struct rm_wake *wake);

/* For an event loop that polls an eventfd and has no wake word. rm_wake_ring() signals it with a
 * system call. rm_wake_drain() clears it; the event loop calls this before it checks for events. */
void rm_wake_ring(int fd);
void rm_wake_drain(int fd);

/* Has this process found the descriptor of a wake closed? A foreign world can close it in the
 * process that runs it. Then this process can wake no other. */
bool rm_wake_closed(void);

/* For a supervisor: has the sleeper's latest sleep been signalled, or ended? Then the sleeper
 * should run in a moment. False while it sleeps unsignalled, and before its first sleep. Forced
 * wake-ups do not count. */
bool rm_wake_answered(const struct rm_wake_word *word);

#endif
