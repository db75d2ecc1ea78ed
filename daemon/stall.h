/* stall: the longest turn of the event loop. A turn is the time between two waits; no client is
 * answered during it.
 *
 * On a busy host the clock says little about the daemon, because other processes may run in the
 * middle of a turn. A turn that never slept in a call counts with the processor time that it used.
 * A turn that slept (for a disk, for a child's exec) counts with its time by the clock, other
 * processes' included. The number of voluntary context switches shows which it was: waiting on the
 * loop is one switch, any other is the turn's. This takes three readings per turn. */
#ifndef RM_DAEMON_STALL_H
#define RM_DAEMON_STALL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct rm_stall {
    uv_prepare_t turn;
    uint64_t seen_ns, idle_ns; /* end of the latest turn, and time waited until then */
    uint64_t worked_ns;        /* processor time until then */
    uint64_t switches;         /* voluntary ones until then */
    bool interrupted;          /* since then */
    uint64_t turns, slept;     /* and how many of them slept in a call */
    uint64_t max_ns;           /* the longest turn of itself */
    uint64_t max_clock_ns;     /* by the clock, with what the host ran in between */
    uint64_t max_worked_ns;    /* in processor time */
};

/* Measurements of a turn. */
struct rm_stall_turn {
    uint64_t passed_ns, waited_ns; /* by the clock: in all, and waiting on the loop */
    uint64_t worked_ns, switches;
};

/* Call it before the loop waits. The handle does not keep the loop alive and is closed with the
 * others; *stall must outlive it. */
void rm_stall_watch(struct rm_stall *stall, uv_loop_t *loop);

/* Records that a signal came: the wait that it interrupted does not count as waiting. */
static inline void rm_stall_interrupted(struct rm_stall *stall)
{
    stall->interrupted = true;
}

/* Counts one turn. */
void rm_stall_count(struct rm_stall *stall, const struct rm_stall_turn *turn);

#endif
