/* standstill: detects that all workers wait for each other for ever, so that the daemon ends the
 * run with a message. Workers wait by words in shared memory. A process with a foreign world can
 * write these words, so such a world can cause a standstill; other runs are not checked.
 *
 * In a standstill no worker works although all could, or the words of rounds contradict each other.
 * A worker that is silent in a turn, or that sleeps although it was woken, is not part of one: the
 * supervisor kills that worker when its time is over.
 *
 * Only the event loop's thread may call these functions. */
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
