/* What becomes of updates that are not finite, on numbers that stand for a learner's: counted, gone
 * back from, given up on; and that the first such number of an update is named. */
#include "learner/algo/finite.h"
#include "learner/algo/guard.h"
#include "learner/net/look.h"
#include "shm/atomic.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 50 };

static struct rm_backend *backend;

static int open_backend(void **state)
{
    struct rm_error error;
    (void)state;
    return rm_backend_cpu_create(&backend, 2, "auto", &error);
}

static int close_backend(void **state)
{
    (void)state;
    rm_backend_destroy(backend);
    return 0;
}

/* --- the guard ------------------------------------------------------------------------------- */

struct subject {
    struct rm_experiment experiment;
    struct rm_board_policy counters;
    struct rm_guard *guard;
    float arena[FLOATS];
    double plain;
    uint64_t updates;
    char words[RM_ERROR_TEXT];
};

static void set_up(struct subject *s, uint32_t patience, uint32_t rollbacks)
{
    struct rm_error error;
    memset(s, 0, sizeof *s);
    s->experiment.debug.finite_patience = patience;
    s->experiment.debug.rollbacks_max = rollbacks;
    assert_int_equal(
        rm_guard_create(&s->guard, &s->experiment, backend, &s->counters, "agent_0", &error), 0);
    rm_guard_floats(s->guard, s->arena, FLOATS);
    rm_guard_bytes(s->guard, &s->plain, sizeof s->plain);
    assert_int_equal(rm_guard_ready(s->guard, &error), 0);
}

/* Update k makes all numbers k. */
static int good(struct subject *s)
{
    struct rm_error error;
    s->updates++;
    for (int i = 0; i < FLOATS; i++)
        s->arena[i] = (float)s->updates;
    s->plain = (double)s->updates;
    return rm_guard_judge(s->guard, true, 1, 1, s->updates, &error);
}

static int bad(struct subject *s)
{
    struct rm_error error = {""};
    const int verdict = rm_guard_judge(s->guard, false, NAN, INFINITY, s->updates, &error);
    snprintf(s->words, sizeof s->words, "%s", error.text);
    return verdict;
}

static void is(const struct subject *s, uint64_t update)
{
    assert_true(s->arena[0] == (float)update && s->arena[FLOATS - 1] == (float)update);
    assert_true(s->plain == (double)update);
}

static void it_goes_back_and_gives_up(void **state)
{
    struct subject s;
    (void)state;
    set_up(&s, 3, 2);
    for (unsigned k = 0; k < 2 * RM_GUARD_INTERVAL + 10; k++)
        assert_int_equal(good(&s), RM_GUARD_GOOD);
    assert_int_equal(bad(&s), RM_GUARD_SKIPPED);
    assert_int_equal(bad(&s), RM_GUARD_SKIPPED);
    is(&s, 2 * RM_GUARD_INTERVAL + 10);
    assert_int_equal(good(&s), RM_GUARD_GOOD); /* not in a row */
    assert_int_equal(bad(&s), RM_GUARD_SKIPPED);
    assert_int_equal(bad(&s), RM_GUARD_SKIPPED);
    assert_int_equal(RM_PEEK(&s.counters.updates_skipped), 4);
    assert_int_equal(bad(&s), RM_GUARD_BACK);
    is(&s, 2 * RM_GUARD_INTERVAL);
    assert_int_equal(bad(&s), RM_GUARD_SKIPPED);
    assert_int_equal(bad(&s), RM_GUARD_SKIPPED);
    assert_int_equal(bad(&s), RM_GUARD_BACK);
    is(&s, 2 * RM_GUARD_INTERVAL);
    assert_int_equal(bad(&s), RM_GUARD_SKIPPED);
    assert_int_equal(bad(&s), RM_GUARD_SKIPPED);
    assert_int_equal(bad(&s), -EDOM);
    assert_non_null(strstr(s.words, "agent_0"));
    assert_non_null(strstr(s.words, "3 updates in a row"));
    assert_non_null(strstr(s.words, "2 roll-backs"));
    assert_int_equal(RM_PEEK(&s.counters.updates_skipped), 11);
    assert_int_equal(RM_PEEK(&s.counters.rollbacks), 2);
    rm_guard_destroy(s.guard);
}

/* The copy that was taken right after the update that broke everything is not the one. */
static void a_copy_must_have_made_a_finite_update(void **state)
{
    struct subject s;
    (void)state;
    set_up(&s, 1, 5);
    for (unsigned k = 0; k < 2 * RM_GUARD_INTERVAL; k++)
        good(&s);
    assert_int_equal(bad(&s), RM_GUARD_BACK);
    is(&s, RM_GUARD_INTERVAL);
    rm_guard_destroy(s.guard);
}

static void the_first_values_are_a_copy_too(void **state)
{
    struct subject s;
    (void)state;
    set_up(&s, 1, 5);
    good(&s);
    good(&s);
    assert_int_equal(bad(&s), RM_GUARD_BACK);
    is(&s, 0);
    for (int i = 0; i < FLOATS; i++)
        s.arena[i] = 7;
    s.plain = 7;
    rm_guard_renew(s.guard);
    assert_int_equal(bad(&s), RM_GUARD_BACK); /* before any good update */
    is(&s, 7);
    good(&s);
    assert_int_equal(bad(&s), RM_GUARD_BACK);
    is(&s, 7);
    rm_guard_destroy(s.guard);
}

static void no_rollbacks_at_all(void **state)
{
    struct subject s;
    (void)state;
    set_up(&s, 2, 0);
    good(&s);
    assert_int_equal(bad(&s), RM_GUARD_SKIPPED);
    assert_int_equal(bad(&s), -EDOM);
    rm_guard_destroy(s.guard);
}

/* --- what is found --------------------------------------------------------------------------- */

struct net {
    struct rm_net *net;
    struct rm_net_workspace *workspace;
    size_t n;
    float *params, *grads, *x, *d_out;
    struct rm_net_input input;
};

enum { INPUTS = 6, BATCH = 9, ACTIONS = 3 };

static void make_wide(struct net *m, uint32_t units)
{
    struct rm_network_config config = {.layer_count = 4, .gain = 1};
    const struct rm_net_shape shape = {
        .inputs = INPUTS, .actions = ACTIONS, .outputs_per_action = 1};
    struct rm_error error = {""};
    config.layers[0] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = 20};
    config.layers[1] = (struct rm_layer_config){.type = RM_LAYER_LAYER_NORM};
    config.layers[2] = (struct rm_layer_config){.type = RM_LAYER_RELU};
    config.layers[3] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = units};
    if (rm_net_compile(&m->net, &config, &shape, &error) ||
        rm_net_workspace_create(&m->workspace, m->net, backend, BATCH, 1, true, &error))
        fail_msg("%s", error.text);
    m->n = rm_net_param_count(m->net);
    m->params = backend->ops->alloc(backend, m->n);
    m->grads = backend->ops->alloc(backend, m->n);
    m->x = backend->ops->alloc(backend, BATCH * INPUTS);
    m->d_out = backend->ops->alloc(backend, BATCH * ACTIONS);
    rm_net_init(m->net, m->params, rm_rng_at(3, RM_STREAM_INIT, 0, 0));
    for (int i = 0; i < BATCH * INPUTS; i++)
        m->x[i] = (float)(i % 5) - 2;
    for (int i = 0; i < BATCH * ACTIONS; i++)
        m->d_out[i] = 1;
    m->input = (struct rm_net_input){.x = m->x, .batch = BATCH};
}

static void make_net(struct net *m)
{
    make_wide(m, 17);
}

static void drop_net(struct net *m)
{
    float *owned[] = {m->params, m->grads, m->x, m->d_out};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        backend->ops->release(backend, owned[i]);
    rm_net_workspace_destroy(m->workspace);
    rm_net_destroy(m->net);
}

static bool look(struct net *m, struct rm_net_finding *f)
{
    rm_net_prepare(m->workspace, m->params);
    rm_net_forward(m->workspace, m->params, &m->input);
    rm_net_backward(m->workspace, m->params, &m->input, m->d_out, m->grads);
    return rm_net_look(m->workspace, m->params, &m->input, m->grads, f);
}

static void found_at(struct net *m, const char *where, uint64_t row, uint64_t column)
{
    struct rm_net_finding f;
    assert_true(look(m, &f));
    if (!strstr(f.where, where) || f.row != row || f.column != column || isfinite(f.value))
        fail_msg("found %s, row %lu, column %lu: %g; not %s, row %lu, column %lu", f.where,
                 (unsigned long)f.row, (unsigned long)f.column, f.value, where, (unsigned long)row,
                 (unsigned long)column);
}

static float *tensor(struct net *m, float *arena, const char *name)
{
    const struct rm_net_tensor *t;
    const size_t n = rm_net_tensors(m->net, &t);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(t[i].name, name))
            return arena + t[i].offset;
    fail_msg("no tensor %s", name);
    return NULL;
}

static void the_first_number_is_named(void **state)
{
    struct net m;
    struct rm_net_finding f;
    (void)state;
    make_net(&m);
    assert_false(look(&m, &f));

    m.x[4 * INPUTS + 2] = NAN;
    found_at(&m, "input", 4, 2);
    m.x[4 * INPUTS + 2] = 0;

    tensor(&m, m.params, "layers.3.weight")[5 * 20 + 7] = INFINITY;
    found_at(&m, "parameter layers.3.weight", 5, 7);
    tensor(&m, m.params, "layers.3.weight")[5 * 20 + 7] = 0;

    /* All is finite that goes in, and too large for a float what comes out. */
    for (int i = 0; i < 20; i++)
        tensor(&m, m.params, "layers.3.weight")[11 * 20 + i] = 3e38f;
    tensor(&m, m.params, "layers.3.bias")[11] = 3e38f;
    assert_true(look(&m, &f));
    assert_non_null(strstr(f.where, "result of layers.3 (linear)"));
    assert_int_equal(f.column, 11);
    for (int i = 0; i < 20; i++)
        tensor(&m, m.params, "layers.3.weight")[11 * 20 + i] = 0;
    tensor(&m, m.params, "layers.3.bias")[11] = 0;

    for (int i = 0; i < BATCH; i++)
        m.d_out[i * ACTIONS + 1] = 3e38f;
    found_at(&m, "gradient of head.bias", 0, 1);
    for (int i = 0; i < BATCH; i++)
        m.d_out[i * ACTIONS + 1] = 1;
    assert_false(look(&m, &f));
    drop_net(&m);
}

static void one_each(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                     double sums[RM_NET_SUMS])
{
    (void)self;
    (void)first;
    (void)out;
    (void)sums;
    for (uint32_t i = 0; i < rows * ACTIONS; i++)
        d_out[i] = 1;
}

static bool learns_finite(struct net *m)
{
    double sums[RM_NET_SUMS];
    const struct rm_net_loss loss = {one_each, NULL};
    rm_net_prepare(m->workspace, m->params);
    rm_net_learn(m->workspace, m->params, &m->input, &loss, m->grads, sums);
    return rm_net_learned_finite(m->workspace);
}

/* With or without tiles: a pass that learns looks at its numbers, so that an update without such a
 * number needs no further pass. */
static void learning_looks_on_its_way(void **state)
{
    (void)state;
    for (uint32_t units = 17; units <= 8192; units += 8175) {
        struct net m;
        make_wide(&m, units);
        assert_false(learns_finite(&m));
        rm_net_watch(m.workspace, true);
        assert_true(learns_finite(&m));
        assert_false(rm_net_learned_finite(m.workspace)); /* of no later pass */
        m.x[4 * INPUTS + 2] = NAN;
        assert_false(learns_finite(&m));
        m.x[4 * INPUTS + 2] = 0;
        assert_true(learns_finite(&m));
        for (int i = 0; i < 20; i++)
            tensor(&m, m.params, "layers.3.weight")[11 * 20 + i] = 3e38f;
        tensor(&m, m.params, "layers.3.bias")[11] = 3e38f;
        assert_false(learns_finite(&m));
        rm_net_watch(m.workspace, false);
        assert_false(learns_finite(&m));
        drop_net(&m);
    }
}

static void when_it_is_looked_for(void **state)
{
    (void)state;
    struct rm_experiment e;
    memset(&e, 0, sizeof e);
    e.debug.check_every = 5;
    struct rm_finite f = rm_finite_of(&e, "agent_0");
    assert_false(rm_finite_due(&f, 5, false) || rm_finite_due(&f, 5, true));
    e.debug.check_finite = RM_CHECK_FINITE_SAMPLED;
    f = rm_finite_of(&e, "agent_0");
    assert_true(rm_finite_due(&f, 5, false) && rm_finite_due(&f, 6, true));
    assert_false(rm_finite_due(&f, 6, false));
    e.debug.check_finite = RM_CHECK_FINITE_ALWAYS;
    f = rm_finite_of(&e, "agent_0");
    assert_true(rm_finite_due(&f, 6, false));

    struct net m;
    make_net(&m);
    rm_net_prepare(m.workspace, m.params);
    rm_net_forward(m.workspace, m.params, &m.input);
    assert_false(rm_finite_look(&f, 6, m.workspace, m.params, &m.input, NULL));
    assert_int_equal(f.found, 0);
    m.x[1] = -INFINITY;
    rm_net_forward(m.workspace, m.params, &m.input);
    assert_true(rm_finite_look(&f, 7, m.workspace, m.params, &m.input, NULL));
    assert_int_equal(f.found, 1);
    drop_net(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_back_and_gives_up),
        cmocka_unit_test(a_copy_must_have_made_a_finite_update),
        cmocka_unit_test(the_first_values_are_a_copy_too),
        cmocka_unit_test(no_rollbacks_at_all),
        cmocka_unit_test(the_first_number_is_named),
        cmocka_unit_test(when_it_is_looked_for),
        cmocka_unit_test(learning_looks_on_its_way),
    };
    return cmocka_run_group_tests_name("guard", tests, open_backend, close_backend);
}
