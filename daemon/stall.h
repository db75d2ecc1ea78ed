/* stall: how long the event loop was away from waiting, at most. A turn is what happens between two
 * waits: while it lasts no client is answered.
 *
 * On a busy host the clock says little about the daemon: in the middle of a turn others may have
 * had the processor. A turn that never slept in a call took, of itself, the processor time that it
 * used. One that slept (for a disk, for a child's exec) is counted by the clock, with whatever else
 * the host ran meanwhile. Voluntary context switches tell which it was: waiting on the loop is one,
 * any more are the turn's. Costs three readings a turn. */
#ifndef RM_DAEMON_STALL_H
#define RM_DAEMON_STALL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct rm_stall {
    uv_prepare_t turn;
    uint64_t seen_ns, idle_ns; /* when the latest turn ended, and how long was waited by then */
    uint64_t worked_ns;        /* processor time by then */
    uint64_t switches;         /* voluntary ones by then */
    bool interrupted;          /* since then */
    uint64_t turns, slept;     /* and how many of them slept in a call */
    uint64_t max_ns;           /* the longest turn of itself */
    uint64_t max_clock_ns;     /* by the clock, with what the host ran in between */
    uint64_t max_worked_ns;    /* in processor time */
};

/* What is known of a turn. */
struct rm_stall_turn {
    uint64_t passed_ns, waited_ns; /* by the clock: in all, and waiting on the loop */
    uint64_t worked_ns, switches;
};

/* Before anything waits on the loop. The handle does not keep the loop alive and is closed with the
 * others; *stall must outlive it. */
void rm_stall_watch(struct rm_stall *stall, uv_loop_t *loop);

/* Says that a signal came: the loop does not count the wait that it cut short as waiting. */
static inline void rm_stall_interrupted(struct rm_stall *stall)
{
    stall->interrupted = true;
}

/* Counts one turn. */
void rm_stall_count(struct rm_stall *stall, const struct rm_stall_turn *turn);

#endif
