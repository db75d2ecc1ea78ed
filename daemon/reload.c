/* What is set again after a restart, and what a configuration that is read anew changes. */
#include "daemon/settings.h"

#include "daemon/daemon.h"

#include "config/schema.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    struct rm_setting_changes c = {
        .daemon = daemon, .who = who, .source = "kept over a restart", .tell = true};
    if (rm_config_set(&wanted, path, value, &error) < 0) {
        rm_log(&daemon->log, RM_LOG_WARNING, "%s was to be kept, and cannot be: %s", path,
               error.text);
        return false;
    }
    rm_settings_compare(&c, current, &wanted);
    *current = wanted;
    return true;
}

/* Notes what is gone. Nobody waits for that to be on the disk: it would be gone again. */
static void drop(struct rm_daemon *daemon, struct rm_kept_change *dropped, int rc,
                 struct rm_error *error)
{
    struct rm_kept *kept = &daemon->settings.kept;
    if (rc == 0)
        rc = rm_kept_write(kept, &daemon->files, dropped, NULL, error);
    if (rc >= 0)
        rm_kept_take(kept, dropped);
    else
        rm_log(&daemon->log, RM_LOG_WARNING, "%s", error->text);
    rm_kept_forget(dropped);
}

void rm_daemon_restore_settings(struct rm_daemon *daemon)
{
    struct rm_kept *kept = &daemon->settings.kept;
    struct rm_error error = {""};
    struct rm_kept_setting setting;
    struct rm_kept_change dropped;
    bool changed = false;
    if (rm_kept_open(kept, daemon->directory.path, &error) < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "%s", error.text);
    int rc = rm_kept_begin(kept, &dropped, &error);
    for (size_t i = 0; i < rm_key_count; i++) {
        const char *path = rm_keys[i].path;
        if (rm_keys[i].hot == RM_COLD || !rm_kept_find(kept, path, &setting))
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
        if (rc == 0)
            rc = rm_kept_drop(&dropped, path, getuid(), &error);
    }
    drop(daemon, &dropped, rc, &error);
    if (changed || daemon->adopted) /* bounds of the limiters stand as the killed daemon had them */
        rm_settings_apply(daemon);
}

/* --- reload ---------------------------------------------------------------------------------- */

/* What is kept stays, unless the file has another value for it now. */
static void hold_kept(struct rm_daemon *daemon, struct rm_experiment *wanted,
                      const double *file_hot)
{
    const struct rm_settings *settings = &daemon->settings;
    double now[RM_HOT_COUNT], values[RM_HOT_COUNT];
    struct rm_kept_setting setting;
    struct rm_kept_change dropped;
    struct rm_error error = {""};
    int rc = rm_kept_begin(&settings->kept, &dropped, &error);
    rm_config_hot_values(&daemon->session.experiment, now);
    memcpy(values, file_hot, sizeof values);
    for (size_t i = 0; i < rm_key_count; i++) {
        const int hot = rm_keys[i].hot;
        if (hot == RM_COLD || !rm_kept_find(&settings->kept, rm_keys[i].path, &setting))
            continue;
        if (setting.keep && file_hot[hot] == settings->file_hot[hot])
            values[hot] = now[hot];
        else if (rc == 0)
            rc = rm_kept_drop(&dropped, rm_keys[i].path, getuid(), &error);
    }
    drop(daemon, &dropped, rc, &error);
    rm_config_apply_hot(wanted, values);
}

static void apply_file(struct rm_daemon *daemon, struct rm_experiment *wanted)
{
    struct rm_experiment *current = &daemon->session.experiment;
    struct rm_setting_changes c = {
        .daemon = daemon, .who = getuid(), .source = "reload", .tell = true};

    /* What the command line says stands above the file. */
    memcpy(wanted->name, current->name, sizeof wanted->name);
    memcpy(wanted->run.directory, current->run.directory, sizeof wanted->run.directory);
    memcpy(wanted->control.socket, current->control.socket, sizeof wanted->control.socket);
    double file_hot[RM_HOT_COUNT];
    rm_config_hot_values(wanted, file_hot);
    hold_kept(daemon, wanted, file_hot);
    if (rm_settings_compare(&c, current, wanted) < 0) {
        rm_log(&daemon->log, RM_LOG_WARNING, "reload: nothing changed: out of memory");
        return;
    }
    memcpy(daemon->settings.file_hot, file_hot, sizeof file_hot);
    if (c.cold_count)
        rm_log(&daemon->log, RM_LOG_WARNING,
               "reload: not applied, because it cannot change while the experiment runs: %s",
               c.cold);
    if (c.hot_count) {
        double values[RM_HOT_COUNT];
        rm_config_hot_values(wanted, values);
        rm_config_apply_hot(current, values);
        rm_settings_apply(daemon);
    }
    rm_log_message(&daemon->log, RM_LOG_NOTICE, RM_MESSAGE_RELOADED, &RM_LOG_NO_FIELDS,
                   "reload: %u %s changed, %u refused", c.hot_count,
                   rm_plural(c.hot_count, "key", "keys"), c.cold_count);
}

void rm_settings_apply_file(struct rm_daemon *daemon)
{
    struct rm_settings *s = &daemon->settings;
    if (!s->read || s->first || s->reloading)
        return;
    if (s->read_rc < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "reload: nothing changed: %s", s->read_error.text);
    else
        apply_file(daemon, s->read);
    free(s->read);
    s->read = NULL;
}

/* By a thread: the file may be on a disk that is busy, or on another host. */
static void read_file(uv_work_t *work)
{
    struct rm_daemon *daemon = work->data;
    const struct rm_daemon_options *o = &daemon->options;
    struct rm_settings *s = &daemon->settings;
    s->read_rc = rm_config_load(s->read, o->file, o->overrides, o->override_count, &s->read_error);
}

static void file_read(uv_work_t *work, int status)
{
    struct rm_daemon *daemon = work->data;
    struct rm_settings *s = &daemon->settings;
    (void)status;
    s->reloading = false;
    if (s->again && daemon->life < RM_LIFE_OVER) { /* it may have been changed meanwhile */
        s->again = false;
        rm_daemon_reload(daemon);
    } else if (daemon->life < RM_LIFE_OVER) {
        rm_settings_apply_file(daemon);
    }
}

void rm_daemon_reload(struct rm_daemon *daemon)
{
    struct rm_settings *s = &daemon->settings;
    if (s->reloading) {
        s->again = true;
        return;
    }
    rm_notify("STATUS=reloading");
    if (!s->read)
        s->read = malloc(sizeof *s->read);
    if (!s->read) {
        rm_log(&daemon->log, RM_LOG_WARNING, "reload: nothing changed: out of memory");
        return;
    }
    s->reloading = true;
    s->read_error.text[0] = '\0';
    s->reading.data = daemon;
    if (uv_queue_work(&daemon->loop, &s->reading, read_file, file_read) < 0) {
        read_file(&s->reading);
        file_read(&s->reading, 0);
    }
}
