/* interrupt: SIGINT and SIGTERM, for commands that have something to put back or to remove before
 * they end. One thread. */
#ifndef RM_DAEMON_CTL_INTERRUPT_H
#define RM_DAEMON_CTL_INTERRUPT_H

/* From now on both are noted and do not end the process; they interrupt system calls. */
void rm_interrupt_watch(void);

/* The signal that came last, 0 = none. */
int rm_interrupted(void);

/* Sleeps until the time is over or one of them comes, or has come. */
void rm_interrupt_sleep(double seconds);

#endif
