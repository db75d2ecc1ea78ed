/* The daemon's session: new, or what the service manager kept of a daemon that was killed. */
#include "daemon/daemon.h"

#include "shm/atomic.h"
#include "shm/base/plural.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The killed one was the last to begin a run of that name. */
static void go_on_in_latest(struct rm_daemon *daemon, const struct rm_experiment *e)
{
    struct rm_run_directory latest;
    struct rm_error why = {""};
    if (!daemon->directory.path[0] &&
        rm_run_directory_latest(&latest, e->run.directory, e->name, &why) == 0 &&
        rm_run_lock_await(&daemon->run_lock, latest.path, &why) == 0)
        daemon->directory = latest;
}

/* What a killed predecessor left with the service manager, or a new session. */
int rm_daemon_open_session(struct rm_daemon *daemon, const struct rm_experiment *experiment,
                           const struct rm_plan *plan, struct rm_error *error)
{
    static int fds[RM_FDSTORE_MAX];
    const uint32_t count = rm_fdstore_take(fds, RM_FDSTORE_MAX);
    struct rm_error why = {""};
    if (count && rm_session_adopt(&daemon->session, experiment, plan, fds, count, &why) == 0) {
        daemon->adopted = true;
        daemon->adopted_rows = rm_session_rows(&daemon->session);
        daemon->adopted_step = rm_session_steps(&daemon->session);
        daemon->left_rows = RM_PEEK(&daemon->session.board.run->rows_counted);
        daemon->resume[0] = '\0'; /* this is newer */
        go_on_in_latest(daemon, experiment);
        daemon->evaluations_seen = RM_PEEK(&daemon->session.board.run->evaluations);
        return 0;
    }
    if (count) {
        snprintf(daemon->not_adopted, sizeof daemon->not_adopted, "%.500s", why.text);
        for (uint32_t i = 0; i < count; i++)
            close(fds[i]);
        rm_fdstore_forget(count);
    }
    int rc = rm_session_create(&daemon->session, experiment, plan, error);
    if (rc == 0 && daemon->resume[0])
        rc = rm_daemon_load_shared(daemon, error);
    daemon->evaluations_seen = rc ? 0 : RM_PEEK(&daemon->session.board.run->evaluations);
    return rc;
}

/* Says what came back, and that it is kept for the next time. */
void rm_daemon_keep_session(struct rm_daemon *daemon)
{
    if (daemon->adopted) {
        struct rm_log_fields fields = RM_LOG_NO_FIELDS;
        fields.step = (int64_t)rm_session_steps(&daemon->session);
        rm_log_message(&daemon->log, RM_LOG_NOTICE, RM_MESSAGE_ADOPTED, &fields,
                       "goes on where a daemon was killed: rows before %llu, after %llu; step "
                       "%llu, update %llu",
                       (unsigned long long)daemon->left_rows,
                       (unsigned long long)daemon->adopted_rows,
                       (unsigned long long)daemon->adopted_step,
                       (unsigned long long)rm_session_updates(&daemon->session));
    } else if (daemon->not_adopted[0]) {
        rm_log(&daemon->log, RM_LOG_WARNING,
               "the memory of a killed daemon cannot be used, so this run starts from scratch: %s",
               daemon->not_adopted);
    }
    if (daemon->resume[0]) {
        const uint64_t rows = rm_session_rows(&daemon->session);
        struct rm_log_fields fields = RM_LOG_NO_FIELDS;
        fields.step = (int64_t)rm_session_steps(&daemon->session);
        rm_log_message(&daemon->log, RM_LOG_NOTICE, RM_MESSAGE_RESUMED, &fields,
                       "resumed from %s: step %llu, update %llu, %llu %s of replay", daemon->resume,
                       (unsigned long long)daemon->resumed_step,
                       (unsigned long long)rm_session_updates(&daemon->session),
                       (unsigned long long)rows, rm_plural(rows, "row", "rows"));
        if (daemon->resume_changes[0])
            rm_log(&daemon->log, RM_LOG_NOTICE, "changed since that checkpoint: %s",
                   daemon->resume_changes);
    }
    if (daemon->run_lock.left[0])
        rm_log(&daemon->log, RM_LOG_NOTICE, "this run was left by %s", daemon->run_lock.left);
    if (daemon->not_resumed[0])
        rm_log(&daemon->log, RM_LOG_WARNING, "%s: %s",
               daemon->resume[0] ? "passed over" : "starts a new run", daemon->not_resumed);
    rm_fdstore_keep(&daemon->session);
}
