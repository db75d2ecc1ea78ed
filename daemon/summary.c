/* The tables at the end of a run in the foreground. */
#include "daemon/console.h"

#include "config/traits.h"
#include "daemon/daemon.h"
#include "shm/atomic.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

/* A number in `width` columns, or a dash. */
static void cell(FILE *out, int width, int decimals, double value)
{
    if (isfinite(value))
        fprintf(out, " %*.*f", width, decimals, value);
    else
        fprintf(out, " %*s", width, "-");
}

static void agents_table(FILE *out, const struct rm_board_view *board)
{
    bool evaluated = RM_PEEK(&board->run->evaluations) > 0;
    fprintf(out, "\n%-16s %9s %9s %10s %8s %8s %9s %8s %8s\n", "agent", "first 100", "last 100",
            "env steps", "updates", "versions", "lag worst", "lag mean", "greedy");
    for (uint32_t a = 0; a < board->run->agents; a++) {
        const struct rm_board_agent *agent = &board->agents[a];
        const struct rm_board_policy *policy = &board->policies[RM_PEEK(&agent->policy)];
        double first = NAN, last = NAN;
        uint64_t lags = RM_PEEK(&policy->lag_count);
        rm_scores_first(&agent->scores, &first);
        rm_scores_last(&agent->scores, &last);
        fprintf(out, "%-16.16s", agent->name);
        cell(out, 9, 1, first);
        cell(out, 9, 1, last);
        cell(out, 10, 0, (double)RM_PEEK(&policy->env_steps));
        cell(out, 8, 0, (double)RM_PEEK(&policy->updates));
        cell(out, 8, 0, (double)RM_PEEK(&policy->published));
        cell(out, 9, 0, (double)RM_PEEK(&policy->lag_max));
        cell(out, 8, 2, lags ? (double)RM_PEEK(&policy->lag_sum) / (double)lags : NAN);
        cell(out, 8, 1, evaluated ? RM_PEEK(&agent->eval_mean) : NAN);
        fputc('\n', out);
    }
    if (board->run->agents > 1) {
        double first = NAN, last = NAN;
        rm_scores_first(&board->run->scores, &first);
        rm_scores_last(&board->run->scores, &last);
        fprintf(out, "%-16s", "together");
        cell(out, 9, 1, first);
        cell(out, 9, 1, last);
        fputc('\n', out);
    }
}

static void greedy_score(FILE *out, const struct rm_daemon *daemon)
{
    const struct rm_board_run *run = daemon->session.board.run;
    if (RM_PEEK(&run->evaluations) == 0)
        return;
    const uint64_t episodes = RM_PEEK(&run->eval_episodes);
    fprintf(out, "\n%s score %.1f +- %.1f over %llu %s",
            rm_evaluation_word(&daemon->session.experiment), RM_PEEK(&run->eval_score_mean),
            RM_PEEK(&run->eval_score_stderr), (unsigned long long)episodes,
            rm_plural(episodes, "episode", "episodes"));
    if (isfinite(daemon->world.score_random))
        fprintf(out, "; a random policy scores %.1f", daemon->world.score_random);
    if (isfinite(daemon->world.score_solved))
        fprintf(out, ", solved is %.1f", daemon->world.score_solved);
    fputc('\n', out);
}

#define SHOWN_PERCENT 0.5

/* As wide as its name, and wide enough for 100.0. */
static int phase_width(int phase)
{
    int width = (int)strlen(rm_phase_name((enum rm_phase)phase));
    return width < 5 ? 5 : width;
}

/* Columns only for phases that somebody spent some time in. */
static void phases_table(FILE *out, const struct rm_board_view *board)
{
    double share[RM_BOARD_WORKERS][RM_PHASE_COUNT];
    bool shown[RM_PHASE_COUNT] = {false};
    for (uint32_t w = 0; w < board->run->workers; w++) {
        double total = 0;
        for (int p = 0; p < RM_PHASE_COUNT; p++)
            total += (double)RM_PEEK(&board->workers[w].phase_ns[p]);
        for (int p = 0; p < RM_PHASE_COUNT; p++) {
            double ns = (double)RM_PEEK(&board->workers[w].phase_ns[p]);
            share[w][p] = total > 0 ? 100 * ns / total : NAN;
            shown[p] |= share[w][p] >= SHOWN_PERCENT;
        }
    }
    fprintf(out, "\n%-20s", "time in percent");
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        if (shown[p])
            fprintf(out, " %*s", phase_width(p), rm_phase_name((enum rm_phase)p));
    fputc('\n', out);
    for (uint32_t w = 0; w < board->run->workers; w++) {
        if (!isfinite(share[w][0])) /* no time booked: has no process in this mode */
            continue;
        fprintf(out, "%-20.20s", board->workers[w].name);
        for (int p = 0; p < RM_PHASE_COUNT; p++)
            if (shown[p])
                cell(out, phase_width(p), 1, share[w][p]);
        fputc('\n', out);
    }
}

static void deaths(FILE *out, const struct rm_daemon *daemon)
{
    for (uint32_t w = 0; w < daemon->supervisor.count; w++) {
        const struct rm_supervised_worker *worker = &daemon->supervisor.workers[w];
        if (worker->deaths)
            fprintf(out, "%s died %llu %s, the last time: %s\n",
                    daemon->session.board.workers[w].name, (unsigned long long)worker->deaths,
                    rm_plural(worker->deaths, "time", "times"), worker->reason);
    }
}

void rm_console_summary(struct rm_console *console, struct rm_daemon *daemon)
{
    FILE *out = console->out;
    if (!out)
        return;
    rm_console_clear(console);
    double trained = daemon->trained_ns > daemon->started_ns
                         ? (double)(daemon->trained_ns - daemon->started_ns) / 1e9
                         : 0;
    uint64_t steps = rm_daemon_agent_steps(daemon), updates = rm_daemon_updates(daemon);
    agents_table(out, &daemon->session.board);
    greedy_score(out, daemon);
    fprintf(out, "trained %.1f s: %llu agent %s (%.0f/s), %llu %s (%.0f/s)\n", trained,
            (unsigned long long)steps, rm_plural(steps, "step", "steps"),
            trained > 0 ? (double)steps / trained : 0.0, (unsigned long long)updates,
            rm_plural(updates, "update", "updates"), trained > 0 ? (double)updates / trained : 0.0);
    phases_table(out, &daemon->session.board);
    fputc('\n', out);
    deaths(out, daemon);
    fprintf(out, "run directory: %s\n", daemon->directory.path);
    /* Whoever read it and has gone wants no more; anything else is the caller's to complain of. */
    if (fflush(out) && errno == EPIPE) {
        __fpurge(out);
        clearerr(out);
    }
}
