/* report: writes one HTML page about runs, which contains its plots. */
#include "daemon/ctl/command.h"

#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/explain.h"
#include "daemon/ctl/find.h"
#include "daemon/ctl/lines.h"
#include "daemon/ctl/plot.h"
#include "daemon/ctl/seeds.h"
#include "daemon/ctl/snapshot.h"
#include "daemon/ctl/tool.h"
#include "daemon/format.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RUNS_MAX     RM_CTL_REST_MAX
#define HAPPENED_MAX 200 /* lines of a log that are shown */
#define AGENTS_MAX   12  /* of a plot: there are as many colours */

struct run {
    char directory[PATH_MAX]; /* without links: `latest` moves on */
    json_t *status, *config;
    char *settings; /* those that runs of one experiment have in common */
    struct rm_snapshot now;
    struct rm_curve score, evaluations;
};

struct report {
    FILE *out;
    const char *plots; /* a directory, or NULL */
    struct run *runs[RUNS_MAX];
    size_t count, group, groups; /* runs; the experiment, from 1 (0: of all of them); experiments */
};

/* --- reading ---------------------------------------------------------------------------------- */

static json_int_t seed_of(const struct run *run)
{
    return json_integer_value(json_object_get(run->config, "seed"));
}

/* All settings but those by which seeds of one experiment differ. */
static char *settings_in_common(const json_t *config)
{
    static const char *const own[] = {"seed", "name", "control", "report", "sweep"};
    json_t *left = json_deep_copy(config);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        json_object_del(left, own[i]);
    json_object_del(json_object_get(left, "run"), "directory");
    char *text = json_dumps(left, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(left);
    return text;
}

static int read_run(struct run *run, const struct rm_ctl_arguments *given, const char *name)
{
    char path[PATH_MAX + 16];
    const int rc = rm_find_status(path, &run->status, given, name);
    if (rc)
        return rc;
    if (!realpath(path, run->directory))
        return rm_ctl_complain(RM_CTL_FAILED, "%s: %s", path, strerror(errno));
    snprintf(path, sizeof path, "%s/config.json", run->directory);
    run->config = json_load_file(path, 0, NULL);
    if (!run->config)
        return rm_ctl_complain(RM_CTL_FAILED, "%s/config.json cannot be read", run->directory);
    run->settings = settings_in_common(run->config);
    if (!run->settings)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory for a run");
    rm_snapshot_read(&run->now, run->status);
    if (!run->now.name[0]) /* it was killed, and not resumed */
        snprintf(run->now.name, sizeof run->now.name, "%s",
                 json_string_value(json_object_get(run->config, "name")));
    rm_curve_read(&run->score, run->directory, "score_last", "steps");
    rm_curve_read(&run->evaluations, run->directory, "evaluation_score", "evaluation_steps");
    return 0;
}

static void free_run(struct run *run)
{
    json_decref(run->status);
    json_decref(run->config);
    free(run->settings);
    rm_curve_close(&run->score);
    rm_curve_close(&run->evaluations);
    free(run);
}

/* Runs with the same settings are neighbours: write_report() sorts them. */
static size_t group_end(const struct report *r, size_t from)
{
    size_t to = from + 1;
    while (to < r->count && !strcmp(r->runs[to]->settings, r->runs[from]->settings))
        to++;
    return to;
}

static int by_settings_and_seed(const void *a, const void *b)
{
    const struct run *x = *(struct run *const *)a, *y = *(struct run *const *)b;
    const int settings = strcmp(x->settings, y->settings);
    const json_int_t one = seed_of(x), other = seed_of(y);
    return settings ? settings : (one > other) - (one < other);
}

/* The name of a run, or the first and the last of several. */
static void title_of(const struct report *r, size_t from, size_t to, char *title, size_t size)
{
    const char *first = r->runs[from]->now.name, *last = r->runs[to - 1]->now.name;
    const bool one = !strcmp(first, last);
    snprintf(title, size, "%s%s%s", first, one ? "" : " to ", one ? "" : last);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void cell(FILE *out, const char *text)
{
    fputs("<td>", out);
    rm_html_text(out, text);
    fputs("</td>", out);
}

/* Of a picture: PATH.svg as PATH.png, by the first program that is there and can. */
static void convert(const char *svg, const char *png)
{
    const char *const lines[][6] = {{"rsvg-convert", "--zoom=2", "-o", png, svg},
                                    {"inkscape", "-o", png, svg},
                                    {"magick", svg, png},
                                    {"convert", svg, png}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (rm_tool_call(lines[i]) == 0)
            return;
}

/* On the page, and in files of its own if asked for. */
static int write_plot(struct report *r, struct rm_plot *plot, const char *name)
{
    if (!rm_plot_write(r->out, plot) || !r->plots)
        return 0;
    char number[24] = "", svg[PATH_MAX], png[PATH_MAX];
    if (r->group && r->groups > 1)
        snprintf(number, sizeof number, "%zu-", r->group);
    snprintf(svg, sizeof svg, "%s/%s%s.svg", r->plots, number, name);
    snprintf(png, sizeof png, "%s/%s%s.png", r->plots, number, name);
    FILE *file = fopen(svg, "we");
    plot->alone = true;
    if (file)
        rm_plot_write(file, plot);
    if (!file || fclose(file))
        return rm_ctl_complain(RM_CTL_FAILED, "%s: %s", svg, strerror(errno));
    convert(svg, png);
    return 0;
}

static struct rm_plot_series *add_curve(struct rm_plot *plot, const struct rm_curve *curve)
{
    struct rm_plot_series *s = rm_plot_add(plot);
    if (s) {
        s->x = curve->at;
        s->y = curve->values;
        s->count = curve->count;
    }
    return s;
}

/* Training of each agent, and its evaluations. */
static int write_agents(struct report *r, const struct run *run)
{
    struct rm_plot *plot = calloc(1, sizeof *plot);
    struct rm_curve *curves = calloc(2 * RM_BOARD_AGENTS, sizeof *curves);
    const unsigned agents = run->now.agents < AGENTS_MAX ? run->now.agents : AGENTS_MAX;
    if (!plot || !curves) {
        free(curves);
        free(plot);
        return rm_ctl_complain(RM_CTL_FAILED, "no memory for a plot");
    }
    for (unsigned a = 0; a < agents; a++) {
        char column[2 * RM_NAME_MAX];
        struct rm_curve *rewards = &curves[2 * a], *evaluations = rewards + 1;
        snprintf(column, sizeof column, "agent.%s.reward_last", run->now.agent[a].name);
        rm_curve_read(rewards, run->directory, column, "steps");
        snprintf(column, sizeof column, "agent.%s.evaluation", run->now.agent[a].name);
        rm_curve_read(evaluations, run->directory, column, "evaluation_steps");
        for (int i = 0; i < 2; i++) {
            struct rm_plot_series *s = rewards[i].count ? add_curve(plot, &rewards[i]) : NULL;
            if (!s)
                continue;
            s->colour = (int)a;
            s->points = i == 1;
            if (i == 0)
                snprintf(s->name, sizeof s->name, "%s", run->now.agent[a].name);
        }
    }
    plot->title = run->now.name;
    plot->x_label = "steps per agent";
    plot->y_label = "reward of an episode; points: evaluations";
    const int rc = write_plot(r, plot, "agents");
    if (run->now.agents > agents)
        fprintf(r->out, "<p>The first %u of %u agents are drawn.</p>\n", agents, run->now.agents);
    for (unsigned i = 0; i < 2 * agents; i++)
        rm_curve_close(&curves[i]);
    free(curves);
    free(plot);
    return rc;
}

/* Training and evaluations of the seeds of one experiment. */
static int write_curves(struct report *r, size_t from, size_t to)
{
    static struct rm_seeds seeds; /* large */
    const struct rm_curve *curves[RUNS_MAX];
    struct rm_plot *plot = calloc(1, sizeof *plot);
    const bool several = to - from > 1;
    if (!plot)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory for a plot");
    char title[2 * sizeof r->runs[0]->now.name + 8];
    title_of(r, from, to, title, sizeof title);
    *plot = (struct rm_plot){
        .title = title, .x_label = "steps per agent", .y_label = "score of an episode"};
    for (size_t i = from; i < to; i++) {
        struct rm_plot_series *s = add_curve(plot, &r->runs[i]->score);
        if (s && (s->thin = several))
            snprintf(s->name, sizeof s->name, "seed %lld", (long long)seed_of(r->runs[i]));
        else if (s)
            snprintf(s->name, sizeof s->name, "training");
        const int colour = s ? s->colour : 0;
        if (r->runs[i]->evaluations.count && (s = add_curve(plot, &r->runs[i]->evaluations))) {
            s->points = true;
            s->colour = several ? colour : colour + 1;
            if (!several)
                snprintf(s->name, sizeof s->name, "greedy evaluations");
        }
        curves[i - from] = &r->runs[i]->score;
    }
    rm_seeds_of(&seeds, curves, to - from);
    rm_plot_add_seeds(plot, &seeds, to - from);
    int rc = write_plot(r, plot, "score");
    free(plot);
    if (rc == 0 && !several && r->runs[from]->now.agents > 1)
        rc = write_agents(r, r->runs[from]);
    fprintf(r->out,
            "<p>Where a plot has more values than columns, it shows the first, the lowest, the "
            "highest and the last of each column.%s</p>\n",
            several ? " Points are greedy evaluations. The mean is drawn as far as all seeds came."
                    : "");
    return rc;
}

static void write_runs(const struct report *r, size_t from, size_t to)
{
    fputs("<table><tr><th>seed</th><th>state</th><th>agent steps</th><th>agent steps/s</th>"
          "<th>score, first</th><th>last</th><th>greedy</th><th>time</th><th>directory</th></tr>\n",
          r->out);
    for (size_t i = from; i < to; i++) {
        const struct run *run = r->runs[i];
        const struct rm_snapshot *s = &run->now;
        double steps = s->policies ? 0 : (double)NAN; /* of all agents */
        for (unsigned p = 0; p < s->policies; p++)
            steps += s->policy[p].env_steps;
        char greedy[2 * RM_FORMAT_MAX + 8];
        snprintf(greedy, sizeof greedy, "%s ± %s", rm_format_measure(s->eval_mean).s,
                 rm_format_measure(s->eval_stderr).s);
        fprintf(r->out, "<tr><td>%lld</td>", (long long)seed_of(run));
        cell(r->out, s->state[0] ? s->state : "killed or running");
        cell(r->out, rm_format_count(steps).s);
        cell(r->out, rm_format_count(s->steps_per_s).s);
        cell(r->out, rm_format_measure(s->score_first).s);
        cell(r->out, rm_format_measure(s->score_last).s);
        cell(r->out, s->evaluations > 0 ? greedy : "-");
        cell(r->out, rm_format_duration(s->uptime_s).s);
        cell(r->out, run->directory);
        fputs("</tr>\n", r->out);
    }
    fputs("</table>\n", r->out);
}

/* The curves of one figure and the means of their seeds, while a plot points to them. */
struct figure_plot {
    struct rm_plot plot;
    struct rm_curve curves[2 * RUNS_MAX * AGENTS_MAX];
    struct rm_seeds seeds[AGENTS_MAX];
    size_t curve_count, lines; /* lines: of an experiment and an agent */
};

static bool has_figure(const struct rm_snapshot_agent *agent, const char *figure)
{
    for (unsigned f = 0; f < agent->figures; f++)
        if (!strcmp(agent->figure[f].name, figure))
            return true;
    return false;
}

/* The share of a word is the figure "FIGURE: WORD" here, and FIGURE.WORD in metrics.csv. */
static const char *column_of(const char *figure, char *name, size_t size)
{
    const int length = (int)strcspn(figure, ":");
    snprintf(name, size, "%.*s%s%s", length, figure, figure[length] ? "." : "",
             figure[length] ? figure + length + 2 : "");
    return name;
}

static const struct rm_curve *read_figure(struct figure_plot *p, const struct run *run,
                                          const char *agent, const char *kind, const char *figure,
                                          const char *steps)
{
    char column[4 * RM_NAME_MAX];
    struct rm_curve *curve = &p->curves[p->curve_count++];
    char name[2 * RM_NAME_MAX + 2];
    snprintf(column, sizeof column, "agent.%s.%s.%s", agent, kind,
             column_of(figure, name, sizeof name));
    rm_curve_read(curve, run->directory, column, steps);
    return curve;
}

/* An agent in the runs [from, to) of an experiment: training as a line, evaluations as points. */
static void add_figure(struct figure_plot *p, const struct report *r, size_t from, size_t to,
                       unsigned a, const char *figure)
{
    const struct rm_snapshot *first = &r->runs[from]->now;
    const char *agent = first->agent[a].name;
    const struct rm_curve *curves[RUNS_MAX];
    const int colour = (int)p->lines;
    struct rm_plot_series *s = NULL;
    for (size_t i = from; i < to; i++) {
        curves[i - from] = read_figure(p, r->runs[i], agent, "figures", figure, "steps");
        const struct rm_curve *evaluations =
            read_figure(p, r->runs[i], agent, "evaluation_figures", figure, "evaluation_steps");
        if (evaluations->count && (s = add_curve(&p->plot, evaluations))) {
            s->points = true;
            s->colour = colour;
        }
    }
    struct rm_seeds *seeds = &p->seeds[p->lines++];
    rm_seeds_of(seeds, curves, to - from);
    s = to - from > 1 ? rm_plot_add_seeds(&p->plot, seeds, to - from)
                      : add_curve(&p->plot, curves[0]);
    if (!s)
        return;
    char title[2 * sizeof first->name + 8];
    title_of(r, from, to, title, sizeof title);
    s->colour = colour;
    snprintf(s->name, sizeof s->name, "%.160s%s%.64s", title, first->agents > 1 ? ", " : "",
             first->agents > 1 ? agent : "");
}

/* One figure of the world in all runs that count it. */
static int write_figure(struct report *r, const char *figure)
{
    struct figure_plot *p = calloc(1, sizeof *p);
    char file[2 * RM_NAME_MAX + 16];
    if (!p)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory for a plot");
    p->plot = (struct rm_plot){.title = figure,
                               .x_label = "steps per agent",
                               .y_label = "mean over episodes; points: evaluations"};
    unsigned found = 0;
    for (size_t from = 0, to; from < r->count; from = to) {
        to = group_end(r, from);
        for (unsigned a = 0; a < r->runs[from]->now.agents; a++)
            if (has_figure(&r->runs[from]->now.agent[a], figure) && found++ < AGENTS_MAX)
                add_figure(p, r, from, to, a, figure);
    }
    char name[2 * RM_NAME_MAX + 2];
    snprintf(file, sizeof file, "figure-%s", column_of(figure, name, sizeof name));
    const int rc = write_plot(r, &p->plot, file);
    if (found > AGENTS_MAX)
        fprintf(r->out, "<p>The first %d of %u lines are drawn.</p>\n", AGENTS_MAX, found);
    while (p->curve_count)
        rm_curve_close(&p->curves[--p->curve_count]);
    free(p);
    return rc;
}

/* What the worlds count, each figure once, with all experiments in one plot. */
static int write_world(struct report *r)
{
    const char *written[RM_SNAPSHOT_FIGURES];
    size_t count = 0;
    int rc = 0;
    r->group = 0;
    for (size_t i = 0; rc == 0 && i < r->count; i++)
        for (unsigned a = 0; a < r->runs[i]->now.agents; a++)
            for (unsigned f = 0; rc == 0 && f < r->runs[i]->now.agent[a].figures; f++) {
                const char *name = r->runs[i]->now.agent[a].figure[f].name;
                bool again = false;
                for (size_t k = 0; k < count; k++)
                    again |= !strcmp(written[k], name);
                if (again || count == sizeof written / sizeof written[0])
                    continue;
                if (!count)
                    fputs("<h1>Figures of the world</h1>\n", r->out);
                written[count++] = name;
                rc = write_figure(r, name);
            }
    return rc;
}

/* What the world counts, by agent: over the latest episodes, and in the latest evaluation. */
static void write_figures(FILE *out, const struct rm_snapshot *s)
{
    fputs("<h3>Agents</h3>\n<table><tr><th>agent</th><th>figure</th><th>latest episodes</th>"
          "<th>evaluation</th></tr>\n",
          out);
    for (unsigned a = 0; a < s->agents; a++) {
        const struct rm_snapshot_agent *agent = &s->agent[a];
        fputs("<tr>", out);
        cell(out, agent->name);
        cell(out, "reward");
        cell(out, rm_format_measure(agent->last).s);
        cell(out, rm_format_measure(agent->eval_mean).s);
        fputs("</tr>\n", out);
        for (unsigned f = 0; f < agent->figures; f++) {
            fputs("<tr><td></td>", out);
            cell(out, agent->figure[f].name);
            cell(out, rm_format_measure(agent->figure[f].last).s);
            cell(out, rm_format_measure(agent->figure[f].evaluated).s);
            fputs("</tr>\n", out);
        }
    }
    fputs("</table>\n", out);
}

/* What `ringctl explain` says, if it has something to say of this run. */
static void write_verdict(FILE *out, const char *directory)
{
    char text[RM_SENTENCE_MAX];
    if (!rm_explain_sentence(directory, text, sizeof text))
        return;
    fputs("<p>By its counters: ", out);
    rm_html_text(out, text);
    fputs(".</p>\n", out);
}

/* A bar a worker: what its time went to. */
static void write_phases(FILE *out, const struct rm_snapshot *s)
{
    bool seen[RM_PHASE_COUNT] = {false};
    fputs("<table class=\"phases\">\n", out);
    for (unsigned w = 0; w < s->workers; w++) {
        double share[RM_PHASE_COUNT];
        rm_snapshot_phases(&s->worker[w], NULL, share);
        fputs("<tr>", out);
        cell(out, s->worker[w].name);
        fputs("<td><div class=\"bar\">", out);
        for (int p = 0; p < RM_PHASE_COUNT; p++) {
            if (share[p] < 0.001)
                continue;
            seen[p] = true;
            fprintf(out, "<span style=\"width:%.1f%%;background:%s\" title=\"%s %.1f%%\"></span>",
                    100 * share[p], p == RM_PHASE_WAITING ? "#8883" : rm_plot_colour(p),
                    rm_phase_name((enum rm_phase)p), 100 * share[p]);
        }
        fprintf(out, "</div></td><td>%s died</td></tr>\n", rm_format_count(s->worker[w].deaths).s);
    }
    fputs("</table>\n<p>", out);
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        if (seen[p])
            fprintf(out, "<span class=\"key\" style=\"background:%s\"></span>%s ",
                    p == RM_PHASE_WAITING ? "#8883" : rm_plot_colour(p),
                    rm_phase_name((enum rm_phase)p));
    fputs("</p>\n", out);
}

/* Workers that come and go in good order are no news, and evaluations are in the plot. */
static bool is_news(const char *line)
{
    static const char *const usual[] = {": starting (", ": up (",       ": stopping (",
                                        ": down (",     ": finished (", "greedy score "};
    for (size_t i = 0; strstr(line, " info ") && i < sizeof usual / sizeof usual[0]; i++)
        if (strstr(line, usual[i]))
            return false;
    return true;
}

/* In the order in which lines are left out. Deaths are warnings, changed settings notices. */
enum news { NEWS_CHECKPOINT = 0, NEWS_INFO, NEWS_WARNING, NEWS_COUNT };

static enum news kind_of(const char *line)
{
    const char *level = strchr(line, ' ');
    if (!level || strncmp(level, " info ", 6) != 0)
        return NEWS_WARNING;
    return strncmp(level, " info    checkpoint ", 20) ? NEWS_INFO : NEWS_CHECKPOINT;
}

/* Of too many lines, leaves out the oldest of each kind. */
static void write_happened(FILE *out, const char *directory)
{
    char path[PATH_MAX + 16];
    size_t left_out[NEWS_COUNT] = {0}, over = 0;
    snprintf(path, sizeof path, "%s/log.txt", directory);
    struct rm_lines log = rm_lines_open(path);
    for (const char *line; (line = rm_lines_next(&log));)
        if (is_news(line)) {
            left_out[kind_of(line)]++;
            over++;
        }
    rm_lines_close(&log);
    over -= over < HAPPENED_MAX ? over : HAPPENED_MAX;
    for (int k = 0; k < NEWS_COUNT; over -= left_out[k++])
        left_out[k] = over < left_out[k] ? over : left_out[k];
    fputs("<h3>What happened</h3>\n<pre>", out);
    const size_t checkpoints = left_out[NEWS_CHECKPOINT];
    const size_t others = left_out[NEWS_INFO] + left_out[NEWS_WARNING];
    if (checkpoints || others)
        fprintf(out, "only in log.txt: %zu older %s of checkpoints, %zu other older %s\n",
                checkpoints, rm_plural(checkpoints, "line", "lines"), others,
                rm_plural(others, "line", "lines"));
    log = rm_lines_open(path);
    for (const char *line; (line = rm_lines_next(&log));) {
        if (!is_news(line))
            continue;
        if (left_out[kind_of(line)])
            left_out[kind_of(line)]--;
        else
            rm_html_text(out, line);
    }
    fputs("</pre>\n", out);
    rm_lines_close(&log);
}

/* As a word for a shell. */
static void write_word(FILE *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
    const bool quoted = text[strspn(text, plain)] != '\0';
    rm_html_text(out, quoted ? "'" : "");
    for (; *text; text++) {
        const char one[] = {*text, '\0'};
        rm_html_text(out, *text == '\'' ? "'\\''" : one);
    }
    rm_html_text(out, quoted ? "'" : "");
}

static void write_settings(FILE *out, const struct run *run)
{
    char *text = json_dumps(run->config, JSON_INDENT(2));
    fputs("<h3>Settings</h3>\n<details><summary>config.json, with every key</summary><pre>", out);
    rm_html_text(out, text ? text : "");
    fputs("</pre></details>\n<p>Again: <code>ringctl run ", out);
    write_word(out, run->directory);
    fputs("/config.json --fresh</code>, Ringmaster ", out);
    const char *version = json_string_value(json_object_get(run->status, "version"));
    rm_html_text(out, version ? version : RM_VERSION);
    const char *processor =
        json_string_value(json_object_get(json_object_get(run->status, "host"), "processor"));
    if (processor) {
        fputs(", on ", out);
        rm_html_text(out, processor);
    }
    fputs("</p>\n", out);
    free(text);
}

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n<title>Ringmaster</title>\n<style>\n"
    ":root{color-scheme:light dark}body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;"
    "padding:0 1em}\nsvg{width:100%;height:auto}table{border-collapse:collapse;display:block;"
    "overflow-x:auto}\ntd,th{padding:.15em .8em .15em 0;text-align:left;font-variant-numeric:"
    "tabular-nums;white-space:nowrap}\npre{overflow-x:auto;font-size:12px}.phases td:nth-child(2)"
    "{width:100%}\n.bar{display:flex;height:1.2em;min-width:16em}.key{display:inline-block;"
    "width:.8em;height:.8em;margin:0 .3em 0 .8em}\n</style></head><body>\n";

static int write_page(struct report *r)
{
    fputs(head, r->out);
    int rc = 0;
    for (size_t from = 0, to; rc == 0 && from < r->count; from = to) {
        char title[2 * sizeof r->runs[0]->now.name + 8];
        to = group_end(r, from);
        r->group++;
        title_of(r, from, to, title, sizeof title);
        fputs("<h1>", r->out);
        rm_html_text(r->out, title);
        fputs("</h1>\n", r->out);
        rc = write_curves(r, from, to);
        write_runs(r, from, to);
        for (size_t i = from; i < to; i++) {
            const struct run *run = r->runs[i];
            if (to - from > 1)
                fprintf(r->out, "<h2>seed %lld</h2>\n", (long long)seed_of(run));
            write_figures(r->out, &run->now);
            fputs("<h3>Where the time went</h3>\n", r->out);
            write_verdict(r->out, run->directory);
            write_phases(r->out, &run->now);
            write_happened(r->out, run->directory);
            write_settings(r->out, run);
        }
    }
    if (rc == 0)
        rc = write_world(r);
    fputs("</body></html>\n", r->out);
    return rc;
}

int rm_ctl_report_runs(const struct rm_ctl_arguments *given, const char *file, const char *plots,
                       const char *const *names, size_t count)
{
    struct report r = {.plots = plots};
    int rc = 0;
    if (plots && mkdir(plots, 0777) < 0 && errno != EEXIST)
        return rm_ctl_complain(RM_CTL_FAILED, "%s: %s", plots, strerror(errno));
    for (size_t i = 0; rc == 0 && i < count && r.count < RUNS_MAX; i++) {
        struct run *run = calloc(1, sizeof *run);
        if (!run)
            rc = rm_ctl_complain(RM_CTL_FAILED, "no memory for a run");
        else
            rc = read_run(run, given, names[i]);
        if (run)
            r.runs[r.count++] = run;
    }
    if (rc == 0) {
        qsort(r.runs, r.count, sizeof(void *), by_settings_and_seed);
        for (size_t from = 0; from < r.count; from = group_end(&r, from))
            r.groups++;
        r.out = fopen(file, "we");
        rc = r.out ? write_page(&r) : 0;
        const bool failed = !r.out || ferror(r.out);
        if ((r.out && fclose(r.out)) || failed)
            rc = rm_ctl_complain(RM_CTL_FAILED, "%s: %s", file, strerror(errno));
    }
    for (size_t i = 0; i < r.count; i++)
        free_run(r.runs[i]);
    return rc;
}

/* The runs that the command line names: itself a run, or an experiment FILE with a sweep, which
 * stands for all of its runs. */
struct named {
    const char *name[RUNS_MAX];
    char *owned[RUNS_MAX]; /* paths among them */
    size_t count, owns;
};

static int add_named(struct named *n, const char *name)
{
    size_t found = 0;
    const int rc = rm_find_runs_of_sweep(n->owned + n->owns, RUNS_MAX - n->owns, &found, name);
    n->owns += found;
    if (rc)
        return rc;
    if (n->count + (found ? found : 1) > RUNS_MAX)
        return rm_ctl_complain(RM_CTL_USAGE, "more than %d runs", RUNS_MAX);
    for (size_t i = 0; i < found; i++)
        n->name[n->count++] = n->owned[n->owns - found + i];
    if (!found)
        n->name[n->count++] = name;
    return 0;
}

int rm_ctl_report(const struct rm_ctl_arguments *given)
{
    const char *file = rm_ctl_value(given, "output");
    struct named n = {.count = 0};
    int rc = add_named(&n, given->argument[0]);
    for (size_t i = 0; rc == 0 && i < given->rest_count; i++)
        rc = add_named(&n, given->rest[i]);
    if (!file)
        file = "report.html";
    if (rc == 0)
        rc = rm_ctl_report_runs(given, file, rm_ctl_value(given, "plots"), n.name, n.count);
    while (n.owns)
        free(n.owned[--n.owns]);
    if (rc == 0)
        puts(file);
    return rc;
}
