/* A learner that dies or whose weights explode: what its successor, or it, goes on from. */
#include "config/config.h"
#include "learner/learner.h"
#include "learner/state_file.h"
#include "shm/atomic.h"
#include "shm/base/file.h"
#include "tests/support/daemon.h"
#include "tests/support/replay_run.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_board_policy *board(struct rm_replay_run *r)
{
    return &r->session.board.policies[0];
}

/* Killed and started again: it goes on from what was published. */
static void a_successor_goes_on(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct rm_replay_run r;
    rm_replay_run_start(&r, RM_REPLAY_DQN, "free", RM_REPLAY_FREE "\"publish\": {\"interval\": 7}");
    for (int i = 0; i < 30; i++) {
        rm_test_turn(&r.duty[0]);
        rm_replay_run_learn(&r);
    }
    const uint64_t updates = RM_PEEK(&board(&r)->updates), version = RM_PEEK(&board(&r)->published);
    const uint64_t count = r.session.weights[0].count;
    struct rm_weights_stamp stamp;
    float *before = malloc(count * sizeof *before), *after = malloc(count * sizeof *after);
    assert_true(updates > 0);
    rm_weights_read(&r.session.weights[0], before, count, &stamp, NULL);
    rm_replay_run_succeed(&r);
    assert_int_equal(RM_PEEK(&board(&r)->published), version); /* nothing new to say yet */
    assert_int_equal(RM_PEEK(&board(&r)->updates), updates);
    assert_int_equal(rm_learner_save(r.learner, &error), 0);
    size_t bytes;
    char *tensors = rm_replay_run_tensors(&r, &bytes);
    assert_int_equal(bytes, count * sizeof *before);
    assert_memory_equal(tensors, before, bytes);
    while (RM_PEEK(&board(&r)->updates) < updates + 10) {
        rm_test_turn(&r.duty[0]);
        rm_replay_run_learn(&r);
    }
    rm_weights_read(&r.session.weights[0], after, count, &stamp, NULL);
    assert_int_equal(stamp.version, version + 1);
    assert_true(stamp.updates > updates);
    assert_memory_not_equal(before, after, bytes);
    free(tensors);
    free(before);
    free(after);
    rm_replay_run_stop(&r);
}

static struct rm_state *state_of(struct rm_learner *learner)
{
    struct rm_state *s;
    assert_int_equal(rm_state_create(&s, NULL), 0);
    rm_learner_state(learner, s);
    assert_int_equal(rm_state_end(s, NULL), 0);
    return s;
}

static const struct rm_state_part *part_of(const struct rm_state *s, const char *name)
{
    for (size_t i = 0; i < rm_state_count(s); i++)
        if (strcmp(rm_state_at(s, i)->name, name) == 0)
            return rm_state_at(s, i);
    fail_msg("no %s", name);
    return NULL;
}

static bool same_part(const struct rm_state *a, const struct rm_state *b, const char *name)
{
    const struct rm_state_part *x = part_of(a, name), *y = part_of(b, name);
    return x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0;
}

static void go_on(struct rm_replay_run *r, int turns)
{
    for (int i = 0; i < turns; i++) {
        rm_test_turn(&r->duty[0]);
        rm_replay_run_learn(r);
    }
}

#define NOT_PUBLISHED_MAX 6

/* With a checkpoint of it, its successor takes up what is not published, and nothing else of that.
 * parts: the last is NULL. */
static void takes_up(const char *kind, const char *const parts[NOT_PUBLISHED_MAX])
{
    struct rm_replay_run r;
    char folder[] = "/tmp/rm-successor-XXXXXX";
    assert_non_null(mkdtemp(folder));
    rm_replay_run_start(&r, kind, "free", RM_REPLAY_FREE "\"publish\": {\"interval\": 7}");
    go_on(&r, 40);
    struct rm_state *kept = state_of(r.learner);
    assert_int_equal(rm_learner_state_write(kept, folder, 0, NULL), 0);
    go_on(&r, 20);
    struct rm_state *later = state_of(r.learner);
    for (size_t i = 0; parts[i]; i++)
        assert_false(same_part(kept, later, parts[i]));
    rm_session_place_newest(&r.session, folder);
    rm_replay_run_succeed(&r);
    struct rm_state *after = state_of(r.learner);
    for (size_t i = 0; parts[i]; i++)
        assert_true(same_part(kept, after, parts[i]));
    assert_false(same_part(kept, after, "replay.params"));
    assert_true(same_part(later, after, "replay.updates"));
    assert_false(same_part(kept, after, "replay.updates"));

    /* Where it cannot be read, that starts afresh. */
    rm_session_place_newest(&r.session, "/nowhere");
    rm_replay_run_succeed(&r);
    rm_state_destroy(after);
    after = state_of(r.learner);
    for (size_t i = 0; parts[i]; i++)
        assert_false(same_part(kept, after, parts[i]));
    go_on(&r, 5);
    rm_state_destroy(kept);
    rm_state_destroy(later);
    rm_state_destroy(after);
    rm_replay_run_stop(&r);
    rm_file_remove_all(folder);
}

static void a_successor_takes_up_optimizer_and_target(void **state)
{
    (void)state;
    takes_up("\"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 16}]}, "
             "\"algorithm\": {\"name\": \"dqn\", "
             "\"target\": {\"update\": \"soft\", \"tau\": 0.01}}",
             (const char *const[NOT_PUBLISHED_MAX]){
                 "replay.target", "replay.optimizer.first_moment", "replay.optimizer.second_moment",
                 "replay.optimizer.steps"});
}

static void a_successor_takes_up_critics_and_temperature(void **state)
{
    (void)state;
    takes_up("\"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 16}]}, "
             "\"algorithm\": {\"name\": \"sac\"}",
             (const char *const[NOT_PUBLISHED_MAX]){"replay.target", "replay.critics",
                                                    "replay.temperature",
                                                    "replay.optimizer.first_moment"});
}

/* Priorities outlive the learner: what its successor draws is not what came last, all alike. */
static void a_successor_finds_the_priorities(void **state)
{
    (void)state;
    struct rm_replay_run r;
    rm_replay_run_start(&r, RM_REPLAY_DQN, "free",
                        RM_REPLAY_FREE "\"priority\": {\"kind\": \"proportional\"}");
    const struct rm_priorities *tree = &r.session.priorities[0];
    for (int i = 0; i < 300; i++) {
        rm_test_turn(&r.duty[0]);
        while (rm_replay_run_learn(&r) > 0)
            ;
    }
    const size_t bytes = tree->nodes[0] * sizeof(double);
    double *kept = malloc(bytes);
    memcpy(kept, tree->level[0], bytes);
    const double least = kept[0];
    double most = least;
    for (uint64_t i = 0; i < tree->nodes[0]; i++)
        most = kept[i] > most ? kept[i] : most;
    assert_true(RM_PEEK(&board(&r)->updates) > 20 && least > 0 && most > 2 * least);
    assert_true(RM_PEEK(&board(&r)->priority_max) >= most);
    rm_replay_run_succeed(&r);
    assert_memory_equal(tree->level[0], kept, bytes);
    const uint64_t updates = RM_PEEK(&board(&r)->updates);
    for (int i = 0; i < 30; i++) {
        rm_test_turn(&r.duty[0]);
        while (rm_replay_run_learn(&r) > 0)
            ;
    }
    assert_true(RM_PEEK(&board(&r)->updates) > updates);
    free(kept);
    rm_replay_run_stop(&r);
}

/* In rounds: what the dead one still owed in the round it died in is lost, the rest is made. */
static void a_successor_goes_on_in_rounds(void **state)
{
    (void)state;
    struct rm_replay_run r;
    rm_replay_run_start(&r, RM_REPLAY_DQN, "sequential",
                        "\"actor\": {\"count\": 1, \"worlds\": 4}, " RM_REPLAY_LOCKSTEP);
    while (RM_PEEK(&board(&r)->updates) < 101) {
        rm_test_turn(&r.duty[0]);
        rm_replay_run_learn(&r);
    }
    rm_replay_run_succeed(&r);
    rm_replay_run_to_its_end(&r);
    const uint64_t steps = RM_PEEK(&board(&r)->env_steps), updates = RM_PEEK(&board(&r)->updates);
    /* A round of 8 rows of 4 worlds owes 8 updates; the one of its death and, since the successor
     * does not know what it held, that round's rows are given up. */
    assert_true(updates <= steps / 4 && updates + 2 * 8 >= steps / 4);
    /* One that died when it was done has a successor that is. */
    rm_replay_run_succeed(&r);
    assert_int_equal(rm_replay_run_learn(&r), RM_DUTY_DONE);
    assert_int_equal(RM_PEEK(&board(&r)->updates), updates);
    rm_replay_run_stop(&r);
}

static void what_stays_infinite_ends_it(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct rm_replay_run r;
    rm_replay_run_start(&r, RM_REPLAY_DQN, "free",
                        RM_REPLAY_FREE "\"debug\": {\"finite_patience\": 3, \"rollbacks_max\": 1}");
    r.session.board.run->settings[RM_HOT_LEARNING_RATE] = 1e38;
    RM_RAISE(&r.session.board.run->settings_version, 2);
    int rc = 1;
    for (int i = 0; i < 400 && rc >= 0; i++) {
        rm_test_turn(&r.duty[0]);
        rc = r.duty[1].do_work(r.duty[1].self, &error);
    }
    assert_true(rc < 0 && rc != RM_DUTY_DONE);
    assert_non_null(strstr(error.text, "3 updates in a row"));
    assert_int_equal(RM_PEEK(&board(&r)->updates_skipped), 6);
    assert_int_equal(RM_PEEK(&board(&r)->rollbacks), 1);
    rm_replay_run_stop(&r);
}

static double largest_published(struct rm_replay_run *r)
{
    const uint64_t count = r->session.weights[0].count;
    struct rm_weights_stamp stamp;
    float *params = malloc(count * sizeof *params), largest = 0;
    assert_int_equal(rm_weights_read(&r->session.weights[0], params, count, &stamp, NULL), 1);
    for (uint64_t i = 0; i < count; i++)
        largest = isfinite(params[i]) ? fmaxf(largest, fabsf(params[i])) : INFINITY;
    free(params);
    return (double)largest;
}

/* A rate far too large for a while: the weights of before are back, and learning goes on from
 * them. Nobody is given those in between, although every update is published. */
static void what_passes_is_rolled_back(void **state)
{
    (void)state;
    struct rm_replay_run r;
    rm_replay_run_start(&r, RM_REPLAY_DQN, "free",
                        RM_REPLAY_FREE
                        "\"debug\": {\"finite_patience\": 4}, \"publish\": {\"interval\": 1}");
    while (RM_PEEK(&board(&r)->updates) < 120) {
        rm_test_turn(&r.duty[0]);
        rm_replay_run_learn(&r);
    }
    r.session.board.run->settings[RM_HOT_LEARNING_RATE] = 1e38;
    RM_RAISE(&r.session.board.run->settings_version, 2);
    while (RM_PEEK(&board(&r)->rollbacks) == 0) {
        rm_test_turn(&r.duty[0]);
        rm_replay_run_learn(&r);
        assert_true(largest_published(&r) < 1e3);
    }
    assert_true(RM_PEEK(&board(&r)->publish_skipped) > 0);
    assert_int_equal(RM_PEEK(&board(&r)->updates_skipped), 4);
    r.session.board.run->settings[RM_HOT_LEARNING_RATE] = 1e-3;
    RM_RAISE(&r.session.board.run->settings_version, 3);
    const uint64_t updates = RM_PEEK(&board(&r)->updates);
    while (RM_PEEK(&board(&r)->updates) < updates + 50) {
        rm_test_turn(&r.duty[0]);
        rm_replay_run_learn(&r);
    }
    assert_int_equal(RM_PEEK(&board(&r)->updates_skipped), 4);
    assert_true(fabs(RM_PEEK(&board(&r)->loss)) < 10 && RM_PEEK(&board(&r)->grad_norm) < 1000);
    rm_replay_run_stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_successor_goes_on),
        cmocka_unit_test(a_successor_takes_up_optimizer_and_target),
        cmocka_unit_test(a_successor_takes_up_critics_and_temperature),
        cmocka_unit_test(a_successor_finds_the_priorities),
        cmocka_unit_test(a_successor_goes_on_in_rounds),
        cmocka_unit_test(what_stays_infinite_ends_it),
        cmocka_unit_test(what_passes_is_rolled_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
