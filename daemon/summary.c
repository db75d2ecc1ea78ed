/* Prints the tables at the end of a run in the foreground. */
#include "daemon/console.h"

#include "config/traits.h"
#include "daemon/checkpoint_files.h"
#include "daemon/format.h"
#include "daemon/table.h"
#include "shm/atomic.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

/* A number, or a dash. */
static void cell(struct rm_table *table, int decimals, double value)
{
    if (isfinite(value))
        rm_table_cell(table, "%.*f", decimals, value);
    else
        rm_table_cell(table, "-");
}

/* A score or a lag, to as many digits as tell 0.96 from 1. */
static void measure(struct rm_table *table, double value)
{
    rm_table_cell(table, "%s", rm_format_measure(value).s);
}

static void agent_row(struct rm_table *table, const struct rm_board_view *board, uint32_t a)
{
    const struct rm_board_agent *agent = &board->agents[a];
    const struct rm_board_policy *policy = &board->policies[RM_PEEK(&agent->policy)];
    const uint64_t lags = RM_PEEK(&policy->lag_count);
    double first = NAN, last = NAN;
    rm_scores_first(&agent->scores, &first);
    rm_scores_last(&agent->scores, &last);
    rm_table_cell(table, "%s", agent->name);
    measure(table, first);
    measure(table, last);
    cell(table, 0, (double)RM_PEEK(&agent->env_steps));
    cell(table, 0, (double)RM_PEEK(&policy->updates));
    cell(table, 0, (double)RM_PEEK(&policy->published));
    cell(table, 0, (double)RM_PEEK(&policy->lag_max));
    cell(table, 2, lags ? (double)RM_PEEK(&policy->lag_sum) / (double)lags : NAN);
    measure(table, RM_PEEK(&board->run->evaluations) > 0 ? RM_PEEK(&agent->eval_mean) : NAN);
}

static void agents_table(FILE *out, const struct rm_board_view *board, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"agent", true, 0},      {"first 100", false, 3}, {"last 100", false, 0},
        {"env steps", false, 1}, {"updates", false, 2},   {"versions", false, 6},
        {"lag worst", false, 5}, {"lag mean", false, 4},  {"greedy", false, 0},
    };
    enum { COLUMNS = sizeof columns / sizeof columns[0] };
    struct rm_table table;
    rm_table_begin(&table, columns, COLUMNS);
    for (uint32_t a = 0; a < board->run->agents; a++)
        agent_row(&table, board, a);
    if (board->run->agents > 1) {
        double first = NAN, last = NAN;
        rm_scores_first(&board->run->scores, &first);
        rm_scores_last(&board->run->scores, &last);
        rm_table_cell(&table, "together");
        measure(&table, first);
        measure(&table, last);
        for (int c = 3; c < COLUMNS; c++)
            rm_table_cell(&table, "-");
    }
    fputc('\n', out);
    rm_table_end(&table, out, style);
}

/* The world's figures of episodes, if there are any. */
static void figures_table(FILE *out, const struct rm_board_view *board,
                          const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"agent", true, 0}, {"figure", true, 0}, {"last 100", false, 0}, {"greedy", false, 0}};
    struct rm_table table;
    if (!board->run->figures)
        return;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t a = 0; a < board->run->agents; a++)
        for (uint32_t f = 0; f < board->run->figures; f++) {
            const struct rm_board_figure *figure = &board->run->figure[f];
            for (uint32_t k = 0; k < rm_board_figure_values(figure); k++) {
                rm_table_cell(&table, "%s", f + k == 0 ? board->agents[a].name : "");
                rm_table_cell(&table, "%s%s%s", figure->name, figure->words ? ": " : "",
                              figure->words ? figure->word[k] : "");
                measure(&table, rm_board_figure_last(board, a, f, k));
                measure(&table, rm_board_figure_evaluated(board, a, f, k));
            }
        }
    fputc('\n', out);
    rm_table_end(&table, out, style);
}

static void greedy_score(FILE *out, const struct rm_session *session,
                         const struct rm_world_facts *world)
{
    const struct rm_board_run *run = session->board.run;
    if (RM_PEEK(&run->evaluations) == 0)
        return;
    const uint64_t episodes = RM_PEEK(&run->eval_episodes);
    fprintf(out, "\n%s score %s +- %s over %llu %s", rm_evaluation_word(&session->experiment),
            rm_format_number(RM_PEEK(&run->eval_score_mean)).s,
            rm_format_number(RM_PEEK(&run->eval_score_stderr)).s, (unsigned long long)episodes,
            rm_plural(episodes, "episode", "episodes"));
    if (isfinite(world->score_random))
        fprintf(out, "; a random policy scores %s", rm_format_number(world->score_random).s);
    if (isfinite(world->score_solved))
        fprintf(out, ", solved is %s", rm_format_number(world->score_solved).s);
    fputc('\n', out);
}

#define SHOWN_PERCENT 0.5

struct shares {
    double of[RM_BOARD_WORKERS][RM_PHASE_COUNT]; /* percent of the time booked; NAN: none */
    double most[RM_PHASE_COUNT];                 /* that any worker spent in it */
};

static void take_shares(struct shares *shares, const struct rm_board_view *board)
{
    memset(shares, 0, sizeof *shares);
    for (uint32_t w = 0; w < board->run->workers; w++) {
        double total = 0;
        const struct rm_board_worker *slot = &board->workers[w];
        for (int p = 0; p < RM_PHASE_COUNT; p++)
            total += (double)rm_board_spent_ns(slot, &slot->phase_ns[p]);
        for (int p = 0; p < RM_PHASE_COUNT; p++) {
            const double ns = (double)rm_board_spent_ns(slot, &slot->phase_ns[p]);
            shares->of[w][p] = total > 0 ? 100 * ns / total : NAN;
            shares->most[p] = fmax(shares->most[p], shares->of[w][p]);
        }
    }
}

/* Columns only for phases in which a worker spent some time; in a narrow terminal those stay in
 * which most was spent. */
static void phases_table(FILE *out, const struct rm_board_view *board, const struct rm_style *style)
{
    static struct shares shares;
    struct rm_column columns[1 + RM_PHASE_COUNT] = {{"time in percent", true, 0}};
    int phase[RM_PHASE_COUNT], count = 0;
    struct rm_table table;
    take_shares(&shares, board);
    for (int p = 0; p < RM_PHASE_COUNT; p++) {
        if (shares.most[p] < SHOWN_PERCENT)
            continue;
        int larger = 0;
        for (int q = 0; q < RM_PHASE_COUNT; q++)
            larger += shares.most[q] > shares.most[p];
        phase[count++] = p;
        columns[count] = (struct rm_column){rm_phase_name((enum rm_phase)p), false, larger};
    }
    rm_table_begin(&table, columns, (size_t)count + 1);
    for (uint32_t w = 0; w < board->run->workers; w++) {
        if (!isfinite(shares.of[w][0])) /* no time booked: has no process in this mode */
            continue;
        rm_table_cell(&table, "%s", board->workers[w].name);
        for (int i = 0; i < count; i++)
            cell(&table, 1, shares.of[w][phase[i]]);
    }
    if (table.cell_count)
        fputc('\n', out);
    rm_table_end(&table, out, style);
}

static void deaths(FILE *out, const struct rm_session *session,
                   const struct rm_supervisor *supervisor)
{
    for (uint32_t w = 0; w < supervisor->count; w++) {
        const struct rm_supervised_worker *worker = &supervisor->workers[w];
        if (worker->deaths)
            fprintf(out, "%s died %llu %s, the last time: %s\n", session->board.workers[w].name,
                    (unsigned long long)worker->deaths, rm_plural(worker->deaths, "time", "times"),
                    worker->reason);
    }
}

/* A reader that has gone is not an error; the caller reports other errors. */
static void flush(FILE *out)
{
    if (fflush(out) && errno == EPIPE) {
        __fpurge(out);
        clearerr(out);
    }
}

/* Of a run that was stopped: how far it came, and how it goes on. */
static void stopped(FILE *out, const struct rm_session *session, const char *run_directory)
{
    const struct rm_board_run *run = session->board.run;
    const uint64_t budget = run->env_steps_budget;
    uint64_t newest;
    if (RM_PEEK(&run->state) != RM_RUN_STOPPED)
        return;
    fputs("stopped", out);
    if (budget && !rm_experiment_is_offline(&session->experiment))
        fprintf(out, " at %.1f %% of run.steps",
                100 * fmin(1, (double)rm_session_steps(session) / (double)budget));
    fputs(rm_checkpoint_list(run_directory, &newest, 1) ? "; the same command resumes it\n" : "\n",
          out);
}

void rm_console_summary(struct rm_console *console, const struct rm_progress *progress,
                        const struct rm_supervisor *supervisor, const struct rm_world_facts *world,
                        const char *run_directory)
{
    FILE *out = console->out;
    const struct rm_session *session = progress->session;
    if (!out)
        return;
    const struct rm_style style = {.width = rm_style_of(out).width, .whole = true};
    rm_console_clear(console);
    double trained = progress->trained_ns > progress->started_ns
                         ? (double)(progress->trained_ns - progress->started_ns) / 1e9
                         : 0;
    const struct rm_progress_rates rates = rm_progress_rates(progress);
    const uint64_t before = progress->agent_steps_before;
    const uint64_t all = rm_session_agent_steps(session), steps = all - before;
    const uint64_t updates = rm_session_updates(session) - progress->updates_before;
    agents_table(out, &session->board, &style);
    figures_table(out, &session->board, &style);
    greedy_score(out, session, world);
    fprintf(out, "trained %.1f s: %llu agent %s (%.0f/s), %llu %s (%.0f/s)\n", trained,
            (unsigned long long)steps, rm_plural(steps, "step", "steps"),
            trained > 0 ? rates.steps_per_s : 0.0, (unsigned long long)updates,
            rm_plural(updates, "update", "updates"), trained > 0 ? rates.updates_per_s : 0.0);
    if (before)
        fprintf(out, "the whole run, from its first start: %llu agent steps, %llu updates\n",
                (unsigned long long)all, (unsigned long long)rm_session_updates(session));
    stopped(out, session, run_directory);
    phases_table(out, &session->board, &style);
    fputc('\n', out);
    deaths(out, session, supervisor);
    fprintf(out, "run directory: %s\n", run_directory);
    flush(out);
}

void rm_console_report(const struct rm_console *console, const char *page)
{
    if (page)
        fprintf(console->out, "report: %s\n", page);
    flush(console->out);
}
