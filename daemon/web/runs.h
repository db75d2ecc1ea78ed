/* runs: the experiments of this host, with the replies of their control sockets. Each experiment is
 * asked at most once a second. One whose daemon died or whose run failed stays among them for
 * RM_WEB_LOST_NS, or until a daemon listens at its socket again. Used by one thread. */
#ifndef RM_DAEMON_WEB_RUNS_H
#define RM_DAEMON_WEB_RUNS_H

#include "daemon/socket_path.h"
#include "daemon/web/curves.h"
#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define RM_WEB_RUNS       256 /* most experiments that are shown */
#define RM_WEB_FRESH_NS   1000000000ull
#define RM_WEB_EXPLAIN_NS 5000000000ull
#define RM_WEB_LOST_NS    (24 * 3600 * 1000000000ull)

struct rm_web_run {
    char name[256]; /* "NAME", or "NAME~2" for a second experiment of that name with another socket
                     */
    char socket[RM_SOCKET_PATH_MAX];
    char why[160];      /* reason why the experiment does not answer; "": it answers */
    json_t *status;     /* replies to status and metrics; NULL: none */
    json_t *metrics;    /* */
    json_int_t pid;     /* of its daemon */
    double created;     /* when its counters began, in seconds since 1970 */
    uint64_t silent_ns; /* the experiment is not asked again before this time */
    uint64_t lost_ns;   /* when its daemon was found dead or its run failed; 0: neither */
    char *directory;    /* of the run, as it last answered; NULL: it never did */
    bool seen;
    struct rm_columns curves, losses;
    json_t *explained; /* of explained_ns */
    uint64_t explained_ns;
};

struct rm_web_runs {
    struct rm_web_run *run[RM_WEB_RUNS]; /* sorted by name */
    size_t count;
    uint64_t asked_ns; /* 0: never */
};

/* Asks all experiments, if the last answers are older than RM_WEB_FRESH_NS. */
void rm_web_runs_refresh(struct rm_web_runs *runs);
void rm_web_runs_free(struct rm_web_runs *runs);

/* Finds a run by its name as shown; NULL if there is none. */
struct rm_web_run *rm_web_run_find(const struct rm_web_runs *runs, const char *name);

/* The run directory; NULL if it is not known. */
const char *rm_web_run_directory(const struct rm_web_run *run);

/* The output of `ringctl explain --json` for the run, or {"error": ...}. The run owns the object,
 * and it is computed again after RM_WEB_EXPLAIN_NS at the earliest. */
const json_t *rm_web_run_explain(struct rm_web_run *run);

/* The last RM_WEB_LOG_BYTES of the run's log as a JSON string; NULL if the log cannot be read. */
#define RM_WEB_LOG_BYTES 65536
json_t *rm_web_run_log(const struct rm_web_run *run);

/* Executes a command of the control protocol. Takes `arguments` over. */
int rm_web_run_command(const struct rm_web_run *run, const char *command, json_t *arguments,
                       json_t **reply, struct rm_error *error);

#endif
