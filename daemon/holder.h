/* holder: the state of the process that holds a lock, from /proc. A killed process still exists for
 * a while, and so does its sweeper (sweeper.h); both release the lock soon. */
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
