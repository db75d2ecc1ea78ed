/* unwritten: logs how many lines and rows the writing threads (writer.h) could not write, or
 * dropped for lack of room, at most every RM_LOG_WINDOW_NS. Status and metrics have the numbers at
 * any time. */
#ifndef RM_DAEMON_UNWRITTEN_H
#define RM_DAEMON_UNWRITTEN_H

#include "daemon/kept.h"
#include "daemon/log.h"
#include "daemon/metrics.h"

struct rm_unwritten {
    struct rm_log *log; /* has the writers */
    const struct rm_metrics *metrics;
    const struct rm_kept *kept;
    uint64_t failed, lost; /* pieces in the latest message */
    uint64_t at_ns;        /* the message's time; 0 = no message yet */
};

/* Call after a failure (struct rm_writer.on_failure), and periodically. Takes a struct
 * rm_unwritten. */
void rm_unwritten_log(void *unwritten);

#endif
