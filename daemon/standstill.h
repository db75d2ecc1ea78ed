/* standstill: no worker does anything although all could, or rounds are in an impossible state.
 * Workers wait for each other by words that a process with a foreign world can write too, so one
 * that means harm can leave all of them waiting for good: then the run ends and says so. Where
 * worlds are the program's own, nothing is looked at.
 *
 * Of the event loop's thread. */
#ifndef RM_DAEMON_STANDSTILL_H
#define RM_DAEMON_STANDSTILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_daemon;

struct rm_standstill {
    uint64_t turns;    /* of all workers, at their last change */
    uint64_t since_ns; /* 0: they may be idle */
    uint32_t damaged;  /* consecutive checks that found impossible words */
};

/* Call once a tick. True, with a message: the run cannot continue. */
bool rm_standstill_look(struct rm_standstill *standstill, const struct rm_daemon *daemon,
                        uint64_t now_ns, char *why, size_t size);

#endif
