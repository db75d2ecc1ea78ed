/* sweeper: a small process that removes the control socket and the lock of a killed daemon. It
 * waits at the other end of a pipe, which closes when the daemon ends. It takes the lock before it
 * removes anything, so a successor's socket and lock stay.
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

/* Starts this program as the sweeper of `socket` (the path given to rm_place_take()). Returns 0 or
 * negative errno. The daemon also works without a sweeper. */
int rm_sweeper_start(struct rm_sweeper *sweeper, uv_loop_t *loop, const char *socket);

/* Ends the sweeper, because the daemon cleans up itself. Its handles are closed with the loop's. */
void rm_sweeper_dismiss(struct rm_sweeper *sweeper);

/* The sweeper's main function: waits for the end of standard input, then sweeps. Returns an exit
 * code. */
int rm_sweeper_main(const char *socket);

#endif
