/* kill -9 of a learner while it changes priorities, at every named site and at random moments: its
 * successor finds a tree whose sums are those of its leaves, draws from it, and no row is lost. */
#include "tests/crash/fault_build.h"

#include "learner/priority_tree.c"
#include "learner/sampler_priority.c"

#include "shm/base/rng.h"
#include "tests/crash/priority_scene.h"
#include "tests/crash/victim.h"

#include <string.h>

static struct rm_sampler *take_over(struct scene *s)
{
    const struct rm_sampler_spec spec = spec_of(s);
    struct rm_sampler *sampler = NULL;
    if (rm_sampler_create(&sampler, &spec, &failure))
        return NULL;
    rm_sampler_window_free(sampler);
    return sampler;
}

static int one_update(struct scene *s, struct rm_sampler *sampler)
{
    struct rm_batch *b = rm_sampler_batch(sampler);
    const uint64_t u = RM_PEEK(&s->updates) + 1;
    rm_sampler_window_free(sampler);
    if (!rm_sampler_draw(sampler, u, b))
        return 2;
    for (uint32_t i = 0; i < BATCH; i++)
        b->error[i] = (float)((u * 7 + i * 3) % 29);
    rm_sampler_learned(sampler, b);
    RM_POKE(&s->updates, u);
    return 0;
}

static int learner(void *arg)
{
    struct scene *s = arg;
    struct rm_sampler *sampler = take_over(s);
    if (!sampler)
        return 1;
    for (int rc;;)
        if ((rc = one_update(s, sampler)))
            return rc;
}

/* What the successor must find. */
static void check(struct scene *s)
{
    struct rm_sampler *sampler = take_over(s);
    assert_non_null(sampler);
    for (uint32_t l = 0; l + 1 < s->tree.levels; l++)
        for (uint64_t i = 0; i < s->tree.nodes[l] / RM_PRIORITY_FAN; i++)
            assert_true(s->tree.level[l + 1][i] ==
                        rm_priority_sum(s->tree.level[l] + i * RM_PRIORITY_FAN));
    check_rows(s);
    for (int u = 0; u < 3; u++)
        assert_int_equal(one_update(s, sampler), 0);
    assert_int_equal(rm_sampler_counts(sampler).rejected, 0);
    rm_sampler_destroy(sampler);
}

static void learner_dies_at_every_site(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned times;
    } sites[] = {
        {"priorities.set.leaves", 9},     {"priorities.set.level", 9},
        {"priorities.set.after", 9},      {"priorities.scan.entered", 3},
        {"priorities.learned.before", 3},
    };
    struct scene *s = begin();
    write_rows(s, 12);
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        for (unsigned nth = 1; nth <= sites[i].times; nth += 2) {
            write_rows(s, 7);
            assert_int_equal(victim_wait(victim_start(learner, s, sites[i].name, nth)),
                             VICTIM_KILLED);
            check(s);
        }
    assert_true(RM_PEEK(&s->written) > SLOTS);
    end(s);
}

static void random_kills(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, 0, 0);
    struct scene *s = begin();
    write_rows(s, 50);
    const unsigned kills = (unsigned)(30 * rm_torture_seconds(1.0));
    for (unsigned i = 0; i < kills; i++) {
        const uint64_t before = RM_PEEK(&s->updates);
        write_rows(s, 5);
        pid_t pid = victim_start(learner, s, NULL, 0);
        while (RM_PEEK(&s->updates) == before && waitpid(pid, NULL, WNOHANG) == 0)
            usleep(100);
        usleep(rm_rng_below(&rng, 3000));
        kill(pid, SIGKILL);
        assert_int_equal(victim_wait(pid), VICTIM_KILLED);
        check(s);
    }
    printf("  %u kills, %llu updates\n", kills, (unsigned long long)RM_PEEK(&s->updates));
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learner_dies_at_every_site),
        cmocka_unit_test(random_kills),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
