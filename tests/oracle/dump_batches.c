/* dump_batches DIRECTORY: has learners from replay learn from a few batches of random numbers and
 * writes what went in and what came out (tests/support/dump.h), for tests/oracle/batches.py. */
#include "learner/algo/algo.h"
#include "learner/algo/trainer.h"
#include "tests/support/dump.h"

#include <string.h>

enum { UPDATES = 12 };

#define HARD  ", \"target\": {\"update\": \"hard\", \"interval\": 5}"
#define SOFT  ", \"target\": {\"update\": \"soft\", \"tau\": 0.1}"
#define PRIOR "\"kind\": \"proportional\""

static const struct rm_test_dump_sample samples[] = {
    {"dqn", "\"name\": \"dqn\", \"double_q\": true" HARD, RM_DUMP_TWO_LAYERS RM_DUMP_DUELING,
     "\"grad_clip\": 0.5", "", PRIOR},
    {"dqn-single", "\"name\": \"dqn\", \"double_q\": false, \"kappa\": 0.4" SOFT,
     RM_DUMP_TWO_LAYERS ", \"normalize_observations\": true", "", "", ""},
    {"qr-dqn", "\"name\": \"qr-dqn\", \"double_q\": true, \"quantiles\": 7" HARD,
     RM_DUMP_TWO_LAYERS RM_DUMP_DUELING, "", "", PRIOR},
    {"dqn-cql", "\"name\": \"dqn\", \"cql\": 0.8" SOFT, RM_DUMP_TWO_LAYERS RM_DUMP_DUELING, "", "",
     PRIOR},
    {"qr-dqn-cql", "\"name\": \"qr-dqn\", \"quantiles\": 7, \"cql\": 0.5" HARD, RM_DUMP_TWO_LAYERS,
     "", "", ""},
    {"iqn",
     "\"name\": \"iqn\", \"double_q\": true, \"quantiles\": 6, \"target_quantiles\": 5,"
     " \"kappa\": 0.7" SOFT,
     RM_DUMP_QUANTILES, "", "", PRIOR},
    {"iqn-single",
     "\"name\": \"iqn\", \"double_q\": false, \"quantiles\": 4, \"target_quantiles\": 8" HARD,
     RM_DUMP_QUANTILES, "\"grad_clip\": 0.5", "", ""},
    {"sac", "\"name\": \"sac\", \"tune_temperature\": true, \"temperature\": 0.3" SOFT,
     RM_DUMP_TWO_LAYERS, "\"grad_clip\": 0.5", "", PRIOR},
    {"sac-fixed", "\"name\": \"sac\", \"tune_temperature\": false, \"temperature\": 0.1" HARD,
     RM_DUMP_TWO_LAYERS ", \"normalize_observations\": true", "", "", ""},
    {"sac-real", "\"name\": \"sac\", \"temperature\": 0.3, \"target_entropy\": -0.7" SOFT,
     RM_DUMP_TWO_LAYERS, "\"grad_clip\": 0.5", "", PRIOR},
    {"sac-real-fixed", "\"name\": \"sac\", \"tune_temperature\": false, \"temperature\": 0.1" HARD,
     RM_DUMP_TWO_LAYERS ", \"normalize_observations\": true", "", "", ""},
    {"r2d2-gru", "\"name\": \"r2d2\", \"value_rescale\": true" HARD, RM_DUMP_RECURRENT("gru"), "",
     "\"sequence\": 5, \"burn_in\": 3, \"period\": 2, \"n_step\": 2, ", PRIOR},
    {"r2d2-lstm", "\"name\": \"r2d2\", \"value_rescale\": false, \"double_q\": false" SOFT,
     RM_DUMP_RECURRENT("lstm") RM_DUMP_DUELING, "\"grad_clip\": 0.5",
     "\"sequence\": 4, \"burn_in\": 0, \"period\": 2, \"n_step\": 3, ", ""},
};

static float *drawn(struct rm_test_dump *d, uint64_t number, uint32_t what, size_t n, float low,
                    float high)
{
    float *x = d->backend->ops->alloc(d->backend, n + 1);
    if (!x)
        rm_test_dump_fail("out of memory");
    d->backend->ops->uniforms(d->backend, 7, RM_STREAM_TEST, what, number, n, x);
    for (size_t i = 0; i < n; i++)
        x[i] = low + (high - low) * x[i];
    return x;
}

static uint8_t *chosen(struct rm_test_dump *d, uint64_t number, uint32_t what, size_t n,
                       float share)
{
    float *u = drawn(d, number, what, n, 0, 1);
    uint8_t *x = calloc(n + 1, 1);
    for (size_t i = 0; x && i < n; i++)
        x[i] = u[i] < share;
    d->backend->ops->release(d->backend, u);
    if (!x)
        rm_test_dump_fail("out of memory");
    return x;
}

/* As numbers: of real ones those that were drawn before tanh. */
static void put_actions(struct rm_test_dump *d, uint64_t number, struct rm_batch *b, size_t n)
{
    if (!b->reals) {
        RM_TEST_DUMP_NUMBERS(d, "action", number, b->action, n);
        return;
    }
    float *u = drawn(d, number, 12, n * b->reals, -1.5f, 1.5f);
    memcpy(b->action, u, n * b->reals * sizeof *u);
    rm_test_dump_put(d, "action", number, u, n * b->reals);
    d->backend->ops->release(d->backend, u);
}

/* The normals of an update's two draws (sac.c). */
static void put_normals(struct rm_test_dump *d, uint64_t number)
{
    const struct rm_experiment *e = &d->session.experiment;
    const size_t n = (size_t)e->sample.batch * d->session.plan.policy[0].reals;
    float *x = d->backend->ops->alloc(d->backend, n + 1);
    for (uint64_t pass = 0; x && n && pass < 2; pass++) {
        d->backend->ops->normals(d->backend, e->seed, RM_STREAM_REALS, 0, number * 2 + pass, n, x);
        rm_test_dump_put(d, "normal", number * 2 + pass, x, n);
    }
    if (!x)
        rm_test_dump_fail("out of memory");
    d->backend->ops->release(d->backend, x);
}

/* Of sequences, rows (rows, B), of transitions (B); the latter for both next to `n`. */
static void draw_batch(struct rm_test_dump *d, uint64_t number, struct rm_batch *b)
{
    const struct rm_experiment *e = &d->session.experiment;
    const struct rm_policy_plan *plan = &d->session.plan.policy[0];
    const bool sequences = e->algorithm.name == RM_ALGORITHM_R2D2;
    const bool weights = e->priority.kind == RM_PRIORITY_PROPORTIONAL;
    *b = (struct rm_batch){.size = e->sample.batch,
                           .inputs = plan->inputs,
                           .actions = plan->actions,
                           .reals = plan->reals};
    if (sequences) {
        b->burn_in = e->sample.burn_in;
        b->trace = e->sample.sequence;
        b->tail = e->sample.n_step;
        b->state_floats = plan->state_floats;
    }
    const size_t rows = (size_t)b->size * (sequences ? rm_batch_rows(b) : 1);
    const size_t n = (size_t)b->size * (sequences ? b->trace : 1);
    b->obs = drawn(d, number, 1, rows * b->inputs, -1, 1);
    b->ret = drawn(d, number, 2, n, -2, 2);
    if (!b->reals)
        b->mask = chosen(d, number, 3, rows * b->actions, 0.7f);
    uint8_t *ends = chosen(d, number, 4, n, 0.25f), *which = chosen(d, number, 5, 2 * n, 0.5f);
    b->discount = calloc(n + 1, sizeof *b->discount);
    b->action = calloc(n * rm_batch_words(b) + 1, sizeof *b->action);
    if (!b->discount || !b->action)
        rm_test_dump_fail("out of memory");
    for (size_t i = 0; i < n; i++) {
        b->discount[i] = ends[i] ? 0 : 0.9f;
        if (b->reals)
            continue;
        b->action[i] = which[i];
        /* What was done was legal, in rows that count from the trace's first on. */
        b->mask[((size_t)b->burn_in * b->size + i) * b->actions + which[i]] = 1;
    }
    if (!sequences) {
        b->next_obs = drawn(d, number, 6, rows * b->inputs, -1, 1);
        if (!b->reals)
            b->next_mask = chosen(d, number, 7, n * b->actions, 0.7f); /* some allow nothing */
    } else {
        b->state = drawn(d, number, 8, b->size * b->state_floats, -1, 1);
        b->restart = chosen(d, number, 9, rows, 0.15f);
        b->valid = drawn(d, number, 10, n, 0, 1);
        for (size_t i = 0; i < n; i++)
            b->valid[i] = b->valid[i] < 0.85f;
        b->ahead = calloc(n + 1, sizeof *b->ahead);
        if (!b->ahead)
            rm_test_dump_fail("out of memory");
        for (size_t i = 0; i < n; i++)
            b->ahead[i] = 1 + which[n + i] % b->tail;
    }
    if (weights) {
        b->weight = drawn(d, number, 11, b->size, 0.3f, 1);
        b->error = calloc(b->size + 1u, sizeof *b->error);
    }
    free(ends);
    free(which);
    rm_test_dump_put(d, "obs", number, b->obs, rows * b->inputs);
    rm_test_dump_put(d, "ret", number, b->ret, n);
    rm_test_dump_put(d, "discount", number, b->discount, n);
    put_actions(d, number, b, n);
    RM_TEST_DUMP_NUMBERS(d, "mask", number, b->mask, b->mask ? rows * b->actions : 0);
    rm_test_dump_put(d, "weight", number, b->weight, weights ? b->size : 0);
    if (!sequences) {
        rm_test_dump_put(d, "next_obs", number, b->next_obs, rows * b->inputs);
        RM_TEST_DUMP_NUMBERS(d, "next_mask", number, b->next_mask, n * b->actions);
        return;
    }
    rm_test_dump_put(d, "state", number, b->state, (size_t)b->size * b->state_floats);
    RM_TEST_DUMP_NUMBERS(d, "restart", number, b->restart, rows);
    RM_TEST_DUMP_NUMBERS(d, "valid", number, b->valid, n);
    RM_TEST_DUMP_NUMBERS(d, "ahead", number, b->ahead, n);
}

static void free_batch(struct rm_test_dump *d, struct rm_batch *b)
{
    float *drawn_ones[] = {b->obs, b->ret, b->next_obs, b->state, b->weight, b->valid};
    void *others[] = {b->mask,    b->discount, b->action, b->next_mask,
                      b->restart, b->ahead,    b->error};
    for (size_t i = 0; i < sizeof drawn_ones / sizeof *drawn_ones; i++)
        if (drawn_ones[i])
            d->backend->ops->release(d->backend, drawn_ones[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        free(others[i]);
}

/* IQN: the fractions of the three passes of an update, chosen, target and online (dqn_private.h).
 */
static void put_fractions(struct rm_test_dump *d, uint64_t number)
{
    const struct rm_experiment *e = &d->session.experiment;
    for (uint64_t pass = 0; pass < 3; pass++) {
        const size_t n = (size_t)e->sample.batch *
                         (pass < 2 ? e->algorithm.target_quantiles : e->algorithm.quantiles);
        float *tau = d->backend->ops->alloc(d->backend, n);
        if (!tau)
            rm_test_dump_fail("out of memory");
        d->backend->ops->uniforms(d->backend, e->seed, RM_STREAM_TAU, 0, number * 3 + pass, n, tau);
        rm_test_dump_put(d, "tau", number * 3 + pass, tau, n);
        d->backend->ops->release(d->backend, tau);
    }
}

/* Soft actor-critic's critics begin from parameters of their own. */
static struct rm_net *put_critics(struct rm_test_dump *d)
{
    const struct rm_experiment *e = &d->session.experiment;
    struct rm_net_shape shape = d->session.plan.policy[0].shape;
    struct rm_error error;
    struct rm_net *net;
    shape.head = RM_HEAD_VALUES;
    if (shape.reals) {
        shape.acts = shape.reals;
        shape.reals = 0;
        shape.actions = 1;
    }
    if (rm_net_compile(&net, &e->network, &shape, &error))
        rm_test_dump_fail(error.text);
    const size_t n = rm_net_param_count(net);
    float *params = calloc(n, sizeof *params);
    for (uint64_t i = 0; params && i < 2; i++) {
        rm_net_init(net, params, rm_rng_at(e->seed, RM_STREAM_INIT, 0, 1 + i));
        rm_test_dump_put(d, "critic", i, params, n);
    }
    free(params);
    return net;
}

static void dump(struct rm_test_dump *d, const struct rm_test_dump_sample *s, const char *directory)
{
    struct rm_trainer *t;
    struct rm_error error;
    struct rm_net *critic = NULL;
    struct rm_batch b;
    const bool real = strncmp(s->name, "sac-real", 8) == 0;
    rm_test_dump_open(d, s, real ? 0 : 1, directory);
    const struct rm_experiment *e = &d->session.experiment;
    const struct rm_trainer_spec spec = {.experiment = e,
                                         .backend = d->backend,
                                         .shape = d->session.plan.policy[0].shape,
                                         .name = "a",
                                         .masks = !real};
    if (rm_trainer_create(&t, &spec, &error))
        rm_test_dump_fail(error.text);
    const struct rm_net *net = rm_trainer_net(t);
    const size_t n = rm_net_param_count(net);
    rm_test_dump_arena(d, "params", 0, rm_trainer_params(t), n);
    if (e->algorithm.name == RM_ALGORITHM_SAC)
        critic = put_critics(d);
    for (uint64_t u = 1; u <= UPDATES; u++) {
        draw_batch(d, u, &b);
        put_normals(d, u);
        if (e->algorithm.name == RM_ALGORITHM_IQN)
            put_fractions(d, u);
        const struct rm_trainer_result r = rm_trainer_update(t, &b, u, NULL);
        if (r.skipped)
            rm_test_dump_fail("an update was skipped");
        const double figures[] = {r.loss, r.grad_norm, r.q_mean, r.temperature, r.entropy};
        RM_TEST_DUMP_NUMBERS(d, "figures", u, figures, sizeof figures / sizeof *figures);
        rm_test_dump_put(d, "error", u, b.error, b.error ? b.size : 0);
        rm_test_dump_arena(d, "params", u, rm_trainer_params(t), n);
        free_batch(d, &b);
    }
    json_t *more = json_pack("{sisosi}", "updates", UPDATES, "critic_tensors",
                             critic ? rm_test_dump_tensors(critic) : json_array(), "state",
                             (int)rm_net_state_count(net));
    rm_test_dump_close(d, s, net, directory, more);
    if (critic)
        rm_net_destroy(critic);
    rm_trainer_destroy(t);
}

int main(int argc, char **argv)
{
    struct rm_test_dump d = {0};
    struct rm_error error;
    if (argc != 2)
        rm_test_dump_fail("usage: dump_batches DIRECTORY");
    if (rm_backend_cpu_create(&d.backend, 1, "auto", &error))
        rm_test_dump_fail(error.text);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        dump(&d, &samples[i], argv[1]);
    rm_backend_destroy(d.backend);
    return 0;
}
