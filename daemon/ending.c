/* How a run comes to its end: the budget is spent, the last checkpoint made, the last weights
 * evaluated. */
#include "daemon/daemon.h"

#include "config/traits.h"
#include "daemon/format.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"

#include <math.h>

static struct rm_board_run *run_of(struct rm_daemon *daemon)
{
    return daemon->session.board.run;
}

/* All actors and learners have done their share, and those who do not stay for the last checkpoint
 * are gone. */
static bool trained(struct rm_daemon *daemon)
{
    const bool stay = daemon->session.experiment.checkpoint.at_end;
    const struct rm_board_view *board = &daemon->session.board;
    uint32_t trainers = rm_worker_evaluator(&daemon->session.objects);
    for (uint32_t i = 0; i < trainers; i++) {
        if (RM_PEEK(&board->workers[i].state) != RM_WORKER_DONE)
            return false;
        if (!stay && rm_daemon_has_process(daemon, i) && !daemon->supervisor.workers[i].finished)
            return false;
    }
    return true;
}

/* When the last of them was done: their last sign of life. The daemon may notice a second later. */
static uint64_t trained_at(const struct rm_daemon *daemon)
{
    const struct rm_board_view *board = &daemon->session.board;
    uint64_t last = daemon->started_ns;
    for (uint32_t i = 0; i < rm_worker_evaluator(&daemon->session.objects); i++) {
        uint64_t done = RM_PEEK(&board->workers[i].heartbeat_ns);
        if (done > last)
            last = done;
    }
    return last;
}

/* The final evaluation is over when one is finished that played the last version of every policy as
 * often as it should: another one, by interval or on command, may have been in progress. */
static bool evaluated(struct rm_daemon *daemon)
{
    const struct rm_board_view *board = &daemon->session.board;
    if (RM_PEEK(&board->run->evaluations) <= daemon->final_before ||
        RM_PEEK(&board->run->eval_episodes) < daemon->session.experiment.evaluation.final_episodes)
        return false;
    for (uint32_t p = 0; p < board->run->policies; p++)
        if (RM_PEEK(&board->policies[p].eval_version) < RM_PEEK(&board->policies[p].published))
            return false;
    return true;
}

void rm_daemon_end_training(struct rm_daemon *daemon)
{
    if (daemon->life > RM_LIFE_TRAINING || daemon->trained_ns != 0 || !trained(daemon))
        return;
    rm_daemon_note_running(daemon); /* a short run may be over before anybody looked */
    daemon->trained_ns = trained_at(daemon);
    rm_log(&daemon->log, RM_LOG_INFO, "the budget is spent after %.1f s",
           (double)(daemon->trained_ns - daemon->started_ns) / 1e9);
    rm_daemon_checkpoint_and_evaluate(daemon);
}

void rm_daemon_evaluate_last(struct rm_daemon *daemon)
{
    uint32_t episodes = daemon->session.experiment.evaluation.final_episodes;
    for (uint32_t i = 0; i < rm_worker_evaluator(&daemon->session.objects); i++)
        if (rm_daemon_has_process(daemon, i)) /* it stayed for the checkpoint */
            rm_supervisor_stop(&daemon->supervisor, i, rm_now_ns());
    if (episodes == 0) {
        daemon->finished = true;
        rm_daemon_stop(daemon, "finished");
        return;
    }
    daemon->life = RM_LIFE_EVALUATING;
    daemon->final_before = RM_PEEK(&run_of(daemon)->evaluations);
    rm_daemon_request_evaluation(daemon, episodes);
    rm_notify("STATUS=evaluating: %u %s of the last weights", episodes,
              rm_plural(episodes, "episode", "episodes"));
    rm_daemon_arm(daemon);
}

/* True when one has been finished since the last time. */
static bool note_evaluations(struct rm_daemon *daemon)
{
    struct rm_board_run *run = run_of(daemon);
    uint64_t finished = RM_PEEK(&run->evaluations);
    if (finished == daemon->evaluations_seen)
        return false;
    daemon->evaluations_seen = finished;
    rm_daemon_write_row(daemon, true);
    double mean = RM_PEEK(&run->eval_score_mean), error = RM_PEEK(&run->eval_score_stderr);
    uint64_t episodes = RM_PEEK(&run->eval_episodes);
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    fields.step = (int64_t)rm_daemon_steps(daemon);
    rm_log_message(&daemon->log, RM_LOG_INFO, RM_MESSAGE_EVALUATED, &fields,
                   "evaluation %llu: %s score %s +- %s over %llu %s%s",
                   (unsigned long long)finished, rm_evaluation_word(&daemon->session.experiment),
                   rm_format_number(mean).s, rm_format_number(error).s,
                   (unsigned long long)episodes, rm_plural(episodes, "episode", "episodes"),
                   mean >= RM_PEEK(&run->eval_best) ? ", none was better so far" : "");
    rm_daemon_event(daemon, "evaluation",
                    json_pack("{s:I,s:I,s:f,s:f,s:I}", "count", (json_int_t)finished, "request",
                              (json_int_t)RM_PEEK(&run->eval_request), "mean",
                              isfinite(mean) ? mean : 0.0, "stderr", isfinite(error) ? error : 0.0,
                              "episodes", (json_int_t)episodes));
    return true;
}

void rm_daemon_follow_evaluations(struct rm_daemon *daemon)
{
    bool noted = note_evaluations(daemon);
    if (daemon->life != RM_LIFE_EVALUATING)
        return;
    if (evaluated(daemon)) {
        daemon->finished = true;
        rm_daemon_stop(daemon, "finished");
    } else if (noted)
        /* That was another one. The request may have been taken for it: once more. */
        rm_daemon_request_evaluation(daemon, daemon->session.experiment.evaluation.final_episodes);
}
