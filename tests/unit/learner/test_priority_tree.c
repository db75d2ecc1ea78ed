/* The sum tree: its sums are a function of the leaves, its draws are those of a walk along them. */
#include "learner/priority_tree.h"
#include "shm/base/rng.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_error failure;

static void open_tree(struct rm_priorities *p, uint64_t slots, uint32_t lanes)
{
    const struct rm_priorities_spec spec = {.slots = slots, .lanes = lanes, .sources = 1};
    if (rm_priorities_create(p, &spec, &failure))
        fail_msg("%s", failure.text);
}

static void set_one(struct rm_priorities *p, uint64_t leaf, double value)
{
    rm_priority_set(p, &leaf, &value, 1);
}

static uint64_t find_one(const struct rm_priorities *p, double at)
{
    uint64_t leaf;
    rm_priority_find(p, &at, 1, &leaf);
    return leaf;
}

/* Batches of changes in any order, leaves twice among them, leave what adding up anew gives, to the
 * bit. */
static void sums_follow_the_leaves(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 7, 8, 9, 64, 65, 1000, 4097};
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
        struct rm_priorities p;
        uint64_t leaf[100];
        double value[100];
        int64_t items = 0;
        open_tree(&p, sizes[c], 1);
        for (int round = 0; round < 40; round++) {
            const uint32_t n = 1 + rm_rng_below(&rng, 100);
            for (uint32_t i = 0; i < n; i++) {
                leaf[i] = rm_rng_below(&rng, (uint32_t)sizes[c]);
                value[i] = rm_rng_below(&rng, 3) ? exp(8 * rm_rng_double(&rng) - 4) : 0;
            }
            items += rm_priority_set(&p, leaf, value, n);
        }
        double sum = 0, *kept[RM_PRIORITY_LEVELS];
        uint64_t present = 0;
        for (uint64_t i = 0; i < sizes[c]; i++) {
            sum += p.level[0][i];
            present += p.level[0][i] > 0;
        }
        assert_true(fabs(rm_priority_total(&p) - sum) <= 1e-12 * sum);
        assert_int_equal(items, present);
        assert_int_equal(rm_priority_count(&p), present);
        for (uint32_t l = 1; l < p.levels; l++) {
            kept[l] = malloc(p.nodes[l] * sizeof(double));
            memcpy(kept[l], p.level[l], p.nodes[l] * sizeof(double));
            memset(p.level[l], 0x55, p.nodes[l] / RM_PRIORITY_FAN * sizeof(double));
        }
        rm_priority_rebuild(&p);
        for (uint32_t l = 1; l < p.levels; l++) {
            const uint64_t used = p.nodes[l - 1] / RM_PRIORITY_FAN;
            assert_memory_equal(kept[l], p.level[l], used * sizeof(double));
            free(kept[l]);
        }
        rm_priorities_close(&p);
    }
}

/* Whole numbers add up without rounding: every place of the sum belongs to the leaf that a walk
 * from the first one ends at, the last leaf's included. */
static void every_place_belongs_to_its_leaf(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(2, RM_STREAM_TEST, 0, 0);
    for (uint32_t size = 1; size <= 600; size += 1 + size / 3) {
        struct rm_priorities p;
        open_tree(&p, size, 1);
        for (uint32_t i = 0; i < size; i++)
            set_one(&p, i, (double)rm_rng_below(&rng, 4));
        set_one(&p, size - 1, 2);
        double before = 0;
        for (uint32_t i = 0; i < size; i++) {
            const double own = p.level[0][i];
            for (int quarter = 0; quarter < 4 * (int)own; quarter++)
                assert_int_equal(find_one(&p, before + 0.25 * quarter), i);
            before += own;
        }
        assert_true(before == rm_priority_total(&p));
        assert_int_equal(find_one(&p, nextafter(before, 0)), size - 1);
        rm_priorities_close(&p);
    }
}

/* Priorities over eighteen powers of ten, most of them 0, and places next to every rounding: never
 * a leaf of 0. */
static void rounding_never_leads_to_nothing(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, 0, 0);
    struct rm_priorities p;
    open_tree(&p, 777, 3);
    for (int round = 0; round < 200; round++) {
        memset(p.level[0], 0, p.nodes[0] * sizeof(double));
        for (uint32_t i = 0; i < 1 + rm_rng_below(&rng, 40); i++)
            p.level[0][rm_rng_below(&rng, 777 * 3)] = pow(10, 18 * rm_rng_double(&rng) - 12);
        rm_priority_rebuild(&p);
        const double total = rm_priority_total(&p);
        double running = 0;
        for (uint32_t i = 0; i < 777 * 3; i++) {
            running += p.level[0][i];
            const double near[] = {nextafter(running, 0), running, nextafter(running, INFINITY)};
            for (int k = 0; k < 3 && p.level[0][i] > 0; k++)
                assert_true(p.level[0][find_one(&p, near[k])] > 0);
        }
        for (int k = 0; k < 50; k++)
            assert_true(p.level[0][find_one(&p, rm_rng_double(&rng) * total)] > 0);
        uint64_t last = p.nodes[0] - 1;
        while (p.level[0][last] == 0)
            last--;
        assert_true(p.level[0][find_one(&p, total)] > 0);
        assert_int_equal(find_one(&p, 2 * total), last);
    }
    rm_priorities_close(&p);
}

/* Many side by side are the same as one by one. */
static void draws_do_not_depend_on_their_neighbours(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, 0, 0);
    struct rm_priorities p;
    double at[131];
    uint64_t leaf[131];
    open_tree(&p, 5000, 1);
    for (uint64_t i = 0; i < 5000; i++)
        p.level[0][i] = rm_rng_double(&rng);
    rm_priority_rebuild(&p);
    for (uint32_t i = 0; i < 131; i++)
        at[i] = rm_rng_double(&rng) * rm_priority_total(&p);
    for (uint32_t n = 1; n <= 131; n += 13) {
        rm_priority_find(&p, at, n, leaf);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(leaf[i], find_one(&p, at[i]));
    }
    rm_priorities_close(&p);
}

/* --- a million draws ------------------------------------------------------------------------- */

enum { LEAVES = 1000, DRAWS = 1000000 };

static double chi_square(const uint32_t *drawn, const double *p, double total)
{
    double chi = 0;
    for (uint32_t i = 0; i < LEAVES; i++) {
        const double mean = DRAWS * p[i] / total;
        chi += (drawn[i] - mean) * (drawn[i] - mean) / mean;
    }
    return chi;
}

/* Where a chi-square of k degrees is exceeded once in a thousand times (Wilson and Hilferty 1931).
 */
static double once_in_a_thousand(double k)
{
    const double t = 2 / (9 * k), z = 3.0902323;
    return k * pow(1 - t + z * sqrt(t), 3);
}

/* The second statistic is what a draw over all but the last leaf would give: the test would see it.
 */
static void a_million_draws_are_in_proportion(void **state)
{
    (void)state;
    static uint32_t drawn[LEAVES];
    static double at[DRAWS];
    static uint64_t leaf[DRAWS];
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, 0, 0);
    struct rm_priorities p;
    open_tree(&p, LEAVES, 1);
    for (uint32_t i = 0; i < LEAVES; i++)
        set_one(&p, i, 0.2 + rm_rng_double(&rng));
    const double total = rm_priority_total(&p);
    for (uint32_t i = 0; i < DRAWS; i++)
        at[i] = rm_rng_double(&rng) * total;
    rm_priority_find(&p, at, DRAWS, leaf);
    for (uint32_t i = 0; i < DRAWS; i++)
        drawn[leaf[i]]++;
    const double most = once_in_a_thousand(LEAVES - 1);
    assert_true(chi_square(drawn, p.level[0], total) < most);
    assert_true(drawn[LEAVES - 1] > 0);
    drawn[0] += drawn[LEAVES - 1];
    drawn[LEAVES - 1] = 0;
    assert_true(chi_square(drawn, p.level[0], total) > most);
    rm_priorities_close(&p);
}

static void another_view_sees_the_same(void **state)
{
    (void)state;
    struct rm_priorities p, other;
    open_tree(&p, 100, 5);
    set_one(&p, 499, 3);
    assert_int_equal(rm_priorities_attach(&other, p.region.fd, true, &failure), RM_ATTACH_OK);
    assert_int_equal(other.spec.lanes, 5);
    assert_true(rm_priority_total(&other) == 3);
    assert_int_equal(find_one(&other, 1), 499);
    rm_priorities_close(&other);
    rm_priorities_close(&p);
}

/* Nodes that only fill a level up may hold anything in memory that another left: adding up again
 * empties them, or a draw would lead to what is not there. */
static void padding_is_never_drawn(void **state)
{
    (void)state;
    struct rm_priorities p;
    const struct rm_priorities_spec spec = {.slots = 11, .lanes = 1, .sources = 1};
    assert_int_equal(rm_priorities_create(&p, &spec, &failure), 0);
    p.level[0][10] = 1;
    for (uint64_t i = 11; i < p.nodes[0]; i++)
        p.level[0][i] = 100;
    for (uint64_t i = 0; i < p.nodes[1]; i++)
        p.level[1][i] = 1000;
    rm_priority_rebuild(&p);
    assert_true(rm_priority_total(&p) == 1);
    uint64_t leaf[2];
    rm_priority_find(&p, (const double[]){0.5, 999}, 2, leaf);
    assert_int_equal(leaf[0], 10);
    assert_int_equal(leaf[1], 10);
    rm_priorities_close(&p);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct rm_priorities_spec wrong[] = {
        {.slots = 0, .lanes = 1, .sources = 1},    {.slots = 1, .lanes = 0, .sources = 1},
        {.slots = 1, .lanes = 1, .sources = 0},    {.slots = 1ull << 40, .lanes = 2, .sources = 1},
        {.slots = 1, .lanes = 1, .sources = 5000},
    };
    struct rm_priorities p;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_true(rm_priorities_create(&p, &wrong[i], &failure) < 0);
        assert_non_null(strstr(failure.text, "priorities of policy 0"));
        assert_int_equal(rm_priorities_bytes(&wrong[i]), 0);
    }
    struct rm_region region;
    assert_int_equal(rm_region_create(&region, RM_REGION_TEXT, "rm-test", 4096, &failure), 0);
    rm_region_publish(&region);
    assert_true(rm_priorities_attach(&p, region.fd, true, &failure) < 0);
    assert_non_null(strstr(failure.text, "expected priorities"));
    rm_region_close(&region);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_follow_the_leaves),
        cmocka_unit_test(every_place_belongs_to_its_leaf),
        cmocka_unit_test(rounding_never_leads_to_nothing),
        cmocka_unit_test(draws_do_not_depend_on_their_neighbours),
        cmocka_unit_test(a_million_draws_are_in_proportion),
        cmocka_unit_test(another_view_sees_the_same),
        cmocka_unit_test(padding_is_never_drawn),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
