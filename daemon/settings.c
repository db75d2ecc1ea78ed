/* Hot keys: numbers that may change while a run goes on. Validated by the configuration's own
 * table, handed to workers through the board, written to the journal with who and when. */
#include "daemon/daemon.h"

#include "config/schema.h"
#include "shm/atomic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

static void tell(const struct changes *c, const char *path, const char *before, const char *after)
{
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
    if (c->tell)
        tell(c, path, before, after);
}

/* --- set ------------------------------------------------------------------------------------- */

/* The file's own value of a key, or of a section. */
static json_t *value_of_file(const struct rm_daemon *daemon, const char *key,
                             struct rm_error *error)
{
    struct rm_experiment *e = malloc(sizeof *e);
    if (!e) {
        rm_fail(error, -ENOMEM, "%s: out of memory", key);
        return NULL;
    }
    *e = daemon->session.experiment;
    rm_config_apply_hot(e, daemon->file_hot);
    json_t *value = rm_config_get(e, key, error);
    free(e);
    return value;
}

static bool below(const char *path, const char *key)
{
    const size_t length = strlen(key);
    return strncmp(path, key, length) == 0 && (!path[length] || path[length] == '.');
}

static int note_one(struct rm_daemon *daemon, const struct rm_experiment *wanted, const char *path,
                    bool keep, uid_t who, struct rm_error *error)
{
    json_t *value = rm_config_get(wanted, path, error);
    json_t *file = value ? value_of_file(daemon, path, error) : NULL;
    const struct rm_kept_setting setting = {
        .value = value, .configuration = file, .keep = keep, .user = who};
    const int rc = file ? rm_kept_note(&daemon->kept, path, &setting, error) : -ENOMEM;
    json_decref(value);
    json_decref(file);
    return rc;
}

/* Notes all hot keys of `key`, for after a restart. With `keep` the change is made only if that can
 * be done. */
static int note(struct rm_daemon *daemon, const struct rm_experiment *wanted, const char *key,
                bool back, bool keep, uid_t who, struct rm_error *error)
{
    struct rm_error why = {""};
    int rc = 0;
    for (size_t i = 0; i < rm_key_count && rc == 0; i++)
        if (rm_keys[i].hot != RM_COLD && below(rm_keys[i].path, key))
            rc = back ? rm_kept_drop(&daemon->kept, rm_keys[i].path, &why)
                      : note_one(daemon, wanted, rm_keys[i].path, keep, who, &why);
    if (rc == 0)
        return 0;
    if (keep || back)
        return rm_fail(error, rc, "%s: nothing changed, because it cannot be written down: %s", key,
                       why.text);
    rm_log(&daemon->log, RM_LOG_WARNING, "%s", why.text);
    return 0;
}

int rm_daemon_set(struct rm_daemon *daemon, const char *key, const json_t *value, bool keep,
                  uid_t who, struct rm_error *error)
{
    struct rm_experiment *current = &daemon->session.experiment;
    struct rm_experiment wanted = *current;
    const char *word = json_string_value(value);
    const bool back = word && strcmp(word, "default") == 0;
    struct changes c = {.daemon = daemon,
                        .who = who,
                        .source = back   ? "set back"
                                  : keep ? "set, kept"
                                         : "set"};
    if (back && keep)
        return rm_fail(error, -EINVAL, "%s: what is set back is not kept", key);
    json_t *file = back ? value_of_file(daemon, key, error) : NULL;
    if (back && !file)
        return -EINVAL;
    int rc = rm_config_set(&wanted, key, back ? file : value, error);
    json_decref(file);
    if (rc < 0)
        return rc;
    if (rm_config_diff(current, &wanted, each_change, &c) < 0)
        return rm_fail(error, -ENOMEM, "%s: out of memory", key);
    if (c.cold_count)
        return rm_fail(error, -EPERM,
                       "%s cannot change while the experiment runs; query-schema and `ringctl "
                       "schema` say which keys can",
                       c.cold);
    /* Even the same value again: it may be kept from now on, or not any more. */
    rc = note(daemon, &wanted, key, back, keep, who, error);
    if (rc < 0 || c.hot_count == 0)
        return rc;
    c.tell = true;
    rm_config_diff(current, &wanted, each_change, &c);
    *current = wanted;
    apply(daemon);
    return 0;
}

/* --- after a restart ------------------------------------------------------------------------- */

/* Has the configuration had another value for it since? */
static bool outdated(const struct rm_daemon *daemon, const char *path, const json_t *configuration)
{
    struct rm_error error;
    json_t *now = rm_config_get(&daemon->session.experiment, path, &error);
    const bool same = json_equal(now, configuration);
    json_decref(now);
    return !same;
}

static bool set_again(struct rm_daemon *daemon, const char *path, const json_t *value, uid_t who)
{
    struct rm_experiment *current = &daemon->session.experiment;
    struct rm_experiment wanted = *current;
    struct rm_error error = {""};
    struct changes c = {
        .daemon = daemon, .who = who, .source = "kept over a restart", .tell = true};
    if (rm_config_set(&wanted, path, value, &error) < 0) {
        rm_log(&daemon->log, RM_LOG_WARNING, "%s was to be kept, and cannot be: %s", path,
               error.text);
        return false;
    }
    rm_config_diff(current, &wanted, each_change, &c);
    *current = wanted;
    return true;
}

void rm_daemon_restore_settings(struct rm_daemon *daemon)
{
    struct rm_error error = {""};
    struct rm_kept_setting setting;
    bool changed = false;
    if (rm_kept_open(&daemon->kept, daemon->directory.path, &error) < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "%s", error.text);
    for (size_t i = 0; i < rm_key_count; i++) {
        const char *path = rm_keys[i].path;
        if (rm_keys[i].hot == RM_COLD || !rm_kept_find(&daemon->kept, path, &setting))
            continue;
        const bool other = outdated(daemon, path, setting.configuration);
        if (setting.keep && !other && set_again(daemon, path, setting.value, setting.user)) {
            changed = true;
            continue;
        }
        if (!setting.keep || other)
            rm_log(&daemon->log, RM_LOG_NOTICE,
                   "%s was set by user %u and %s: it is the configuration's again", path,
                   (unsigned)setting.user,
                   setting.keep ? "has another value there since" : "not to be kept");
        if (rm_kept_drop(&daemon->kept, path, &error) < 0)
            rm_log(&daemon->log, RM_LOG_WARNING, "%s", error.text);
    }
    if (changed || daemon->adopted) /* bounds of the limiters stand as the killed daemon had them */
        apply(daemon);
}

/* --- reload ---------------------------------------------------------------------------------- */

/* What is kept stays, unless the file has another value for it now. */
static void hold_kept(struct rm_daemon *daemon, struct rm_experiment *wanted,
                      const double *file_hot)
{
    double now[RM_HOT_COUNT], values[RM_HOT_COUNT];
    struct rm_kept_setting setting;
    struct rm_error error = {""};
    rm_config_hot_values(&daemon->session.experiment, now);
    memcpy(values, file_hot, sizeof values);
    for (size_t i = 0; i < rm_key_count; i++) {
        const int hot = rm_keys[i].hot;
        if (hot == RM_COLD || !rm_kept_find(&daemon->kept, rm_keys[i].path, &setting))
            continue;
        if (setting.keep && file_hot[hot] == daemon->file_hot[hot])
            values[hot] = now[hot];
        else if (rm_kept_drop(&daemon->kept, rm_keys[i].path, &error) < 0)
            rm_log(&daemon->log, RM_LOG_WARNING, "%s", error.text);
    }
    rm_config_apply_hot(wanted, values);
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
    double file_hot[RM_HOT_COUNT];
    rm_config_hot_values(&wanted, file_hot);
    hold_kept(daemon, &wanted, file_hot);
    if (rm_config_diff(current, &wanted, each_change, &c) < 0) {
        rm_log(&daemon->log, RM_LOG_WARNING, "reload: nothing changed: out of memory");
        return;
    }
    memcpy(daemon->file_hot, file_hot, sizeof file_hot);
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
