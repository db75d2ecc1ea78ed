/* inspect: a debugger writes the stacks of a worker that crashed or hangs, before it ends. The
 * worker writes its own report and stack (actor/worlds/watch.h). If there is a debugger, the worker
 * then sets a word on the board and waits a while; gdb writes the stacks of all its threads to
 * RUN/stacks/WORKER-GENERATION.txt. Nothing of this blocks the loop. */
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

#define RM_INSPECT_S 10 /* maximum time of an inspection */

struct rm_inspection;

/* All pointers outlive the inspector. */
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
    struct rm_inspection *first;          /* the inspections in progress */
    uint64_t inspected[RM_BOARD_WORKERS]; /* generation that was inspected, 0 = none */
    char debugger[RM_PATH_TEXT_MAX + 8];  /* "" = no debugger */
    bool ending;                          /* no inspection begins any more */
};

/* Searches gdb: $RINGMASTER_GDB (empty: none), or on the PATH. Logs if there is none. */
void rm_inspector_open(struct rm_inspector *inspector, const struct rm_inspector_spec *spec);

/* Starts gdb for workers that wait for it, once for each process. */
void rm_inspector_look(struct rm_inspector *inspector);

/* Whether this worker is inspected, or will be; it is silent meanwhile. */
bool rm_inspector_has(const struct rm_inspector *inspector, uint32_t worker);

/* Ends all inspections in progress. */
void rm_inspector_end(struct rm_inspector *inspector);

#endif
