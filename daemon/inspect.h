/* inspect: a debugger looks at a worker that crashed or hangs, before it is gone. The worker writes
 * its own report and stack (actor/worlds/watch.h), then, if there is a debugger,
 * says so on the board and waits a while; gdb writes the stacks of all its threads to
 * RUN/stacks/WORKER-GENERATION.txt. All of it off the loop. */
#ifndef RM_DAEMON_INSPECT_H
#define RM_DAEMON_INSPECT_H

#include "config/experiment.h"
#include "daemon/log.h"
#include "daemon/stall.h"
#include "daemon/supervisor.h"
#include "shm/session/session.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define RM_INSPECT_S 10 /* most time for it */

struct rm_inspection;

/* All of it outlives the inspector. */
struct rm_inspector_spec {
    struct rm_session *session;
    const struct rm_supervisor *supervisor;
    struct rm_log *log;
    uv_loop_t *loop;
    struct rm_stall *stall;
    const char *run_directory;
};

struct rm_inspector {
    struct rm_inspector_spec spec;
    struct rm_inspection *first;          /* of those under way */
    uint64_t inspected[RM_BOARD_WORKERS]; /* generation that was looked at, 0 = none */
    char debugger[RM_PATH_TEXT_MAX + 8];  /* "" = there is none */
    bool ending;                          /* none is begun any more */
};

/* Looks for gdb: $RINGMASTER_GDB (empty: none), or on the PATH. Says in the log when there is none.
 */
void rm_inspector_open(struct rm_inspector *inspector, const struct rm_inspector_spec *spec);

/* Starts it for workers that wait for it, once for each process. */
void rm_inspector_look(struct rm_inspector *inspector);

/* Is this worker being looked at, or about to be? It is silent meanwhile. */
bool rm_inspector_has(const struct rm_inspector *inspector, uint32_t worker);

/* Ends all that are under way. */
void rm_inspector_end(struct rm_inspector *inspector);

#endif
