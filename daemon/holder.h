/* holder: what becomes of the process that holds a lock, as /proc tells it. One that was killed is
 * there for a while still, and so is the sweeper behind it (sweeper.h): both let go soon. */
#ifndef RM_DAEMON_HOLDER_H
#define RM_DAEMON_HOLDER_H

enum rm_holder {
    RM_HOLDER_STAYS,  /* it runs */
    RM_HOLDER_ENDS,   /* killed, or gone already */
    RM_HOLDER_SWEEPS, /* a sweeper */
};

/* The holder's state for process `pid`. A process that cannot be inspected counts as ended, because
 * a wait for it would never succeed before its time limit. */
enum rm_holder rm_holder_of(int pid);

#endif
