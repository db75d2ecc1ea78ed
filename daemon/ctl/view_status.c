#include "daemon/format.h"
#include "daemon/ctl/view.h"
#include "shm/base/plural.h"

#include <math.h>
#include <string.h>

#define BAR_CELLS 30

static void print_progress(FILE *out, const struct rm_snapshot *s)
{
    double progress = rm_snapshot_progress(s);
    if (isnan(progress)) {
        fprintf(out, "steps      %s per agent, no end set", rm_format_count(s->steps).s);
    } else {
        int full = (int)(progress * BAR_CELLS);
        fprintf(out, "progress   [");
        for (int i = 0; i < BAR_CELLS; i++)
            fputc(i < full ? '#' : '.', out);
        fprintf(out, "] %s  %s of %s steps per agent", rm_format_percent(progress).s,
                rm_format_count(s->steps).s, rm_format_count(s->steps_budget).s);
    }
    if (!isnan(s->left_s))
        fprintf(out, ", %s left", rm_format_duration(s->left_s).s);
    fputc('\n', out);
}

static void print_head(FILE *out, const struct rm_snapshot *s, const struct rm_style *style)
{
    fprintf(out, "%s%s%s: %s%s%s", rm_style_bold(style), s->name, rm_style_off(style),
            rm_style_state(style, s->state), s->state, rm_style_off(style));
    if (s->mode[0])
        fprintf(out, ", mode %s", s->mode);
    if (!isnan(s->pid))
        fprintf(out, ", pid %.0f", s->pid);
    if (!isnan(s->uptime_s))
        fprintf(out, ", up %s", rm_format_duration(s->uptime_s).s);
    if (!isnan(s->rss_bytes))
        fprintf(out, ", %s in workers", rm_format_bytes(s->rss_bytes).s);
    fputc('\n', out);
    if (s->error[0])
        fprintf(out, "reason     %s\n", s->error);
    print_progress(out, s);
    if (!isnan(s->steps_per_s))
        fprintf(out, "speed      %s steps/s of all agents, %s updates/s\n",
                rm_format_count(s->steps_per_s).s, rm_format_count(s->updates_per_s).s);
    if (s->episodes > 0)
        fprintf(out, "score      %s %s, first %s, last %s\n", rm_format_count(s->episodes).s,
                rm_plural((uint64_t)s->episodes, "episode", "episodes"),
                rm_format_measure(s->score_first).s, rm_format_measure(s->score_last).s);
    if (s->stages > 0) {
        fprintf(out, "stage      %.0f of %.0f", s->stage, s->stages);
        if (!isnan(s->stage_mean))
            fprintf(out, ", %s %s over %s %s, next at %s", s->stage_figure,
                    rm_format_measure(s->stage_mean).s, rm_format_count(s->stage_episodes).s,
                    rm_plural((uint64_t)s->stage_episodes, "episode", "episodes"),
                    rm_format_measure(s->stage_bound).s);
        fputc('\n', out);
    }
    if (s->evaluations > 0) {
        fprintf(out, "greedy     %s +- %s over %s %s, evaluation %.0f",
                rm_format_measure(s->eval_mean).s, rm_format_measure(s->eval_stderr).s,
                rm_format_count(s->eval_episodes).s,
                rm_plural((uint64_t)s->eval_episodes, "episode", "episodes"), s->evaluations);
        if (!isnan(s->score_random))
            fprintf(out, "; random play %s", rm_format_measure(s->score_random).s);
        fputc('\n', out);
    }
    if (s->directory[0])
        fprintf(out, "results    %s\n", s->directory);
}

static void print_agents(FILE *out, const struct rm_snapshot *s, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"AGENT", true, 0},  {"POLICY", true, 2}, {"STEPS", false, 4},  {"EPISODES", false, 3},
        {"FIRST", false, 1}, {"LAST", false, 0},  {"GREEDY", false, 0}, {"+-", false, 5},
    };
    struct rm_table table;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (unsigned i = 0; i < s->agents; i++) {
        const struct rm_snapshot_agent *a = &s->agent[i];
        rm_table_cell(&table, "%s", a->name);
        rm_table_cell(&table, "%s", a->policy);
        rm_table_cell(&table, "%s", rm_format_count(a->env_steps).s);
        rm_table_cell(&table, "%s", rm_format_count(a->episodes).s);
        rm_table_cell(&table, "%s", rm_format_measure(a->first).s);
        rm_table_cell(&table, "%s", rm_format_measure(a->last).s);
        rm_table_cell(&table, "%s", rm_format_measure(a->eval_mean).s);
        rm_table_cell(&table, "%s", rm_format_measure(a->eval_stderr).s);
    }
    fputs(s->agents ? "\n" : "", out);
    rm_table_end(&table, out, style);
}

/* The figures of episodes, by agent. */
static void print_figures(FILE *out, const struct rm_snapshot *s, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"AGENT", true, 0}, {"FIGURE", true, 0}, {"LAST", false, 0}, {"GREEDY", false, 0}};
    struct rm_table table;
    unsigned rows = 0;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (unsigned i = 0; i < s->agents; i++)
        for (unsigned f = 0; f < s->agent[i].figures; f++, rows++) {
            const struct rm_snapshot_figure *figure = &s->agent[i].figure[f];
            rm_table_cell(&table, "%s", f == 0 ? s->agent[i].name : "");
            rm_table_cell(&table, "%s", figure->name);
            rm_table_cell(&table, "%s", rm_format_measure(figure->last).s);
            rm_table_cell(&table, "%s", rm_format_measure(figure->evaluated).s);
        }
    fputs(rows ? "\n" : "", out);
    rm_table_end(&table, out, style);
}

static void print_policies(FILE *out, const struct rm_snapshot *s, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"POLICY", true, 0},    {"STEPS", false, 0},   {"UPDATES", false, 0}, {"SKIPPED", false, 8},
        {"VERSIONS", false, 5}, {"REPLAY", false, 1},  {"RATIO", false, 2},   {"LAG", false, 3},
        {"WORST", false, 6},    {"EPSILON", false, 4}, {"LOSS", false, 1},    {"RATE", false, 7},
    };
    struct rm_table table;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (unsigned i = 0; i < s->policies; i++) {
        const struct rm_snapshot_policy *p = &s->policy[i];
        rm_table_cell(&table, "%s", p->name);
        rm_table_cell(&table, "%s", rm_format_count(p->env_steps).s);
        rm_table_cell(&table, "%s", rm_format_count(p->updates).s);
        rm_table_cell(&table, "%s", rm_format_count(p->updates_skipped).s);
        rm_table_cell(&table, "%s", rm_format_count(p->published).s);
        rm_table_cell(&table, "%s", rm_format_percent(p->replay_fill).s);
        rm_table_cell(&table, "%s", rm_format_measure(p->replay_ratio).s);
        rm_table_cell(&table, "%s", rm_format_measure(p->lag_mean).s);
        rm_table_cell(&table, "%s", rm_format_count(p->lag_max).s);
        rm_table_cell(&table, "%s", rm_format_number(p->epsilon).s);
        rm_table_cell(&table, "%s", rm_format_measure(p->loss).s);
        rm_table_cell(&table, "%s", rm_format_number(p->learning_rate).s);
    }
    fputs(s->policies ? "\n" : "", out);
    rm_table_end(&table, out, style);
}

/* Of policies that learn from rollouts. */
static void print_rollouts(FILE *out, const struct rm_snapshot *s, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"POLICY", true, 0},     {"ROLLOUTS", false, 0},    {"DROPPED", false, 5},
        {"ENTROPY", false, 0},   {"KL", false, 0},          {"CLIPPED", false, 3},
        {"EXPLAINED", false, 1}, {"POLICY LOSS", false, 4}, {"VALUE LOSS", false, 2},
    };
    struct rm_table table;
    unsigned rows = 0;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (unsigned i = 0; i < s->policies; i++) {
        const struct rm_snapshot_policy *p = &s->policy[i];
        if (isnan(p->rollouts))
            continue;
        rows++;
        rm_table_cell(&table, "%s", p->name);
        rm_table_cell(&table, "%s", rm_format_count(p->rollouts).s);
        rm_table_cell(&table, "%s", rm_format_count(p->dropped).s);
        rm_table_cell(&table, "%s", rm_format_measure(p->entropy).s);
        rm_table_cell(&table, "%s", rm_format_measure(p->kl).s);
        rm_table_cell(&table, "%s", rm_format_percent(p->clipped).s);
        rm_table_cell(&table, "%s", rm_format_measure(p->explained).s);
        rm_table_cell(&table, "%s", rm_format_measure(p->policy_loss).s);
        rm_table_cell(&table, "%s", rm_format_measure(p->value_loss).s);
    }
    fputs(rows ? "\n" : "", out);
    rm_table_end(&table, out, style);
}

/* The three phases that take most: "environment 52%, inference 31%, waiting 9%". */
static void phases_text(const struct rm_snapshot_worker *w, char *text, size_t size)
{
    double share[RM_PHASE_COUNT];
    rm_snapshot_phases(w, NULL, share);
    text[0] = '\0';
    for (int n = 0; n < 3; n++) {
        int most = 0;
        for (int p = 1; p < RM_PHASE_COUNT; p++)
            if (share[p] > share[most])
                most = p;
        if (share[most] < 0.005)
            break;
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s %.0f%%", used ? ", " : "",
                 rm_phase_name((enum rm_phase)most), 100 * share[most]);
        share[most] = 0;
    }
    if (!text[0])
        snprintf(text, size, "-");
}

static void print_workers(FILE *out, const struct rm_snapshot *s, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"WORKER", true, 0},  {"PID", false, 1},    {"STATE", true, 0},   {"DOES", true, 3},
        {"STARTS", false, 2}, {"DEATHS", false, 0}, {"MEMORY", false, 4}, {"TIME GOES TO", true, 5},
    };
    struct rm_table table;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (unsigned i = 0; i < s->workers; i++) {
        const struct rm_snapshot_worker *w = &s->worker[i];
        char phases[128];
        phases_text(w, phases, sizeof phases);
        rm_table_cell(&table, "%s", w->name);
        if (w->pid > 0)
            rm_table_cell(&table, "%.0f", w->pid);
        else
            rm_table_cell(&table, "-");
        rm_table_cell(&table, "%s", w->supervised[0] ? w->supervised : "-");
        rm_table_cell(&table, "%s", w->state[0] ? w->state : "-");
        rm_table_cell(&table, "%s", rm_format_count(w->generation).s);
        rm_table_cell(&table, "%s", rm_format_count(w->deaths).s);
        rm_table_cell(&table, "%s", rm_format_bytes(w->rss_bytes).s);
        rm_table_cell(&table, "%s", phases);
    }
    fputs(s->workers ? "\n" : "", out);
    rm_table_end(&table, out, style);
    for (unsigned i = 0; i < s->workers; i++)
        if (s->worker[i].deaths > 0 && s->worker[i].reason[0])
            fprintf(out, "%s died last: %s\n", s->worker[i].name, s->worker[i].reason);
    for (unsigned i = 0; i < s->workers; i++)
        if (strncmp(s->worker[i].device, "GPU-", 4) == 0)
            fprintf(out, "%s trains on %s\n", s->worker[i].name, s->worker[i].device);
    for (unsigned i = 0; i < s->workers; i++)
        if (s->worker[i].recorded >= 0)
            fprintf(out, "%s: %s rows in %s, %s lost\n", s->worker[i].name,
                    rm_format_count(s->worker[i].recorded).s,
                    rm_format_bytes(s->worker[i].recorded_bytes).s,
                    rm_format_count(s->worker[i].lost).s);
}

void rm_view_status(FILE *out, const struct rm_snapshot *snapshot, const struct rm_style *style)
{
    print_head(out, snapshot, style);
    print_agents(out, snapshot, style);
    print_figures(out, snapshot, style);
    print_policies(out, snapshot, style);
    print_rollouts(out, snapshot, style);
    print_workers(out, snapshot, style);
}
