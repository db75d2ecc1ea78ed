/* What `top` shows, before it is drawn. */
#include "daemon/ctl/top.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    /* Asleep all the while: nothing is booked before it wakes. */
    now = before;
    snprintf(now.worker[0].state, sizeof now.worker[0].state, "waiting");
    rm_snapshot_phases(&now.worker[0], &before.worker[0], share);
    assert_true(share[RM_PHASE_WAITING] == 1 && share[RM_PHASE_FORWARD] == 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_are_filled_exactly),
        cmocka_unit_test(figures_are_read_from_status),
        cmocka_unit_test(letters_are_distinct),
        cmocka_unit_test(shares_are_of_the_time_since_the_last_look),
        cmocka_unit_test(workers_are_sorted),
        cmocka_unit_test(speed_falls_back_to_two_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
