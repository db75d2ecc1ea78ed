/* The course of a run: its states, the transitions between them, and the timers that each state
 * needs. */
#include "daemon/running.h"

#include "config/traits.h"
#include "daemon/format.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TICK_MS      1000 /* while a client may be watching or work continues */
#define TICK_FAST_MS 50   /* while the daemon waits for something short */

static struct rm_board_run *run_of(struct rm_daemon *daemon)
{
    return daemon->session.board.run;
}

static struct rm_log_fields fields_now(const struct rm_daemon *daemon)
{
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    fields.step = (int64_t)rm_session_steps(&daemon->session);
    return fields;
}

/* Sends an event to subscribers; takes `data`, which may be NULL. */
static void send_event(void *user, const char *name, json_t *data)
{
    struct rm_daemon *daemon = user;
    if (daemon->control)
        rm_control_event(daemon->control, name, data);
    json_decref(data);
}

static void set_run_state(struct rm_daemon *daemon, enum rm_run_state state)
{
    struct rm_board_run *run = run_of(daemon);
    enum rm_run_state before = RM_PEEK(&run->state);
    if (before == state)
        return;
    RM_RAISE(&run->state, state);
    struct rm_log_fields fields = fields_now(daemon);
    rm_log_message(&daemon->log, RM_LOG_INFO, RM_MESSAGE_STATE, &fields, "%s",
                   rm_run_state_name(state));
    rm_notify("STATUS=%s", rm_run_state_name(state));
    send_event(daemon, "state",
               json_pack("{s:s,s:s}", "state", rm_run_state_name(state), "before",
                         rm_run_state_name(before)));
}

void rm_daemon_answer(void *user, uint64_t client, enum rm_refusal refusal, json_t *reply,
                      const struct rm_error *error)
{
    struct rm_daemon *daemon = user;
    if (daemon->control)
        rm_control_answer(daemon->control, client, refusal, reply, error);
    else
        json_decref(reply);
}

/* Ends the run after the last process has ended. */
static void end_if_over(struct rm_daemon *daemon)
{
    if (daemon->progress.life != RM_LIFE_STOPPING || rm_supervisor_alive(&daemon->supervisor) > 0)
        return;
    daemon->progress.life = RM_LIFE_OVER;
    if (!daemon->failed)
        set_run_state(daemon, daemon->finished ? RM_RUN_DONE : RM_RUN_STOPPED);
    uv_stop(&daemon->loop);
}

void rm_daemon_start_workers(struct rm_daemon *daemon)
{
    daemon->progress.started_ns = rm_now_ns();
    run_of(daemon)->started_ns = daemon->progress.started_ns;
    daemon->progress.agent_steps_before = rm_session_agent_steps(&daemon->session);
    daemon->progress.updates_before = rm_session_updates(&daemon->session);
    daemon->course.stage_seen = RM_PEEK(&run_of(daemon)->stage);
    daemon->course.evaluations_seen = RM_PEEK(&run_of(daemon)->evaluations);
    rm_metrics_begin_steps(&daemon->metrics, rm_session_steps(&daemon->session),
                           daemon->progress.started_ns);
    RM_POKE(&run_of(daemon)->bell_at, daemon->metrics.next_at);
    /* If a worker cannot be started, the run fails and needs no others. */
    for (uint32_t i = 0; i < daemon->session.objects.workers && !daemon->failed; i++)
        if (rm_session_has_process(&daemon->session, i))
            rm_supervisor_start(&daemon->supervisor, i, rm_now_ns());
}

void rm_daemon_stop(struct rm_daemon *daemon, const char *why)
{
    if (daemon->progress.life >= RM_LIFE_STOPPING)
        return;
    daemon->progress.life = RM_LIFE_STOPPING;
    rm_checkpointer_cancel(&daemon->checkpoint, "the run is ending");
    if (daemon->progress.trained_ns == 0)
        daemon->progress.trained_ns = rm_now_ns();
    rm_log(&daemon->log, RM_LOG_INFO, "stopping: %s", why);
    rm_notify("STOPPING=1");
    rm_notify_more_time(daemon->supervisor.limits.stop_grace_ns);
    if (!daemon->failed)
        set_run_state(daemon, RM_RUN_STOPPING);
    RM_RAISE(&run_of(daemon)->stop, 1);
    rm_supervisor_stop_all(&daemon->supervisor, rm_now_ns());
    rm_session_wake_up(&daemon->session);
    end_if_over(daemon); /* if there was no worker to stop */
    rm_daemon_arm(daemon);
}

static void fail(struct rm_daemon *daemon, const char *why)
{
    if (!daemon->failed) {
        daemon->failed = true;
        snprintf(daemon->failure, sizeof daemon->failure, "%s", why);
        struct rm_log_fields fields = fields_now(daemon);
        fields.error = why;
        rm_log_message(&daemon->log, RM_LOG_ERROR, RM_MESSAGE_RUN_FAILED, &fields,
                       "the run failed: %s", why);
        set_run_state(daemon, RM_RUN_FAILED);
    }
    rm_daemon_stop(daemon, "the run failed");
}

void rm_daemon_pause(struct rm_daemon *daemon, bool pause)
{
    if (daemon->progress.life >= RM_LIFE_STOPPING ||
        (RM_PEEK(&run_of(daemon)->pause) != 0) == pause)
        return;
    RM_RAISE(&run_of(daemon)->pause, pause);
    set_run_state(daemon, pause                                       ? RM_RUN_PAUSED
                          : daemon->progress.life == RM_LIFE_STARTING ? RM_RUN_STARTING
                                                                      : RM_RUN_RUNNING);
    rm_rate_reset(&daemon->progress.steps_rate);
    rm_rate_reset(&daemon->progress.updates_rate);
    if (!pause)
        rm_session_wake_up(&daemon->session);
    rm_daemon_arm(daemon);
}

void rm_daemon_request_evaluation(struct rm_daemon *daemon, uint32_t episodes)
{
    RM_POKE(&run_of(daemon)->evaluate_episodes, episodes);
    RM_RAISE(&run_of(daemon)->evaluate_request, RM_PEEK(&run_of(daemon)->evaluate_request) + 1);
    rm_session_wake_up(&daemon->session);
}

static bool stepped(struct rm_daemon *daemon)
{
    return rm_session_agent_steps(&daemon->session) > 0 || rm_session_updates(&daemon->session) > 0;
}

static void note_running(struct rm_daemon *daemon)
{
    if (daemon->progress.life != RM_LIFE_STARTING)
        return;
    daemon->progress.life = RM_LIFE_TRAINING;
    if (!RM_PEEK(&run_of(daemon)->pause))
        set_run_state(daemon, RM_RUN_RUNNING);
    rm_notify("READY=1");
}

/* A waiting worker that was woken runs in a moment. From the time when the daemon first sees this,
 * the worker counts as busy, so that a worker that cannot wake (stopped in its sleep, for example)
 * is found to hang. */
static enum rm_worker_state count_woken(struct rm_daemon *daemon, uint32_t index,
                                        enum rm_worker_state word, uint64_t *heartbeat_ns,
                                        uint64_t now_ns)
{
    uint64_t *since = &daemon->course.woken_ns[index];
    if (word != RM_WORKER_WAITING ||
        !rm_wake_answered(&daemon->session.board.workers[index].wake)) {
        *since = 0;
        return word;
    }
    if (*since == 0)
        *since = now_ns;
    if (*heartbeat_ns < *since)
        *heartbeat_ns = *since;
    return RM_WORKER_BUSY;
}

void rm_daemon_away(void *user, uint64_t away_ns, uint64_t now_ns)
{
    struct rm_daemon *daemon = user;
    const bool graced = rm_supervisor_away(&daemon->supervisor, away_ns, now_ns);
    rm_checkpointer_away(&daemon->checkpoint, away_ns, now_ns);
    daemon->course.standstill.since_ns = 0;
    if (daemon->control)
        rm_control_away(daemon->control, away_ns);
    if (graced && daemon->progress.life < RM_LIFE_OVER)
        rm_log(&daemon->log, RM_LOG_NOTICE,
               "the daemon did not run for %.1f s (stopped, frozen, or the host asleep); workers "
               "get this time on top of supervisor.heartbeat_s",
               (double)away_ns / 1e9);
}

/* --- the end of a run ------------------------------------------------------------------------ */

/* Whether the recorder can write the last rows. One that died is restarted first. */
static bool can_record(const struct rm_daemon *daemon)
{
    const uint32_t recorder = rm_worker_recorder(&daemon->session.objects);
    return !daemon->session.objects.recorders ||
           !rm_session_has_process(&daemon->session, recorder) ||
           daemon->supervisor.workers[recorder].state == RM_SUPERVISED_UP;
}

/* Whether all actors and learners have done their share, and those that do not stay for the last
 * checkpoint have ended. */
static bool trained(struct rm_daemon *daemon)
{
    const bool stay = daemon->session.experiment.checkpoint.at_end;
    const struct rm_board_view *board = &daemon->session.board;
    uint32_t trainers = rm_worker_evaluator(&daemon->session.objects);
    for (uint32_t i = 0; i < trainers; i++) {
        if (RM_PEEK(&board->workers[i].state) != RM_WORKER_DONE)
            return false;
        if (!stay && rm_session_has_process(&daemon->session, i) &&
            !daemon->supervisor.workers[i].finished)
            return false;
    }
    return can_record(daemon);
}

/* The time when the last of them was done: their last heartbeat. The daemon may notice a second
 * later. */
static uint64_t trained_at(const struct rm_daemon *daemon)
{
    const struct rm_board_view *board = &daemon->session.board;
    uint64_t last = daemon->progress.started_ns;
    for (uint32_t i = 0; i < rm_worker_evaluator(&daemon->session.objects); i++) {
        uint64_t done = RM_PEEK(&board->workers[i].heartbeat_ns);
        if (done > last)
            last = done;
    }
    return last;
}

/* The final evaluation is finished when one has played the last version of every policy as often as
 * requested; another evaluation, by interval or on command, may have been in progress before. */
static bool evaluated(struct rm_daemon *daemon)
{
    const struct rm_board_view *board = &daemon->session.board;
    if (RM_PEEK(&board->run->evaluations) <= daemon->course.final_before ||
        RM_PEEK(&board->run->eval_episodes) < daemon->session.experiment.evaluation.final_episodes)
        return false;
    for (uint32_t p = 0; p < board->run->policies; p++)
        if (RM_PEEK(&board->policies[p].eval_version) < RM_PEEK(&board->policies[p].published))
            return false;
    return true;
}

/* Whether an evaluation was finished since the last call. */
static bool note_evaluations(struct rm_daemon *daemon)
{
    struct rm_board_run *run = run_of(daemon);
    uint64_t finished = RM_PEEK(&run->evaluations);
    if (finished == daemon->course.evaluations_seen)
        return false;
    daemon->course.evaluations_seen = finished;
    rm_daemon_write_row(daemon, true);
    double mean = RM_PEEK(&run->eval_score_mean), error = RM_PEEK(&run->eval_score_stderr);
    uint64_t episodes = RM_PEEK(&run->eval_episodes);
    const struct rm_log_fields fields = fields_now(daemon);
    rm_log_message(&daemon->log, RM_LOG_INFO, RM_MESSAGE_EVALUATED, &fields,
                   "evaluation %llu: %s score %s +- %s over %llu %s%s",
                   (unsigned long long)finished, rm_evaluation_word(&daemon->session.experiment),
                   rm_format_number(mean).s, rm_format_number(error).s,
                   (unsigned long long)episodes, rm_plural(episodes, "episode", "episodes"),
                   finished > 1 && mean >= RM_PEEK(&run->eval_best) ? ", none was better so far"
                                                                    : "");
    json_t *agents = json_array();
    for (uint32_t a = 0; a < run->agents; a++)
        json_array_append_new(agents,
                              json_pack("{s:s,s:o}", "name", daemon->session.board.agents[a].name,
                                        "figures", rm_daemon_figures(daemon, a, true)));
    send_event(daemon, "evaluation",
               json_pack("{s:I,s:I,s:f,s:f,s:I,s:o}", "count", (json_int_t)finished, "request",
                         (json_int_t)RM_PEEK(&run->eval_request), "mean",
                         isfinite(mean) ? mean : 0.0, "stderr", isfinite(error) ? error : 0.0,
                         "episodes", (json_int_t)episodes, "agents", agents));
    return true;
}

/* Reports a change of stage. Of several since the last call only the latest is known. */
static void follow_stages(struct rm_daemon *daemon)
{
    const struct rm_board_run *run = run_of(daemon);
    const uint64_t now = RM_SEE(&run->stage), before = daemon->course.stage_seen;
    const uint64_t stage = now & 255, was = before & 255, changes = (now >> 8) - (before >> 8);
    char why[RM_STAGE_NAME_MAX + 96];
    if (now == before || stage >= run->stages || was >= run->stages)
        return;
    daemon->course.stage_seen = now;
    const struct rm_stage_config *ended = &daemon->session.experiment.curriculum.stage[was];
    const struct rm_stage_rule *rule = stage < was ? &ended->back : &ended->until;
    const double mean = RM_PEEK(&run->stage_mean);
    const uint64_t episodes = RM_PEEK(&run->stage_episodes);
    if (changes == 1)
        snprintf(why, sizeof why, "%s was %s over %llu %s of stage %u", rule->figure,
                 rm_format_number(mean).s, (unsigned long long)episodes,
                 rm_plural(episodes, "episode", "episodes"), (unsigned)was + 1);
    else
        snprintf(why, sizeof why, "%llu changes since stage %u", (unsigned long long)changes,
                 (unsigned)was + 1);
    rm_log(&daemon->log, RM_LOG_NOTICE, "curriculum: stage %u of %u begins at step %llu: %s",
           (unsigned)stage + 1, run->stages, (unsigned long long)rm_session_steps(&daemon->session),
           why);
    send_event(daemon, "stage",
               json_pack("{s:I,s:I,s:I}", "stage", (json_int_t)stage + 1, "before",
                         (json_int_t)was + 1, "changes", (json_int_t)(now >> 8)));
    rm_daemon_write_row(daemon, false);
}

/* Logs results of evaluations, and whether the final one is finished. */
static void follow_evaluations(struct rm_daemon *daemon)
{
    bool noted = note_evaluations(daemon);
    if (daemon->progress.life != RM_LIFE_EVALUATING)
        return;
    if (evaluated(daemon)) {
        daemon->finished = true;
        rm_daemon_stop(daemon, "finished");
    } else if (noted)
        /* That was another evaluation, which may have consumed the request: requests once more. */
        rm_daemon_request_evaluation(daemon, daemon->session.experiment.evaluation.final_episodes);
}

static void evaluate_last(struct rm_daemon *daemon)
{
    uint32_t episodes = daemon->session.experiment.evaluation.final_episodes;
    for (uint32_t i = 0; i < rm_worker_evaluator(&daemon->session.objects); i++)
        if (rm_session_has_process(&daemon->session, i)) /* the worker stayed for the checkpoint */
            rm_supervisor_stop(&daemon->supervisor, i, rm_now_ns());
    if (episodes == 0) {
        daemon->finished = true;
        rm_daemon_stop(daemon, "finished");
        return;
    }
    daemon->progress.life = RM_LIFE_EVALUATING;
    daemon->course.final_before = RM_PEEK(&run_of(daemon)->evaluations);
    rm_daemon_request_evaluation(daemon, episodes);
    rm_notify("STATUS=evaluating: %u %s of the last weights", episodes,
              rm_plural(episodes, "episode", "episodes"));
    rm_daemon_arm(daemon);
}

/* Called once, when the budget is spent: the last checkpoint, then the final evaluation. */
static void end_training(struct rm_daemon *daemon)
{
    if (daemon->progress.life > RM_LIFE_TRAINING || daemon->progress.trained_ns != 0 ||
        !trained(daemon))
        return;
    note_running(daemon); /* a short run may end before the first tick */
    daemon->progress.trained_ns = trained_at(daemon);
    const bool only = rm_experiment_only_evaluates(&daemon->session.experiment);
    if (only)
        rm_log(&daemon->log, RM_LOG_INFO, "evaluates only: run.steps is 0 with policy.from");
    else
        rm_log(&daemon->log, RM_LOG_INFO, "the budget is spent after %.1f s",
               (double)(daemon->progress.trained_ns - daemon->progress.started_ns) / 1e9);
    if (daemon->session.experiment.checkpoint.at_end && !only &&
        !(daemon->checkpoint.stage == RM_CHECKPOINT_IDLE &&
          rm_checkpointer_is_current(&daemon->checkpoint)))
        rm_checkpointer_end(&daemon->checkpoint, RM_AFTER_EVALUATE, "");
    else
        evaluate_last(daemon);
}

static void after_checkpoint(void *user, enum rm_checkpoint_after after, const char *why)
{
    if (after == RM_AFTER_STOP)
        rm_daemon_stop(user, why);
    else if (after == RM_AFTER_PAUSE)
        rm_daemon_pause(user, true);
    else if (after == RM_AFTER_EVALUATE)
        evaluate_last(user);
}

static void lost_run(void *user, const char *why)
{
    struct rm_daemon *daemon = user;
    daemon->lost = true;
    rm_supervisor_kill_all(&daemon->supervisor); /* learners that stop write their policies */
    fail(daemon, why);
}

static enum rm_checkpoint_run where(void *user)
{
    const struct rm_daemon *daemon = user;
    return daemon->progress.life == RM_LIFE_STARTING   ? RM_RUN_IS_STARTING
           : daemon->progress.life == RM_LIFE_TRAINING ? RM_RUN_IS_TRAINING
                                                       : RM_RUN_IS_ENDING;
}

const struct rm_settings_ops rm_daemon_settings_ops = {
    .changed = rm_daemon_arm, .event = send_event, .answer = rm_daemon_answer};

void rm_daemon_open_checkpoints(struct rm_daemon *daemon)
{
    static const struct rm_checkpointer_ops ops = {
        .where = where, .then = after_checkpoint, .lost = lost_run, .event = send_event};
    const struct rm_checkpointer_spec spec = {
        .session = &daemon->session,
        .supervisor = &daemon->supervisor,
        .log = &daemon->log,
        .loop = &daemon->loop,
        .run_directory = daemon->directory.path,
        .lock = &daemon->run_lock,
        .file_hot = daemon->settings.file_hot,
        .adopted = daemon->adoption.done,
        .whole = daemon->resumed.number,
        .ops = &ops,
        .user = daemon,
    };
    rm_checkpointer_open(&daemon->checkpoint, &spec);
}

void rm_daemon_stop_after_checkpoint(struct rm_daemon *daemon, const char *why)
{
    /* The grace of the checkpoint and that of the workers. */
    rm_notify_more_time(2 * daemon->supervisor.limits.stop_grace_ns);
    rm_checkpointer_end(&daemon->checkpoint, RM_AFTER_STOP, why);
}

/* Finds deaths, hangs and readiness on the board. */
static void observe(struct rm_daemon *daemon)
{
    rm_presence_note(&daemon->presence);
    const uint64_t now_ns = rm_now_ns();
    for (uint32_t i = 0; i < daemon->session.objects.workers; i++) {
        uint64_t heartbeat_ns;
        if (!rm_session_has_process(&daemon->session, i))
            continue;
        enum rm_worker_state word = rm_session_process_state(&daemon->session, i, &heartbeat_ns);
        word = count_woken(daemon, i, word, &heartbeat_ns, now_ns);
        /* The worker has crashed, and the inspector reads its stack: it ends by itself. */
        if (rm_inspector_has(&daemon->inspector, i))
            heartbeat_ns = now_ns;
        rm_supervisor_observe(&daemon->supervisor, i, word, heartbeat_ns, now_ns);
    }
}

/* Sends the text of `systemctl status`, and the watchdog's sign of life. */
static void tell_service_manager(struct rm_daemon *daemon, uint64_t now)
{
    if (rm_notify_watched())
        rm_notify("WATCHDOG=1");
    if (daemon->progress.life != RM_LIFE_TRAINING ||
        now - daemon->course.notified_ns < TICK_MS * RM_NS_PER_MS)
        return;
    daemon->course.notified_ns = now;
    char end[48] = "";
    uint64_t budget = daemon->session.experiment.run.steps;
    if (budget)
        snprintf(end, sizeof end, " of %llu", (unsigned long long)budget);
    rm_notify("STATUS=%s: %.0f agent steps/s, %.1f updates/s, step %llu%s",
              rm_run_state_name(RM_PEEK(&run_of(daemon)->state)),
              rm_rate_per_s(&daemon->progress.steps_rate),
              rm_rate_per_s(&daemon->progress.updates_rate),
              (unsigned long long)rm_session_steps(&daemon->session), end);
}

static void note_rates(struct rm_daemon *daemon, uint64_t now_ns)
{
    rm_rate_add(&daemon->progress.steps_rate, now_ns, rm_session_agent_steps(&daemon->session));
    rm_rate_add(&daemon->progress.updates_rate, now_ns, rm_session_updates(&daemon->session));
}

void rm_daemon_write_row(struct rm_daemon *daemon, bool evaluation)
{
    const uint64_t now = rm_now_ns();
    if (!daemon->progress.trained_ns && !RM_PEEK(&run_of(daemon)->pause))
        note_rates(daemon, now);
    const struct rm_progress_rates rates = rm_progress_rates(&daemon->progress);
    struct rm_metrics_row row = {.time_s = (double)(now - daemon->progress.started_ns) / 1e9,
                                 .steps = rm_session_steps(&daemon->session),
                                 .steps_per_s = rates.steps_per_s,
                                 .updates_per_s = rates.updates_per_s,
                                 .reader_lost = daemon->reader.lost,
                                 .evaluation = evaluation};
    rm_host_read(&row.host);
    int rc = rm_metrics_write(&daemon->metrics, &daemon->session.board, &row);
    if (rc == -ENOMEM && daemon->metrics.failures == 1)
        rm_log(&daemon->log, RM_LOG_WARNING,
               "no memory for a row of metrics; the row is lost, and training continues");
}

/* Writes a row by steps, if due; the worker that reaches the next row's steps rings. */
static void write_row_by_steps(struct rm_daemon *daemon)
{
    const uint64_t steps = rm_session_steps(&daemon->session);
    if (!rm_metrics_due(&daemon->metrics, steps))
        return;
    rm_daemon_write_row(daemon, false);
    rm_metrics_next(&daemon->metrics, steps, rm_now_ns());
    RM_POKE(&run_of(daemon)->bell_at, daemon->metrics.next_at);
}

void rm_daemon_rung(struct rm_daemon *daemon)
{
    observe(daemon);
    write_row_by_steps(daemon);
    rm_inspector_look(&daemon->inspector);
    follow_stages(daemon);
    follow_evaluations(daemon);
    end_training(daemon);
    rm_daemon_arm(daemon);
}

static void on_tick(uv_timer_t *timer)
{
    struct rm_daemon *daemon = timer->data;
    char why[256];
    uint64_t now = rm_now_ns();
    bool paused = RM_PEEK(&run_of(daemon)->pause) != 0;
    observe(daemon);
    rm_inspector_look(&daemon->inspector);
    RM_POKE(&run_of(daemon)->rows_counted, rm_session_rows(&daemon->session));
    if (!paused)
        note_rates(daemon, now);
    write_row_by_steps(daemon);
    follow_stages(daemon);
    follow_evaluations(daemon);
    if (stepped(daemon))
        note_running(daemon);
    end_training(daemon);
    /* Workers of a checkpoint that waits for one that never ends its turn do not hold yet. */
    const enum rm_checkpoint_stage stage = daemon->checkpoint.stage;
    const bool training = daemon->progress.life == RM_LIFE_TRAINING &&
                          (stage == RM_CHECKPOINT_IDLE || stage == RM_CHECKPOINT_HOLDING);
    if (daemon->progress.life < RM_LIFE_STOPPING &&
        rm_standstill_look(&daemon->course.standstill, &daemon->session, &daemon->supervisor,
                           training, now, why, sizeof why))
        fail(daemon, why);
    if (daemon->control)
        rm_control_expire(daemon->control, now);
    rm_checkpointer_tick(&daemon->checkpoint, now);
    tell_service_manager(daemon, now);
    rm_unwritten_log(&daemon->unwritten);
    rm_console_live(&daemon->console, &daemon->progress, now);
    rm_daemon_arm(daemon);
}

/* Does the work that a dead worker may have left: it may have arrived and not advanced the round,
 * advanced it without waking others, or made work visible without waking the sleeper. */
static void settle_debts(struct rm_daemon *daemon)
{
    if (daemon->session.experiment.mode == RM_MODE_LOCKSTEP)
        rm_round_settle(daemon->session.board.round);
    rm_session_wake_up(&daemon->session);
}

static void worker_changed(void *user, uint32_t index, enum rm_supervised before,
                           const struct rm_supervised_worker *worker)
{
    struct rm_daemon *daemon = user;
    const char *name = daemon->session.board.workers[index].name;
    bool died = worker->state == RM_SUPERVISED_BACKING_OFF || worker->state == RM_SUPERVISED_FAILED;
    const char *why = worker->state == RM_SUPERVISED_FAILED ? worker->failure : worker->reason;
    enum rm_log_level level = died ? RM_LOG_WARNING : RM_LOG_INFO;
    char process[32] = "";
    if (worker->pid > 0)
        snprintf(process, sizeof process, ", process %d", worker->pid);
    struct rm_log_fields fields = fields_now(daemon);
    fields.worker = name;
    fields.error = died ? why : NULL;
    if (daemon->session.board.workers[index].role == RM_ROLE_LEARNER)
        fields.agent = daemon->session.plan.policy[daemon->session.board.workers[index].index].name;
    rm_log_message(
        &daemon->log, level, died ? RM_MESSAGE_WORKER_DIED : RM_MESSAGE_WORKER, &fields,
        "%s: %s%s%s (generation %llu%s)", name,
        worker->finished && worker->state == RM_SUPERVISED_DOWN ? "finished"
                                                                : rm_supervised_name(worker->state),
        died ? ": " : "", died ? why : "", (unsigned long long)worker->generation, process);
    send_event(daemon, "worker",
               json_pack("{s:s,s:s,s:s,s:I,s:I,s:i,s:s}", "name", name, "state",
                         rm_supervised_name(worker->state), "before", rm_supervised_name(before),
                         "generation", (json_int_t)worker->generation, "deaths",
                         (json_int_t)worker->deaths, "pid", worker->pid, "reason",
                         died ? why : ""));
    if (died)
        settle_debts(daemon);
    if (worker->state == RM_SUPERVISED_FAILED) {
        char failure[512];
        snprintf(failure, sizeof failure, "%s: %s", name, why);
        fail(daemon, failure);
    } else if (worker->state == RM_SUPERVISED_UP && worker->generation > 1 &&
               daemon->progress.life == RM_LIFE_EVALUATING) {
        /* The evaluator died during the final evaluation: the new one begins again. */
        rm_daemon_request_evaluation(daemon, daemon->session.experiment.evaluation.final_episodes);
    } else if (worker->finished) {
        end_training(daemon);
    }
    end_if_over(daemon);
    rm_daemon_arm(daemon);
}

const struct rm_supervisor_ops rm_daemon_supervisor_ops = {
    .spawn = rm_daemon_spawn, .kill = rm_daemon_signal, .changed = worker_changed};

/* --- timers ---------------------------------------------------------------------------------- */

static void on_due(uv_timer_t *timer)
{
    struct rm_daemon *daemon = timer->data;
    rm_supervisor_tick(&daemon->supervisor, rm_now_ns());
    rm_daemon_arm(daemon);
}

static void on_sample(uv_timer_t *timer)
{
    rm_daemon_write_row(timer->data, false);
}

/* Paused, all workers asleep and no client connected: nothing changes, so no timer is needed. */
static bool quiet(const struct rm_daemon *daemon)
{
    if (!RM_PEEK(&daemon->session.board.run->pause) || daemon->progress.life >= RM_LIFE_STOPPING ||
        rm_notify_watched())
        return false;
    if (daemon->control && rm_control_counts(daemon->control).clients > 0)
        return false;
    for (uint32_t i = 0; i < daemon->supervisor.count; i++) {
        enum rm_supervised state = daemon->supervisor.workers[i].state;
        uint64_t heartbeat_ns;
        enum rm_worker_state word = rm_session_process_state(&daemon->session, i, &heartbeat_ns);
        if (state == RM_SUPERVISED_STARTING ||
            (state == RM_SUPERVISED_UP && word != RM_WORKER_WAITING && word != RM_WORKER_DONE))
            return false;
    }
    return true;
}

static uint64_t tick_ms(const struct rm_daemon *daemon)
{
    bool starting = false;
    for (uint32_t i = 0; i < daemon->supervisor.count; i++)
        starting |= daemon->supervisor.workers[i].state == RM_SUPERVISED_STARTING;
    const double checkpoints_s = daemon->session.experiment.checkpoint.interval_s;
    bool short_wait = starting || (checkpoints_s > 0 && checkpoints_s * 1000 < TICK_MS) ||
                      daemon->progress.life == RM_LIFE_STARTING ||
                      daemon->progress.life == RM_LIFE_EVALUATING ||
                      daemon->progress.life == RM_LIFE_STOPPING;
    /* While workers work, checks often enough to distinguish their silence from the daemon's. */
    const uint64_t look_ms =
        daemon->supervisor.limits.heartbeat_ns / RM_SUPERVISOR_LOOKS / RM_NS_PER_MS;
    const uint64_t ms = short_wait ? TICK_FAST_MS : TICK_MS;
    return look_ms < ms ? look_ms : ms;
}

static void keep_repeating(uv_timer_t *timer, uv_timer_cb callback, uint64_t ms)
{
    if (ms == 0)
        uv_timer_stop(timer);
    else if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_repeat(timer) != ms)
        uv_timer_start(timer, callback, ms, ms);
}

void rm_daemon_arm(void *user)
{
    struct rm_daemon *daemon = user;
    bool over = daemon->progress.life == RM_LIFE_OVER;
    bool idle = over || quiet(daemon);
    keep_repeating(&daemon->tick, on_tick, idle ? 0 : tick_ms(daemon));

    bool sampling =
        !idle && !RM_PEEK(&run_of(daemon)->pause) && rm_metrics_written(&daemon->metrics);
    const double so_far_s =
        daemon->metrics.before_s + (double)(rm_now_ns() - daemon->progress.started_ns) / 1e9;
    const double interval_s =
        rm_metrics_interval(daemon->session.experiment.metrics.interval_s, so_far_s);
    keep_repeating(&daemon->sample, on_sample, sampling ? (uint64_t)(interval_s * 1000) : 0);

    uint64_t due = rm_supervisor_due(&daemon->supervisor), now = rm_now_ns();
    if (over || due == 0)
        uv_timer_stop(&daemon->due);
    else
        uv_timer_start(&daemon->due, on_due,
                       due > now ? (due - now + RM_NS_PER_MS - 1) / RM_NS_PER_MS : 0, 0);
}
