/* printed: what a worker, and whatever is linked or loaded into it, prints on standard output and
 * error. The daemon reads it from a pipe: a line becomes an entry of the journal, with time, level
 * (shm/base/said.h) and worker. A worker never waits for a disk to print, and cannot fill one: of
 * each, RM_LOG_BURST lines in RM_LOG_WINDOW_NS are written, as many again that are errors, and the
 * rest is counted. After a worker dies, the daemon reads the rest of the pipe before it reports the
 * death.
 * The event loop's thread only. */
#ifndef RM_DAEMON_PRINTED_H
#define RM_DAEMON_PRINTED_H

#include "daemon/log.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define RM_PRINTED_LINE 2560 /* bytes of a line that are kept */

struct rm_daemon;

/* Of a worker, whichever process it has. */
struct rm_printed_pace {
    struct rm_log_pace errors, others;
};

/* Of one process. */
struct rm_printed {
    uv_poll_t poll;
    int fd; /* -1 = none */
    struct rm_daemon *daemon;
    uint32_t worker;
    void *user; /* the caller's */
    void (*on_closed)(struct rm_printed *printed);
    bool in_rest; /* of a line that is too long */
    size_t used;
    char line[RM_PRINTED_LINE];
};

/* Makes the pipe of worker `worker`. Returns the end for the process, close-on-exec and to be
 * closed by the caller once the process has it, or negative errno; then there is nothing to end. */
int rm_printed_open(struct rm_printed *printed, struct rm_daemon *daemon, uint32_t worker,
                    struct rm_error *error);

/* The process is gone, or was not made: reads what is left and closes the pipe. When on_closed is
 * called *printed may be freed. */
void rm_printed_end(struct rm_printed *printed);

/* Level of a line; *text: what follows its mark. */
enum rm_log_level rm_printed_level(const char *line, const char **text);

#endif
