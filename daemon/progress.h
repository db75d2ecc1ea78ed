/* progress: the phase of a run, its times and its rates. Plain data of the event loop's thread. */
#ifndef RM_DAEMON_PROGRESS_H
#define RM_DAEMON_PROGRESS_H

#include "daemon/rate.h"
#include "shm/session/session.h"

/* RM_LIFE_TRAINING includes the board's running and paused. */
enum rm_life {
    RM_LIFE_STARTING = 0, /* until the first actor has stepped */
    RM_LIFE_TRAINING,
    RM_LIFE_EVALUATING, /* the budget is spent; the final evaluation runs */
    RM_LIFE_STOPPING,
    RM_LIFE_OVER, /* no process left */
};

struct rm_progress {
    const struct rm_session *session;
    enum rm_life life;
    uint64_t started_ns;                         /* of the run */
    uint64_t trained_ns;                         /* when training ended; 0 = not yet */
    uint64_t agent_steps_before, updates_before; /* of this daemon's predecessors */
    struct rm_rate steps_rate, updates_rate;
};

/* Per second, of all agents and policies: over the last seconds, and when training has ended over
 * all that this daemon trained. */
struct rm_progress_rates {
    double steps_per_s, updates_per_s;
};
struct rm_progress_rates rm_progress_rates(const struct rm_progress *progress);

/* Seconds until the budget is spent at the present pace; negative when unknown. */
double rm_progress_time_left(const struct rm_progress *progress);

#endif
