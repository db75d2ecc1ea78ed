/* A learner as a duty, with an actor beside it, in one process. */
#include "learner/learner.h"
#include "actor/actor.h"
#include "config/config.h"
#include "learner/safetensors.h"
#include "shm/atomic.h"
#include "tests/support/allocations.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACTORS_MAX 2

struct run {
    struct rm_session session;
    struct rm_actor *actor[ACTORS_MAX];
    struct rm_learner *learner;
    struct rm_duty duty[ACTORS_MAX + 1]; /* actors, then the learner */
    uint32_t actors;
    char folder[64];
};

#define HIDDEN     "{\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"}"
#define PRIORITIES ", \"priority\": {\"kind\": \"proportional\"}"
#define DQN        "\"network\": {\"layers\": [" HIDDEN "]}, \"algorithm\": {\"name\": \"dqn\"}"
/* Everything that learns from replay. */
static const char *const kinds[] = {
    DQN,
    DQN PRIORITIES,
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
static const char *kind = DQN;

/* Text after the defaults of a small, quick experiment. */
static void start(struct run *r, const char *mode, const char *more)
{
    struct rm_error error = {""};
    char json[2048];
    memset(r, 0, sizeof *r);
    snprintf(json, sizeof json,
             "{\"name\": \"test\", \"seed\": 3, \"mode\": \"%s\","
             " \"world\": {\"name\": \"count\", \"options\": {\"length\": 6}},"
             " \"epsilon\": {\"start\": 1, \"end\": 0.1, \"span\": 1000},"
             " \"optimizer\": {\"learning_rate\": 1e-3},"
             " %s, %s}",
             mode, kind, more);
    strcpy(r->folder, "/tmp/rm-learner-XXXXXX");
    assert_non_null(mkdtemp(r->folder));
    assert_int_equal(rm_test_session(&r->session, json), 0);
    rm_session_place(&r->session, r->folder, NULL);
    r->actors = r->session.objects.actors;
    if (rm_learner_create(&r->learner, &r->session, 0, r->folder, &r->duty[r->actors], &error))
        fail_msg("%s", error.text);
    for (uint32_t a = 0; a < r->actors; a++)
        if (rm_actor_create(&r->actor[a], &r->session, a, &r->duty[a], &error))
            fail_msg("%s", error.text);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void stop(struct run *r)
{
    for (uint32_t a = 0; a < r->actors; a++)
        rm_actor_destroy(r->actor[a]);
    rm_learner_destroy(r->learner);
    rm_session_close(&r->session);
    nftw(r->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void run_to_its_end(struct run *r)
{
    struct rm_error error = {""};
    if (rm_duty_run_in_turn(r->duty, r->actors + 1, &error) != RM_EXIT_OK)
        fail_msg("%s", error.text);
}

static struct rm_board_policy *board(struct run *r)
{
    return &r->session.board.policies[0];
}

#define LOCKSTEP                                                                                   \
    "\"run\": {\"steps\": 2000, \"round_steps\": 8}, \"ring\": {\"capacity\": 512},"               \
    "\"sample\": {\"batch\": 16, \"n_step\": 2, \"min_fill\": 64, \"sequence\": 6, \"burn_in\": "  \
    "3,"                                                                                           \
    " \"period\": 3},"                                                                             \
    "\"limiter\": {\"updates_per_step\": 0.25}, \"publish\": {\"interval\": 4}"

static char *tensors_of(const struct run *r, size_t *bytes)
{
    char path[256];
    struct rm_error error = {""};
    struct rm_safetensors file;
    snprintf(path, sizeof path, "%s/policies/%s.safetensors", r->folder,
             r->session.plan.policy[0].name);
    if (rm_safetensors_read(&file, path, &error))
        fail_msg("%s", error.text);
    *bytes = 0;
    char *all = malloc(1 << 20);
    for (size_t i = 0; i < file.count; i++) {
        size_t n = sizeof(float);
        for (uint32_t d = 0; d < file.tensors[i].dims; d++)
            n *= file.tensors[i].shape[d];
        memcpy(all + *bytes, file.tensors[i].data, n);
        *bytes += n;
    }
    rm_safetensors_close(&file);
    return all;
}

static void a_run_makes_the_updates_it_owes(void **state)
{
    (void)state;
    struct run r;
    start(&r, "sequential", "\"actor\": {\"count\": 1, \"worlds\": 4}, " LOCKSTEP);
    assert_int_equal(RM_PEEK(&board(&r)->published), 1);
    run_to_its_end(&r);
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
    char *tensors = tensors_of(&r, &bytes);
    assert_int_equal(bytes, count * sizeof *params);
    assert_memory_equal(tensors, params, bytes);
    free(tensors);
    free(params);
    stop(&r);
}

/* One seed, one policy: for any split over actors and any number of threads. */
static void results_depend_on_the_seed_alone(void **state)
{
    (void)state;
    static const char *const layouts[] = {
        "\"actor\": {\"count\": 1, \"worlds\": 4}, \"learner\": {\"threads\": 1}, " LOCKSTEP,
        "\"actor\": {\"count\": 2, \"worlds\": 4}, \"learner\": {\"threads\": 1}, " LOCKSTEP,
        "\"actor\": {\"count\": 2, \"worlds\": 4}, \"learner\": {\"threads\": 2}, " LOCKSTEP,
    };
    for (size_t k = 0; k < KINDS; k++) {
        kind = kinds[k];
        char *first = NULL;
        size_t bytes = 0;
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
            struct run r;
            size_t n;
            start(&r, "sequential", layouts[i]);
            run_to_its_end(&r);
            assert_true(RM_PEEK(&board(&r)->updates) > 400);
            char *tensors = tensors_of(&r, &n);
            if (!first) {
                first = tensors;
                bytes = n;
            } else {
                assert_int_equal(n, bytes);
                assert_memory_equal(tensors, first, bytes);
                free(tensors);
            }
            stop(&r);
        }
        free(first);
    }
    kind = DQN;
}

#define FREE                                                                                       \
    "\"run\": {\"steps\": 1000000}, \"ring\": {\"capacity\": 1024},"                               \
    "\"sample\": {\"batch\": 16, \"n_step\": 2, \"min_fill\": 64},"                                \
    "\"limiter\": {\"updates_per_step\": 0.25, \"slack_updates\": 4},"                             \
    "\"actor\": {\"count\": 1, \"worlds\": 4}, "

static int learner_turn(struct run *r)
{
    return rm_test_turn(&r->duty[r->actors]);
}

static void free_running_keeps_the_proportion(void **state)
{
    (void)state;
    struct run r;
    start(&r, "free", FREE "\"publish\": {\"interval\": 10}");
    /* Nothing to learn from: it says how far off that is. */
    assert_int_equal(learner_turn(&r), 0);
    struct rm_wake_word *wake = &r.session.board.workers[1].wake;
    assert_int_equal(RM_PEEK(&wake->threshold), 64);
    for (int i = 0; i < 200; i++) {
        while (rm_test_turn(&r.duty[0]) > 0)
            ;
        while (learner_turn(&r) > 0)
            ;
        const double owed = (double)RM_PEEK(&board(&r)->env_steps) / 4;
        assert_true(fabs((double)RM_PEEK(&board(&r)->updates) - owed) <= 16 + 5);
    }
    const uint64_t updates = RM_PEEK(&board(&r)->updates);
    assert_true(updates > 20);
    assert_int_equal(RM_PEEK(&board(&r)->published), 1 + updates / 10);
    assert_true(RM_PEEK(&wake->threshold) > RM_PEEK(&board(&r)->limiter.inserted));
    stop(&r);
}

static void small_changes_are_not_published(void **state)
{
    (void)state;
    struct run r;
    start(&r, "free", FREE "\"publish\": {\"interval\": 5, \"min_change\": 1}");
    for (int i = 0; i < 40; i++) {
        while (rm_test_turn(&r.duty[0]) > 0)
            ;
        while (learner_turn(&r) > 0)
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
        while (learner_turn(&r) > 0)
            ;
    }
    assert_true(RM_PEEK(&board(&r)->published) > 2);
    assert_true(RM_PEEK(&board(&r)->publish_change) > 0);
    stop(&r);
}

/* Killed and started again: it goes on from what was published. */
static void a_successor_goes_on(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct run r;
    start(&r, "free", FREE "\"publish\": {\"interval\": 7}");
    for (int i = 0; i < 30; i++) {
        rm_test_turn(&r.duty[0]);
        learner_turn(&r);
    }
    const uint64_t updates = RM_PEEK(&board(&r)->updates), version = RM_PEEK(&board(&r)->published);
    const uint64_t count = r.session.weights[0].count;
    struct rm_weights_stamp stamp;
    float *before = malloc(count * sizeof *before), *after = malloc(count * sizeof *after);
    assert_true(updates > 0);
    rm_weights_read(&r.session.weights[0], before, count, &stamp, NULL);
    rm_learner_destroy(r.learner);
    if (rm_learner_create(&r.learner, &r.session, 0, r.folder, &r.duty[1], &error))
        fail_msg("%s", error.text);
    assert_int_equal(RM_PEEK(&board(&r)->published), version); /* nothing new to say yet */
    assert_int_equal(RM_PEEK(&board(&r)->updates), updates);
    assert_int_equal(rm_learner_save(r.learner, &error), 0);
    size_t bytes;
    char *tensors = tensors_of(&r, &bytes);
    assert_int_equal(bytes, count * sizeof *before);
    assert_memory_equal(tensors, before, bytes);
    while (RM_PEEK(&board(&r)->updates) < updates + 10) {
        rm_test_turn(&r.duty[0]);
        learner_turn(&r);
    }
    rm_weights_read(&r.session.weights[0], after, count, &stamp, NULL);
    assert_int_equal(stamp.version, version + 1);
    assert_true(stamp.updates > updates);
    assert_memory_not_equal(before, after, bytes);
    free(tensors);
    free(before);
    free(after);
    stop(&r);
}

/* In rounds: what the dead one still owed in the round it died in is lost, the rest is made. */
/* Priorities outlive the learner: what its successor draws is not what came last, all alike. */
static void a_successor_finds_the_priorities(void **state)
{
    (void)state;
    struct run r;
    struct rm_error error = {""};
    start(&r, "free", FREE "\"priority\": {\"kind\": \"proportional\"}");
    const struct rm_priorities *tree = &r.session.priorities[0];
    for (int i = 0; i < 300; i++) {
        rm_test_turn(&r.duty[0]);
        while (learner_turn(&r) > 0)
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
    rm_learner_destroy(r.learner);
    if (rm_learner_create(&r.learner, &r.session, 0, r.folder, &r.duty[r.actors], &error))
        fail_msg("%s", error.text);
    assert_memory_equal(tree->level[0], kept, bytes);
    const uint64_t updates = RM_PEEK(&board(&r)->updates);
    for (int i = 0; i < 30; i++) {
        rm_test_turn(&r.duty[0]);
        while (learner_turn(&r) > 0)
            ;
    }
    assert_true(RM_PEEK(&board(&r)->updates) > updates);
    free(kept);
    stop(&r);
}

static void a_successor_goes_on_in_rounds(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct run r;
    start(&r, "sequential", "\"actor\": {\"count\": 1, \"worlds\": 4}, " LOCKSTEP);
    while (RM_PEEK(&board(&r)->updates) < 101) {
        rm_test_turn(&r.duty[0]);
        learner_turn(&r);
    }
    rm_learner_destroy(r.learner);
    if (rm_learner_create(&r.learner, &r.session, 0, r.folder, &r.duty[1], &error))
        fail_msg("%s", error.text);
    run_to_its_end(&r);
    const uint64_t steps = RM_PEEK(&board(&r)->env_steps), updates = RM_PEEK(&board(&r)->updates);
    /* A round of 8 rows of 4 worlds owes 8 updates; the one of its death and, since the successor
     * does not know what it held, that round's rows are given up. */
    assert_true(updates <= steps / 4 && updates + 2 * 8 >= steps / 4);
    stop(&r);
}

static void what_stays_infinite_ends_it(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct run r;
    start(&r, "free", FREE "\"debug\": {\"finite_patience\": 3, \"rollbacks_max\": 1}");
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
    stop(&r);
}

/* A rate far too large for a while: the weights of before are back, and learning goes on from them.
 */
static void what_passes_is_rolled_back(void **state)
{
    (void)state;
    struct run r;
    start(&r, "free", FREE "\"debug\": {\"finite_patience\": 4}");
    while (RM_PEEK(&board(&r)->updates) < 120) {
        rm_test_turn(&r.duty[0]);
        learner_turn(&r);
    }
    r.session.board.run->settings[RM_HOT_LEARNING_RATE] = 1e38;
    RM_RAISE(&r.session.board.run->settings_version, 2);
    while (RM_PEEK(&board(&r)->rollbacks) == 0) {
        rm_test_turn(&r.duty[0]);
        learner_turn(&r);
    }
    assert_int_equal(RM_PEEK(&board(&r)->updates_skipped), 4);
    r.session.board.run->settings[RM_HOT_LEARNING_RATE] = 1e-3;
    RM_RAISE(&r.session.board.run->settings_version, 3);
    const uint64_t updates = RM_PEEK(&board(&r)->updates);
    while (RM_PEEK(&board(&r)->updates) < updates + 50) {
        rm_test_turn(&r.duty[0]);
        learner_turn(&r);
    }
    assert_int_equal(RM_PEEK(&board(&r)->updates_skipped), 4);
    assert_true(fabs(RM_PEEK(&board(&r)->loss)) < 10 && RM_PEEK(&board(&r)->grad_norm) < 1000);
    stop(&r);
}

static void checkpoints_are_written_when_asked_for(void **state)
{
    (void)state;
    struct run r;
    char path[256];
    start(&r, "free", FREE "\"publish\": {\"interval\": 7}");
    while (RM_PEEK(&board(&r)->updates) < 5) {
        rm_test_turn(&r.duty[0]);
        learner_turn(&r);
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
        assert_true(i < 10000);
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
        assert_true(i < 10000);
        usleep(1000);
    }
    assert_int_equal(RM_PEEK(&slot->checkpoint_failed), 2);
    learner_turn(&r);
    stop(&r);
}

static void nothing_is_allocated_once_it_runs(void **state)
{
    (void)state;
    struct run r;
    if (!rm_test_allocations_counted()) {
        print_message("a sanitizer's allocator cannot be counted\n");
        skip();
    }
    for (size_t k = 0; k < KINDS; k++) {
        kind = kinds[k];
        start(&r, "sequential",
              "\"actor\": {\"count\": 2, \"worlds\": 4}, \"learner\": {\"threads\": 2}, " LOCKSTEP);
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
        stop(&r);
    }
    kind = DQN;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_makes_the_updates_it_owes),
        cmocka_unit_test(results_depend_on_the_seed_alone),
        cmocka_unit_test(free_running_keeps_the_proportion),
        cmocka_unit_test(small_changes_are_not_published),
        cmocka_unit_test(a_successor_goes_on),
        cmocka_unit_test(a_successor_finds_the_priorities),
        cmocka_unit_test(a_successor_goes_on_in_rounds),
        cmocka_unit_test(what_stays_infinite_ends_it),
        cmocka_unit_test(what_passes_is_rolled_back),
        cmocka_unit_test(checkpoints_are_written_when_asked_for),
        cmocka_unit_test(nothing_is_allocated_once_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
