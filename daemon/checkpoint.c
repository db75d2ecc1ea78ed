#include "daemon/checkpoint.h"

#include "daemon/daemon.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/fault.h"
#include "shm/duty.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLDING_MS  1  /* between looks, while everybody waits */
#define WRITING_MS  20 /* while nobody does */
#define HOLD_MAX_NS (120 * RM_NS_PER_S)

static void begin(struct rm_daemon *daemon);
static void hold(struct rm_daemon *daemon);
static void write_it(struct rm_daemon *daemon);
static void look(uv_timer_t *timer);

static struct rm_checkpointer *of(struct rm_daemon *daemon)
{
    return &daemon->checkpoint;
}

static struct rm_board_run *run_of(struct rm_daemon *daemon)
{
    return daemon->session.board.run;
}

void rm_daemon_open_checkpoints(struct rm_daemon *daemon)
{
    struct rm_error error = {""};
    struct rm_checkpointer *c = of(daemon);
    uint64_t *numbers = calloc(RM_CHECKPOINTS_MAX, sizeof *numbers);
    snprintf(c->run_directory, sizeof c->run_directory, "%s", daemon->directory.path);
    if (numbers && rm_checkpoint_list(c->run_directory, numbers, RM_CHECKPOINTS_MAX))
        c->number = c->last = numbers[0];
    free(numbers);
    /* Confined actors may write below it, and nowhere else: so it is there before them. */
    if (rm_experiment_confines(&daemon->session.experiment) &&
        rm_checkpoint_parent(c->run_directory, &error) < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "%s", error.text);
    /* The board may be that of a daemon that was killed in the middle of one. */
    if (RM_PEEK(&run_of(daemon)->checkpoint_request) > c->number)
        c->number = RM_PEEK(&run_of(daemon)->checkpoint_request);
    RM_POKE(&run_of(daemon)->checkpoint_request, c->number);
    rm_duty_release_all(run_of(daemon));
    /* One daemon was killed: after the next ones the service manager may keep nothing any more. */
    if (daemon->adopted)
        c->due_ns = 1;
}

/* --- its end --------------------------------------------------------------------------------- */

static void tell(struct rm_daemon *daemon, bool made)
{
    struct rm_checkpointer *c = of(daemon);
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    fields.step = (int64_t)c->facts.step;
    if (made) {
        rm_log_message(&daemon->log, RM_LOG_INFO, RM_MESSAGE_CHECKPOINT, &fields,
                       "checkpoint %llu: step %llu, update %llu; everybody held for %.1f ms, "
                       "written %.1f s after",
                       (unsigned long long)c->number, (unsigned long long)c->facts.step,
                       (unsigned long long)c->facts.updates,
                       (double)(c->released_ns - c->asked_ns) / 1e6,
                       (double)(rm_now_ns() - c->released_ns) / 1e9);
    } else {
        fields.error = c->why;
        rm_log_message(&daemon->log, RM_LOG_WARNING, RM_MESSAGE_CHECKPOINT, &fields,
                       "checkpoint %llu was given up: %s", (unsigned long long)c->number, c->why);
    }
    rm_daemon_event(daemon, "checkpoint",
                    json_pack("{s:I,s:b,s:I,s:s}", "count", (json_int_t)c->number, "made", made,
                              "step", (json_int_t)c->facts.step, "reason", c->why));
}

static void finish(struct rm_daemon *daemon, const char *why)
{
    struct rm_checkpointer *c = of(daemon);
    const double interval = daemon->session.experiment.checkpoint.interval_s;
    const bool made = !why[0];
    uv_timer_stop(&c->timer);
    c->stage = RM_CHECKPOINT_IDLE;
    snprintf(c->why, sizeof c->why, "%s", why);
    if (made) {
        c->made++;
        c->last = c->number;
        c->step = c->facts.step;
        c->updates = c->facts.updates;
    } else {
        c->failed++;
        rm_daemon_abandon_checkpoint(daemon);
    }
    c->lost &= !made;
    c->due_ns = rm_now_ns() + (c->lost ? RM_NS_PER_S : (uint64_t)(interval * 1e9));
    tell(daemon, made);
    rm_checkpoint_facts_free(&c->facts);
    if (c->lost && (c->then_stop || c->then_sleep || c->then_evaluate || c->wanted)) {
        c->again = false;
        rm_daemon_await_checkpoint(daemon);
        return;
    }
    c->wanted &= c->again;
    if (c->then_sleep)
        rm_daemon_pause(daemon, true);
    c->then_sleep = false;
    if (c->then_stop && !(c->again && made)) {
        c->then_stop = c->again = false;
        rm_daemon_stop(daemon, c->stop_why);
    } else if (c->again && daemon->life < RM_LIFE_STOPPING) {
        c->again = false;
        begin(daemon);
    } else if (c->then_evaluate) {
        c->then_evaluate = false;
        rm_daemon_evaluate_last(daemon);
    }
}

/* Everybody may go on. */
static void release(struct rm_daemon *daemon)
{
    rm_duty_release_all(run_of(daemon));
    rm_daemon_wake_all(daemon);
    of(daemon)->released_ns = rm_now_ns();
}

static void give_up(struct rm_daemon *daemon, const char *why)
{
    struct rm_checkpointer *c = of(daemon);
    if (c->stage == RM_CHECKPOINT_HOLDING || c->stage == RM_CHECKPOINT_COPYING)
        release(daemon);
    rm_state_destroy(c->shared);
    c->shared = NULL;
    finish(daemon, why);
}

void rm_daemon_cancel_checkpoint(struct rm_daemon *daemon, const char *why)
{
    struct rm_checkpointer *c = of(daemon);
    c->then_stop = c->then_sleep = c->then_evaluate = c->again = c->wanted = false;
    if (c->stage == RM_CHECKPOINT_IDLE) {
        uv_timer_stop(&c->timer);
    } else if (c->working) {
        if (!c->cancelled)
            snprintf(c->cancel_why, sizeof c->cancel_why, "%s", why);
        c->cancelled = true; /* when the thread is back; one that it seals stays */
    } else {
        give_up(daemon, why);
    }
}

/* --- threads --------------------------------------------------------------------------------- */

static void make_folder(uv_work_t *work)
{
    struct rm_checkpointer *c = &((struct rm_daemon *)work->data)->checkpoint;
    c->rc = rm_checkpoint_begin(c->run_directory, c->number, &c->error);
}

/* Rings have many megabytes, and what they are copied into is made by the page. */
static void copy_shared(uv_work_t *work)
{
    struct rm_daemon *daemon = work->data;
    struct rm_checkpointer *c = of(daemon);
    c->rc = rm_state_create(&c->shared, &c->error);
    if (c->rc == 0) {
        rm_session_state(&daemon->session, c->shared);
        c->rc = rm_state_end(c->shared, &c->error);
    }
}

static void write_shared(uv_work_t *work)
{
    struct rm_checkpointer *c = &((struct rm_daemon *)work->data)->checkpoint;
    char folder[RM_SESSION_PATH_MAX], path[RM_SESSION_PATH_MAX];
    RM_FAULT("checkpoint.shared.before");
    c->rc = rm_session_checkpoint_folder(c->run_directory, c->number, true, folder, &c->error);
    if (c->rc == 0)
        c->rc = rm_session_checkpoint_file(folder, "shared", 0, "state", path, &c->error);
    if (c->rc == 0)
        c->rc = rm_state_write(c->shared, path, RM_STATE_ALL, &c->error);
    RM_FAULT("checkpoint.shared.after");
    rm_state_destroy(c->shared);
    c->shared = NULL;
}

static void seal(uv_work_t *work)
{
    struct rm_checkpointer *c = &((struct rm_daemon *)work->data)->checkpoint;
    c->rc = rm_checkpoint_seal(c->run_directory, &c->facts, &c->error);
    c->missing.text[0] = '\0';
    if (c->rc == 0)
        rm_checkpoint_prune(c->run_directory, c->keep, c->keep_best, &c->missing);
}

/* Once about each. */
static void tell_missing(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    if (c->missing.text[0] && strcmp(c->missing.text, c->missed.text) != 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "a checkpoint counts as none: %s", c->missing.text);
    c->missed = c->missing;
}

static void worked(uv_work_t *work, int status)
{
    struct rm_daemon *daemon = work->data;
    struct rm_checkpointer *c = of(daemon);
    (void)status;
    c->working = false;
    if (c->rc)
        give_up(daemon, c->error.text);
    else if (c->stage == RM_CHECKPOINT_SEALING) {
        tell_missing(daemon);
        finish(daemon, "");
    } else if (c->cancelled)
        give_up(daemon, c->cancel_why);
    else if (c->stage == RM_CHECKPOINT_BEGINNING)
        hold(daemon);
    else if (c->stage == RM_CHECKPOINT_COPYING)
        write_it(daemon);
    /* else the timer looks whether the workers have written theirs */
}

static void have_done(struct rm_daemon *daemon, uv_work_cb work)
{
    struct rm_checkpointer *c = of(daemon);
    c->working = true;
    c->rc = 0;
    c->error.text[0] = '\0';
    c->work.data = daemon;
    if (uv_queue_work(&daemon->loop, &c->work, work, worked) < 0) {
        work(&c->work);
        worked(&c->work, 0);
    }
}

/* --- stages ---------------------------------------------------------------------------------- */

/* Actors and learners: they come first. */
static uint32_t participants(const struct rm_daemon *daemon)
{
    return rm_worker_evaluator(&daemon->session.objects);
}

/* Why there can be none with the workers as they are; NULL when there can. Those whose share is
 * done are still there where there is to be one at the end. *soon: it is a matter of a moment. */
static const char *missing(struct rm_daemon *daemon, bool *soon)
{
    static char text[128];
    *soon = false;
    const bool stay = daemon->session.experiment.checkpoint.at_end;
    for (uint32_t i = 0; i < daemon->session.objects.workers; i++) {
        const struct rm_board_worker *slot = &daemon->session.board.workers[i];
        const enum rm_role role = RM_PEEK(&slot->role);
        if (!stay && i < participants(daemon) && RM_SEE(&slot->state) == RM_WORKER_DONE)
            return "the run is ending";
        const enum rm_supervised state = daemon->supervisor.workers[i].state;
        if (rm_daemon_has_process(daemon, i) && role != RM_ROLE_EVALUATOR &&
            state != RM_SUPERVISED_UP) {
            *soon = state == RM_SUPERVISED_STARTING || state == RM_SUPERVISED_BACKING_OFF;
            snprintf(text, sizeof text, "%s is %s", slot->name, rm_supervised_name(state));
            return text;
        }
    }
    return NULL;
}

/* Who has an earlier one, which was given up, still in hand: it could not write its part of another
 * now. NULL: nobody. */
static const char *writing(struct rm_daemon *daemon)
{
    for (uint32_t i = 0; i < participants(daemon); i++) {
        const struct rm_board_worker *slot = &daemon->session.board.workers[i];
        if (rm_daemon_has_process(daemon, i) &&
            RM_PEEK(&slot->checkpoint_held) > RM_SEE(&slot->checkpoint_written))
            return slot->name;
    }
    return NULL;
}

/* Of the processes that take part. Another number later: one has died meanwhile, with its part. */
static uint64_t starts(const struct rm_daemon *daemon)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < daemon->session.objects.workers; i++)
        if (RM_PEEK(&daemon->session.board.workers[i].role) != RM_ROLE_EVALUATOR)
            all += daemon->supervisor.workers[i].generation;
    return all;
}

/* Why the one in hand cannot be finished any more, or NULL. */
static const char *lost(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    const char *why = missing(daemon, &c->lost);
    if (why || starts(daemon) == c->starts)
        return why;
    c->lost = true;
    return "a worker died and was started anew";
}

/* As the file had it: what was set since is among the settings on the board. */
static json_t *config_of(const struct rm_daemon *daemon)
{
    struct rm_experiment *e = malloc(sizeof *e);
    if (!e)
        return NULL;
    *e = daemon->session.experiment;
    rm_config_apply_hot(e, daemon->settings.file_hot);
    json_t *config = rm_config_to_json(e);
    free(e);
    return config;
}

static void note_facts(struct rm_daemon *daemon)
{
    const struct rm_board_view *board = &daemon->session.board;
    struct rm_checkpointer *c = of(daemon);
    const uint64_t evaluations = RM_PEEK(&board->run->evaluations);
    c->facts = (struct rm_checkpoint_facts){
        .number = c->number,
        .step = rm_daemon_steps(daemon),
        .updates = rm_daemon_updates(daemon),
        .round = rm_round_current(board->round),
        .evaluations = evaluations,
        .score = evaluations ? RM_PEEK(&board->run->eval_score_mean) : (double)NAN,
        .config = config_of(daemon),
    };
    snprintf(c->facts.run, sizeof c->facts.run, "%.47s", daemon->session.experiment.name);
}

/* What a stop is asked for by now ends with: nobody goes on, so that nothing is learned that it has
 * not. A stop that comes later has another one made. */
static void write_it(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    if (c->then_stop) {
        c->again = false;
        c->released_ns = rm_now_ns();
    } else {
        release(daemon);
    }
    c->stage = RM_CHECKPOINT_WRITING;
    uv_timer_start(&c->timer, look, WRITING_MS, WRITING_MS);
    have_done(daemon, write_shared);
}

static void copy_it(struct rm_daemon *daemon)
{
    note_facts(daemon);
    if (!of(daemon)->facts.config) {
        give_up(daemon, "no memory for the configuration");
        return;
    }
    of(daemon)->stage = RM_CHECKPOINT_COPYING;
    have_done(daemon, copy_shared);
}

static bool all_hold(struct rm_daemon *daemon)
{
    for (uint32_t i = 0; i < participants(daemon); i++)
        if (RM_SEE(&daemon->session.board.workers[i].checkpoint_held) != of(daemon)->number)
            return false;
    return true;
}

/* Once a worker has said so it has, whatever its world writes there afterwards. False, with words
 * in `damaged` (or ""): not all of them have. */
static bool all_have_written(struct rm_daemon *daemon, char *damaged, size_t size)
{
    struct rm_checkpointer *c = of(daemon);
    bool all = true;
    damaged[0] = '\0';
    for (uint32_t i = 0; i < participants(daemon); i++) {
        const struct rm_board_worker *slot = &daemon->session.board.workers[i];
        const uint64_t says = RM_SEE(&slot->checkpoint_written);
        if (c->written[i] == c->number)
            continue;
        if (says < c->written[i] || says > c->number)
            snprintf(damaged, size,
                     "the board was damaged by %s: it says that it has written checkpoint %llu",
                     slot->name, (unsigned long long)says);
        c->written[i] = says;
        all &= says == c->number;
    }
    return all;
}

static const char *who_failed(struct rm_daemon *daemon)
{
    for (uint32_t i = 0; i < participants(daemon); i++) {
        const struct rm_board_worker *slot = &daemon->session.board.workers[i];
        if (RM_PEEK(&slot->checkpoint_failed) == of(daemon)->number)
            return slot->name;
    }
    return NULL;
}

static void look_at_holding(struct rm_daemon *daemon, uint64_t now)
{
    struct rm_checkpointer *c = of(daemon);
    const char *why = lost(daemon);
    if (why)
        give_up(daemon, why);
    else if (all_hold(daemon))
        copy_it(daemon);
    else if (now - c->asked_ns > HOLD_MAX_NS)
        give_up(daemon, "not everybody came to the end of a turn");
}

static void look_at_writing(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    char text[256];
    if (c->working)
        return;
    if (!all_have_written(daemon, text, sizeof text)) {
        const char *why = lost(daemon);
        if (why || text[0])
            give_up(daemon, why ? why : text);
        return;
    }
    const char *who = who_failed(daemon);
    if (who) {
        snprintf(text, sizeof text, "%s could not write its part; the log says why", who);
        give_up(daemon, text);
        return;
    }
    c->stage = RM_CHECKPOINT_SEALING;
    c->keep = daemon->session.experiment.checkpoint.keep;
    c->keep_best = daemon->session.experiment.checkpoint.keep_best;
    have_done(daemon, seal);
}

/* Somebody was being started (anew) when one was asked for. */
static void look_for_all(struct rm_daemon *daemon, uint64_t now)
{
    struct rm_checkpointer *c = of(daemon);
    struct rm_error error = {""};
    uint64_t number;
    int rc = rm_daemon_checkpoint(daemon, &number, &error);
    const bool stop = c->then_stop, sleep = c->then_sleep, evaluate = c->then_evaluate;
    if (rc == 0 || (rc == -EAGAIN && (!(sleep || evaluate) || now < c->stop_by_ns)))
        return;
    rm_log(&daemon->log, RM_LOG_WARNING, "no checkpoint: %s", error.text);
    rm_daemon_cancel_checkpoint(daemon, "");
    if (stop)
        rm_daemon_stop(daemon, c->stop_why);
    else if (sleep)
        rm_daemon_pause(daemon, true);
    else if (evaluate)
        rm_daemon_evaluate_last(daemon);
}

static void look(uv_timer_t *timer)
{
    struct rm_daemon *daemon = timer->data;
    struct rm_checkpointer *c = of(daemon);
    const uint64_t now = rm_now_ns();
    if (c->then_stop && now >= c->stop_by_ns) {
        rm_daemon_cancel_checkpoint(daemon, "supervisor.stop_grace_s have passed");
        rm_daemon_stop(daemon, c->stop_why);
    } else if (c->stage == RM_CHECKPOINT_IDLE) {
        look_for_all(daemon, now);
    } else if (c->stage == RM_CHECKPOINT_HOLDING) {
        look_at_holding(daemon, now);
    } else if (c->stage == RM_CHECKPOINT_WRITING) {
        look_at_writing(daemon);
    }
}

void rm_daemon_await_checkpoint(struct rm_daemon *daemon)
{
    of(daemon)->timer.data = daemon;
    uv_timer_start(&of(daemon)->timer, look, WRITING_MS, WRITING_MS);
}

/* Everybody comes to the end of a turn. */
static void hold(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    c->asked_ns = rm_now_ns();
    c->starts = starts(daemon);
    memset(c->written, 0, sizeof c->written);
    c->stage = RM_CHECKPOINT_HOLDING;
    rm_duty_hold_all(run_of(daemon), c->number);
    rm_daemon_wake_all(daemon);
    uv_timer_start(&c->timer, look, HOLDING_MS, HOLDING_MS);
}

static void begin(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    c->number++;
    c->cancelled = c->lost = false;
    c->stage = RM_CHECKPOINT_BEGINNING;
    c->timer.data = daemon;
    uv_timer_start(&c->timer, look, WRITING_MS, WRITING_MS);
    have_done(daemon, make_folder);
}

/* --- asking ---------------------------------------------------------------------------------- */

int rm_daemon_checkpoint(struct rm_daemon *daemon, uint64_t *number, struct rm_error *error)
{
    struct rm_checkpointer *c = of(daemon);
    /* A killed daemon has done something; a signal's is made of the first that there is. */
    bool soon = daemon->adopted || c->wanted;
    const char *why = daemon->life == RM_LIFE_STARTING   ? "nothing has been done yet"
                      : daemon->life == RM_LIFE_TRAINING ? missing(daemon, &soon)
                                                         : "the run is ending";
    if (why)
        return rm_fail(error, soon && daemon->life <= RM_LIFE_TRAINING ? -EAGAIN : -ENODATA, "%s",
                       why);
    /* The last one of a run is worth waiting for, as long as a stop may take. */
    const char *writer = c->then_stop && c->stage == RM_CHECKPOINT_IDLE ? writing(daemon) : NULL;
    if (writer)
        return rm_fail(error, -EAGAIN, "%s still writes its part of an earlier one", writer);
    *number = c->number + 1;
    if (c->stage == RM_CHECKPOINT_IDLE)
        begin(daemon);
    else
        c->again = true;
    return 0;
}
