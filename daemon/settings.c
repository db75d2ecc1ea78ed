/* Hot keys: numbers that may change while a run goes on. Validated by the configuration's own
 * table, handed to workers through the board, written to the journal with who and when. */
#include "daemon/daemon.h"

#include "shm/atomic.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Everything that follows from the hot keys of the session's experiment. */
static void apply(struct rm_daemon *daemon)
{
    const struct rm_experiment *e = &daemon->session.experiment;
    struct rm_board_view *board = &daemon->session.board;
    double values[RM_HOT_COUNT];

    rm_config_hot_values(e, values);
    for (int i = 0; i < RM_HOT_COUNT; i++)
        RM_POKE(&board->run->settings[i], values[i]);
    for (uint32_t p = 0; p < board->run->policies; p++) {
        double ratio = e->limiter.updates_per_step * e->sample.batch;
        double slack = e->limiter.slack_updates * e->sample.batch;
        if (daemon->session.plan.policy[p].frozen)
            continue;
        rm_limiter_change(&board->policies[p].limiter, ratio, slack);
    }
    RM_RAISE(&board->run->settings_version, RM_PEEK(&board->run->settings_version) + 1);
    rm_session_wake_all(&daemon->session);
    rm_daemon_arm(daemon);
}

struct changes {
    struct rm_daemon *daemon;
    uid_t who;
    const char *source;
    char cold[512]; /* keys that may not change now */
    unsigned hot_count, cold_count;
    bool tell; /* journal the hot ones */
};

static void each_change(void *user, const char *path, const char *before, const char *after,
                        bool hot)
{
    struct changes *c = user;
    if (!hot) {
        size_t used = strlen(c->cold);
        snprintf(c->cold + used, sizeof c->cold - used, "%s%s", used ? ", " : "", path);
        c->cold_count++;
        return;
    }
    c->hot_count++;
    if (!c->tell)
        return;
    const struct rm_log_fields fields = {.key = path,
                                         .before = before,
                                         .after = after,
                                         .step = (int64_t)rm_daemon_steps(c->daemon),
                                         .user = c->who};
    rm_log_message(&c->daemon->log, RM_LOG_NOTICE, RM_MESSAGE_SETTING, &fields,
                   "%s: %s -> %s (%s, user %u)", path, before, after, c->source, (unsigned)c->who);
    rm_daemon_event(c->daemon, "set",
                    json_pack("{s:s,s:s,s:s,s:s,s:I}", "key", path, "before", before, "after",
                              after, "source", c->source, "uid", (json_int_t)c->who));
}

int rm_daemon_set(struct rm_daemon *daemon, const char *key, const json_t *value, uid_t who,
                  struct rm_error *error)
{
    struct rm_experiment *current = &daemon->session.experiment;
    struct rm_experiment wanted = *current;
    struct changes c = {.daemon = daemon, .who = who, .source = "set"};
    int rc = rm_config_set(&wanted, key, value, error);
    if (rc < 0)
        return rc;
    if (rm_config_diff(current, &wanted, each_change, &c) < 0)
        return rm_fail(error, -ENOMEM, "%s: out of memory", key);
    if (c.cold_count)
        return rm_fail(error, -EPERM,
                       "%s cannot change while the experiment runs; query-schema and `ringctl "
                       "schema` say which keys can",
                       c.cold);
    if (c.hot_count == 0)
        return 0;
    c.tell = true;
    rm_config_diff(current, &wanted, each_change, &c);
    *current = wanted;
    apply(daemon);
    return 0;
}

void rm_daemon_reload(struct rm_daemon *daemon)
{
    const struct rm_daemon_options *o = &daemon->options;
    struct rm_experiment *current = &daemon->session.experiment;
    struct rm_experiment wanted;
    struct rm_error error = {.text = ""};
    struct changes c = {.daemon = daemon, .who = getuid(), .source = "reload", .tell = true};

    rm_notify("STATUS=reloading");
    if (rm_config_load(&wanted, o->file, o->overrides, o->override_count, &error) < 0) {
        rm_log(&daemon->log, RM_LOG_WARNING, "reload: nothing changed: %s", error.text);
        return;
    }
    /* What the command line says stands above the file. */
    memcpy(wanted.name, current->name, sizeof wanted.name);
    memcpy(wanted.run.directory, current->run.directory, sizeof wanted.run.directory);
    memcpy(wanted.control.socket, current->control.socket, sizeof wanted.control.socket);
    if (rm_config_diff(current, &wanted, each_change, &c) < 0) {
        rm_log(&daemon->log, RM_LOG_WARNING, "reload: nothing changed: out of memory");
        return;
    }
    rm_config_hot_values(&wanted, daemon->file_hot);
    if (c.cold_count)
        rm_log(&daemon->log, RM_LOG_WARNING,
               "reload: not applied, because it cannot change while the experiment runs: %s",
               c.cold);
    if (c.hot_count) {
        double values[RM_HOT_COUNT];
        rm_config_hot_values(&wanted, values);
        rm_config_apply_hot(current, values);
        apply(daemon);
    }
    rm_log_message(&daemon->log, RM_LOG_NOTICE, RM_MESSAGE_RELOADED, &RM_LOG_NO_FIELDS,
                   "reload: %u keys changed, %u refused", c.hot_count, c.cold_count);
}
