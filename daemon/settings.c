/* Hot keys: numbers that may change during a run. The configuration's table checks a new value, the
 * board passes it to the workers, and the journal records it with user and time. */
#include "daemon/settings.h"

#include "daemon/notify.h"
#include "config/schema.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Compares two configurations: lists changes that are not allowed, counts allowed ones, and with
 * `tell` reports these to the journal and to subscribers. */
struct changes {
    const struct rm_settings *settings;
    uid_t who;
    const char *source;
    bool tell;
    char cold[512]; /* keys that may not change now */
    unsigned hot_count, cold_count;
};

/* No change is pending: a read file may be applied now. */
static void apply_reading(struct rm_settings *settings);

/* A client's change. */
struct rm_setting_change {
    struct rm_setting_change *next;
    struct rm_settings *settings;
    struct rm_write write;
    char *key;
    json_t *value;
    json_t *before; /* the key's value before the change */
    bool keep, back;
    bool must_last; /* it is made only if it can be recorded on the disk */
    uid_t who;
    uint64_t client;
    struct rm_kept_change kept;
    struct rm_experiment wanted;
};

void rm_settings_init(struct rm_settings *settings, const struct rm_settings_spec *spec)
{
    *settings = (struct rm_settings){.spec = *spec};
    rm_kept_init(&settings->kept);
    settings->end = &settings->first;
    settings->read_fds[0] = settings->read_fds[1] = -1;
}

/* --- what follows from a change -------------------------------------------------------------- */

static void apply(const struct rm_settings *settings)
{
    struct rm_session *session = settings->spec.session;
    const struct rm_experiment *e = &session->experiment;
    struct rm_board_view *board = &session->board;
    double values[RM_HOT_COUNT];

    rm_config_hot_values(e, values);
    for (int i = 0; i < RM_HOT_COUNT; i++)
        RM_POKE(&board->run->settings[i], values[i]);
    for (uint32_t p = 0; p < board->run->policies; p++) {
        double ratio = e->limiter.updates_per_step * e->sample.batch;
        double slack = e->limiter.slack_updates * e->sample.batch;
        if (session->plan.policy[p].frozen)
            continue;
        rm_limiter_change(&board->policies[p].limiter, ratio, slack);
    }
    RM_RAISE(&board->run->settings_version, RM_PEEK(&board->run->settings_version) + 1);
    rm_session_wake_all(session);
    settings->spec.ops->changed(settings->spec.user);
}

static void log_change(const struct changes *c, const char *path, const char *before,
                       const char *after)
{
    const struct rm_settings_spec *spec = &c->settings->spec;
    const struct rm_log_fields fields = {.key = path,
                                         .before = before,
                                         .after = after,
                                         .step = (int64_t)rm_session_steps(spec->session),
                                         .user = c->who};
    rm_log_message(spec->log, RM_LOG_NOTICE, RM_MESSAGE_SETTING, &fields,
                   "%s: %s -> %s (%s, user %u)", path, before, after, c->source, (unsigned)c->who);
    spec->ops->event(spec->user, "set",
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
        log_change(c, path, before, after);
}

static int compare(struct changes *changes, const struct rm_experiment *before,
                   const struct rm_experiment *after)
{
    return rm_config_diff(before, after, each_change, changes);
}

/* --- one change ------------------------------------------------------------------------------ */

/* The file's own value of a key, or of a section. */
static json_t *value_of_file(const struct rm_settings *settings, const char *key,
                             struct rm_error *error)
{
    struct rm_experiment *e = malloc(sizeof *e);
    if (!e) {
        rm_fail(error, -ENOMEM, "%s: out of memory", key);
        return NULL;
    }
    *e = settings->spec.session->experiment;
    rm_config_apply_hot(e, settings->file_hot);
    json_t *value = rm_config_get(e, key, error);
    free(e);
    return value;
}

static bool below(const char *path, const char *key)
{
    const size_t length = strlen(key);
    return strncmp(path, key, length) == 0 && (!path[length] || path[length] == '.');
}

static int note_one(struct rm_setting_change *s, const char *path, struct rm_error *error)
{
    json_t *value = rm_config_get(&s->wanted, path, error);
    json_t *file = value ? value_of_file(s->settings, path, error) : NULL;
    const struct rm_kept_setting setting = {
        .value = value, .configuration = file, .keep = s->keep, .user = s->who};
    const int rc = file ? rm_kept_note(&s->kept, path, &setting, error) : -ENOMEM;
    json_decref(value);
    json_decref(file);
    return rc;
}

/* Prepares notes of all hot keys of s->key, for after a restart; *lasts: whether any of them was to
 * be kept until now, or is. */
static int record(struct rm_setting_change *s, bool *lasts, struct rm_error *error)
{
    const struct rm_kept *kept = &s->settings->kept;
    struct rm_kept_setting before;
    int rc = rm_kept_begin(kept, &s->kept, error);
    *lasts = s->must_last;
    for (size_t i = 0; i < rm_key_count && rc == 0; i++) {
        const char *path = rm_keys[i].path;
        if (rm_keys[i].hot == RM_COLD || !below(path, s->key))
            continue;
        *lasts |= rm_kept_find(kept, path, &before) && before.keep;
        rc = s->back ? rm_kept_drop(&s->kept, path, s->who, error) : note_one(s, path, error);
    }
    return rc;
}

static struct changes changes_of(const struct rm_setting_change *s)
{
    return (struct changes){.settings = s->settings,
                            .who = s->who,
                            .source = s->back   ? "set back"
                                      : s->keep ? "set, kept"
                                                : "set"};
}

static int check(struct rm_setting_change *s, struct rm_error *error)
{
    struct rm_settings *settings = s->settings;
    struct changes c = changes_of(s);
    if (s->back && s->keep)
        return rm_fail(error, -EINVAL, "%s: \"default\" cannot be kept", s->key);
    s->wanted = settings->spec.session->experiment;
    s->before = rm_config_get(&s->wanted, s->key, error);
    if (!s->before)
        return -ENOENT;
    json_t *file = s->back ? value_of_file(settings, s->key, error) : NULL;
    if (s->back && !file)
        return -EINVAL;
    const int rc = rm_config_set(&s->wanted, s->key, s->back ? file : s->value, error);
    json_decref(file);
    if (rc < 0)
        return rc;
    if (compare(&c, &settings->spec.session->experiment, &s->wanted) < 0)
        return rm_fail(error, -ENOMEM, "%s: out of memory", s->key);
    if (c.cold_count)
        return rm_fail(error, -EPERM,
                       "%s cannot change while the experiment runs; query-schema and `ringctl "
                       "schema` say which keys can",
                       c.cold);
    return 0;
}

/* It is written down, or cannot be: *why says so. */
static int make(struct rm_setting_change *s, int written, const char *why, struct rm_error *error)
{
    struct rm_settings *settings = s->settings;
    struct changes c = changes_of(s);
    if (written < 0 && s->must_last)
        return rm_fail(error, written, "%s: nothing changed, because it cannot be saved: %s",
                       s->key, why);
    if (written < 0)
        rm_log(settings->spec.log, RM_LOG_WARNING, "%s", why);
    else
        rm_kept_take(&settings->kept, &s->kept);
    c.tell = true;
    compare(&c, &settings->spec.session->experiment, &s->wanted);
    if (c.hot_count == 0)
        return 0;
    settings->spec.session->experiment = s->wanted;
    apply(settings);
    return 0;
}

static void written(struct rm_write *write, int rc);

/* Its turn has come. 1: it waits for the disk; else it is made, or refused. */
static int begin(struct rm_setting_change *s, struct rm_error *error)
{
    struct rm_settings *settings = s->settings;
    struct rm_error why = {""};
    bool lasts;
    int rc = check(s, error);
    if (rc < 0)
        return rc;
    /* Even the same value again: it may be kept from now on, or not any more. */
    rc = record(s, &lasts, &why);
    s->write = (struct rm_write){.done = written, .user = s};
    if (rc == 0)
        rc = rm_kept_write(&settings->kept, settings->spec.files, &s->kept,
                           lasts ? &s->write : NULL, &why);
    if (rc == RM_WRITER_QUEUED && lasts)
        return 1;
    return make(s, rc < 0 ? rc : 0, why.text, error);
}

/* --- in line --------------------------------------------------------------------------------- */

static void forget(struct rm_setting_change *s)
{
    rm_kept_forget(&s->kept);
    json_decref(s->before);
    json_decref(s->value);
    free(s->key);
    free(s);
}

void rm_settings_close(struct rm_settings *settings)
{
    struct rm_setting_change *next;
    for (struct rm_setting_change *s = settings->first; s; s = next) {
        next = s->next;
        forget(s);
    }
    free(settings->read);
    for (int i = 0; i < 2; i++) /* a thread that has not come back would write into another file */
        if (settings->read_fds[i] >= 0 && settings->readings == 0)
            close(settings->read_fds[i]);
    rm_kept_close(&settings->kept);
    const struct rm_settings_spec spec = settings->spec;
    rm_settings_init(settings, &spec);
}

static json_t *reply_to(const struct rm_setting_change *s)
{
    struct rm_error error;
    return json_pack("{s:s,s:O,s:o}", "key", s->key, "before", s->before, "value",
                     rm_config_get(&s->settings->spec.session->experiment, s->key, &error));
}

static enum rm_refusal refusal_of(int rc)
{
    return rc == 0        ? RM_REFUSED_NOT
           : rc == -EPERM ? RM_REFUSED_NOT_NOW
                          : RM_REFUSED_INVALID_ARGUMENT;
}

/* The first one is made or refused: its client gets the reply, and the next change is made. */
static void go_on(struct rm_settings *settings, int rc, struct rm_error *error)
{
    while (rc <= 0) {
        struct rm_setting_change *s = settings->first;
        settings->first = s->next;
        if (!settings->first)
            settings->end = &settings->first;
        settings->spec.ops->answer(settings->spec.user, s->client, refusal_of(rc),
                                   rc == 0 ? reply_to(s) : NULL, error);
        forget(s);
        if (!settings->first)
            break;
        error->text[0] = '\0';
        rc = begin(settings->first, error);
    }
    if (!settings->first)
        apply_reading(settings);
}

static void written(struct rm_write *write, int rc)
{
    struct rm_setting_change *s = write->user;
    struct rm_error error = {""}, why = {""};
    if (rc < 0)
        rm_fail(&why, rc, "settings.jsonl: cannot be written: %s", strerror(-rc));
    go_on(s->settings, make(s, rc, why.text, &error), &error);
}

int rm_settings_set(struct rm_settings *settings, const struct rm_setting *setting, json_t **reply,
                    struct rm_error *error)
{
    struct rm_setting_change *s = calloc(1, sizeof *s);
    if (!s)
        return rm_fail(error, -ENOMEM, "%s: out of memory", setting->key);
    const char *word = json_string_value(setting->value);
    s->settings = settings;
    s->key = strdup(setting->key);
    s->value = json_incref(setting->value);
    s->keep = setting->keep;
    s->back = word && strcmp(word, "default") == 0;
    s->must_last = s->keep || s->back;
    s->who = setting->who;
    s->client = setting->client;
    int rc = s->key ? 0 : rm_fail(error, -ENOMEM, "%s: out of memory", setting->key);
    if (rc == 0)
        rc = settings->first ? 1 : begin(s, error);
    if (rc == 1) {
        *settings->end = s;
        settings->end = &s->next;
        return 1;
    }
    *reply = rc == 0 ? reply_to(s) : NULL;
    forget(s);
    return rc;
}

#define READINGS_MAX 8   /* threads that have not come back: no more are made */
#define SLOW_S       5.0 /* a reading that takes longer is worth a word */

/* --- after a restart ------------------------------------------------------------------------- */

/* Has the configuration had another value for it since? */
static bool outdated(const struct rm_settings *settings, const char *path,
                     const json_t *configuration)
{
    struct rm_error error;
    json_t *now = rm_config_get(&settings->spec.session->experiment, path, &error);
    const bool same = json_equal(now, configuration);
    json_decref(now);
    return !same;
}

static bool set_again(struct rm_settings *settings, const char *path, const json_t *value,
                      uid_t who)
{
    struct rm_experiment *current = &settings->spec.session->experiment;
    struct rm_experiment wanted = *current;
    struct rm_error error = {""};
    struct changes c = {
        .settings = settings, .who = who, .source = "kept over a restart", .tell = true};
    if (rm_config_set(&wanted, path, value, &error) < 0) {
        rm_log(settings->spec.log, RM_LOG_WARNING, "the kept value of %s cannot be set: %s", path,
               error.text);
        return false;
    }
    compare(&c, current, &wanted);
    *current = wanted;
    return true;
}

/* Records dropped settings, without waiting for the disk: if the record is lost, they are dropped
 * again. */
static void drop(struct rm_settings *settings, struct rm_kept_change *dropped, int rc,
                 struct rm_error *error)
{
    struct rm_kept *kept = &settings->kept;
    if (rc == 0)
        rc = rm_kept_write(kept, settings->spec.files, dropped, NULL, error);
    if (rc >= 0)
        rm_kept_take(kept, dropped);
    else
        rm_log(settings->spec.log, RM_LOG_WARNING, "%s", error->text);
    rm_kept_forget(dropped);
}

void rm_settings_restore(struct rm_settings *settings, const char *run_directory, bool adopted)
{
    struct rm_kept *kept = &settings->kept;
    struct rm_error error = {""};
    struct rm_kept_setting setting;
    struct rm_kept_change dropped;
    bool changed = false;
    if (rm_kept_open(kept, run_directory, &error) < 0)
        rm_log(settings->spec.log, RM_LOG_WARNING, "%s", error.text);
    int rc = rm_kept_begin(kept, &dropped, &error);
    for (size_t i = 0; i < rm_key_count; i++) {
        const char *path = rm_keys[i].path;
        if (rm_keys[i].hot == RM_COLD || !rm_kept_find(kept, path, &setting))
            continue;
        const bool other = outdated(settings, path, setting.configuration);
        if (setting.keep && !other && set_again(settings, path, setting.value, setting.user)) {
            changed = true;
            continue;
        }
        if (!setting.keep || other)
            rm_log(settings->spec.log, RM_LOG_NOTICE,
                   "%s has the configuration's value again: user %u %s", path,
                   (unsigned)setting.user,
                   setting.keep ? "set it before the configuration had a new value"
                                : "had set it without --keep");
        if (rc == 0)
            rc = rm_kept_drop(&dropped, path, getuid(), &error);
    }
    drop(settings, &dropped, rc, &error);
    if (changed || adopted) /* bounds of the limiters stand as the killed daemon had them */
        apply(settings);
}

/* --- reload ---------------------------------------------------------------------------------- */

/* What is kept stays, unless the file has another value for it now. */
static void hold_kept(struct rm_settings *settings, struct rm_experiment *wanted,
                      const double *file_hot)
{
    double now[RM_HOT_COUNT], values[RM_HOT_COUNT];
    struct rm_kept_setting setting;
    struct rm_kept_change dropped;
    struct rm_error error = {""};
    int rc = rm_kept_begin(&settings->kept, &dropped, &error);
    rm_config_hot_values(&settings->spec.session->experiment, now);
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
    drop(settings, &dropped, rc, &error);
    rm_config_apply_hot(wanted, values);
}

static void apply_file(struct rm_settings *settings, struct rm_experiment *wanted)
{
    struct rm_experiment *current = &settings->spec.session->experiment;
    struct changes c = {.settings = settings, .who = getuid(), .source = "reload", .tell = true};

    /* What the command line says stands above the file. */
    memcpy(wanted->name, current->name, sizeof wanted->name);
    memcpy(wanted->run.directory, current->run.directory, sizeof wanted->run.directory);
    memcpy(wanted->control.socket, current->control.socket, sizeof wanted->control.socket);
    double file_hot[RM_HOT_COUNT];
    rm_config_hot_values(wanted, file_hot);
    hold_kept(settings, wanted, file_hot);
    if (compare(&c, current, wanted) < 0) {
        rm_log(settings->spec.log, RM_LOG_WARNING, "reload: nothing changed: out of memory");
        return;
    }
    memcpy(settings->file_hot, file_hot, sizeof file_hot);
    if (c.cold_count)
        rm_log(settings->spec.log, RM_LOG_WARNING,
               "reload: not applied, because it cannot change while the experiment runs: %s",
               c.cold);
    if (c.hot_count) {
        double values[RM_HOT_COUNT];
        rm_config_hot_values(wanted, values);
        rm_config_apply_hot(current, values);
        apply(settings);
    }
    rm_log_message(settings->spec.log, RM_LOG_NOTICE, RM_MESSAGE_RELOADED, &RM_LOG_NO_FIELDS,
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

static void apply_reading(struct rm_settings *s)
{
    if (!s->read || s->first)
        return;
    apply_file(s, &s->read->experiment);
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

static void take_reading(struct rm_settings *s, struct rm_reading *r)
{
    if (r->rc < 0)
        rm_log(s->spec.log, RM_LOG_WARNING, "reload: nothing changed: %s", r->error.text);
    if (r->rc < 0 || r->number < s->taken) { /* one that began later is newer */
        free(r);
        return;
    }
    s->taken = r->number;
    free(s->read);
    s->read = r;
    apply_reading(s);
}

static void on_read(uv_poll_t *bell, int status, int events)
{
    struct rm_settings *s = bell->data;
    void *reading;
    (void)status;
    (void)events;
    while (read(s->read_fds[0], &reading, sizeof reading) == sizeof reading) {
        struct rm_reading *r = reading;
        s->readings--;
        if (s->spec.progress->life < RM_LIFE_OVER)
            take_reading(s, r);
        else
            free(r);
    }
    if (s->again && s->spec.progress->life < RM_LIFE_OVER) {
        s->again = false;
        rm_settings_reload(s);
    }
}

static int open_bell(struct rm_settings *s)
{
    if (s->read_fds[0] >= 0)
        return 0;
    if (pipe2(s->read_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    int rc = uv_poll_init(s->spec.loop, &s->read_bell, s->read_fds[0]);
    if (rc == 0) {
        s->read_bell.data = s;
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
static bool may_begin(struct rm_settings *s)
{
    const double waited_s = (double)(rm_now_ns() - s->begun_ns) / 1e9;
    if (s->readings == 0 || (waited_s < SLOW_S && s->readings < READINGS_MAX))
        return true;
    s->again = s->readings >= READINGS_MAX;
    rm_log(
        s->spec.log, RM_LOG_WARNING,
        "reload: %s has not been read for %.0f s (a pipe without a writer, or a file system that "
        "hangs?); it is read once more%s",
        s->spec.file, waited_s, s->again ? " when an earlier reading is over" : "");
    return !s->again;
}

void rm_settings_reload(struct rm_settings *s)
{
    if (!may_begin(s))
        return;
    rm_notify("STATUS=reloading");
    struct rm_reading *r = calloc(1, sizeof *r);
    int rc = r ? open_bell(s) : -ENOMEM;
    if (rc == 0) {
        r->file = s->spec.file;
        r->override_count = s->spec.override_count;
        r->number = s->begun + 1;
        r->to = s->read_fds[1];
        memcpy(r->overrides, s->spec.overrides, r->override_count * sizeof *r->overrides);
        rc = begin_reading(r);
    }
    if (rc != 0) {
        free(r);
        rm_log(s->spec.log, RM_LOG_WARNING, "reload: nothing changed: %s", strerror(-rc));
        return;
    }
    s->begun++;
    s->begun_ns = rm_now_ns();
    s->readings++;
}
