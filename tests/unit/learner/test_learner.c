/* A learner as a duty, with an actor beside it, in one process. */
#include "learner/learner.h"
#include "config/config.h"
#include "shm/atomic.h"
#include "tests/support/allocations.h"
#include "tests/support/replay_run.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HIDDEN     "{\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"}"
#define PRIORITIES ", \"priority\": {\"kind\": \"proportional\"}"
/* Everything that learns from replay. */
static const char *const kinds[] = {
    RM_REPLAY_DQN,
    RM_REPLAY_DQN PRIORITIES,
    "\"network\": {\"layers\": [" HIDDEN ", {\"type\": \"noisy_linear\", \"units\": 16},"
    " {\"type\": \"relu\"}], \"head\": {\"dueling\": true, \"noisy\": true}},"
    " \"algorithm\": {\"name\": \"qr-dqn\", \"quantiles\": 8}" PRIORITIES,
    "\"network\": {\"layers\": [" HIDDEN ", {\"type\": \"cosine_embedding\"}]},"
    " \"algorithm\": {\"name\": \"iqn\", \"quantiles\": 8}" PRIORITIES,
    "\"network\": {\"layers\": [" HIDDEN "]}, \"algorithm\": {\"name\": \"sac\"}",
    "\"network\": {\"layers\": [" HIDDEN "]}, \"algorithm\": {\"name\": \"sac\"}" PRIORITIES,
    "\"network\": {\"layers\": [" HIDDEN ", {\"type\": \"gru\", \"units\": 8}]},"
    " \"algorithm\": {\"name\": \"r2d2\"}",
    "\"network\": {\"layers\": [" HIDDEN ", {\"type\": \"lstm\", \"units\": 8}]},"
    " \"algorithm\": {\"name\": \"r2d2\"}" PRIORITIES,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

#define ACTORS_AND_THREADS(actors, threads)                                                        \
    "\"actor\": {\"count\": " actors ", \"worlds\": 4}, \"learner\": {\"threads\": " threads "}, "

static struct rm_board_policy *board(struct rm_replay_run *r)
{
    return &r->session.board.policies[0];
}

static void a_run_makes_the_updates_it_owes(void **state)
{
    (void)state;
    struct rm_replay_run r;
    rm_replay_run_start(&r, RM_REPLAY_DQN, "sequential",
                        "\"actor\": {\"count\": 1, \"worlds\": 4}, " RM_REPLAY_LOCKSTEP);
    assert_int_equal(RM_PEEK(&board(&r)->published), 1);
    rm_replay_run_to_its_end(&r);
    const struct rm_board_policy *p = board(&r);
    const uint64_t steps = RM_PEEK(&p->env_steps), updates = RM_PEEK(&p->updates);
    assert_true(steps >= 2000 && steps < 2000 + 8 * 4);
    assert_int_equal(updates, steps / 4);
    assert_int_equal(RM_PEEK(&p->samples), updates * 16);
    assert_int_equal(RM_PEEK(&p->limiter.sampled), updates * 16);
    assert_int_equal(RM_PEEK(&p->updates_skipped), 0);
    assert_int_equal(RM_PEEK(&p->samples_torn), 0);
    assert_int_equal(RM_PEEK(&p->replay_capacity), 512);
    assert_int_equal(RM_PEEK(&p->replay_rows), 512);
    assert_int_equal(RM_PEEK(&p->age_count), updates * 16);
    assert_true(RM_PEEK(&p->age_sum) > 0 && RM_PEEK(&p->age_sum) <= updates * 16 * 512);
    assert_true(RM_PEEK(&p->published) > updates / 8 / 2);
    assert_true(isfinite(RM_PEEK(&p->loss)) && RM_PEEK(&p->grad_norm) > 0);
    /* What was published last is what stands in the file. */
    struct rm_weights_stamp stamp;
    size_t bytes;
    const uint64_t count = r.session.weights[0].count;
    float *params = malloc(count * sizeof *params);
    assert_int_equal(rm_weights_read(&r.session.weights[0], params, count, &stamp, NULL), 1);
    assert_int_equal(stamp.updates, updates);
    char *tensors = rm_replay_run_tensors(&r, &bytes);
    assert_int_equal(bytes, count * sizeof *params);
    assert_memory_equal(tensors, params, bytes);
    free(tensors);
    free(params);
    rm_replay_run_stop(&r);
}

/* The runner writes a heartbeat between turns; an update of a large network takes long. */
static void a_turn_writes_heartbeats(void **state)
{
    (void)state;
    struct rm_replay_run r;
    rm_replay_run_start(&r, RM_REPLAY_DQN, "sequential",
                        "\"actor\": {\"count\": 1, \"worlds\": 4}, " RM_REPLAY_LOCKSTEP);
    _Atomic uint64_t *heartbeat_ns = &r.duty[r.actors].slot->heartbeat_ns;
    RM_POKE(heartbeat_ns, 0);
    rm_replay_run_learn(&r);
    assert_true(RM_PEEK(heartbeat_ns) > 0);
    rm_replay_run_stop(&r);
}

/* One seed, one policy: for any split over actors and any number of threads. */
static void results_depend_on_the_seed_alone(void **state)
{
    (void)state;
    static const char *const layouts[] = {
        ACTORS_AND_THREADS("1", "1") RM_REPLAY_LOCKSTEP,
        ACTORS_AND_THREADS("2", "1") RM_REPLAY_LOCKSTEP,
        ACTORS_AND_THREADS("2", "2") RM_REPLAY_LOCKSTEP,
    };
    for (size_t k = 0; k < KINDS; k++) {
        char *first = NULL;
        size_t bytes = 0;
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
            struct rm_replay_run r;
            size_t n;
            rm_replay_run_start(&r, kinds[k], "sequential", layouts[i]);
            rm_replay_run_to_its_end(&r);
            assert_true(RM_PEEK(&board(&r)->updates) > 400);
            char *tensors = rm_replay_run_tensors(&r, &n);
            if (!first) {
                first = tensors;
                bytes = n;
            } else {
                assert_int_equal(n, bytes);
                assert_memory_equal(tensors, first, bytes);
                free(tensors);
            }
            rm_replay_run_stop(&r);
        }
        free(first);
    }
}

static void free_running_keeps_the_proportion(void **state)
{
    (void)state;
    struct rm_replay_run r;
    rm_replay_run_start(&r, RM_REPLAY_DQN, "free",
                        RM_REPLAY_FREE "\"publish\": {\"interval\": 10}");
    /* Nothing to learn from: it says how far off that is. */
    assert_int_equal(rm_replay_run_learn(&r), 0);
    struct rm_wake_word *wake = &r.session.board.workers[1].wake;
    assert_int_equal(RM_PEEK(&wake->threshold), 64);
    for (int i = 0; i < 200; i++) {
        while (rm_test_turn(&r.duty[0]) > 0)
            ;
        while (rm_replay_run_learn(&r) > 0)
            ;
        const double owed = (double)RM_PEEK(&board(&r)->env_steps) / 4;
        assert_true(fabs((double)RM_PEEK(&board(&r)->updates) - owed) <= 16 + 5);
    }
    const uint64_t updates = RM_PEEK(&board(&r)->updates);
    assert_true(updates > 20);
    assert_int_equal(RM_PEEK(&board(&r)->published), 1 + updates / 10);
    assert_true(RM_PEEK(&wake->threshold) > RM_PEEK(&board(&r)->limiter.inserted));
    rm_replay_run_stop(&r);
}

static void small_changes_are_not_published(void **state)
{
    (void)state;
    struct rm_replay_run r;
    rm_replay_run_start(&r, RM_REPLAY_DQN, "free",
                        RM_REPLAY_FREE "\"publish\": {\"interval\": 5, \"min_change\": 1}");
    for (int i = 0; i < 40; i++) {
        while (rm_test_turn(&r.duty[0]) > 0)
            ;
        while (rm_replay_run_learn(&r) > 0)
            ;
    }
    const uint64_t updates = RM_PEEK(&board(&r)->updates);
    assert_true(updates >= 20);
    assert_int_equal(RM_PEEK(&board(&r)->published), 1);
    assert_int_equal(RM_PEEK(&board(&r)->publish_skipped), updates / 5);
    /* Hot: from now on whatever changed. */
    r.session.board.run->settings[RM_HOT_PUBLISH_MIN_CHANGE] = 1e-12;
    RM_RAISE(&r.session.board.run->settings_version, 2);
    for (int i = 0; i < 40; i++) {
        while (rm_test_turn(&r.duty[0]) > 0)
            ;
        while (rm_replay_run_learn(&r) > 0)
            ;
    }
    assert_true(RM_PEEK(&board(&r)->published) > 2);
    assert_true(RM_PEEK(&board(&r)->publish_change) > 0);
    rm_replay_run_stop(&r);
}

static void checkpoints_are_written_when_asked_for(void **state)
{
    (void)state;
    struct rm_replay_run r;
    char path[256];
    rm_replay_run_start(&r, RM_REPLAY_DQN, "free", RM_REPLAY_FREE "\"publish\": {\"interval\": 7}");
    while (RM_PEEK(&board(&r)->updates) < 5) {
        rm_test_turn(&r.duty[0]);
        rm_replay_run_learn(&r);
    }
    static const char *const folders[] = {"checkpoints", "checkpoints/000001.tmp"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", r.folder, folders[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    assert_int_equal(r.duty[1].checkpoint(r.duty[1].self, 1), 1);
    const struct rm_board_worker *slot =
        &r.session.board.workers[rm_worker_learner(&r.session.objects, 0)];
    for (int i = 0; RM_SEE(&slot->checkpoint_written) != 1; i++) {
        assert_true(i < 240000);
        usleep(1000);
    }
    assert_int_equal(RM_PEEK(&slot->checkpoint_failed), 0);
    const char *const files[] = {"learner-0.state", "learner-0.safetensors"};
    for (int i = 0; i < 3; i++) {
        char name[128];
        snprintf(name, sizeof name, i < 2 ? "%s" : "policies/%.47s.safetensors",
                 i < 2 ? files[i] : r.session.plan.policy[0].name);
        snprintf(path, sizeof path, "%s/checkpoints/000001.tmp/%s", r.folder, name);
        assert_int_equal(access(path, R_OK), 0);
    }
    /* Where it cannot be written, that is said, and learning goes on. */
    assert_int_equal(r.duty[1].checkpoint(r.duty[1].self, 2), 1);
    for (int i = 0; RM_SEE(&slot->checkpoint_written) != 2; i++) {
        assert_true(i < 240000);
        usleep(1000);
    }
    assert_int_equal(RM_PEEK(&slot->checkpoint_failed), ENOENT);
    rm_replay_run_learn(&r);
    rm_replay_run_stop(&r);
}

static void nothing_is_allocated_once_it_runs(void **state)
{
    (void)state;
    struct rm_replay_run r;
    if (!rm_test_allocations_counted()) {
        print_message("a sanitizer's allocator cannot be counted\n");
        skip();
    }
    for (size_t k = 0; k < KINDS; k++) {
        rm_replay_run_start(&r, kinds[k], "sequential",
                            ACTORS_AND_THREADS("2", "2") RM_REPLAY_LOCKSTEP);
        for (int i = 0; i < 200; i++)
            for (uint32_t d = 0; d <= r.actors; d++)
                rm_test_turn(&r.duty[d]);
        assert_true(RM_PEEK(&board(&r)->updates) > 20);
        const uint64_t before = rm_test_allocations();
        for (int i = 0; i < 200; i++)
            for (uint32_t d = 0; d <= r.actors; d++)
                rm_test_turn(&r.duty[d]);
        assert_int_equal(rm_test_allocations() - before, 0);
        assert_true(RM_PEEK(&board(&r)->updates) > 60);
        assert_true(RM_PEEK(&board(&r)->env_steps) <
                    2000); /* not at its end, where files are written */
        rm_replay_run_stop(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_writes_heartbeats),
        cmocka_unit_test(a_run_makes_the_updates_it_owes),
        cmocka_unit_test(results_depend_on_the_seed_alone),
        cmocka_unit_test(free_running_keeps_the_proportion),
        cmocka_unit_test(small_changes_are_not_published),
        cmocka_unit_test(checkpoints_are_written_when_asked_for),
        cmocka_unit_test(nothing_is_allocated_once_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
