#include "daemon/resume.h"

#include "config/schema.h"
#include "config/utf8.h"
#include "daemon/checkpoint_files.h"
#include "daemon/fdstore.h"
#include "daemon/run_lock.h"
#include "shm/atomic.h"
#include "shm/base/state.h"

#include "shm/base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUMMARY_MAX (16u << 20)

/* --- what may change ------------------------------------------------------------------------- */

/* Of a key that may grow: RM_KEY_U64. */
static uint64_t count_of(const struct rm_experiment *e, const struct rm_key *key)
{
    uint64_t count;
    memcpy(&count, (const char *)e + key->offset, sizeof count);
    return count;
}

/* May this key differ from that of the checkpoint? */
static bool may_change(const char *path, const struct rm_experiment *before,
                       const struct rm_experiment *after)
{
    const struct rm_key *key = rm_key_find(path);
    if (!key || key->on_resume != RM_ON_RESUME_MORE)
        return key && key->on_resume == RM_ON_RESUME_ANY;
    const uint64_t was = count_of(before, key), is = count_of(after, key);
    return is == 0 || (was && is > was);
}

struct comparison {
    struct rm_resumed *resumed;
    const struct rm_experiment *before, *after;
    struct rm_error refused; /* "" = nothing */
};

static void add(char *text, size_t size, const char *path, const char *before, const char *after)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s (%.60s there, %.60s now)", used ? ", " : "", path,
             before, after);
}

static void each_difference(void *user, const char *path, const char *before, const char *after,
                            bool hot)
{
    struct comparison *c = user;
    (void)hot; /* such may change: tests/unit/config/test_table.c */
    if (may_change(path, c->before, c->after))
        add(c->resumed->changes, sizeof c->resumed->changes, path, before, after);
    else
        add(c->refused.text, sizeof c->refused.text, path, before, after);
}

static int parse_config(const json_t *config, struct rm_experiment *before, struct rm_error *error)
{
    char *text = json_dumps(config, JSON_ENCODE_ANY);
    if (!text)
        return rm_fail(error, -ENOMEM, "no memory for its configuration");
    const int rc = rm_config_parse(before, "the checkpoint's configuration", text, strlen(text),
                                   NULL, 0, error);
    free(text);
    return rc;
}

/* Refuses changes of keys that a resumed run may not have, with a message. */
static int compare(struct rm_resumed *r, const char *folder, const json_t *config,
                   const struct rm_experiment *after, struct rm_error *error)
{
    struct rm_experiment *before = calloc(1, sizeof *before);
    struct comparison c = {.resumed = r, .before = before, .after = after};
    int rc = before ? parse_config(config, before, error)
                    : rm_fail(error, -ENOMEM, "no memory for a configuration");
    if (rc == 0 && rm_config_diff(before, after, each_difference, &c) < 0)
        rc = rm_fail(error, -ENOMEM, "no memory to compare configurations");
    if (rc == 0 && c.refused.text[0])
        rc = rm_fail(error, -EINVAL,
                     "cannot resume from %s: the configuration has changed: %s; undo that, or "
                     "start a new run with --fresh",
                     folder, c.refused.text);
    rm_utf8_line(error->text); /* as in rm_checkpoint_check() */
    rm_utf8_line(r->changes);
    r->unread =
        rc == 0 && after->policy.from[0] && strcmp(before->policy.from, after->policy.from) != 0;
    free(before);
    return rc;
}

/* --- looking --------------------------------------------------------------------------------- */

static void pass_over(struct rm_resumed *r, const struct rm_error *why)
{
    const size_t used = strlen(r->passed_over);
    snprintf(r->passed_over + used, sizeof r->passed_over - used, "%s%s", used ? "; " : "",
             why->text);
    fprintf(stderr, "ringmasterd: a checkpoint is skipped: %s\n", why->text);
}

/* The newest that is whole, of those with a number below `below`: 1; 0: none. *any: whether there
 * was one at all. Negative: one cannot be read for now, and an older one is no substitute for it.
 */
static int choose(struct rm_resumed *r, const char *directory, uint64_t below,
                  struct rm_checkpoint_facts *f, bool *any, struct rm_error *error)
{
    uint64_t *numbers = calloc(RM_CHECKPOINTS_MAX, sizeof *numbers);
    const size_t n = numbers ? rm_checkpoint_list(directory, numbers, RM_CHECKPOINTS_MAX) : 0;
    int found = 0;
    for (size_t i = 0; i < n && found == 0; i++) {
        struct rm_error why = {""};
        char folder[RM_SESSION_PATH_MAX];
        if (numbers[i] >= below)
            continue;
        int rc = rm_session_checkpoint_folder(directory, numbers[i], false, folder, &why);
        if (rc == 0)
            rc = rm_checkpoint_check(folder, true, f, &why);
        if (rc == 0) {
            snprintf(r->from, sizeof r->from, "%.*s", (int)sizeof r->from - 1, folder);
            r->number = numbers[i];
            found = 1;
        } else if (rc == -EACCES || rc == -ENOMEM) {
            found = rm_fail(error, rc, "cannot resume: %s", why.text);
        } else {
            pass_over(r, &why);
        }
    }
    *any = n > 0;
    free(numbers);
    return found;
}

/* Is that run over? *evaluations: the number that it had finished then. */
static bool over(const char *directory, uint64_t *evaluations)
{
    char path[PATH_MAX + 16], *text;
    size_t bytes;
    snprintf(path, sizeof path, "%s/summary.json", directory);
    json_t *summary = NULL;
    if (rm_file_read(path, SUMMARY_MAX, &text, &bytes, NULL) == 0) {
        summary = json_loadb(text, bytes, 0, NULL);
        free(text);
    }
    const bool finished = json_is_true(json_object_get(summary, "finished"));
    *evaluations = (uint64_t)json_integer_value(
        json_object_get(json_object_get(summary, "evaluation"), "count"));
    json_decref(summary);
    return finished;
}

/* A run that has checkpoints, and none that is whole, is not left behind without a word. */
static int nothing(const struct rm_resumed *r, const struct rm_experiment *experiment, bool any,
                   struct rm_error *error)
{
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%s/%s", experiment->run.directory, experiment->name);
    if (any && !rm_fdstore_has_some()) /* what a killed daemon left is newer */
        return rm_fail(
            error, -EBADMSG,
            "cannot resume: no checkpoint of %s/latest is complete; restore one, or start "
            "a new run with --fresh: %s",
            above, r->passed_over);
    if (r->when != RM_RESUME_MUST)
        return 0;
    return rm_fail(error, -ENOENT, "--resume: %s/latest has no complete checkpoint%s%s", above,
                   r->passed_over[0] ? ": " : "", r->passed_over);
}

/* The latest run's directory, held by this daemon from now on; 1: there is none. */
static int hold_latest(struct rm_resumed *r, const struct rm_experiment *e,
                       struct rm_run_directory *latest, struct rm_error *error)
{
    int rc = rm_run_directory_latest(latest, e->run.directory, e->name, error);
    if (rc == 1 && error->text[0]) {
        pass_over(r, error);
        error->text[0] = '\0';
    }
    if (rc == 0)
        rc = rm_run_lock_await(r->lock, latest->path, error);
    return rc == 0 ? rm_checkpoints_readable(latest->path, error) : rc;
}

/* Takes the newest checkpoint of that run that is whole, of those with a number below `below`. */
static int take_newest(struct rm_resumed *r, const struct rm_experiment *experiment,
                       const char *directory, uint64_t below, struct rm_error *error)
{
    struct rm_checkpoint_facts facts;
    uint64_t evaluations;
    bool any;
    const int found = choose(r, directory, below, &facts, &any, error);
    if (found < 0)
        return found;
    const bool ended = over(directory, &evaluations);
    if (!found)
        return nothing(r, experiment, any && !ended, error);
    int rc = compare(r, r->from, facts.config, experiment, error);
    if (ended && !strstr(r->changes, "run.steps ") && r->when != RM_RESUME_MUST) {
        snprintf(r->passed_over, sizeof r->passed_over, "%.900s is over", directory);
        r->from[0] = r->changes[0] = '\0';
        rc = 0;
    } else if (rc == 0) {
        snprintf(r->directory->path, sizeof r->directory->path, "%.*s",
                 (int)sizeof r->directory->path - 1, directory);
        r->step = facts.step;
        r->evaluations = ended ? evaluations : 0;
    } else {
        r->from[0] = '\0';
    }
    rm_checkpoint_facts_free(&facts);
    return rc;
}

int rm_resume_find(struct rm_resumed *r, const struct rm_experiment *experiment,
                   struct rm_error *error)
{
    struct rm_run_directory latest;
    if (r->when == RM_RESUME_NEVER)
        return 0;
    const int rc = hold_latest(r, experiment, &latest, error);
    return rc < 0    ? rc
           : rc == 0 ? take_newest(r, experiment, latest.path, UINT64_MAX, error)
                     : nothing(r, experiment, false, error);
}

int rm_resume_go_back(struct rm_resumed *r, const struct rm_experiment *experiment, int why,
                      struct rm_error *error)
{
    const struct rm_run_directory latest = *r->directory;
    if (why != -EPROTO && why != -EBADMSG && why != -ENODATA)
        return rm_fail_within(error, why, "cannot resume");
    pass_over(r, error);
    error->text[0] = '\0';
    r->directory->path[0] = r->from[0] = r->changes[0] = '\0';
    return take_newest(r, experiment, latest.path, r->number, error);
}

/* --- loading --------------------------------------------------------------------------------- */

static void change_limiters(struct rm_session *session)
{
    const struct rm_experiment *e = &session->experiment;
    for (uint32_t p = 0; p < session->plan.policies; p++)
        if (!session->plan.policy[p].frozen)
            rm_limiter_change(&session->board.policies[p].limiter,
                              e->limiter.updates_per_step * e->sample.batch,
                              e->limiter.slack_updates * e->sample.batch);
}

/* The board's are those of the checkpoint, with what was set while it ran: the configuration's
 * stand; what was to be kept is set again before the workers start. */
static void take_settings(struct rm_session *session)
{
    struct rm_board_run *run = session->board.run;
    double now[RM_HOT_COUNT];
    bool limits = false;
    rm_config_hot_values(&session->experiment, now);
    for (int i = 0; i < RM_HOT_COUNT; i++)
        limits |= now[i] != RM_PEEK(&run->settings[i]) &&
                  (i == RM_HOT_UPDATES_PER_STEP || i == RM_HOT_SLACK_UPDATES);
    if (limits)
        change_limiters(session);
    for (int i = 0; i < RM_HOT_COUNT; i++)
        RM_POKE(&run->settings[i], now[i]);
}

int rm_resume_load(const struct rm_resumed *resumed, struct rm_session *session,
                   struct rm_error *error)
{
    struct rm_state *state = NULL;
    char path[RM_SESSION_PATH_MAX];
    int rc = rm_session_checkpoint_file(resumed->from, "shared", 0, "state", path, error);
    if (rc == 0)
        rc = rm_state_create(&state, error);
    if (rc == 0)
        rc = rm_state_read(state, path, error);
    if (rc == 0) {
        rm_state_load(state);
        rm_session_state(session, state);
        rc = rm_state_end(state, error);
    }
    rm_state_destroy(state);
    const uint64_t step = rc ? 0 : rm_session_steps(session);
    if (rc == 0 && step != resumed->step) /* it was written to while it was copied */
        rc = rm_fail(error, -EPROTO, "its board says step %llu, its manifest says step %llu",
                     (unsigned long long)step, (unsigned long long)resumed->step);
    /* The last evaluation came after the last checkpoint. */
    struct rm_board_run *run = session->board.run;
    if (rc == 0 && RM_PEEK(&run->evaluations) < resumed->evaluations)
        RM_POKE(&run->evaluations, resumed->evaluations);
    if (rc == 0)
        take_settings(session);
    if (rc == 0)
        return 0;
    rm_fail_within(error, rc, "%s", resumed->from);
    rm_utf8_line(error->text); /* as in rm_checkpoint_check() */
    return rc;
}
