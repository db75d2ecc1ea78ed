/* objects: the numbers of inherited descriptors. The daemon passes every worker the same
 * descriptors under the same numbers. Their order follows from four counts, so no table is passed:
 *
 *   3      board
 *   4      resolved configuration (JSON text region)
 *   5 ..   weights, one per policy
 *   then   rings, actor-major: ring(actor, policy) = base + actor * policies + policy
 *   then   eventfds, one per worker, and the daemon's
 *   then   priorities, one per policy, where replay is prioritised (objects.priorities)
 *
 * Workers are numbered in a fixed order as well: actors, learners, the evaluator, the recorder if
 * the run is recorded, and in sequential mode the process that runs all of them in turn. In
 * sequential mode the others have slots on the board but no process. */
#ifndef RM_SHM_OBJECTS_H
#define RM_SHM_OBJECTS_H

#include <stdint.h>

#define RM_FD_BOARD  3
#define RM_FD_CONFIG 4
#define RM_FD_FIRST  5
/* In a process that only probes a world: the world's description. */
#define RM_FD_ANSWER RM_FD_BOARD

struct rm_objects {
    uint32_t policies, actors, workers;
    uint32_t priorities; /* regions of priorities: as many as policies, or 0 */
    uint32_t recorders;  /* 1, or 0 */
};

static inline int rm_fd_weights(const struct rm_objects *o, uint32_t policy)
{
    (void)o;
    return RM_FD_FIRST + (int)policy;
}

static inline int rm_fd_ring(const struct rm_objects *o, uint32_t actor, uint32_t policy)
{
    return RM_FD_FIRST + (int)(o->policies + actor * o->policies + policy);
}

static inline int rm_fd_wake(const struct rm_objects *o, uint32_t worker)
{
    return RM_FD_FIRST + (int)(o->policies + o->actors * o->policies + worker);
}

/* The eventfd that a worker rings when the daemon should look at the board at once. */
static inline int rm_fd_bell(const struct rm_objects *o)
{
    return rm_fd_wake(o, o->workers);
}

static inline int rm_fd_priorities(const struct rm_objects *o, uint32_t policy)
{
    return rm_fd_bell(o) + 1 + (int)policy;
}

static inline int rm_fd_end(const struct rm_objects *o)
{
    return rm_fd_bell(o) + 1 + (int)o->priorities;
}

static inline uint32_t rm_worker_actor(const struct rm_objects *o, uint32_t actor)
{
    (void)o;
    return actor;
}

static inline uint32_t rm_worker_learner(const struct rm_objects *o, uint32_t policy)
{
    return o->actors + policy;
}

static inline uint32_t rm_worker_evaluator(const struct rm_objects *o)
{
    return o->actors + o->policies;
}

/* If there is one. */
static inline uint32_t rm_worker_recorder(const struct rm_objects *o)
{
    return o->actors + o->policies + 1;
}

static inline uint32_t rm_worker_solo(const struct rm_objects *o)
{
    return o->actors + o->policies + 1 + o->recorders;
}

#endif
