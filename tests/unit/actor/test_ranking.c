/* Ranks of true queries among corrupted ones, by hand. */
#include "actor/ranking.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <math.h>

#define NONE NAN

static struct rm_ranking filled(uint64_t seed, uint32_t queries, uint32_t corruptions,
                                const double *score)
{
    struct rm_ranking r;
    struct rm_error error;
    assert_int_equal(rm_ranking_create(&r, seed, queries, corruptions, &error), 0);
    const uint32_t each = 1 + 2 * corruptions;
    for (uint32_t q = 0; q < queries; q++)
        for (uint32_t c = 0; c < each; c++)
            assert_true(rm_ranking_add(&r, q, c, score[q * each + c]));
    assert_int_equal(r.missing, 0);
    return r;
}

static void ranks_are(struct rm_ranks r, uint64_t ranked, double reciprocal, double hits1,
                      double hits3, double hits10)
{
    assert_int_equal(r.ranked, ranked);
    assert_float_equal(r.reciprocal, reciprocal, 1e-12);
    assert_float_equal(r.hits1, hits1, 1e-12);
    assert_float_equal(r.hits3, hits3, 1e-12);
    assert_float_equal(r.hits10, hits10, 1e-12);
}

/* Two queries, three corruptions a side. Heads: the first query is first, the second one is third
 * (two are better). Tails: second and fourth. */
static void each_side_has_its_ranks(void **state)
{
    (void)state;
    static const double score[] = {
        -1, -2, -3, -101, -0.5, -2, -9, /* query 0 */
        -5, -1, -9, -2,   -1,   -2, -3, /* query 1 */
    };
    struct rm_ranking r = filled(1, 2, 3, score);
    ranks_are(rm_ranking_side(&r, RM_RANKING_HEAD), 2, (1 + 1.0 / 3) / 2, 0.5, 1, 1);
    ranks_are(rm_ranking_side(&r, RM_RANKING_TAIL), 2, (0.5 + 0.25) / 2, 0, 0.5, 1);
    ranks_are(rm_ranking_both(&r), 4, (4.0 / 6 + 0.375) / 2, 0.25, 0.75, 1);
    rm_ranking_destroy(&r);
}

/* Behind eleven better ones there is no hit at 10; behind nine there is. */
static void hits_end_at_ten(void **state)
{
    (void)state;
    double score[1 + 2 * 11];
    score[0] = 0;
    for (int i = 0; i < 11; i++) {
        score[1 + i] = 1;
        score[12 + i] = i < 9 ? 1 : -1;
    }
    struct rm_ranking r = filled(1, 1, 11, score);
    ranks_are(rm_ranking_side(&r, RM_RANKING_HEAD), 1, 1.0 / 12, 0, 0, 0);
    ranks_are(rm_ranking_side(&r, RM_RANKING_TAIL), 1, 1.0 / 10, 0, 0, 1);
    rm_ranking_destroy(&r);
}

/* Candidates that do not exist are nobody's rivals; a query without any on a side is not ranked
 * there. */
static void missing_candidates_do_not_count(void **state)
{
    (void)state;
    static const double score[] = {
        -3, -2, NONE, NONE, NONE, /* query 0: second among its heads, no tails */
        -3, -4, -5,   -1,   NONE, /* query 1: first, second */
    };
    struct rm_ranking r = filled(1, 2, 2, score);
    ranks_are(rm_ranking_side(&r, RM_RANKING_HEAD), 2, 0.75, 0.5, 1, 1);
    ranks_are(rm_ranking_side(&r, RM_RANKING_TAIL), 1, 0.5, 0, 1, 1);
    rm_ranking_destroy(&r);

    static const double heads[] = {-3, -2, NONE};
    r = filled(1, 1, 1, heads);
    assert_int_equal(rm_ranking_side(&r, RM_RANKING_TAIL).ranked, 0);
    assert_true(isnan(rm_ranking_side(&r, RM_RANKING_TAIL).reciprocal));
    ranks_are(rm_ranking_both(&r), 1, 0.5, 0, 1, 1);
    rm_ranking_destroy(&r);
}

/* Equal scores are put in order at random: over many queries each place is as likely, and the same
 * seed gives the same order. */
static void ties_are_drawn(void **state)
{
    (void)state;
    enum { QUERIES = 3000, EACH = 5 };
    static double score[QUERIES * EACH];
    struct rm_ranking r = filled(7, QUERIES, 2, score);
    const struct rm_ranks head = rm_ranking_side(&r, RM_RANKING_HEAD),
                          tail = rm_ranking_side(&r, RM_RANKING_TAIL);
    assert_float_equal(head.hits1, 1.0 / 3, 0.05);
    assert_float_equal(head.reciprocal, (1 + 0.5 + 1.0 / 3) / 3, 0.03);
    assert_float_equal(tail.hits1, 1.0 / 3, 0.05);
    assert_true(head.hits1 != tail.hits1); /* the sides are drawn apart */
    const struct rm_ranks again = rm_ranking_side(&r, RM_RANKING_HEAD);
    assert_true(again.reciprocal == head.reciprocal);
    rm_ranking_destroy(&r);
    r = filled(8, QUERIES, 2, score);
    assert_true(rm_ranking_side(&r, RM_RANKING_HEAD).reciprocal != head.reciprocal);
    rm_ranking_destroy(&r);
}

static void a_candidate_is_scored_once(void **state)
{
    (void)state;
    struct rm_ranking r;
    struct rm_error error;
    assert_int_equal(rm_ranking_create(&r, 1, 2, 1, &error), 0);
    assert_true(rm_ranking_add(&r, 1, 2, -1));
    assert_false(rm_ranking_add(&r, 1, 2, -2));
    assert_false(rm_ranking_add(&r, 2, 0, -1));
    assert_false(rm_ranking_add(&r, 0, 3, -1));
    assert_int_equal(r.missing, 5);
    rm_ranking_destroy(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_side_has_its_ranks),         cmocka_unit_test(hits_end_at_ten),
        cmocka_unit_test(missing_candidates_do_not_count), cmocka_unit_test(ties_are_drawn),
        cmocka_unit_test(a_candidate_is_scored_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
