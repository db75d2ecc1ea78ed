/* The rows of metrics.csv hold what the board says, under the names of its tables; and rates. */
#include "daemon/metrics.h"

#include "config/config.h"
#include "daemon/rate.h"

#include "shm/atomic.h"

#include "shm/base/file.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COLUMNS_MAX 512

static struct rm_board_view board;
static struct rm_run_directory directory;

static int setup(void **state)
{
    (void)state;
    snprintf(directory.path, sizeof directory.path, "/tmp/rm-metrics-XXXXXX");
    if (!mkdtemp(directory.path) || rm_board_create(&board, 2, 2, 3, NULL) < 0)
        return -1;
    snprintf(board.agents[0].name, RM_NAME_MAX, "a");
    snprintf(board.agents[1].name, RM_NAME_MAX, "b");
    snprintf(board.policies[0].name, RM_NAME_MAX, "p0");
    snprintf(board.policies[1].name, RM_NAME_MAX, "p1");
    for (int w = 0; w < 3; w++)
        snprintf(board.workers[w].name, RM_NAME_MAX, "w%d", w);
    board.run->figures = 2;
    board.run->figure[0] = (struct rm_board_figure){.name = "food"};
    board.run->figure[1] =
        (struct rm_board_figure){.name = "cause", .words = 2, .word = {"hunger", "age"}};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char path[sizeof directory.path + 32];
    rm_board_close(&board);
    snprintf(path, sizeof path, "%s/metrics.csv", directory.path);
    unlink(path);
    return rmdir(directory.path);
}

static struct table {
    char text[1 << 16];
    char *names[COLUMNS_MAX], *values[COLUMNS_MAX];
    size_t columns;
} t;

static size_t split(char *line, char **cells)
{
    size_t n = 0;
    cells[n++] = line;
    for (char *c = line; *c; c++)
        if (*c == ',') {
            *c = '\0';
            cells[n++] = c + 1;
        }
    return n;
}

/* The header and the last row. */
static void read_csv(void)
{
    char path[sizeof directory.path + 32];
    snprintf(path, sizeof path, "%s/metrics.csv", directory.path);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    size_t n = fread(t.text, 1, sizeof t.text - 1, in);
    fclose(in);
    t.text[n] = '\0';
    assert_true(n > 0 && t.text[n - 1] == '\n');
    t.text[n - 1] = '\0';
    char *header_end = strchr(t.text, '\n'), *last = strrchr(t.text, '\n') + 1;
    *header_end = '\0';
    t.columns = split(t.text, t.names);
    assert_int_equal(split(last, t.values), t.columns);
}

static const char *cell(const char *name)
{
    for (size_t i = 0; i < t.columns; i++)
        if (!strcmp(t.names[i], name))
            return t.values[i];
    fail_msg("no column %s", name);
    return "";
}

static int open_csv(struct rm_metrics *metrics)
{
    static struct rm_experiment experiment;
    experiment.metrics.csv = true;
    experiment.metrics.tensorboard = RM_TENSORBOARD_OFF;
    return rm_metrics_open(metrics, &directory, &board, &experiment, NULL);
}

static int put_row(struct rm_metrics *metrics, double time_s, uint64_t steps)
{
    const struct rm_metrics_row row = {.time_s = time_s, .steps = steps};
    return rm_metrics_write(metrics, &board, &row);
}

static void rows_say_what_the_board_says(void **state)
{
    (void)state;
    struct rm_metrics metrics;
    assert_int_equal(open_csv(&metrics), 0);
    assert_int_equal(put_row(&metrics, 0, 0), 0);
    RM_POKE(&board.policies[1].updates, 123456789012345ull);
    RM_POKE(&board.policies[0].loss, 0.125);
    RM_POKE(&board.policies[1].loss, NAN);
    rm_scores_add(&board.agents[1].scores, 3);
    rm_scores_add(&board.agents[1].scores, 4);
    assert_int_equal(put_row(&metrics, 1.5, 77), 0);
    rm_metrics_close(&metrics);
    read_csv();
    assert_string_equal(cell("time_s"), "1.5");
    assert_string_equal(cell("steps"), "77");
    assert_string_equal(cell("policy.p1.updates"), "123456789012345");
    assert_string_equal(cell("policy.p0.updates"), "0");
    assert_string_equal(cell("policy.p0.loss"), "0.125");
    assert_string_equal(cell("policy.p1.loss"), ""); /* not there, rather than "nan" */
    assert_string_equal(cell("agent.b.reward_last"), "3.5");
    assert_string_equal(cell("agent.b.reward_episodes"), "2");
    assert_string_equal(cell("agent.a.reward_last"), "");
    for (size_t i = 0; i < rm_policy_metric_count; i++) {
        char name[128];
        snprintf(name, sizeof name, "policy.p0.%s", rm_policy_metrics[i].name);
        cell(name);
    }
    for (size_t i = 0; i < rm_worker_metric_count; i++) {
        char name[128];
        snprintf(name, sizeof name, "worker.w2.%s", rm_worker_metrics[i].name);
        cell(name);
    }
    for (size_t i = 0; i < t.columns; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(t.names[i], t.names[j]);
}

/* What the world has named, by agent; that of an evaluation in its row alone. */
static void figures_are_means_and_shares(void **state)
{
    (void)state;
    struct rm_metrics metrics;
    assert_int_equal(open_csv(&metrics), 0);
    rm_scores_add(&board.agents[1].lengths, 7);
    rm_scores_add(&board.agents[1].figures[0], 2);
    rm_scores_add(&board.agents[1].figures[0], 5);
    for (int i = 0; i < 4; i++)
        rm_scores_add(&board.agents[1].figures[1], i == 3);
    RM_POKE(&board.agents[1].eval_length, 12.5);
    RM_POKE(&board.agents[1].eval_figures[0][0], 6);
    RM_POKE(&board.agents[1].eval_figures[1][1], 0.75);
    RM_POKE(&board.run->evaluations, 1);
    for (int evaluation = 0; evaluation < 2; evaluation++) {
        const struct rm_metrics_row row = {.time_s = 1 + evaluation, .evaluation = evaluation};
        assert_int_equal(rm_metrics_write(&metrics, &board, &row), 0);
        read_csv();
        assert_string_equal(cell("agent.b.figures.length"), "7");
        assert_string_equal(cell("agent.b.figures.food"), "3.5");
        assert_string_equal(cell("agent.b.figures.cause.hunger"), "0.75");
        assert_string_equal(cell("agent.b.figures.cause.age"), "0.25");
        assert_string_equal(cell("agent.a.figures.food"), "");
        assert_string_equal(cell("agent.b.evaluation_figures.length"), evaluation ? "12.5" : "");
        assert_string_equal(cell("agent.b.evaluation_figures.food"), evaluation ? "6" : "");
        assert_string_equal(cell("agent.b.evaluation_figures.cause.age"), evaluation ? "0.75" : "");
    }
    rm_metrics_close(&metrics);
}

/* On a disk that fills up in the middle of a row: the row is missing, not half there. */
static void a_row_is_written_whole_or_not_at_all(void **state)
{
    (void)state;
    struct rm_metrics metrics;
    struct rlimit before, tight;
    char path[sizeof directory.path + 32];
    struct stat file;
    assert_int_equal(open_csv(&metrics), 0);
    assert_int_equal(put_row(&metrics, 1, 11), 0);
    snprintf(path, sizeof path, "%s/metrics.csv", directory.path);
    assert_int_equal(stat(path, &file), 0);
    off_t bytes = file.st_size;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)bytes + 10;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    int half = put_row(&metrics, 2, 22);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(half < 0);
    assert_int_equal(metrics.failures, 1);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_size, bytes);

    assert_int_equal(put_row(&metrics, 3, 33), 0);
    rm_metrics_close(&metrics);
    read_csv();
    assert_string_equal(cell("steps"), "33");
}

/* After a kill in the middle of a row, and after an end. */
static void time_goes_on_where_a_predecessor_left_it(void **state)
{
    (void)state;
    struct rm_metrics metrics;
    char path[sizeof directory.path + 32];
    static const char *const times[] = {"10", "12.5", "15", "17.5"};
    snprintf(path, sizeof path, "%s/metrics.csv", directory.path);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(open_csv(&metrics), 0);
        if (i == 0)
            assert_int_equal(put_row(&metrics, 7.5, 1), 0);
        assert_int_equal(put_row(&metrics, i == 0 ? 10 : 2.5, 77), 0);
        rm_metrics_close(&metrics);
        read_csv();
        assert_string_equal(cell("time_s"), times[i]);
        if (i == 1) {
            FILE *file = fopen(path, "a");
            assert_non_null(file);
            fputs("17.25,9", file);
            fclose(file);
        }
    }
}

static void both_off_writes_nothing(void **state)
{
    (void)state;
    static const struct rm_experiment neither = {.run = {.steps = 1000}};
    struct rm_metrics metrics;
    assert_int_equal(rm_metrics_open(&metrics, &directory, &board, &neither, NULL), 0);
    assert_int_equal(put_row(&metrics, 1, 1), 0);
    rm_metrics_close(&metrics);
}

static void the_host_is_in_every_row(void **state)
{
    (void)state;
    struct rm_metrics metrics;
    struct rm_metrics_row row = {.time_s = 1, .host = {.cores = 2, .daemon_s = 0.25}};
    rm_host_parse(&row.host, "cpu  40 10 70 9999 8888 10 20 8 0 0\ncpu0 1 1 1\n", 100);
    assert_int_equal(open_csv(&metrics), 0);
    assert_int_equal(rm_metrics_write(&metrics, &board, &row), 0);
    read_csv();
    assert_string_equal(cell("host_cores"), "2");
    assert_string_equal(cell("host_cpu_s"), "1.5"); /* neither idle nor waiting for a disk */
    assert_string_equal(cell("host_steal_s"), "0.08");
    assert_string_equal(cell("daemon_cpu_s"), "0.25");
    RM_POKE(&board.run->settings[RM_HOT_PUBLISH_INTERVAL], 7);
    rm_host_parse(&row.host, "intr 1 2 3\n", 100);
    assert_int_equal(rm_metrics_write(&metrics, &board, &row), 0);
    rm_metrics_close(&metrics);
    read_csv();
    assert_string_equal(cell("host_cpu_s"), "");
    assert_string_equal(cell("setting.publish.interval"), "7");
}

static void write_quota(const char *root, const char *group, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, group);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s%s/cpu.max", root, group);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

/* A service's quota is that of its own group or of one around it, whichever is less. */
static void quotas_of_all_groups_count(void **state)
{
    (void)state;
    char root[] = "/tmp/rm-quota-XXXXXX";
    assert_non_null(mkdtemp(root));
    write_quota(root, "/a.slice", "150000 100000\n");
    write_quota(root, "/a.slice/b.service", "max 100000\n");
    assert_true(rm_host_quota(root, "0::/a.slice/b.service\n") == 1.5);
    write_quota(root, "/a.slice/b.service", "50000 100000\n");
    assert_true(rm_host_quota(root, "0::/a.slice/b.service\n") == 0.5);
    assert_true(rm_host_quota(root, "1:name=systemd:/x\n0::/a.slice\n") == 1.5);
    assert_true(isinf(rm_host_quota(root, "0::/\n")));
    assert_true(isinf(rm_host_quota(root, "")));
    write_quota(root, "", "25000 100000\n"); /* as in a container */
    assert_true(rm_host_quota(root, "0::/\n") == 0.25);
    rm_file_remove_all(root);
}

/* Its numbers are not repeated in rows that have nothing to do with it. */
static void an_evaluation_is_in_its_own_row(void **state)
{
    (void)state;
    struct rm_metrics metrics;
    const struct rm_metrics_row row = {
        .time_s = 2, .steps = 90, .steps_per_s = 45, .evaluation = true};
    assert_int_equal(open_csv(&metrics), 0);
    RM_POKE(&board.run->evaluations, 1);
    RM_POKE(&board.run->eval_steps, 80);
    RM_POKE(&board.run->eval_score_mean, 7.5);
    RM_POKE(&board.agents[1].eval_mean, 2.5);
    assert_int_equal(rm_metrics_write(&metrics, &board, &row), 0);
    read_csv();
    assert_string_equal(cell("steps"), "90");
    assert_string_equal(cell("steps_per_s"), "45");
    assert_string_equal(cell("evaluation_steps"), "80");
    assert_string_equal(cell("evaluation_score"), "7.5");
    assert_string_equal(cell("agent.b.evaluation"), "2.5");
    assert_int_equal(put_row(&metrics, 3, 95), 0);
    rm_metrics_close(&metrics);
    read_csv();
    assert_string_equal(cell("steps"), "95");
    assert_string_equal(cell("evaluation_steps"), "");
    assert_string_equal(cell("evaluation_score"), "");
    assert_string_equal(cell("agent.b.evaluation"), "");
}

#define S 1000000000ull

/* A run that steps `steps` in `took_ns`, seen after each of its `looks`. */
static uint64_t rows_by_steps(uint64_t interval, uint64_t budget, uint64_t took_ns, int looks)
{
    struct rm_experiment experiment = {.run = {.steps = budget}};
    struct rm_metrics metrics;
    uint64_t rows = 0;
    experiment.metrics.csv = true;
    experiment.metrics.interval_steps = interval;
    assert_int_equal(rm_metrics_open(&metrics, &directory, &board, &experiment, NULL), 0);
    rm_metrics_begin_steps(&metrics, 0, 0);
    for (int i = 1; i <= looks; i++) {
        const uint64_t steps = 100000ull * (uint64_t)i / (uint64_t)looks;
        if (!rm_metrics_due(&metrics, steps))
            continue;
        rm_metrics_next(&metrics, steps, took_ns / (uint64_t)looks * (uint64_t)i);
        assert_true(metrics.next_at > steps);
        rows++;
    }
    rm_metrics_close(&metrics);
    return rows;
}

static void a_short_run_has_a_curve(void **state)
{
    (void)state;
    assert_int_equal(rows_by_steps(0, 100000, 100 * S, 100000), 200);
    assert_int_equal(rows_by_steps(10000, 0, 100 * S, 100000), 10);
    /* Faster than a hundred rows a second they are further apart. */
    assert_in_range(rows_by_steps(0, 100000, S / 2, 100000), 25, 50);
    assert_in_range(rows_by_steps(1, 100000, S, 100000), 50, 101);
    /* Nobody looks for half of the run. */
    assert_int_equal(rows_by_steps(0, 100000, 100 * S, 2), 2);
    assert_int_equal(rows_by_steps(0, 0, 100 * S, 100000), 0);
}

static void rates_are_of_the_last_seconds(void **state)
{
    (void)state;
    struct rm_rate rate = {.count = 0};
    assert_true(rm_rate_per_s(&rate) == 0);
    rm_rate_add(&rate, 1 * S, 1000);
    assert_true(rm_rate_per_s(&rate) == 0);
    for (uint64_t i = 1; i <= 5; i++)
        rm_rate_add(&rate, (1 + i) * S, 1000 + 100 * i);
    assert_true(fabs(rm_rate_per_s(&rate) - 100) < 1e-9);
    /* After a while only the new pace counts. */
    for (uint64_t i = 1; i <= 100; i++)
        rm_rate_add(&rate, (6 + i) * S, 1500 + 7 * i);
    assert_true(fabs(rm_rate_per_s(&rate) - 7) < 1e-9);
    /* Quick ticks do not shorten the window. */
    for (uint64_t i = 1; i <= 20; i++)
        rm_rate_add(&rate, 106 * S + i * S / 20, 1500 + 7 * 100 + i);
    assert_true(rm_rate_per_s(&rate) > 7 && rm_rate_per_s(&rate) < 12);
    rm_rate_reset(&rate);
    assert_true(rm_rate_per_s(&rate) == 0);
}

/* For how long a run has written when it has taken so long, and how many rows. */
static uint64_t rows_within(double interval_s, double time_s)
{
    uint64_t rows = 0;
    double now_s = 0;
    while (now_s < time_s) {
        now_s += rm_metrics_interval(interval_s, now_s);
        rows++;
    }
    return rows;
}

static void long_runs_have_rows_further_apart(void **state)
{
    (void)state;
    const double day_s = 86400;
    assert_true(rm_metrics_interval(1, 0) == 1);
    assert_true(rm_metrics_interval(1, 9999) == 1);
    assert_true(rm_metrics_interval(1, 10000) == 2);
    assert_true(rm_metrics_interval(1, 19999) == 2);
    assert_true(rm_metrics_interval(0.01, 99) == 0.01);
    assert_true(rm_metrics_interval(60, 6 * day_s) == 60);
    assert_int_equal(rows_within(1, 9000), 9000);
    assert_in_range(rows_within(1, 30 * day_s), 40000, 60000);
    assert_in_range(rows_within(1, 365 * day_s), 60000, 80000);
    assert_in_range(rows_within(0.01, 30 * day_s), 70000, 100000);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(rows_say_what_the_board_says),
        T(figures_are_means_and_shares),
        T(a_row_is_written_whole_or_not_at_all),
        T(time_goes_on_where_a_predecessor_left_it),
        T(both_off_writes_nothing),
        T(quotas_of_all_groups_count),
        T(the_host_is_in_every_row),
        T(an_evaluation_is_in_its_own_row),
        T(a_short_run_has_a_curve),
        cmocka_unit_test(long_runs_have_rows_further_apart),
        cmocka_unit_test(rates_are_of_the_last_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
