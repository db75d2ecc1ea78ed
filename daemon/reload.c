/* Settings that are set again after a restart, and changes by a reloaded configuration. */
#include "daemon/settings.h"

#include "daemon/daemon.h"

#include "config/schema.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READINGS_MAX 8   /* threads that have not come back: no more are made */
#define SLOW_S       5.0 /* a reading that takes longer is worth a word */

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

/* Records dropped settings, without waiting for the disk: if the record is lost, they are dropped
 * again. */
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

/* One reading of the file. The thread's until it is handed over, then the loop's. */
struct rm_reading {
    struct rm_experiment experiment;
    const char *file;
    struct rm_override overrides[RM_OVERRIDES_MAX];
    size_t override_count;
    uint64_t number; /* in the order in which they began */
    int rc;
    struct rm_error error;
    int to; /* where it is handed over */
};

void rm_settings_apply_file(struct rm_daemon *daemon)
{
    struct rm_settings *s = &daemon->settings;
    if (!s->read || s->first)
        return;
    apply_file(daemon, &s->read->experiment);
    free(s->read);
    s->read = NULL;
}

/* The file may be a pipe without a writer, or on a file system that hangs: then this never returns.
 * So it runs in a thread outside of the pool, touches no state of the daemon, and no other thread
 * waits for it. */
static void *read_file(void *reading)
{
    struct rm_reading *r = reading;
    r->rc = rm_config_load(&r->experiment, r->file, r->overrides, r->override_count, &r->error);
    void *const self = r;
    ssize_t n;
    do
        n = write(r->to, &self, sizeof self);
    while (n < 0 && errno == EINTR);
    return NULL;
}

static void take_reading(struct rm_daemon *daemon, struct rm_reading *r)
{
    struct rm_settings *s = &daemon->settings;
    if (r->rc < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "reload: nothing changed: %s", r->error.text);
    if (r->rc < 0 || r->number < s->taken) { /* one that began later is newer */
        free(r);
        return;
    }
    s->taken = r->number;
    free(s->read);
    s->read = r;
    rm_settings_apply_file(daemon);
}

static void on_read(uv_poll_t *bell, int status, int events)
{
    struct rm_daemon *daemon = bell->data;
    struct rm_settings *s = &daemon->settings;
    void *reading;
    (void)status;
    (void)events;
    while (read(s->read_fds[0], &reading, sizeof reading) == sizeof reading) {
        struct rm_reading *r = reading;
        s->readings--;
        if (daemon->life < RM_LIFE_OVER)
            take_reading(daemon, r);
        else
            free(r);
    }
    if (s->again && daemon->life < RM_LIFE_OVER) {
        s->again = false;
        rm_daemon_reload(daemon);
    }
}

static int open_bell(struct rm_daemon *daemon)
{
    struct rm_settings *s = &daemon->settings;
    if (s->read_fds[0] >= 0)
        return 0;
    if (pipe2(s->read_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    int rc = uv_poll_init(&daemon->loop, &s->read_bell, s->read_fds[0]);
    if (rc == 0) {
        s->read_bell.data = daemon;
        rc = uv_poll_start(&s->read_bell, UV_READABLE, on_read);
        uv_unref((uv_handle_t *)&s->read_bell);
    }
    return rc;
}

/* Its thread, which blocks all signals and is detached. */
static int begin_reading(struct rm_reading *r)
{
    pthread_attr_t detached;
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&thread, &detached, read_file, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return -rc;
}

/* Says of earlier readings that they take long. False: there are so many that it has to wait. */
static bool may_begin(struct rm_daemon *daemon)
{
    struct rm_settings *s = &daemon->settings;
    const double waited_s = (double)(rm_now_ns() - s->begun_ns) / 1e9;
    if (s->readings == 0 || (waited_s < SLOW_S && s->readings < READINGS_MAX))
        return true;
    s->again = s->readings >= READINGS_MAX;
    rm_log(
        &daemon->log, RM_LOG_WARNING,
        "reload: %s has not been read for %.0f s (a pipe without a writer, or a file system that "
        "hangs?); it is read once more%s",
        daemon->options.file, waited_s, s->again ? " when an earlier reading is over" : "");
    return !s->again;
}

void rm_daemon_reload(struct rm_daemon *daemon)
{
    const struct rm_daemon_options *o = &daemon->options;
    struct rm_settings *s = &daemon->settings;
    if (!may_begin(daemon))
        return;
    rm_notify("STATUS=reloading");
    struct rm_reading *r = calloc(1, sizeof *r);
    int rc = r ? open_bell(daemon) : -ENOMEM;
    if (rc == 0) {
        r->file = o->file;
        r->override_count = o->override_count;
        r->number = s->begun + 1;
        r->to = s->read_fds[1];
        memcpy(r->overrides, o->overrides, sizeof r->overrides);
        rc = begin_reading(r);
    }
    if (rc != 0) {
        free(r);
        rm_log(&daemon->log, RM_LOG_WARNING, "reload: nothing changed: %s", strerror(-rc));
        return;
    }
    s->begun++;
    s->begun_ns = rm_now_ns();
    s->readings++;
}
