/* The state of a run as JSON. One object serves `status`, `ringctl top` and summary.json:
 *
 *   name, version, pid, mode, seed, state, reason (when failed), run_directory, config_file
 *   uptime_s          since the run's start
 *   trained_s         the same, until the budget was spent
 *   progress          {steps, budget, fraction, left_s}; steps are per agent, over all worlds
 *   rates             {steps_per_s, updates_per_s}: all agents, all policies, last seconds
 *   score             {episodes, first, first_episodes, last, last_episodes, latest}: sums over
 *                     agents
 *   evaluation        {count, episodes, mean, stderr, random, solved, low, high}: greedy
 *   agents[]          {name, policy, reward: as score, figures,
 *                     evaluation: {mean, stderr, figures}}
 *                     figures: {length, FIGURE: mean over the latest episodes; for a figure of
 *                     words {WORD: share}}
 *   policies[]        {name, agents[], env_steps, updates, ..}: see policy()
 *   workers[]         {name, role, index, pid, state, supervisor, generation, deaths, ..}:
 *                     see worker()
 *   control           {clients, requests, refusals, slow_closed, events_lost}
 *   loop              {turns, slept, stall_max_ms, ...}: of the daemon's event loop (stall.h)
 *   writers           {files, echoes}, each {queued_bytes, written, lost, failed, longest_ms}:
 *                     queued lines and rows (writer.h)
 *   reader            {running, sent, lost}: rows of metrics for metrics.exec; null: no command
 *
 * An unknown number is null. */
#include "daemon/running.h"

#include "config/json_memory.h"
#include "config/json_value.h"
#include "config/schema.h"
#include "config/traits.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/layout.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : NAN;
}

static json_t *scores(const struct rm_scores *s)
{
    double first = NAN, last = NAN;
    uint32_t first_n = rm_scores_first(s, &first), last_n = rm_scores_last(s, &last);
    uint64_t episodes = RM_PEEK(&s->episodes);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "episodes", count(episodes), "first",
                     rm_json_finite(first), "first_episodes", count(first_n), "last",
                     rm_json_finite(last), "last_episodes", count(last_n), "latest",
                     rm_json_finite(episodes ? RM_PEEK(&s->last_score) : NAN));
}

json_t *rm_daemon_figures(const struct rm_daemon *daemon, uint32_t a, bool evaluated)
{
    const struct rm_board_view *board = &daemon->session.board;
    json_t *figures = json_object();
    double length = NAN;
    if (!evaluated)
        rm_scores_last(&board->agents[a].lengths, &length);
    else if (RM_PEEK(&board->run->evaluations) > 0)
        length = RM_PEEK(&board->agents[a].eval_length);
    json_object_set_new(figures, "length", rm_json_finite(length));
    for (uint32_t f = 0; f < board->run->figures; f++) {
        const struct rm_board_figure *figure = &board->run->figure[f];
        json_t *words = figure->words ? json_object() : NULL;
        for (uint32_t k = 0; k < rm_board_figure_values(figure); k++)
            json_object_set_new(words ? words : figures, words ? figure->word[k] : figure->name,
                                rm_json_finite(evaluated ? rm_board_figure_evaluated(board, a, f, k)
                                                         : rm_board_figure_last(board, a, f, k)));
        if (words)
            json_object_set_new(figures, figure->name, words);
    }
    return figures;
}

static json_t *agent(const struct rm_daemon *daemon, uint32_t a)
{
    const struct rm_board_agent *block = &daemon->session.board.agents[a];
    bool evaluated = RM_PEEK(&daemon->session.board.run->evaluations) > 0;
    uint32_t policy = RM_PEEK(&block->policy);
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:{s:o,s:o,s:o}}", "name", block->name, "policy",
                     daemon->session.board.policies[policy].name, "env_steps",
                     count(RM_PEEK(&block->env_steps)), "reward", scores(&block->scores), "figures",
                     rm_daemon_figures(daemon, a, false), "evaluation", "mean",
                     rm_json_finite(evaluated ? RM_PEEK(&block->eval_mean) : NAN), "stderr",
                     rm_json_finite(evaluated ? RM_PEEK(&block->eval_stderr) : NAN), "figures",
                     rm_daemon_figures(daemon, a, true));
}

/* The figures of the latest rollout; null: there is none. */
static json_t *rollout(const struct rm_daemon *daemon, uint32_t p)
{
    const struct rm_board_policy *b = &daemon->session.board.policies[p];
    bool any = RM_PEEK(&b->rollouts) > 0;
    if (!rm_algorithm_traits(daemon->session.experiment.algorithm.name)->rollout ||
        daemon->session.plan.policy[p].frozen)
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "count", count(RM_PEEK(&b->rollouts)),
                     "dropped", count(RM_PEEK(&b->rollouts_dropped)), "policy_loss",
                     rm_json_finite(any ? RM_PEEK(&b->policy_loss) : NAN), "value_loss",
                     rm_json_finite(any ? RM_PEEK(&b->value_loss) : NAN), "entropy",
                     rm_json_finite(any ? RM_PEEK(&b->entropy) : NAN), "kl",
                     rm_json_finite(any ? RM_PEEK(&b->kl) : NAN), "clip_fraction",
                     rm_json_finite(any ? RM_PEEK(&b->clip_fraction) : NAN), "explained_variance",
                     rm_json_finite(any ? RM_PEEK(&b->explained_variance) : NAN));
}

static json_t *policy(const struct rm_daemon *daemon, uint32_t p)
{
    const struct rm_board_policy *b = &daemon->session.board.policies[p];
    const struct rm_policy_plan *plan = &daemon->session.plan.policy[p];
    uint64_t env_steps = RM_PEEK(&b->env_steps), samples = RM_PEEK(&b->samples);
    const struct rm_algorithm_traits *traits =
        rm_algorithm_traits(daemon->session.experiment.algorithm.name);
    bool trained = RM_PEEK(&b->updates) > 0;
    json_t *agents = json_array(), *o = json_object();
    for (uint32_t i = 0; i < plan->agents; i++)
        json_array_append_new(agents, json_string(daemon->session.plan.agent_name[plan->agent[i]]));
    json_object_set_new(o, "name", json_string(b->name));
    json_object_set_new(o, "agents", agents);
    json_object_set_new(o, "env_steps", count(env_steps));
    json_object_set_new(o, "updates", count(RM_PEEK(&b->updates)));
    json_object_set_new(o, "updates_skipped", count(RM_PEEK(&b->updates_skipped)));
    json_object_set_new(o, "samples", count(samples));
    json_object_set_new(o, "samples_torn", count(RM_PEEK(&b->samples_torn)));
    json_object_set_new(o, "rows_lost", count(RM_PEEK(&b->rows_lost)));
    json_object_set_new(o, "published", count(RM_PEEK(&b->published)));
    json_object_set_new(o, "publish_skipped", count(RM_PEEK(&b->publish_skipped)));
    json_object_set_new(o, "publish_change", rm_json_finite(RM_PEEK(&b->publish_change)));
    json_object_set_new(o, "replay_rows", count(RM_PEEK(&b->replay_rows)));
    json_object_set_new(o, "replay_capacity", count(RM_PEEK(&b->replay_capacity)));
    json_object_set_new(
        o, "replay_fill",
        rm_json_finite(ratio(RM_PEEK(&b->replay_rows), RM_PEEK(&b->replay_capacity))));
    json_object_set_new(o, "replay_ratio", rm_json_finite(ratio(samples, env_steps)));
    json_object_set_new(o, "lag_mean",
                        rm_json_finite(ratio(RM_PEEK(&b->lag_sum), RM_PEEK(&b->lag_count))));
    json_object_set_new(o, "lag_max", count(RM_PEEK(&b->lag_max)));
    json_object_set_new(o, "sample_age",
                        rm_json_finite(ratio(RM_PEEK(&b->age_sum), RM_PEEK(&b->age_count))));
    json_object_set_new(o, "loss", rm_json_finite(trained ? RM_PEEK(&b->loss) : NAN));
    json_object_set_new(o, "grad_norm", rm_json_finite(trained ? RM_PEEK(&b->grad_norm) : NAN));
    json_object_set_new(o, "q_mean",
                        rm_json_finite(trained && !traits->value ? RM_PEEK(&b->q_mean) : NAN));
    json_object_set_new(o, "learning_rate", rm_json_finite(RM_PEEK(&b->learning_rate)));
    json_object_set_new(o, "epsilon", rm_json_finite(traits->policy ? NAN : RM_PEEK(&b->epsilon)));
    json_object_set_new(o, "rollout", rollout(daemon, p));
    json_object_set_new(o, "insert_blocked_s",
                        rm_json_finite(seconds(RM_PEEK(&b->insert_blocked_ns))));
    json_object_set_new(o, "sample_blocked_s",
                        rm_json_finite(seconds(RM_PEEK(&b->sample_blocked_ns))));
    json_object_set_new(o, "evaluated_version", count(RM_PEEK(&b->eval_version)));
    return o;
}

static uint64_t booked_ns(const struct rm_board_worker *slot)
{
    uint64_t total = 0;
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        total += rm_board_spent_ns(slot, &slot->phase_ns[p]);
    return total;
}

/* Shares of the time so far. */
static json_t *phases(const struct rm_board_worker *slot)
{
    uint64_t total = booked_ns(slot);
    json_t *o = json_object();
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        json_object_set_new(
            o, rm_phase_name(p),
            rm_json_finite(total ? ratio(rm_board_spent_ns(slot, &slot->phase_ns[p]), total) : 0));
    return o;
}

/* A learner may write the text while it is read here: at worst it is cut short. */
static json_t *device_of(const struct rm_board_worker *slot)
{
    char name[RM_DEVICE_NAME_MAX];
    memcpy(name, slot->device, sizeof name);
    name[sizeof name - 1] = '\0';
    return name[0] ? json_string(name) : json_null();
}

/* The memory of worker w's process, which any of its duties may have noted; null without a
 * process. */
static json_t *memory_of(const struct rm_daemon *daemon, uint32_t w)
{
    uint64_t most = 0;
    if (!rm_session_has_process(&daemon->session, w))
        return json_null();
    for (uint32_t i = 0; i < daemon->session.objects.workers; i++) {
        const uint64_t bytes = RM_PEEK(&daemon->session.board.workers[i].rss_bytes);
        if (rm_session_process(&daemon->session, i) == w && bytes > most)
            most = bytes;
    }
    return count(most);
}

/* A file of /proc/PID/, as text. */
static void read_process(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
}

/* Calls `visit` for each process that `pid` has started. */
static void each_child(pid_t pid, void (*visit)(void *self, pid_t child), void *self)
{
    char file[48], text[4096];
    snprintf(file, sizeof file, "task/%d/children", (int)pid);
    read_process(pid, file, text, sizeof text);
    for (char *end, *at = text;; at = end) {
        const long child = strtol(at, &end, 10);
        if (end == at || child <= 0)
            return;
        visit(self, (pid_t)child);
    }
}

/* Adds the resident memory of a process and of all that it has started. */
static void add_resident(void *self, pid_t pid)
{
    char text[64];
    unsigned long long all, resident = 0;
    read_process(pid, "statm", text, sizeof text);
    if (sscanf(text, "%llu %llu", &all, &resident) == 2)
        *(uint64_t *)self += resident * (unsigned long long)sysconf(_SC_PAGESIZE);
    each_child(pid, add_resident, self);
}

static void list_resident(void *self, pid_t pid)
{
    uint64_t bytes = 0;
    add_resident(&bytes, pid);
    json_array_append_new(self, count(bytes));
}

/* Of the Python processes of a worker that steps worlds; null without such worlds. */
static json_t *python_memory(const struct rm_daemon *daemon, pid_t pid)
{
    if (!daemon->session.experiment.world.python[0])
        return json_null();
    json_t *list = json_array();
    if (pid > 0)
        each_child(pid, list_resident, list);
    return list;
}

static json_t *worker(const struct rm_daemon *daemon, uint32_t w, uint64_t now)
{
    const struct rm_board_worker *slot = &daemon->session.board.workers[w];
    /* The record of the process that the duty is in, but of its own events. */
    const struct rm_supervised_worker *process =
        &daemon->supervisor.workers[rm_session_process(&daemon->session, w)];
    const struct rm_supervised_worker *s = &daemon->supervisor.workers[w];
    uint64_t heartbeat = RM_PEEK(&slot->heartbeat_ns);
    enum rm_worker_state state = RM_PEEK(&slot->state);
    if (RM_PEEK(&slot->role) == RM_ROLE_SOLO) /* the process has no duty of its own */
        state = rm_session_process_state(&daemon->session, w, &heartbeat);
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(slot->name));
    json_object_set_new(o, "role", json_string(rm_role_name(RM_PEEK(&slot->role))));
    json_object_set_new(o, "index", count(RM_PEEK(&slot->index)));
    json_object_set_new(o, "process", json_boolean(rm_session_has_process(&daemon->session, w)));
    json_object_set_new(o, "pid", count(RM_PEEK(&slot->pid)));
    json_object_set_new(o, "state", json_string(rm_worker_state_name(state)));
    json_object_set_new(o, "supervisor", json_string(rm_supervised_name(process->state)));
    json_object_set_new(o, "generation", count(process->generation));
    json_object_set_new(o, "deaths", count(s->deaths));
    json_object_set_new(o, "reason", json_string(s->reason));
    json_object_set_new(
        o, "uptime_s",
        rm_json_finite(s->pid && now > s->started_ns ? seconds(now - s->started_ns) : NAN));
    json_object_set_new(o, "heartbeat_age_s",
                        rm_json_finite(!heartbeat        ? NAN
                                       : now > heartbeat ? seconds(now - heartbeat)
                                                         : 0));
    json_object_set_new(o, "turns", count(RM_PEEK(&slot->turns)));
    json_object_set_new(o, "sleeps", count(RM_PEEK(&slot->sleeps)));
    json_object_set_new(o, "signals", count(RM_PEEK(&slot->wake.signals)));
    json_object_set_new(o, "steps", count(RM_PEEK(&slot->steps)));
    if (RM_PEEK(&slot->role) == RM_ROLE_RECORDER)
        json_object_set_new(o, "recording",
                            json_pack("{s:o,s:o,s:o}", "rows", count(RM_PEEK(&slot->recorded_rows)),
                                      "lost", count(RM_PEEK(&slot->lost_rows)), "bytes",
                                      count(RM_PEEK(&slot->recorded_bytes))));
    json_object_set_new(o, "rss_bytes", memory_of(daemon, w));
    json_object_set_new(o, "python_rss_bytes", python_memory(daemon, (pid_t)RM_PEEK(&slot->pid)));
    json_object_set_new(o, "device", device_of(slot));
    json_object_set_new(o, "booked_s", rm_json_finite(seconds(booked_ns(slot))));
    json_object_set_new(o, "phases", phases(slot));
    return o;
}

static json_t *loop(const struct rm_stall *stall)
{
    return json_pack("{s:o,s:o,s:f,s:f,s:f}", "turns", count(stall->turns), "slept",
                     count(stall->slept), "stall_max_ms", (double)stall->max_ns / 1e6,
                     "clock_max_ms", (double)stall->max_clock_ns / 1e6, "work_max_ms",
                     (double)stall->max_worked_ns / 1e6);
}

static json_t *writer(const struct rm_writer *writer)
{
    const struct rm_writer_counts c = rm_writer_counts(writer);
    return json_pack("{s:o,s:o,s:o,s:o,s:f}", "queued_bytes", count(c.queued_bytes), "written",
                     count(c.written), "lost", count(c.lost), "failed", count(c.failed),
                     "longest_ms", (double)c.longest_ns / 1e6);
}

/* Counts of lines and rows that are written to files and to standard error or the journal. */
static json_t *writers(const struct rm_daemon *daemon)
{
    return json_pack("{s:o,s:o}", "files", writer(&daemon->files), "echoes",
                     writer(&daemon->echoes));
}

/* The command of metrics.exec; null: there is none. */
static json_t *reader(const struct rm_daemon *daemon)
{
    const struct rm_reader *r = &daemon->reader;
    if (!r->started)
        return json_null();
    return json_pack("{s:b,s:o,s:o}", "running", r->running, "sent", count(r->sent), "lost",
                     count(r->lost));
}

/* The session that was taken over from a killed daemon. */
static json_t *adopted(const struct rm_daemon *daemon)
{
    if (!daemon->adoption.done)
        return json_null();
    return json_pack("{s:o,s:o,s:o}", "rows_before", count(daemon->adoption.left_rows),
                     "rows_after", count(daemon->adoption.rows), "step",
                     count(daemon->adoption.step));
}

static json_t *progress(const struct rm_daemon *daemon)
{
    uint64_t steps = rm_session_steps(&daemon->session);
    uint64_t budget = daemon->session.board.run->env_steps_budget;
    double left = rm_progress_time_left(&daemon->progress);
    double fraction = ratio(steps, budget);
    return json_pack("{s:o,s:o,s:o,s:o}", "steps", count(steps), "budget", count(budget),
                     "fraction", rm_json_finite(fraction > 1 ? 1 : fraction), "left_s",
                     rm_json_finite(left < 0 ? NAN : left));
}

static json_t *evaluation(const struct rm_daemon *daemon)
{
    const struct rm_board_run *run = daemon->session.board.run;
    uint64_t finished = RM_PEEK(&run->evaluations);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "count", count(finished), "episodes",
                     count(RM_PEEK(&run->eval_episodes)), "mean",
                     rm_json_finite(finished ? RM_PEEK(&run->eval_score_mean) : NAN), "stderr",
                     rm_json_finite(finished ? RM_PEEK(&run->eval_score_stderr) : NAN), "random",
                     rm_json_finite(daemon->world.score_random), "solved",
                     rm_json_finite(daemon->world.score_solved), "low",
                     rm_json_finite(daemon->world.score_low), "high",
                     rm_json_finite(daemon->world.score_high));
}

/* null: there is none */
static json_t *curriculum(const struct rm_daemon *daemon)
{
    const struct rm_board_run *run = daemon->session.board.run;
    const uint64_t word = RM_PEEK(&run->stage), stage = word & 255;
    if (!run->stages || stage >= run->stages)
        return json_null();
    const struct rm_stage_rule *until = &daemon->session.experiment.curriculum.stage[stage].until;
    return json_pack("{s:o,s:o,s:o,s:s,s:o,s:o,s:o}", "stage", count(stage + 1), "stages",
                     count(run->stages), "changes", count(word >> 8), "figure", until->figure,
                     "bound", rm_json_finite(until->over ? until->bound : NAN), "mean",
                     rm_json_finite(until->over ? RM_PEEK(&run->stage_mean) : NAN), "episodes",
                     count(until->over ? RM_PEEK(&run->stage_episodes) : 0));
}

static const char *mode_name(enum rm_mode mode)
{
    static const char *const names[] = {"free", "lockstep", "sequential"};
    return (unsigned)mode < 3 ? names[mode] : "?";
}

/* What tells this host from others, for comparing runs. */
static json_t *host_facts(void)
{
    struct rm_host host;
    const struct rm_host_facts facts = rm_host_describe();
    rm_host_read(&host);
    return json_pack("{s:s,s:s,s:s,s:o}", "name", facts.name, "kernel", facts.kernel, "processor",
                     facts.processor, "cores", rm_json_finite(host.cores));
}

json_t *rm_daemon_status(struct rm_daemon *daemon)
{
    const struct rm_board_view *board = &daemon->session.board;
    const uint64_t mark = rm_json_failures();
    uint64_t now = rm_now_ns();
    uint64_t end = daemon->progress.trained_ns ? daemon->progress.trained_ns : now;
    const struct rm_progress_rates rates = rm_progress_rates(&daemon->progress);
    json_t *agents = json_array(), *policies = json_array(), *workers = json_array();
    json_t *o = json_object();

    json_object_set_new(o, "name", json_string(daemon->session.experiment.name));
    json_object_set_new(o, "version", json_string(RM_VERSION));
    json_object_set_new(o, "host", host_facts());
    json_object_set_new(o, "pid", count((uint64_t)uv_os_getpid()));
    json_object_set_new(o, "mode", json_string(mode_name(daemon->session.experiment.mode)));
    json_object_set_new(o, "seed", count(daemon->session.experiment.seed));
    json_object_set_new(o, "state", json_string(rm_run_state_name(RM_PEEK(&board->run->state))));
    if (daemon->failed)
        json_object_set_new(o, "reason", json_string(daemon->failure));
    json_object_set_new(o, "run_directory", json_string(daemon->directory.path));
    json_object_set_new(o, "config_file", json_string(daemon->settings.spec.file));
    json_object_set_new(o, "uptime_s", rm_json_finite(seconds(now - daemon->progress.started_ns)));
    json_object_set_new(o, "trained_s", rm_json_finite(seconds(end - daemon->progress.started_ns)));
    json_object_set_new(o, "adopted", adopted(daemon));
    json_object_set_new(o, "progress", progress(daemon));
    json_object_set_new(o, "rates",
                        json_pack("{s:f,s:f}", "steps_per_s", rates.steps_per_s, "updates_per_s",
                                  rates.updates_per_s));
    json_object_set_new(o, "score", scores(&board->run->scores));
    json_object_set_new(o, "evaluation", evaluation(daemon));
    json_object_set_new(o, "curriculum", curriculum(daemon));
    for (uint32_t a = 0; a < board->run->agents; a++)
        json_array_append_new(agents, agent(daemon, a));
    for (uint32_t p = 0; p < board->run->policies; p++)
        json_array_append_new(policies, policy(daemon, p));
    for (uint32_t w = 0; w < board->run->workers; w++)
        json_array_append_new(workers, worker(daemon, w, now));
    json_object_set_new(o, "agents", agents);
    json_object_set_new(o, "policies", policies);
    json_object_set_new(o, "workers", workers);
    if (daemon->control) {
        struct rm_control_counts c = rm_control_counts(daemon->control);
        json_object_set_new(o, "control",
                            json_pack("{s:o,s:o,s:o,s:o,s:o}", "clients", count(c.clients),
                                      "requests", count(c.requests), "refusals", count(c.refusals),
                                      "slow_closed", count(c.slow_closed), "events_lost",
                                      count(c.events_lost)));
    }
    json_object_set_new(o, "loop", loop(&daemon->stall));
    json_object_set_new(o, "writers", writers(daemon));
    json_object_set_new(o, "reader", reader(daemon));
    return rm_json_whole(o, mark);
}

/* --- metrics: the raw tables ----------------------------------------------------------------- */

static json_t *values(const struct rm_metric *metrics, size_t n, const void *block)
{
    json_t *o = json_object();
    for (size_t i = 0; i < n; i++) {
        double value = rm_metric_value(&metrics[i], block);
        json_object_set_new(o, metrics[i].name,
                            metrics[i].type != RM_METRIC_F64 ? count((uint64_t)value)
                                                             : rm_json_finite(value));
    }
    return o;
}

static json_t *definitions(const struct rm_metric *metrics, size_t n)
{
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            all, json_pack("{s:s,s:s,s:s,s:s}", "name", metrics[i].name, "unit", metrics[i].unit,
                           "kind", metrics[i].kind == RM_METRIC_COUNTER ? "counter" : "gauge",
                           "description", metrics[i].doc));
    return all;
}

/* Where values are in their blocks. */
static json_t *places(const struct rm_metric *metrics, size_t n)
{
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(all, json_pack("{s:s,s:s,s:I}", "name", metrics[i].name, "type",
                                             metrics[i].type != RM_METRIC_F64 ? "u64" : "f64", "at",
                                             (json_int_t)metrics[i].offset));
    return all;
}

static json_int_t place(const struct rm_board_view *board, const void *block)
{
    return (json_int_t)((const uint8_t *)block - (const uint8_t *)board->region.base);
}

json_t *rm_daemon_counters(const struct rm_daemon *daemon)
{
    const struct rm_board_view *board = &daemon->session.board;
    json_t *policies = json_array(), *workers = json_array();
    char path[48], hash[20];
    for (uint32_t p = 0; p < board->run->policies; p++)
        json_array_append_new(policies, json_pack("{s:s,s:I}", "name", board->policies[p].name,
                                                  "at", place(board, &board->policies[p])));
    for (uint32_t w = 0; w < board->run->workers; w++)
        json_array_append_new(workers, json_pack("{s:s,s:I}", "name", board->workers[w].name, "at",
                                                 place(board, &board->workers[w])));
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)uv_os_getpid(), board->region.fd);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)rm_layout_hash());
    return json_pack("{s:s,s:I,s:I,s:s,s:o,s:o,s:o,s:o}", "path", path, "bytes",
                     (json_int_t)board->region.bytes, "layout", (json_int_t)RM_LAYOUT_VERSION,
                     "layout_hash", hash, "policies", policies, "workers", workers, "policy_values",
                     places(rm_policy_metrics, rm_policy_metric_count), "worker_values",
                     places(rm_worker_metrics, rm_worker_metric_count));
}

/* Hot keys, as they are now. */
static json_t *settings(const struct rm_board_run *run)
{
    json_t *all = json_object();
    for (size_t i = 0; i < rm_key_count; i++)
        if (rm_keys[i].hot != RM_COLD)
            json_object_set_new(all, rm_keys[i].path,
                                rm_json_finite(RM_PEEK(&run->settings[rm_keys[i].hot])));
    return all;
}

json_t *rm_daemon_metrics(struct rm_daemon *daemon, bool describe)
{
    const struct rm_board_view *board = &daemon->session.board;
    json_t *policies = json_array(), *workers = json_array();
    for (uint32_t p = 0; p < board->run->policies; p++)
        json_array_append_new(
            policies,
            json_pack("{s:s,s:o}", "name", board->policies[p].name, "values",
                      values(rm_policy_metrics, rm_policy_metric_count, &board->policies[p])));
    for (uint32_t w = 0; w < board->run->workers; w++)
        json_array_append_new(
            workers,
            json_pack("{s:s,s:s,s:o}", "name", board->workers[w].name, "role",
                      rm_role_name(RM_PEEK(&board->workers[w].role)), "values",
                      values(rm_worker_metrics, rm_worker_metric_count, &board->workers[w])));
    const double time_s =
        daemon->metrics.before_s + seconds(rm_now_ns() - daemon->progress.started_ns);
    json_t *o =
        json_pack("{s:f,s:o,s:o,s:o,s:o}", "time_s", time_s, "policies", policies, "workers",
                  workers, "loop", loop(&daemon->stall), "writers", writers(daemon));
    struct rm_host host;
    rm_host_read(&host);
    json_object_set_new(o, "steps", count(rm_session_steps(&daemon->session)));
    json_object_set_new(o, "settings", settings(board->run));
    json_object_set_new(o, "host",
                        json_pack("{s:o,s:o,s:o,s:o}", "cores", rm_json_finite(host.cores), "cpu_s",
                                  rm_json_finite(host.cpu_s), "steal_s",
                                  rm_json_finite(host.steal_s), "daemon_cpu_s",
                                  rm_json_finite(host.daemon_s)));
    if (describe && o)
        json_object_set_new(o, "definitions",
                            json_pack("{s:o,s:o}", "policies",
                                      definitions(rm_policy_metrics, rm_policy_metric_count),
                                      "workers",
                                      definitions(rm_worker_metrics, rm_worker_metric_count)));
    return o;
}
