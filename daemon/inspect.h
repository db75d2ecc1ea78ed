/* inspect: a debugger looks at a worker that crashed or hangs, before it is gone. The worker writes
 * its own report and stack (actor/worlds/watch.h), then, if it was told that there is a debugger,
 * says so on the board and waits a while; gdb writes the stacks of all its threads to
 * RUN/stacks/WORKER-GENERATION.txt. All of it off the loop. */
#ifndef RM_DAEMON_INSPECT_H
#define RM_DAEMON_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

struct rm_daemon;
struct rm_inspection;

#define RM_INSPECT_S 10 /* most time for it */

/* Looks for gdb: $RINGMASTER_GDB (empty: none), or on the PATH. Says in the log when there is none.
 */
void rm_daemon_find_debugger(struct rm_daemon *daemon);

/* Starts it for workers that wait for it, once for each process. */
void rm_daemon_inspect(struct rm_daemon *daemon);

/* Is this worker being looked at, or about to be? It is silent meanwhile. */
bool rm_daemon_inspecting(const struct rm_daemon *daemon, uint32_t worker);

/* Ends all that are under way. */
void rm_daemon_end_inspections(struct rm_daemon *daemon);

#endif
