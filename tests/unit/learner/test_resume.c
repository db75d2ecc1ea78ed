/* A run that is saved, thrown away and loaded is the run that went on: the same bits in rows,
 * weights, moments, priorities, worlds and counters, for every method and every kind of algorithm.
 */
#include "actor/actor.h"
#include "learner/learner.h"
#include "learner/state_file.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "shm/layout.h"
#include "tests/support/emulated.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DUTIES 8

struct run {
    struct rm_session session;
    struct rm_actor *actors[DUTIES];
    struct rm_learner *learners[DUTIES];
    struct rm_duty duties[2 * DUTIES];
    uint32_t count;
};

static const char *const beginning = "\"name\": \"t\", \"seed\": 11, \"mode\": \"sequential\", "
                                     "\"run\": {\"steps\": 0, \"round_steps\": 8}";

static void open_session(struct run *r, const char *json)
{
    char text[4096];
    memset(r, 0, sizeof *r);
    snprintf(text, sizeof text, "{%s, %s}", beginning, json);
    assert_int_equal(rm_test_session(&r->session, text), 0);
}

static void open_duties(struct run *r)
{
    struct rm_error error = {""};
    const struct rm_objects *o = &r->session.objects;
    for (uint32_t i = 0; i < o->policies; i++)
        if (rm_learner_create(&r->learners[i], &r->session, i, "", &r->duties[r->count++], &error))
            fail_msg("%s", error.text);
    for (uint32_t i = 0; i < o->actors; i++)
        if (rm_actor_create(&r->actors[i], &r->session, i, &r->duties[r->count++], &error))
            fail_msg("%s", error.text);
}

static void close_run(struct run *r)
{
    for (uint32_t i = 0; i < DUTIES; i++) {
        rm_actor_destroy(r->actors[i]);
        rm_learner_destroy(r->learners[i]);
    }
    rm_session_close(&r->session);
}

static void turns(struct run *r, uint32_t n)
{
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < r->count; i++)
            assert_true(rm_test_turn(&r->duties[i]) >= 0);
}

static bool settled(const struct run *r)
{
    for (uint32_t i = 0; i < r->session.objects.policies; i++)
        if (!rm_learner_settled(r->learners[i]))
            return false;
    return true;
}

/* The parts of everybody, each as its file has them. */
struct image {
    struct rm_state *shared, *actors[DUTIES], *learners[DUTIES];
};

static struct rm_state *fresh(void)
{
    struct rm_error error = {""};
    struct rm_state *s;
    assert_int_equal(rm_state_create(&s, &error), 0);
    return s;
}

static void finished(struct rm_state *s)
{
    struct rm_error error = {""};
    if (rm_state_end(s, &error))
        fail_msg("%s", error.text);
}

/* Clears the counters that depend on time: how long the limiter blocked anyone, and what crossed to
 * a device, where a copy of the replay begins anew. */
static void forget_times(struct rm_board_policy *p)
{
    RM_POKE(&p->sample_blocked_ns, 0);
    RM_POKE(&p->insert_blocked_ns, 0);
    RM_POKE(&p->device_bytes_in, 0);
    RM_POKE(&p->device_bytes_out, 0);
    RM_POKE(&p->device_waits, 0);
}

/* What is shared last, as in a checkpoint: saving settles what a learner has under way. */
static struct image take(struct run *r)
{
    struct image m = {.shared = fresh()};
    for (uint32_t i = 0; i < r->session.objects.actors; i++) {
        rm_actor_state(r->actors[i], m.actors[i] = fresh());
        finished(m.actors[i]);
    }
    for (uint32_t i = 0; i < r->session.objects.policies; i++) {
        rm_learner_state(r->learners[i], m.learners[i] = fresh());
        finished(m.learners[i]);
    }
    for (uint32_t i = 0; i < r->session.objects.policies; i++)
        forget_times(&r->session.board.policies[i]);
    rm_session_state(&r->session, m.shared);
    finished(m.shared);
    return m;
}

static void forget(struct image *m)
{
    rm_state_destroy(m->shared);
    for (uint32_t i = 0; i < DUTIES; i++) {
        rm_state_destroy(m->actors[i]);
        rm_state_destroy(m->learners[i]);
    }
}

static bool of_time(const char *name)
{
    return strstr(name, "phase_ns");
}

static void same(const struct rm_state *a, const struct rm_state *b, const char *whose)
{
    assert_int_equal(rm_state_count(a), rm_state_count(b));
    for (size_t i = 0; i < rm_state_count(a); i++) {
        const struct rm_state_part *x = rm_state_at(a, i), *y = rm_state_at(b, i);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->bytes, y->bytes);
        if (!of_time(x->name) && memcmp(x->data, y->data, x->bytes) != 0)
            fail_msg("%s: %s differs", whose, x->name);
    }
}

static void same_image(const struct image *a, const struct image *b)
{
    for (uint32_t i = 0; i < DUTIES && a->actors[i]; i++)
        same(a->actors[i], b->actors[i], "actor");
    for (uint32_t i = 0; i < DUTIES && a->learners[i]; i++)
        same(a->learners[i], b->learners[i], "learner");
    same(a->shared, b->shared, "session");
}

static void same_counters(struct run *a, struct run *b)
{
    for (uint32_t p = 0; p < a->session.objects.policies; p++) {
        const struct rm_board_policy *x = &a->session.board.policies[p];
        const struct rm_board_policy *y = &b->session.board.policies[p];
        assert_int_equal(RM_PEEK(&x->env_steps), RM_PEEK(&y->env_steps));
        assert_int_equal(RM_PEEK(&x->updates), RM_PEEK(&y->updates));
        assert_int_equal(RM_PEEK(&x->samples), RM_PEEK(&y->samples));
        assert_int_equal(RM_PEEK(&x->published), RM_PEEK(&y->published));
        assert_int_equal(RM_PEEK(&x->lag_sum), RM_PEEK(&y->lag_sum));
        assert_int_equal(RM_PEEK(&x->rows_lost), 0);
        assert_int_equal(RM_PEEK(&y->rows_lost), 0);
        assert_true(RM_PEEK(&x->loss) == RM_PEEK(&y->loss));
    }
}

/* --- files ----------------------------------------------------------------------------------- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rm-resume-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void write_files(const struct run *r, const struct image *m)
{
    struct rm_error error = {""};
    char path[RM_SESSION_PATH_MAX];
    int rc = rm_session_checkpoint_file(folder, "shared", 0, "state", path, &error);
    if (!rc)
        rc = rm_state_write(m->shared, path, RM_STATE_ALL, &error);
    for (uint32_t i = 0; !rc && i < r->session.objects.actors; i++) {
        rc = rm_session_checkpoint_file(folder, "actor", i, "state", path, &error);
        if (!rc)
            rc = rm_state_write(m->actors[i], path, RM_STATE_ALL, &error);
    }
    for (uint32_t i = 0; !rc && i < r->session.objects.policies; i++)
        rc = rm_learner_state_write(m->learners[i], folder, i, &error);
    if (rc)
        fail_msg("%s", error.text);
}

static void load_shared(struct run *r)
{
    struct rm_error error = {""};
    char path[RM_SESSION_PATH_MAX];
    struct rm_state *s = fresh();
    assert_int_equal(rm_session_checkpoint_file(folder, "shared", 0, "state", path, &error), 0);
    if (rm_state_read(s, path, &error))
        fail_msg("%s", error.text);
    rm_state_load(s);
    rm_session_state(&r->session, s);
    finished(s);
    rm_state_destroy(s);
    snprintf(r->session.resume, sizeof r->session.resume, "%s", folder);
}

/* --- the tests ------------------------------------------------------------------------------- */

static void goes_on(const char *json, uint32_t before, uint32_t after)
{
    static struct run a, b;
    open_session(&a, json);
    open_duties(&a);
    turns(&a, before);
    while (!settled(&a))
        turns(&a, 1);
    struct image cut = take(&a);
    write_files(&a, &cut);
    turns(&a, after);

    open_session(&b, json);
    load_shared(&b);
    open_duties(&b);
    struct image loaded = take(&b);
    same_image(&cut, &loaded);
    turns(&b, after);

    struct image x = take(&a), y = take(&b);
    same_image(&x, &y);
    same_counters(&a, &b);
    assert_true(RM_PEEK(&a.session.board.policies[0].updates) > 0);
    forget(&cut);
    forget(&loaded);
    forget(&x);
    forget(&y);
    close_run(&a);
    close_run(&b);
}

#define SMALL                                                                                      \
    "\"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"}]}"
#define REPLAY(batch) "\"sample\": {\"batch\": " #batch ", \"min_fill\": 64, \"n_step\": 3}"

/* A case: its name and its configuration. */
static const struct {
    const char *name, *json;
    uint32_t before, after;
} cases[] = {
    {"dqn",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4, \"count\": 2}, "
     "\"algorithm\": {\"name\": \"dqn\"}, \"ring\": {\"capacity\": 2048}, " REPLAY(16) ", " SMALL,
     900, 700},
    {"dqn by priority, on the count world",
     "\"world\": {\"name\": \"count\"}, \"actor\": {\"worlds\": 3}, "
     "\"algorithm\": {\"name\": \"dqn\", \"double_q\": true}, \"ring\": {\"capacity\": "
     "600}, " REPLAY(16) ", \"priority\": {\"kind\": \"proportional\"}, " SMALL,
     700, 500},
    {"iqn with stacks",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 2}, "
     "\"algorithm\": {\"name\": \"iqn\"}, \"ring\": {\"capacity\": 1024}, "
     "\"sample\": {\"batch\": 8, \"min_fill\": 64, \"frame_stack\": 3}, \"network\": {\"layers\": ["
     "{\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"}, "
     "{\"type\": \"cosine_embedding\"}]}",
     300, 200},
    {"sac",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4}, "
     "\"algorithm\": {\"name\": \"sac\"}, \"ring\": {\"capacity\": 1024}, " REPLAY(16) ", " SMALL,
     400, 300},
    {"r2d2",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4}, "
     "\"algorithm\": {\"name\": \"r2d2\"}, \"ring\": {\"capacity\": 4096}, "
     "\"sample\": {\"batch\": 4, \"min_fill\": 200, \"sequence\": 8, \"burn_in\": 4, "
     "\"period\": 4}, \"network\": {\"layers\": [{\"type\": \"gru\", \"units\": 8}]}",
     400, 300},
    {"ppo with everything that runs along",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4, \"count\": 2}, "
     "\"rollout\": {\"steps\": 16}, \"algorithm\": {\"name\": \"ppo\", \"value_head\": "
     "\"popart\", \"normalize_rewards\": true}, \"network\": {\"layers\": [{\"type\": \"linear\", "
     "\"units\": 16}, {\"type\": \"tanh\"}], \"normalize_observations\": true}",
     300, 250},
    {"recurrent ppo",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4}, "
     "\"rollout\": {\"steps\": 16}, \"algorithm\": {\"name\": \"ppo\"}, "
     "\"network\": {\"layers\": [{\"type\": \"gru\", \"units\": 8}]}",
     300, 250},
    {"appo",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4, \"count\": 2}, "
     "\"rollout\": {\"steps\": 16}, \"algorithm\": {\"name\": \"appo\"}, " SMALL,
     300, 250},
    {"vtrace with muon",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4}, \"optimizer\": {\"name\": "
     "\"muon\"}, \"rollout\": {\"steps\": 16}, \"algorithm\": {\"name\": \"vtrace\"}, " SMALL,
     300, 250},
    {"a frozen opponent, with masks",
     "\"world\": {\"name\": \"connect\"}, \"actor\": {\"worlds\": 8}, "
     "\"policy\": {\"map\": [0, 1], \"frozen\": [{\"policy\": 1, \"of\": 0, \"every\": 20, "
     "\"keep\": 3}]}, \"rollout\": {\"steps\": 16}, \"algorithm\": {\"name\": \"ppo\"}, " SMALL,
     300, 250},
    {"sequences by priority",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4}, "
     "\"algorithm\": {\"name\": \"r2d2\"}, \"ring\": {\"capacity\": 1024}, "
     "\"priority\": {\"kind\": \"proportional\"}, "
     "\"sample\": {\"batch\": 4, \"min_fill\": 200, \"sequence\": 8, \"burn_in\": 4, "
     "\"period\": 4}, \"network\": {\"layers\": [{\"type\": \"lstm\", \"units\": 8}]}",
     500, 300},
    {"iqn by priority, on a device",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 2}, "
     "\"algorithm\": {\"name\": \"iqn\", \"quantiles\": 4, \"target_quantiles\": 4}, \"ring\": "
     "{\"capacity\": 1024}, \"priority\": {\"kind\": \"proportional\"}, \"learner\": "
     "{\"device\": \"cuda:0\"}, \"limiter\": {\"updates_per_step\": 0.1}, "
     "\"sample\": {\"batch\": 8, \"min_fill\": 64, \"frame_stack\": 3}, \"network\": {\"layers\": ["
     "{\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"}, "
     "{\"type\": \"cosine_embedding\"}]}",
     300, 200},
    {"dqn of two actors' rows, drawn on a device",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4, \"count\": 2}, "
     "\"algorithm\": {\"name\": \"dqn\"}, \"ring\": {\"capacity\": 512}, " REPLAY(
         16) ", \"learner\": {\"device\": \"cuda:0\", \"feed\": \"resident\"}, "
             "\"limiter\": {\"updates_per_step\": 0.1}, " SMALL,
     300, 200},
    {"dqn with normalised observations, on a device",
     "\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4, \"count\": 2}, "
     "\"algorithm\": {\"name\": \"dqn\"}, \"ring\": {\"capacity\": 2048}, " REPLAY(
         16) ", "
             "\"learner\": {\"device\": \"cuda:0\"}, \"limiter\": {\"updates_per_step\": 0.1}, "
             "\"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 16}, "
             "{\"type\": \"relu\"}], \"normalize_observations\": true}",
     300, 200},
    {"a policy per agent",
     "\"world\": {\"name\": \"treasurehunt\"}, \"actor\": {\"worlds\": 2}, "
     "\"algorithm\": {\"name\": \"dqn\"}, \"ring\": {\"capacity\": 512}, " REPLAY(8) ", " SMALL,
     200, 150},
};

static void every_case_goes_on(void **state)
{
    (void)state;
    rm_test_device_use();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("  %s\n", cases[i].name);
        goes_on(cases[i].json, cases[i].before, cases[i].after);
    }
}

/* Wherever the cut falls: every turn of some rounds. */
static void any_turn_will_do(void **state)
{
    (void)state;
    for (uint32_t before = 40; before < 60; before++)
        goes_on("\"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4}, "
                "\"algorithm\": {\"name\": \"dqn\"}, \"ring\": {\"capacity\": 256}, " REPLAY(
                    8) ", " SMALL,
                before, 60);
}

/* The same parts, but for the worlds': they could not save any. */
static struct rm_state *without_worlds(const struct rm_state *s)
{
    struct rm_error error = {""};
    struct rm_state *less = fresh();
    for (size_t i = 0; i < rm_state_count(s); i++) {
        const struct rm_state_part *p = rm_state_at(s, i);
        const size_t bytes = strcmp(p->name, "world") == 0 ? 0 : p->bytes;
        assert_int_equal(rm_state_add(less, p->name, p->kind, p->data, bytes, &error), 0);
    }
    return less;
}

/* The replay is kept, the writer is another one, and learning goes on. */
static void episodes_begin_anew_where_worlds_cannot_be_saved(void **state)
{
    static struct run a, b;
    (void)state;
    open_session(&a, cases[0].json);
    open_duties(&a);
    turns(&a, 300);
    struct image cut = take(&a);
    for (uint32_t i = 0; i < a.session.objects.actors; i++) {
        struct rm_state *less = without_worlds(cut.actors[i]);
        rm_state_destroy(cut.actors[i]);
        cut.actors[i] = less;
    }
    write_files(&a, &cut);
    open_session(&b, cases[0].json);
    load_shared(&b);
    open_duties(&b);
    const uint64_t updates = RM_PEEK(&b.session.board.policies[0].updates);
    assert_int_equal(rm_session_rows(&b.session), rm_session_rows(&a.session));
    assert_int_equal(RM_PEEK(&rm_session_ring(&b.session, 0, 0)->shared->generation),
                     RM_PEEK(&rm_session_ring(&a.session, 0, 0)->shared->generation) + 1);
    turns(&b, 100);
    assert_true(RM_PEEK(&b.session.board.policies[0].updates) > updates);
    forget(&cut);
    close_run(&a);
    close_run(&b);
}

/* A learner's state of another network is refused in words. */
static void another_network_is_refused(void **state)
{
    static struct run a, b;
    struct rm_error error = {""};
    struct rm_duty duty;
    char json[1024];
    (void)state;
    open_session(&a, cases[0].json);
    open_duties(&a);
    turns(&a, 100);
    struct image cut = take(&a);
    write_files(&a, &cut);
    snprintf(json, sizeof json, "%s", cases[0].json);
    char *units = strstr(json, "\"units\": 16");
    assert_non_null(units);
    units[10] = '2'; /* 26 */
    open_session(&b, json);
    rm_session_place(&b.session, NULL, folder);
    assert_true(rm_learner_create(&b.learners[0], &b.session, 0, "", &duty, &error) < 0);
    b.learners[0] = NULL;
    if (!strstr(error.text, "params: has") || !strstr(error.text, "this run needs"))
        fail_msg("%s", error.text);
    forget(&cut);
    close_run(&a);
    close_run(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_goes_on),
        cmocka_unit_test(any_turn_will_do),
        cmocka_unit_test(episodes_begin_anew_where_worlds_cannot_be_saved),
        cmocka_unit_test(another_network_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
