/* standstill: detects that no worker works although all could, or that the words of rounds
 * contradict each other. Workers wait for each other by words that a process with a foreign world
 * can write too, so such a world can make all of them wait for ever. Then the run ends with a
 * message. A worker that is silent in a turn, or in its sleep although it was woken, is the
 * supervisor's to kill: while it has time left, nothing is a standstill. Runs without a foreign
 * world are not checked.
 *
 * Of the event loop's thread. */
#ifndef RM_DAEMON_STANDSTILL_H
#define RM_DAEMON_STANDSTILL_H

#include "daemon/supervisor.h"
#include "shm/session/session.h"

struct rm_standstill {
    uint64_t turns;                    /* of all workers, or rounds, at their last change */
    uint64_t since_ns;                 /* 0: a worker works, or may do so */
    uint32_t damaged;                  /* consecutive checks that found impossible words */
    uint64_t sleeps[RM_BOARD_WORKERS]; /* of each worker, at the last check */
};

/* Call once a tick. `training`: the run trains, and no checkpoint holds all workers. True, with a
 * message: the run cannot continue. */
bool rm_standstill_look(struct rm_standstill *standstill, const struct rm_session *session,
                        const struct rm_supervisor *supervisor, bool training, uint64_t now_ns,
                        char *why, size_t size);

#endif
