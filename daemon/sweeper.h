/* sweeper: a small process that outlives its daemon by a moment. A daemon that is killed cannot
 * remove its control socket and lock; the sweeper, at the other end of a pipe, sees the pipe close
 * and does. It takes the lock first, so what a successor has made its own stays.
 *
 * Owned by the daemon; one thread. It sleeps in read() all its life. */
#ifndef RM_DAEMON_SWEEPER_H
#define RM_DAEMON_SWEEPER_H

#include <stdbool.h>
#include <uv.h>

struct rm_sweeper {
    uv_process_t process;
    uv_pipe_t pipe; /* never written to */
    bool running;
};

/* Starts this same program as the sweeper of `socket` (an absolute or relative path, as taken).
 * Returns 0 or negative errno. A daemon can do without. */
int rm_sweeper_start(struct rm_sweeper *sweeper, uv_loop_t *loop, const char *socket);

/* The daemon ends in good order and cleans up itself. Its handles are closed with the loop's. */
void rm_sweeper_dismiss(struct rm_sweeper *sweeper);

/* The process: waits for the end of standard input, then sweeps. Returns an exit code. */
int rm_sweeper_main(const char *socket);

#endif
