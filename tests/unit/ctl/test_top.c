/* What `top` shows: its figures, and how they are drawn on a screen. */
#include "daemon/ctl/top.h"

#include "daemon/format.h"

#include <math.h>
#include <ncurses.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct rm_snapshot now, before;

static void set_worker(struct rm_snapshot *s, unsigned i, const char *name, double waiting,
                       double working)
{
    struct rm_snapshot_worker *w = &s->worker[i];
    memset(w, 0, sizeof *w);
    snprintf(w->name, sizeof w->name, "%s", name);
    w->generation = 1;
    w->booked_s = waiting + working;
    w->phase[RM_PHASE_WAITING] = waiting / w->booked_s;
    w->phase[RM_PHASE_FORWARD] = working / w->booked_s;
    s->workers = i + 1;
}

static void bars_are_filled_exactly(void **state)
{
    (void)state;
    for (int cells = 0; cells < 60; cells++) {
        double share[RM_PHASE_COUNT] = {0.21, 0.333, 0.457};
        int count[RM_PHASE_COUNT], sum = 0;
        rm_top_split(share, cells, count);
        for (int p = 0; p < RM_PHASE_COUNT; p++) {
            assert_true(fabs(count[p] - share[p] * cells) < 1);
            sum += count[p];
        }
        assert_int_equal(sum, cells);
    }
    double nothing[RM_PHASE_COUNT] = {0};
    int count[RM_PHASE_COUNT];
    rm_top_split(nothing, 10, count);
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        assert_int_equal(count[p], 0);
}

/* Numbers and the shares of words become a list, with what the latest evaluation had. */
static void figures_are_read_from_status(void **state)
{
    static const char reply[] =
        "{\"agents\": [{\"name\": \"a\", \"figures\": {\"length\": 12, \"food\": null,"
        " \"end\": {\"age\": 0.25, \"hunger\": 0.75}}, \"evaluation\": {\"figures\":"
        " {\"food\": 3.5, \"end\": {\"hunger\": 1}}}}, {\"name\": \"b\"}]}";
    static struct rm_snapshot s;
    static const struct {
        const char *name;
        double last, evaluated;
    } expected[] = {
        {"length", 12, NAN}, {"food", NAN, 3.5}, {"end: age", 0.25, NAN}, {"end: hunger", 0.75, 1}};
    json_t *json = json_loads(reply, 0, NULL);
    (void)state;
    assert_non_null(json);
    rm_snapshot_read(&s, json);
    json_decref(json);
    assert_int_equal(s.agents, 2);
    assert_int_equal(s.agent[0].figures, 4);
    for (int i = 0; i < 4; i++) {
        const struct rm_snapshot_figure *f = &s.agent[0].figure[i];
        assert_string_equal(f->name, expected[i].name);
        assert_true(f->last == expected[i].last || (isnan(f->last) && isnan(expected[i].last)));
        assert_true(f->evaluated == expected[i].evaluated ||
                    (isnan(f->evaluated) && isnan(expected[i].evaluated)));
    }
    assert_int_equal(s.agent[1].figures, 0);
}

static void letters_are_distinct(void **state)
{
    (void)state;
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        for (int q = 0; q < p; q++)
            assert_int_not_equal(rm_top_phase_letter(p), rm_top_phase_letter(q));
}

static void shares_are_of_the_time_since_the_last_look(void **state)
{
    double share[RM_PHASE_COUNT];
    (void)state;
    set_worker(&before, 0, "a", 90, 10);
    set_worker(&now, 0, "a", 90.25, 10.75);
    rm_snapshot_phases(&now.worker[0], &before.worker[0], share);
    assert_true(fabs(share[RM_PHASE_WAITING] - 0.25) < 1e-9);
    assert_true(fabs(share[RM_PHASE_FORWARD] - 0.75) < 1e-9);
    /* Respawned in between: its times began anew. */
    set_worker(&now, 0, "a", 100, 300);
    now.worker[0].generation = 2;
    rm_snapshot_phases(&now.worker[0], &before.worker[0], share);
    assert_true(fabs(share[RM_PHASE_WAITING] - 0.25) < 1e-9);
    /* Nothing reported. */
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        now.worker[0].phase[p] = NAN;
    rm_snapshot_phases(&now.worker[0], NULL, share);
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        assert_true(share[p] == 0);
}

static void workers_are_sorted(void **state)
{
    struct rm_top top = {.now = &now, .before = &before};
    unsigned index[RM_BOARD_WORKERS];
    (void)state;
    set_worker(&now, 0, "idle", 9, 1);
    set_worker(&now, 1, "busy", 1, 9);
    set_worker(&now, 2, "half", 5, 5);
    now.worker[2].rss_bytes = 100;
    now.worker[0].deaths = NAN;
    now.worker[2].deaths = 3;
    static const unsigned expected[RM_TOP_ORDER_COUNT][3] = {
        [RM_TOP_BY_NUMBER] = {0, 1, 2},
        [RM_TOP_BY_WORK] = {1, 2, 0},
        [RM_TOP_BY_MEMORY] = {2, 0, 1},
        [RM_TOP_BY_DEATHS] = {2, 0, 1},
    };
    for (int order = 0; order < RM_TOP_ORDER_COUNT; order++) {
        top.order = (enum rm_top_order)order;
        rm_top_sort(&top, index);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(index[i], expected[order][i]);
    }
}

static void speed_falls_back_to_two_looks(void **state)
{
    struct rm_top top = {.now = &now, .before = &before};
    (void)state;
    now.steps_per_s = NAN;
    now.steps = 1500;
    before.steps = 500;
    assert_true(isnan(rm_top_speed(&top)));
    top.have_before = true;
    top.seconds_between = 2;
    assert_true(rm_top_speed(&top) == 500);
    now.steps_per_s = 123;
    assert_true(rm_top_speed(&top) == 123);
}

/* --- drawn ----------------------------------------------------------------------------------- */

#define MOST_COLUMNS 200

static SCREEN *screen;
static FILE *nowhere;

static int open_screen(void **state)
{
    (void)state;
    nowhere = fopen("/dev/null", "r+e");
    screen = nowhere ? newterm("vt100", nowhere, nowhere) : NULL;
    return screen ? 0 : -1;
}

static int close_screen(void **state)
{
    (void)state;
    endwin();
    delscreen(screen);
    return fclose(nowhere);
}

/* A run of nothing that is known, drawn on 24 lines. */
static void begin(struct rm_top *top)
{
    memset(&now, 0, sizeof now);
    memset(top, 0, sizeof *top);
    snprintf(now.name, sizeof now.name, "hunt");
    snprintf(now.state, sizeof now.state, "running");
    top->now = &now;
    top->have_now = true;
}

static void draw(const struct rm_top *top, int columns)
{
    assert_int_equal(resizeterm(24, columns), OK);
    rm_top_draw(top);
}

static const char *line_of(int y)
{
    static char text[MOST_COLUMNS + 1];
    assert_int_not_equal(mvinnstr(y, 0, text, MOST_COLUMNS), ERR);
    return text;
}

/* The line that begins with this, or -1. */
static int line_with(const char *start)
{
    for (int y = 0; y < 24; y++)
        if (!strncmp(line_of(y), start, strlen(start)))
            return y;
    return -1;
}

/* Whatever the width and the numbers: each number is whole, and ends where its title ends. */
static void columns_are_as_wide_as_their_numbers(void **state)
{
    static const double values[] = {-123456, -1.5e-104, 0.5, 99994, -99994};
    struct rm_top top;
    (void)state;
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
        begin(&top);
        now.agents = 2;
        now.policies = 1;
        snprintf(now.policy[0].name, sizeof now.policy[0].name, "p");
        struct rm_snapshot_policy *p = &now.policy[0];
        p->updates = p->replay_fill = p->replay_ratio = p->lag_mean = p->loss = values[v];
        p->rollouts = p->entropy = p->kl = values[v];
        for (int a = 0; a < 2; a++) {
            struct rm_snapshot_agent *agent = &now.agent[a];
            snprintf(agent->name, sizeof agent->name, "agent_%d", a);
            snprintf(agent->policy, sizeof agent->policy, "%s", a ? "none" : "p");
            agent->first = agent->last = agent->eval_mean = agent->env_steps = a ? 1 : values[v];
        }
        const struct rm_text measure = rm_format_measure(values[v]);
        const struct rm_text count = rm_format_count(values[v]);
        for (int columns = 14; columns <= MOST_COLUMNS; columns++) {
            char titles[MOST_COLUMNS + 1], cells[MOST_COLUMNS + 1];
            draw(&top, columns);
            const int y = line_with("AGENT");
            assert_true(y > 0);
            snprintf(titles, sizeof titles, "%s", line_of(y));
            for (int a = 1; a <= 2; a++) {
                int numbers = 0, shown = 0;
                snprintf(cells, sizeof cells, "%s", line_of(y + a));
                for (int x = 7; x < columns; x++) {
                    const bool ends = cells[x] != ' ' && (x + 1 == columns || cells[x + 1] == ' ');
                    const bool title =
                        titles[x] != ' ' && (x + 1 == columns || titles[x + 1] == ' ');
                    assert_int_equal(ends, title);
                    numbers += ends;
                }
                for (char *save = NULL, *word = strtok_r(cells + 7, " ", &save); word;
                     word = strtok_r(NULL, " ", &save), shown++)
                    if (a == 1)
                        assert_true(!strcmp(word, measure.s) || !strcmp(word, count.s));
                assert_int_equal(shown, numbers);
                assert_true(columns < 80 || shown >= 5);
            }
        }
    }
}

static void workers_that_restart_often_shift_no_bars(void **state)
{
    struct rm_top top;
    (void)state;
    begin(&top);
    set_worker(&now, 0, "actor-0", 0, 1);
    set_worker(&now, 1, "actor-1", 0, 1);
    now.worker[1].generation = now.worker[1].deaths = 123456789;
    now.worker[1].pid = 4194304;
    draw(&top, 80);
    const int y = line_with("WORKER");
    assert_true(y > 0);
    const char *title = strstr(line_of(y), "TIME");
    assert_non_null(title);
    const long column = title - line_of(y);
    for (int w = 1; w <= 2; w++) {
        const char *line = line_of(y + w);
        assert_true(line[column] == 'f' && line[column - 1] == ' ' && line[column - 3] != ' ');
    }
    assert_non_null(strstr(line_of(y + 2), " 4194304 "));
    assert_non_null(strstr(line_of(y + 2), "  123M   123M  f"));
}

/* The names of all phases take two lines of 80 columns. */
static void every_letter_is_explained(void **state)
{
    struct rm_top top;
    (void)state;
    begin(&top);
    set_worker(&now, 0, "learner-p0", 0, 1);
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        now.worker[0].phase[p] = 1.0 / RM_PHASE_COUNT;
    for (int columns = 80; columns <= MOST_COLUMNS; columns += 60) {
        char legend[2 * MOST_COLUMNS + 2], entry[32];
        draw(&top, columns);
        snprintf(legend, sizeof legend, "%s", line_of(21));
        snprintf(legend + strlen(legend), sizeof legend - strlen(legend), " %s", line_of(22));
        for (int p = 0; p < RM_PHASE_COUNT; p++) {
            snprintf(entry, sizeof entry, "%c %s", rm_top_phase_letter(p),
                     rm_phase_name((enum rm_phase)p));
            if (!strstr(legend, entry))
                fail_msg("\"%s\" is not in \"%s\"", entry, legend);
        }
    }
}

static void the_help_page_is_not_cut(void **state)
{
    struct rm_top top;
    (void)state;
    begin(&top);
    top.help = true;
    draw(&top, 80);
    for (int y = 1; y < 23; y++) /* a single ~ is explained */
        assert_true(!strchr(line_of(y), '~') || !strncmp(line_of(y), "  ~  ", 5));
}

/* A change that has no room on 80 columns is left out as a whole; a longer verdict ends before a
 * word. */
static void the_verdict_is_one_line(void **state)
{
    static const char usual[] =
        "the update limits the run; limiter.updates_per_step=0.125 +97 % (other learning)";
    static const char *const longer[][2] = {
        {"the load of other processes limits the run",
         "; limiter.updates_per_step=0.25 +93 % (other learning)"},
        {"no single limit: waiting for checkpoints and the load of other processes",
         "; sample.batch=16 +123 %"},
    };
    char left[2 * MOST_COLUMNS];
    struct rm_top top;
    (void)state;
    begin(&top);
    draw(&top, 80);
    const int workers = line_with("WORKER");
    snprintf(top.verdict, sizeof top.verdict, "%s", usual);
    draw(&top, 80);
    assert_int_equal(strlen(usual), 80);
    assert_int_not_equal(line_with(usual), -1);
    assert_int_equal(line_with("WORKER"), workers + 1);
    for (int i = 0; i < 2; i++) {
        snprintf(top.verdict, sizeof top.verdict, "%s%s", longer[i][0], longer[i][1]);
        draw(&top, 80);
        snprintf(left, sizeof left, "%s ~  ", longer[i][0]);
        assert_int_not_equal(line_with(left), -1);
        assert_int_equal(line_with("WORKER"), workers + 1);
        draw(&top, 120);
        assert_int_not_equal(line_with(top.verdict), -1);
    }
    draw(&top, 60);
    assert_int_not_equal(line_with("no single limit: waiting for checkpoints and the load of ~ "),
                         -1);
}

/* Rows of a run: an actor and a learner, one of which works all the time. */
static void write_run(const char *directory, bool learner_works)
{
    static const char config[] =
        "{\"world\": {\"name\": \"cartpole\"}, \"algorithm\": {\"name\": \"dqn\"}}";
    char path[64];
    snprintf(path, sizeof path, "%s/config.json", directory);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    fputs(config, out);
    assert_int_equal(fclose(out), 0);
    snprintf(path, sizeof path, "%s/metrics.csv", directory);
    out = fopen(path, "we");
    assert_non_null(out);
    fputs("time_s,steps,host_cores,policy.p.updates", out);
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < 4; i++)
            fprintf(out, ",worker.%s.%s", l ? "learner-p" : "actor-0",
                    (const char *[]){"turns", "cpu_ns", "phase_waiting_ns",
                                     l ? "phase_backward_ns" : "phase_environment_ns"}[i]);
    fputc('\n', out);
    for (int row = 1; row <= 20; row++) {
        fprintf(out, "%d,%d,4,%d", row, 1000 * row, 500 * row);
        for (int l = 0; l < 2; l++) {
            const double busy = (l == 1) == learner_works ? 1e9 : 1e8;
            fprintf(out, ",%d,%.0f,%.0f,%.0f", 1000 * row, busy * row, (1e9 - busy) * row,
                    busy * row);
        }
        fputc('\n', out);
    }
    assert_int_equal(fclose(out), 0);
}

static void the_verdict_is_read_every_ten_seconds(void **state)
{
    char directory[] = "/tmp/rm-top-XXXXXX", path[64];
    char expected[RM_SENTENCE_MAX];
    const uint64_t begun = 5 * RM_NS_PER_S;
    static struct rm_explained x;
    struct rm_error error = {""};
    struct rm_top top;
    (void)state;
    assert_non_null(mkdtemp(directory));
    begin(&top);
    snprintf(now.directory, sizeof now.directory, "%s", directory);
    rm_top_explain(&top, begun);
    assert_string_equal(top.verdict, ""); /* there are no rows */
    write_run(directory, true);
    rm_top_explain(&top, begun + RM_TOP_EXPLAIN_NS - 1);
    assert_string_equal(top.verdict, "");
    rm_top_explain(&top, begun + RM_TOP_EXPLAIN_NS);
    assert_int_equal(rm_explain_run(&x, directory, NULL, &error), 0);
    assert_true(x.moves > 0 && x.move[0].learns && x.move[0].rate.steps_per_s > x.steps_per_s);
    snprintf(expected, sizeof expected,
             "the update limits the run; %s=%s %+.0f %% (other learning)", x.move[0].key,
             x.move[0].value, 100 * (x.move[0].rate.steps_per_s / x.steps_per_s - 1));
    rm_explained_free(&x);
    assert_string_equal(top.verdict, expected);
    write_run(directory, false);
    rm_top_explain(&top, begun + RM_TOP_EXPLAIN_NS + 1);
    assert_non_null(strstr(top.verdict, "the update limits the run; "));
    rm_top_explain(&top, begun + 2 * RM_TOP_EXPLAIN_NS);
    assert_non_null(strstr(top.verdict, "stepping worlds limits the run; "));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, i ? "config.json" : "metrics.csv");
        unlink(path);
    }
    rmdir(directory);
}

/* Names take what room there is, and sentences end before a word that does not fit. */
static void what_is_cut_shows_it(void **state)
{
    static const char name[] = "an-agent-whose-name-is-as-long-as-can-be";
    struct rm_top top;
    (void)state;
    begin(&top);
    now.agents = 1;
    snprintf(now.agent[0].name, sizeof now.agent[0].name, "%s", name);
    memset(now.name, 'x', sizeof now.name - 1);
    snprintf(now.error, sizeof now.error, "%074d 123456 says the error", 0);
    set_worker(&now, 0, "a-worker-of-a-very-long-name", 0, 1);
    snprintf(now.worker[0].state, sizeof now.worker[0].state, "failed");
    snprintf(now.worker[0].reason, sizeof now.worker[0].reason, "exit code 1 and signal 123456789");
    draw(&top, 80);
    assert_non_null(strstr(line_of(0), "xx~  running"));
    assert_non_null(strstr(line_of(line_with("00000")), "0000 ~ "));
    assert_int_not_equal(line_with("a-worker-of-a-ver~ "), -1);
    assert_non_null(strstr(line_of(line_with("a-worker")), "exit code 1 and signal ~"));
    const int y = line_with("an-agent");
    assert_true(y > 0);
    assert_null(strstr(line_of(y), name));
    assert_int_equal(line_of(y)[strcspn(line_of(y), " ") - 1], '~');
    draw(&top, 160);
    assert_non_null(strstr(line_of(y), name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_are_filled_exactly),
        cmocka_unit_test(figures_are_read_from_status),
        cmocka_unit_test(letters_are_distinct),
        cmocka_unit_test(shares_are_of_the_time_since_the_last_look),
        cmocka_unit_test(workers_are_sorted),
        cmocka_unit_test(speed_falls_back_to_two_looks),
        cmocka_unit_test(columns_are_as_wide_as_their_numbers),
        cmocka_unit_test(workers_that_restart_often_shift_no_bars),
        cmocka_unit_test(what_is_cut_shows_it),
        cmocka_unit_test(every_letter_is_explained),
        cmocka_unit_test(the_help_page_is_not_cut),
        cmocka_unit_test(the_verdict_is_one_line),
        cmocka_unit_test(the_verdict_is_read_every_ten_seconds),
    };
    return cmocka_run_group_tests(tests, open_screen, close_screen);
}
