/* Creates the daemon's session, or takes over the session of a killed daemon from the service
 * manager. */
#include "daemon/running.h"

#include "shm/atomic.h"
#include "shm/base/plural.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Continues in the latest run directory of that name: the killed daemon began it. */
static void go_on_in_latest(struct rm_daemon *daemon, const struct rm_experiment *e)
{
    struct rm_run_directory latest;
    struct rm_error why = {""};
    if (!daemon->directory.path[0] &&
        rm_run_directory_latest(&latest, e->run.directory, e->name, &why) == 0 &&
        rm_run_lock_await(&daemon->run_lock, latest.path, &why) == 0)
        daemon->directory = latest;
}

/* A new session, with the state of the newest checkpoint that can be loaded. */
static int make_session(struct rm_daemon *daemon, const struct rm_experiment *experiment,
                        const struct rm_plan *plan, struct rm_error *error)
{
    int rc = rm_session_create(&daemon->session, experiment, plan, error);
    while (rc == 0 && daemon->resumed.from[0] &&
           (rc = rm_resume_load(&daemon->resumed, &daemon->session, error)) != 0) {
        rm_session_close(&daemon->session);
        rc = rm_resume_go_back(&daemon->resumed, experiment, rc, error);
        if (rc == 0)
            rc = rm_session_create(&daemon->session, experiment, plan, error);
    }
    return rc;
}

/* Takes over the session that a killed predecessor left with the service manager, or makes a new
 * one. */
int rm_daemon_open_session(struct rm_daemon *daemon, const struct rm_experiment *experiment,
                           const struct rm_plan *plan, struct rm_error *error)
{
    static int fds[RM_FDSTORE_MAX];
    const uint32_t count = rm_fdstore_take(fds, RM_FDSTORE_MAX);
    struct rm_error why = {""};
    if (count && rm_session_adopt(&daemon->session, experiment, plan, fds, count, &why) == 0) {
        daemon->adoption.done = true;
        daemon->adoption.rows = rm_session_rows(&daemon->session);
        daemon->adoption.step = rm_session_steps(&daemon->session);
        daemon->adoption.left_rows = RM_PEEK(&daemon->session.board.run->rows_counted);
        daemon->resumed.from[0] = '\0'; /* the session is newer */
        go_on_in_latest(daemon, experiment);
        return 0;
    }
    if (count) {
        snprintf(daemon->adoption.refused, sizeof daemon->adoption.refused, "%.500s", why.text);
        for (uint32_t i = 0; i < count; i++)
            close(fds[i]);
        rm_fdstore_forget(count);
    }
    return make_session(daemon, experiment, plan, error);
}

/* Logs what was taken over, and that the session is kept for the next daemon. */
void rm_daemon_keep_session(struct rm_daemon *daemon)
{
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    fields.step = (int64_t)rm_session_steps(&daemon->session);
    if (daemon->adoption.done) {
        rm_log_message(&daemon->log, RM_LOG_NOTICE, RM_MESSAGE_ADOPTED, &fields,
                       "continues the run of a killed daemon: rows before %llu, after %llu; step "
                       "%llu, update %llu",
                       (unsigned long long)daemon->adoption.left_rows,
                       (unsigned long long)daemon->adoption.rows,
                       (unsigned long long)daemon->adoption.step,
                       (unsigned long long)rm_session_updates(&daemon->session));
    } else if (daemon->adoption.refused[0]) {
        rm_log(&daemon->log, RM_LOG_WARNING,
               "the memory of a killed daemon cannot be used, so this run starts from scratch: %s",
               daemon->adoption.refused);
    }
    if (daemon->resumed.from[0]) {
        const uint64_t rows = rm_session_rows(&daemon->session);
        rm_log_message(&daemon->log, RM_LOG_NOTICE, RM_MESSAGE_RESUMED, &fields,
                       "resumed from %s: step %llu, update %llu, %llu %s of replay",
                       daemon->resumed.from, (unsigned long long)daemon->resumed.step,
                       (unsigned long long)rm_session_updates(&daemon->session),
                       (unsigned long long)rows, rm_plural(rows, "row", "rows"));
        if (daemon->resumed.changes[0])
            rm_log(&daemon->log, RM_LOG_NOTICE, "changed since that checkpoint: %s",
                   daemon->resumed.changes);
        if (daemon->resumed.unread)
            rm_log(
                &daemon->log, RM_LOG_WARNING,
                "policy.from is not read, because the run is resumed from its checkpoint; --fresh "
                "starts a new run with policy.from");
    }
    if (daemon->run_lock.left[0])
        rm_log(&daemon->log, RM_LOG_NOTICE, "this run was left unfinished by %s",
               daemon->run_lock.left);
    if (daemon->resumed.passed_over[0])
        rm_log(&daemon->log, RM_LOG_WARNING, "%s: %s",
               daemon->resumed.from[0] ? "skipped" : "starts a new run",
               daemon->resumed.passed_over);
    rm_fdstore_keep(&daemon->session);
}
