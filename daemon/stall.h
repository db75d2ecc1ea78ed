/* stall: how long the event loop was away from waiting, at most. A turn is what happens between two
 * waits: while it lasts nobody is answered. Costs three clock readings a turn. */
#ifndef RM_DAEMON_STALL_H
#define RM_DAEMON_STALL_H

#include <stdint.h>
#include <uv.h>

struct rm_stall {
    uv_prepare_t turn;
    uint64_t seen_ns, idle_ns; /* when the latest turn ended, and how long was waited by then */
    uint64_t turns;
    uint64_t max_ns; /* the longest turn */
    uint64_t worked_ns,
        max_worked_ns; /* the same in time on a processor: what is the daemon's own */
};

/* Before anything waits on the loop. The handle does not keep the loop alive and is closed with the
 * others; *stall must outlive it. */
void rm_stall_watch(struct rm_stall *stall, uv_loop_t *loop);

#endif
