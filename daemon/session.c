/* The daemon's session: new, or what the service manager kept of a daemon that was killed. */
#include "daemon/daemon.h"

#include "shm/atomic.h"

#include <stdio.h>
#include <unistd.h>

/* What a killed predecessor left with the service manager, or a new session. */
int rm_daemon_open_session(struct rm_daemon *daemon, const struct rm_experiment *experiment,
                           const struct rm_plan *plan, struct rm_error *error)
{
    static int fds[RM_FDSTORE_MAX];
    const uint32_t count = rm_fdstore_take(fds, RM_FDSTORE_MAX);
    struct rm_error why = {""};
    if (count && rm_session_adopt(&daemon->session, experiment, plan, fds, count, &why) == 0) {
        daemon->adopted = true;
        daemon->evaluations_seen = RM_PEEK(&daemon->session.board.run->evaluations);
        return 0;
    }
    if (count) {
        snprintf(daemon->not_adopted, sizeof daemon->not_adopted, "%.500s", why.text);
        for (uint32_t i = 0; i < count; i++)
            close(fds[i]);
        rm_fdstore_forget(count);
    }
    return rm_session_create(&daemon->session, experiment, plan, error);
}

/* Says what came back, and that it is kept for the next time. */
void rm_daemon_keep_session(struct rm_daemon *daemon)
{
    if (daemon->adopted) {
        struct rm_log_fields fields = RM_LOG_NO_FIELDS;
        fields.step = (int64_t)rm_daemon_steps(daemon);
        rm_log_message(&daemon->log, RM_LOG_NOTICE, RM_MESSAGE_ADOPTED, &fields,
                       "goes on where a daemon was killed: %llu rows of replay, step %llu, update "
                       "%llu",
                       (unsigned long long)rm_session_rows(&daemon->session),
                       (unsigned long long)rm_daemon_steps(daemon),
                       (unsigned long long)rm_daemon_updates(daemon));
    } else if (daemon->not_adopted[0]) {
        rm_log(&daemon->log, RM_LOG_WARNING,
               "what a killed daemon left is of no use, so this run begins anew: %s",
               daemon->not_adopted);
    }
    rm_fdstore_keep(&daemon->session);
}
