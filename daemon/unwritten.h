/* unwritten: what the threads that write (writer.h) could not write, or had no room for, is told:
 * in the journal, at most every RM_LOG_WINDOW_NS, and in status and metrics at any time. */
#ifndef RM_DAEMON_UNWRITTEN_H
#define RM_DAEMON_UNWRITTEN_H

#include <stdint.h>

struct rm_daemon;

struct rm_unwritten {
    uint64_t failed, lost; /* pieces that were told of */
    uint64_t told_ns;      /* when; 0 = never */
};

/* After a failure, and now and then. */
void rm_daemon_tell_unwritten(struct rm_daemon *daemon);

#endif
