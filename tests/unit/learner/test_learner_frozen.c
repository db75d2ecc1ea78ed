/* An opponent that plays snapshots: two learners and their actors in one process, of every kind of
 * algorithm and mode. What it publishes was another's, no older than its snapshots go back. */
#include "actor/actor.h"
#include "learner/learner.h"
#include "shm/atomic.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACTORS = 2, EVERY = 10, KEEP = 3, VERSIONS_MAX = 4096 };

struct run {
    struct rm_session session;
    struct rm_actor *actor[ACTORS];
    struct rm_learner *learner[2];
    struct rm_duty duty[ACTORS + 2];
    bool over[ACTORS + 2];
};

static void start(struct run *r, const char *mode, const char *algorithm)
{
    struct rm_error error = {""};
    char json[2048];
    memset(r, 0, sizeof *r);
    snprintf(json, sizeof json,
             "{\"name\": \"test\", \"seed\": 5, \"mode\": \"%s\","
             " \"run\": {\"steps\": 1500, \"round_steps\": 8},"
             " \"world\": {\"name\": \"count\", \"options\": {\"length\": 6, \"agents\": 2}},"
             " \"actor\": {\"count\": 2, \"worlds\": 4},"
             " \"policy\": {\"map\": [1, 0], \"frozen\": [{\"policy\": 1, \"of\": 0, \"every\": %d,"
             "   \"keep\": %d}]},"
             " \"ring\": {\"capacity\": 512}, \"sample\": {\"batch\": 16, \"min_fill\": 64},"
             " \"limiter\": {\"updates_per_step\": 0.25}, \"publish\": {\"interval\": 4},"
             " \"rollout\": {\"steps\": 16},"
             " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 8},"
             "                            {\"type\": \"tanh\"}]},"
             " \"algorithm\": {\"name\": \"%s\"}}",
             mode, EVERY, KEEP, algorithm);
    assert_int_equal(rm_test_session(&r->session, json), 0);
    for (uint32_t a = 0; a < ACTORS; a++)
        if (rm_actor_create(&r->actor[a], &r->session, a, &r->duty[a], &error))
            fail_msg("%s", error.text);
    for (uint32_t p = 0; p < 2; p++)
        if (rm_learner_create(&r->learner[p], &r->session, p, "", &r->duty[ACTORS + p], &error))
            fail_msg("%s", error.text);
}

static void stop(struct run *r)
{
    for (uint32_t a = 0; a < ACTORS; a++)
        rm_actor_destroy(r->actor[a]);
    for (uint32_t p = 0; p < 2; p++)
        rm_learner_destroy(r->learner[p]);
    rm_session_close(&r->session);
}

/* Everything that was published, by a number of its bytes. */
struct history {
    uint64_t versions;
    uint64_t print[VERSIONS_MAX + 1], updates[VERSIONS_MAX + 1];
};

static uint64_t print_of(const float *params, size_t n)
{
    uint64_t h = 1469598103934665603u;
    const uint8_t *bytes = (const uint8_t *)params;
    for (size_t i = 0; i < n * sizeof *params; i++)
        h = (h ^ bytes[i]) * 1099511628211u;
    return h;
}

static void note(struct run *r, uint32_t p, struct history *h)
{
    const struct rm_weights *w = &r->session.weights[p];
    struct rm_weights_stamp stamp;
    const uint64_t latest = rm_weights_latest(w).version;
    float *params = malloc(w->count * sizeof *params);
    assert_true(latest <= h->versions + 2 && latest < VERSIONS_MAX);
    while (h->versions < latest) {
        assert_true(rm_weights_read_version(w, h->versions + 1, params, w->count, &stamp));
        h->versions++;
        h->print[h->versions] = print_of(params, w->count);
        h->updates[h->versions] = stamp.updates;
    }
    free(params);
}

/* One turn of every duty, in an order that depends on the turn. Returns how many are not over. */
static int turn(struct run *r, unsigned number)
{
    int left = 0;
    for (unsigned i = 0; i < ACTORS + 2; i++) {
        const unsigned d = (i + number * 3) % (ACTORS + 2);
        if (r->over[d])
            continue;
        const int rc = rm_test_turn(&r->duty[d]);
        assert_true(rc >= 0 || rc == RM_DUTY_DONE);
        if (rc == RM_DUTY_DONE) {
            r->over[d] = true;
            RM_RAISE(&r->session.board.workers[d].state, RM_WORKER_DONE);
        }
        left += !r->over[d];
    }
    return left;
}

static void follows(const char *mode, const char *algorithm, struct history *trained,
                    struct history *frozen)
{
    struct run r;
    memset(trained, 0, sizeof *trained);
    memset(frozen, 0, sizeof *frozen);
    start(&r, mode, algorithm);
    unsigned number = 0;
    for (int left = 1; left; number++) {
        if (number > 200000)
            fail_msg("%s, %s: it does not come to an end", algorithm, mode);
        left = turn(&r, number);
        note(&r, 0, trained);
        note(&r, 1, frozen);
    }
    const struct rm_board_policy *p = r.session.board.policies;
    assert_true(RM_PEEK(&p[0].updates) > 5 * EVERY);
    assert_int_equal(RM_PEEK(&p[1].updates), 0);
    assert_int_equal(RM_PEEK(&p[1].samples), 0);
    assert_true(RM_PEEK(&p[1].env_steps) >= 1500);
    stop(&r);
}

/* The version of the trained policy that this one was. */
static uint64_t original(const struct history *trained, uint64_t print)
{
    for (uint64_t v = 1; v <= trained->versions; v++)
        if (trained->print[v] == print)
            return v;
    fail_msg("it never was the other policy's");
    return 0;
}

static void check(const struct history *trained, const struct history *frozen)
{
    uint64_t different = 0, older = 0, newest = 0;
    assert_true(frozen->print[1] == trained->print[1]); /* the same initial weights */
    for (uint64_t v = 1; v <= frozen->versions; v++) {
        const uint64_t of = original(trained, frozen->print[v]);
        assert_int_equal(trained->updates[of], frozen->updates[v]);
        different += v > 1 && frozen->print[v] != frozen->print[v - 1];
        older += of < newest;
        newest = of > newest ? of : newest;
    }
    assert_true(different >= 3); /* it was renewed */
    assert_true(older > 0);      /* and drew one that was not its newest */
}

static void in_every_mode(void **state)
{
    static const char *const algorithms[] = {"dqn", "ppo", "appo"};
    static const char *const modes[] = {"free", "sequential"};
    static struct history trained, frozen;
    (void)state;
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++)
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
            follows(modes[m], algorithms[a], &trained, &frozen);
            check(&trained, &frozen);
        }
}

/* Each version of the one has its like of the other, so that actors can ask by number; its weights
 * change only when a snapshot was due. */
static void versions_go_together_where_they_must(void **state)
{
    static struct history trained, frozen;
    (void)state;
    follows("sequential", "ppo", &trained, &frozen);
    assert_int_equal(trained.versions, frozen.versions);
    uint64_t due = EVERY;
    for (uint64_t v = 2; v <= frozen.versions; v++) {
        if (trained.updates[v] >= due)
            due = trained.updates[v] + EVERY;
        else
            assert_true(frozen.print[v] == frozen.print[v - 1]);
        /* Not among the last KEEP snapshots, which are EVERY updates apart at least. */
        assert_true(frozen.updates[v] + KEEP * (EVERY + 16) + EVERY + 16 >= trained.updates[v]);
    }
}

/* A successor goes on with what was played. */
static void a_successor_goes_on(void **state)
{
    struct rm_error error = {""};
    struct run r;
    (void)state;
    start(&r, "sequential", "ppo");
    unsigned number = 0;
    while (rm_weights_latest(&r.session.weights[1]).version < 8)
        assert_true(turn(&r, number++) > 0);
    rm_learner_destroy(r.learner[1]);
    if (rm_learner_create(&r.learner[1], &r.session, 1, "", &r.duty[ACTORS + 1], &error))
        fail_msg("%s", error.text);
    while (turn(&r, number++))
        assert_true(number < 200000);
    assert_int_equal(rm_weights_latest(&r.session.weights[1]).version,
                     rm_weights_latest(&r.session.weights[0]).version);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_every_mode),
        cmocka_unit_test(versions_go_together_where_they_must),
        cmocka_unit_test(a_successor_goes_on),
    };
    return cmocka_run_group_tests_name("frozen opponents", tests, NULL, NULL);
}
