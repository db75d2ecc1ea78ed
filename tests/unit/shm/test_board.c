/* shm/board: its shape, its scores, and the tables that name what is on it. */
#include "tests/support/unit.h"

#include "shm/layout.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static struct rm_error error;

static void blocks_do_not_overlap(void **state)
{
    (void)state;
    static const uint32_t counts[][3] = {
        {1, 1, 1}, {5, 5, 8}, {RM_BOARD_POLICIES, RM_BOARD_AGENTS, RM_BOARD_WORKERS}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct rm_board_view a, b;
        const uint32_t *n = counts[i];
        assert_int_equal(rm_board_create(&a, n[0], n[1], n[2], &error), 0);
        assert_int_equal(rm_board_attach(&b, a.region.fd, false, &error), RM_ATTACH_OK);
        assert_int_equal(b.run->policies, n[0]);
        assert_int_equal(b.run->agents, n[1]);
        assert_int_equal(b.run->workers, n[2]);
        const char *end = (const char *)b.region.base + b.region.bytes;
        assert_ptr_equal(&b.policies[n[0]], b.agents);
        assert_ptr_equal(&b.agents[n[1]], b.workers);
        assert_ptr_equal(&b.workers[n[2]], end);
        assert_true((const char *)(b.round + 1) <= (const char *)b.policies);
        assert_true((const char *)(b.run + 1) <= (const char *)b.round);
        RM_POKE(&a.workers[n[2] - 1].turns, 7);
        assert_int_equal(RM_PEEK(&b.workers[n[2] - 1].turns), 7);
        rm_board_close(&b);
        rm_board_close(&a);
    }
}

static void refuses_what_is_out_of_range(void **state)
{
    (void)state;
    static const uint32_t counts[][3] = {{0, 1, 1},
                                         {1, 0, 1},
                                         {1, 1, 0},
                                         {RM_BOARD_POLICIES + 1, 1, 1},
                                         {1, RM_BOARD_AGENTS + 1, 1},
                                         {1, 1, RM_BOARD_WORKERS + 1}};
    struct rm_board_view a, b;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        assert_int_equal(rm_board_create(&a, counts[i][0], counts[i][1], counts[i][2], &error),
                         -EINVAL);
    assert_int_equal(rm_board_create(&a, 1, 1, 1, &error), 0);
    ((struct rm_board *)a.region.base)->workers = 2; /* claims more than is there */
    assert_int_equal(rm_board_attach(&b, a.region.fd, false, &error), -EPROTO);
    assert_null(b.region.base);
    ((struct rm_board *)a.region.base)->workers = 1;
    a.run->workers = 2; /* what all loops over workers go by */
    assert_int_equal(rm_board_attach(&b, a.region.fd, false, &error), -EPROTO);
    a.run->workers = 1;
    RM_POKE(&a.round->participants, RM_ROUND_MAX + 1);
    assert_int_equal(rm_board_attach(&b, a.region.fd, false, &error), -EPROTO);
    RM_POKE(&a.round->participants, RM_ROUND_MAX);
    assert_int_equal(rm_board_attach(&b, a.region.fd, false, &error), RM_ATTACH_OK);
    rm_board_close(&b);
    rm_board_close(&a);
}

static void score_windows(void **state)
{
    (void)state;
    struct rm_board_view board;
    assert_int_equal(rm_board_create(&board, 1, 1, 1, &error), 0);
    struct rm_scores *scores = &board.agents[0].scores;
    double mean;
    assert_int_equal(rm_scores_first(scores, &mean), 0);
    assert_true(isnan(mean));
    assert_int_equal(rm_scores_last(scores, &mean), 0);
    for (int i = 0; i < 250; i++) {
        rm_scores_add(scores, i);
        int n = i < RM_SCORE_WINDOW ? i + 1 : RM_SCORE_WINDOW;
        assert_int_equal(rm_scores_first(scores, &mean), n);
        assert_true(mean == (n - 1) / 2.0);
        assert_int_equal(rm_scores_last(scores, &mean), n);
        assert_true(mean == i - (n - 1) / 2.0);
        assert_true(scores->last_score == i);
    }
    assert_int_equal(scores->episodes, 250);

    /* An episode claimed by a worker that died before storing its score is left out. */
    struct rm_scores *run = &board.run->scores;
    rm_scores_add(run, 3);
    RM_ADD(&run->episodes, 1);
    rm_scores_add(run, 5);
    assert_int_equal(rm_scores_first(run, &mean), 2);
    assert_true(mean == 4);
    rm_board_close(&board);
}

/* Numbers are means over the window, words the share of each; of what nobody could have written
 * nothing is made. */
static void test_figures(void **state)
{
    struct rm_board_view board;
    (void)state;
    assert_int_equal(rm_board_create(&board, 1, 2, 1, &error), 0);
    board.run->figures = 2;
    board.run->figure[0] = (struct rm_board_figure){.name = "food"};
    board.run->figure[1] =
        (struct rm_board_figure){.name = "cause", .words = 3, .word = {"hunger", "poison", "age"}};
    assert_int_equal(rm_board_figure_values(&board.run->figure[0]), 1);
    assert_int_equal(rm_board_figure_values(&board.run->figure[1]), 3);
    struct rm_board_agent *agent = &board.agents[1];
    assert_true(isnan(rm_board_figure_last(&board, 1, 0, 0)));
    assert_true(isnan(rm_board_figure_last(&board, 1, 1, 2)));
    for (int i = 0; i < 150; i++) { /* the last hundred: 50.. */
        rm_scores_add(&agent->figures[0], i);
        rm_scores_add(&agent->figures[1], i < 75 ? 0 : 2);
    }
    assert_true(rm_board_figure_last(&board, 1, 0, 0) == 99.5);
    assert_true(rm_board_figure_last(&board, 1, 1, 0) == 0.25);
    assert_true(rm_board_figure_last(&board, 1, 1, 1) == 0);
    assert_true(rm_board_figure_last(&board, 1, 1, 2) == 0.75);
    assert_true(isnan(rm_board_figure_last(&board, 0, 1, 0)));
    for (int i = 0; i < 50; i++)
        rm_scores_add(&agent->figures[1], i % 2 ? -1e30 : 7.5);
    assert_true(rm_board_figure_last(&board, 1, 1, 0) == 0);
    assert_true(rm_board_figure_last(&board, 1, 1, 2) == 0.5);
    /* One that was claimed by an actor that died is left out. */
    rm_scores_add(&board.agents[0].figures[1], 2);
    RM_ADD(&board.agents[0].figures[1].episodes, 1);
    assert_true(rm_board_figure_last(&board, 0, 1, 2) == 1);
    agent->eval_figures[1][1] = 0.375;
    assert_true(isnan(rm_board_figure_evaluated(&board, 1, 1, 1))); /* there was none yet */
    board.run->evaluations = 1;
    assert_true(rm_board_figure_evaluated(&board, 1, 1, 1) == 0.375);
    rm_board_close(&board);
}

static void check_metrics(const struct rm_metric *metrics, size_t n, size_t block_bytes)
{
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        assert_true(strlen(metrics[i].name) > 0 && strlen(metrics[i].unit) > 0);
        assert_true(strlen(metrics[i].doc) > 0);
        assert_true(metrics[i].offset + 8 <= block_bytes && metrics[i].offset % 8 == 0);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(metrics[i].name, metrics[j].name);
            assert_int_not_equal(metrics[i].offset, metrics[j].offset);
        }
    }
}

static double value_of(const char *name, const struct rm_board_policy *policy)
{
    for (size_t i = 0; i < rm_policy_metric_count; i++)
        if (strcmp(rm_policy_metrics[i].name, name) == 0)
            return rm_metric_value(&rm_policy_metrics[i], policy);
    fail_msg("no metric %s", name);
    return 0;
}

static void metrics_point_at_their_words(void **state)
{
    (void)state;
    check_metrics(rm_policy_metrics, rm_policy_metric_count, sizeof(struct rm_board_policy));
    check_metrics(rm_worker_metrics, rm_worker_metric_count, sizeof(struct rm_board_worker));
    struct rm_board_view board;
    assert_int_equal(rm_board_create(&board, 1, 1, 1, &error), 0);
    struct rm_board_policy *p = &board.policies[0];
    RM_POKE(&p->env_steps, 11);
    RM_POKE(&p->limiter.sampled, 12);
    RM_POKE(&p->loss, 0.5);
    RM_POKE(&p->epsilon, 0.25);
    RM_POKE(&p->eval_version, 13);
    assert_true(value_of("env_steps", p) == 11);
    assert_true(value_of("sampled", p) == 12);
    assert_true(value_of("loss", p) == 0.5);
    assert_true(value_of("epsilon", p) == 0.25);
    assert_true(value_of("eval_version", p) == 13);
    rm_board_close(&board);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(rm_phase_name(RM_PHASE_CHECKPOINT), "checkpoint");
    assert_string_equal(rm_role_name(RM_ROLE_EVALUATOR), "evaluator");
    assert_string_equal(rm_worker_state_name(RM_WORKER_WAITING), "waiting");
    assert_string_equal(rm_run_state_name(RM_RUN_FAILED), "failed");
    assert_string_equal(rm_role_name((enum rm_role)99), "unknown");
    for (int i = 0; i < RM_PHASE_COUNT; i++)
        assert_string_not_equal(rm_phase_name((enum rm_phase)i), "unknown");
}

static void adding_helpers(void **state)
{
    (void)state;
    _Atomic uint64_t word = 5;
    RM_ADD_OWN(&word, 3);
    assert_int_equal(RM_ADD(&word, 2), 8);
    rm_atomic_max(&word, 4);
    assert_int_equal(RM_PEEK(&word), 10);
    rm_atomic_max(&word, 40);
    assert_int_equal(RM_SEE(&word), 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(blocks_do_not_overlap),
        cmocka_unit_test(refuses_what_is_out_of_range),
        cmocka_unit_test(score_windows),
        cmocka_unit_test(metrics_point_at_their_words),
        cmocka_unit_test(names),
        cmocka_unit_test(adding_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
