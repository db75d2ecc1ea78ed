/* What a report is drawn from: curves of a file that grows, several seeds as one, plots. */
#include "daemon/ctl/curve.h"
#include "daemon/ctl/plot.h"
#include "daemon/ctl/seeds.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_curve_grows_with_its_file(void **state)
{
    char directory[] = "/tmp/rm-curve-XXXXXX", path[64];
    double mean[8];
    struct rm_curve curve = {.count = 0};
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/metrics.csv", directory);
    rm_curve_read(&curve, directory, "score", "steps");
    assert_int_equal(curve.count, 0);
    FILE *file = fopen(path, "w");
    fputs("time,steps,rate,score\n0,10,1,1.5\n1,20,1,\n2,30,1,-2\n3,4", file);
    fflush(file);
    rm_curve_read(&curve, directory, "rat", "steps"); /* not "rate" */
    assert_int_equal(curve.count, 0);
    rm_curve_close(&curve);
    rm_curve_read(&curve, directory, "score", "steps");
    assert_int_equal(curve.count, 2); /* one row has no value, and one is not whole */
    assert_true(curve.values[1] == -2 && curve.at[1] == 30);
    fputs("0,1,7\n", file);
    fflush(file);
    rm_curve_read(&curve, directory, "score", "steps");
    assert_int_equal(curve.count, 3);
    assert_true(curve.values[2] == 7 && curve.at[2] == 40);
    assert_int_equal(rm_curve_means(&curve, mean, 8), 3);
    assert_int_equal(rm_curve_means(&curve, mean, 2), 2);
    assert_true(mean[0] == 1.5 && mean[1] == 2.5);
    fclose(file);
    unlink(path); /* another file takes its place */
    file = fopen(path, "w");
    fputs("score,steps\n8,5\n,6\n", file);
    fflush(file);
    rm_curve_read(&curve, directory, "score", "steps");
    assert_int_equal(curve.count, 1);
    assert_true(curve.values[0] == 8 && curve.at[0] == 5);
    rm_curve_close(&curve);
    fclose(file);
    unlink(path);
    rmdir(directory);
}

static void the_interquartile_mean_leaves_out_the_ends(void **state)
{
    double five[] = {100, 2, -50, 4, 3}, three[] = {9, 0, 3};
    (void)state;
    assert_true(rm_interquartile_mean(five, 5) == 3);
    assert_true(rm_interquartile_mean(three, 3) == 4);
}

/* The mean goes from the first step that all have to the last one; the interval holds it, and is
 * nothing where seeds agree. */
static void seeds_are_one_curve(void **state)
{
    double at[] = {0, 100, 200}, later[] = {50, 100, 150};
    double one[] = {5, 1, 1}, two[] = {5, 2, 2}, three[] = {5, 6, 9};
    struct rm_curve curves[] = {{.values = one, .at = at, .count = 3},
                                {.values = two, .at = at, .count = 3},
                                {.values = three, .at = later, .count = 3}};
    const struct rm_curve *all[] = {&curves[0], &curves[1], &curves[2]};
    struct rm_seeds *seeds = malloc(sizeof *seeds), *again = malloc(sizeof *again);
    (void)state;
    rm_seeds_of(seeds, all, 1);
    assert_int_equal(seeds->count, 0); /* one seed has no interval */
    rm_seeds_of(seeds, all, 3);
    assert_int_equal(seeds->count, RM_SEEDS_GRID);
    assert_true(seeds->at[0] == 50 && seeds->at[RM_SEEDS_GRID - 1] == 150);
    assert_true(seeds->mean[0] == 5 && seeds->low[0] == 5 && seeds->high[0] == 5);
    const size_t last = RM_SEEDS_GRID - 1;
    assert_true(fabs(seeds->mean[last] - 4) < 1e-12);
    assert_true(seeds->low[last] == 1 && seeds->high[last] == 9);
    rm_seeds_of(again, all, 3);
    assert_memory_equal(again, seeds, sizeof *seeds);
    later[0] = 200, curves[2].count = 1; /* as of a run with one line of metrics */
    rm_seeds_of(seeds, all, 3);
    assert_int_equal(seeds->count, 1);
    assert_true(seeds->at[0] == 200 && seeds->low[0] == 1 && seeds->high[0] == 5);
    assert_true(fabs(seeds->mean[0] - 8.0 / 3) < 1e-12);
    free(seeds);
    free(again);
}

static char *drawn(const struct rm_plot *plot)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_true(rm_plot_write(out, plot));
    fclose(out);
    return text;
}

/* The points of a plot's first line, "X,Y X,Y ". */
static char *points_of(const char *text)
{
    const char *line = strstr(text, "<polyline"), *points = line ? strstr(line, "points=\"") : NULL;
    if (!points)
        fail_msg("no line of a plot in %s", text);
    points = points ? points + strlen("points=\"") : "";
    return strndup(points, strcspn(points, "\""));
}

/* The same four points are drawn whether or not the line has a hundred thousand others. */
static void plots_keep_extremes_and_escape_names(void **state)
{
    enum { POINTS = 100000 };
    double *x = calloc(POINTS, sizeof *x), *y = calloc(POINTS, sizeof *y);
    double few_x[] = {0, 33333, 77777, POINTS - 1}, few_y[] = {0, -1000, 1000, 0};
    struct rm_plot *plot = calloc(1, sizeof *plot);
    (void)state;
    plot->title = "<script>alert('1')</script>";
    plot->x_label = "a & b";
    plot->y_label = "\"y\"";
    for (int i = 0; i < POINTS; i++)
        x[i] = i;
    y[33333] = -1000; /* each one of a hundred points of its column */
    y[77777] = 1000;
    struct rm_plot_series *s = rm_plot_add(plot);
    s->x = x;
    s->y = y;
    s->count = POINTS;
    char *text = drawn(plot);
    assert_null(strstr(text, "<script>"));
    assert_non_null(strstr(text, "&lt;script&gt;alert(&#39;1&#39;)"));
    assert_non_null(strstr(text, "a &amp; b"));
    assert_true(strlen(text) < 60000);
    char *points = points_of(text);
    s->x = few_x;
    s->y = few_y;
    s->count = 4;
    char *few = drawn(plot), *few_points = points_of(few), *rest = few_points;
    int drawn_points = 0;
    for (char *point; (point = strtok_r(rest, " ", &rest)); drawn_points++)
        assert_non_null(strstr(points, point));
    assert_int_equal(drawn_points, 4);
    free(text);
    free(points);
    free(few);
    free(few_points);
    s->count = 0;
    assert_false(rm_plot_write(stdout, plot));
    while (rm_plot_add(plot))
        ;
    assert_int_equal(plot->count, RM_PLOT_SERIES);
    free(plot);
    free(x);
    free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_curve_grows_with_its_file),
        cmocka_unit_test(the_interquartile_mean_leaves_out_the_ends),
        cmocka_unit_test(seeds_are_one_curve),
        cmocka_unit_test(plots_keep_extremes_and_escape_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
