/* When checkpoints are made, and what follows on them: a stop, a sleep, the final evaluation. */
#include "daemon/checkpoint.h"

#include "daemon/daemon.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <stdio.h>

static struct rm_checkpointer *of(struct rm_daemon *daemon)
{
    return &daemon->checkpoint;
}

static uint64_t grace_ns(const struct rm_daemon *daemon)
{
    return (uint64_t)(daemon->session.experiment.supervisor.stop_grace_s * 1e9);
}

/* True when it will be made, or has been. A worker that is being started anew is waited for. */
static bool ask(struct rm_daemon *daemon, const char *otherwise)
{
    struct rm_error error = {""};
    uint64_t number;
    const int rc = rm_daemon_checkpoint(daemon, &number, &error);
    if (rc == -EAGAIN) {
        rm_log(&daemon->log, RM_LOG_NOTICE, "a checkpoint waits: %s", error.text);
        rm_daemon_await_checkpoint(daemon);
    } else if (rc && daemon->life <= RM_LIFE_TRAINING) {
        rm_log(&daemon->log, RM_LOG_NOTICE, "%s: %s", otherwise, error.text);
    }
    return rc == 0 || rc == -EAGAIN;
}

void rm_daemon_checkpoint_soon(struct rm_daemon *daemon)
{
    of(daemon)->wanted = true;
    if (!ask(daemon, "no checkpoint"))
        of(daemon)->wanted = false;
}

void rm_daemon_checkpoint_and_stop(struct rm_daemon *daemon, const char *why)
{
    struct rm_checkpointer *c = of(daemon);
    if (c->then_stop)
        return;
    snprintf(c->stop_why, sizeof c->stop_why, "%s", why);
    c->stop_by_ns = rm_now_ns() + grace_ns(daemon);
    c->then_stop = true;
    rm_notify_more_time(2 * grace_ns(daemon)); /* the checkpoint's, and that of the workers */
    if (ask(daemon, "no checkpoint before the end"))
        return; /* it may be over already, and the run stopped */
    c->then_stop = false;
    rm_daemon_stop(daemon, why);
}

void rm_daemon_checkpoint_and_sleep(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    c->then_sleep = true;
    c->stop_by_ns = rm_now_ns() + grace_ns(daemon);
    if (ask(daemon, "no checkpoint before the end"))
        return;
    c->then_sleep = false;
    rm_daemon_pause(daemon, true);
}

void rm_daemon_checkpoint_and_evaluate(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    struct rm_error error = {""};
    uint64_t number;
    const bool same = c->made && c->stage == RM_CHECKPOINT_IDLE &&
                      c->step == rm_daemon_steps(daemon) && c->updates == rm_daemon_updates(daemon);
    if (daemon->session.experiment.checkpoint.at_end && !same) {
        c->then_evaluate = true;
        c->stop_by_ns = rm_now_ns() + grace_ns(daemon);
        const int rc = rm_daemon_checkpoint(daemon, &number, &error);
        if (rc == 0)
            return; /* it may be over already */
        if (rc == -EAGAIN) {
            rm_log(&daemon->log, RM_LOG_NOTICE, "the last checkpoint waits: %s", error.text);
            rm_daemon_await_checkpoint(daemon);
            return;
        }
        c->then_evaluate = false;
        rm_log(&daemon->log, RM_LOG_WARNING, "no checkpoint at the end: %s", error.text);
    }
    rm_daemon_evaluate_last(daemon);
}

void rm_daemon_delay_checkpoint(struct rm_daemon *daemon, uint64_t away_ns)
{
    struct rm_checkpointer *c = of(daemon);
    c->asked_ns += away_ns;
    c->stop_by_ns += away_ns;
}

void rm_daemon_score_last_checkpoint(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    const struct rm_experiment *e = &daemon->session.experiment;
    const double score = RM_PEEK(&daemon->session.board.run->eval_score_mean);
    char folder[RM_SESSION_PATH_MAX];
    struct rm_error error = {""};
    struct rm_checkpoint_facts facts = {0};
    if (c->last &&
        (rm_session_checkpoint_folder(c->run_directory, c->last, false, folder, &error) ||
         rm_checkpoint_check(folder, false, &facts, &error)))
        rm_log(&daemon->log, RM_LOG_WARNING, "the last checkpoint, %llu, is not there any more: %s",
               (unsigned long long)c->last, error.text);
    rm_checkpoint_facts_free(&facts);
    if (!daemon->finished || e->evaluation.final_episodes == 0 || !c->last ||
        c->step != rm_daemon_steps(daemon) || c->updates != rm_daemon_updates(daemon))
        return;
    if (rm_session_checkpoint_folder(c->run_directory, c->last, false, folder, &error) < 0 ||
        rm_manifest_rescore(folder, score, &error) < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "checkpoint %llu has not the final score: %s",
               (unsigned long long)c->last, error.text);
    else if (!c->working && !c->removing_first)
        rm_checkpoint_prune(c->run_directory, e->checkpoint.keep, e->checkpoint.keep_best, NULL);
}

void rm_daemon_checkpoint_tick(struct rm_daemon *daemon, uint64_t now_ns)
{
    struct rm_checkpointer *c = of(daemon);
    const double interval = daemon->session.experiment.checkpoint.interval_s;
    struct rm_error error;
    uint64_t number;
    if (daemon->life != RM_LIFE_TRAINING || !(interval > 0) || c->stage != RM_CHECKPOINT_IDLE)
        return;
    const uint64_t all_ns = (uint64_t)(interval * 1e9);
    if (c->due_ns == 0 || c->due_ns > now_ns + all_ns)
        c->due_ns = now_ns + all_ns; /* it was made shorter */
    if (now_ns < c->due_ns || rm_daemon_steps(daemon) == c->step)
        return;
    if (rm_daemon_checkpoint(daemon, &number, &error))
        c->due_ns = now_ns + RM_NS_PER_S; /* somebody is being started anew */
}
