#include "tests/support/updates.h"

#include "learner/algo/algo.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rm_test_updates_layer(struct rm_experiment *e, enum rm_layer_type type, uint32_t units,
                           uint32_t cosines)
{
    e->network.layers[e->network.layer_count++] =
        (struct rm_layer_config){.type = type, .units = units, .cosines = cosines, .rate = 0.2};
}

static void add_layers(struct rm_experiment *e, bool plain)
{
    rm_test_updates_layer(e, RM_LAYER_LINEAR, 24, 0);
    rm_test_updates_layer(e, RM_LAYER_TANH, 0, 0);
    if (e->algorithm.name == RM_ALGORITHM_IQN)
        rm_test_updates_layer(e, RM_LAYER_COSINE_EMBEDDING, 0, 16);
    if (plain)
        return;
    rm_test_updates_layer(e, RM_LAYER_NOISY_LINEAR, 20, 0);
    rm_test_updates_layer(e, RM_LAYER_RELU, 0, 0);
    rm_test_updates_layer(e, RM_LAYER_DROPOUT, 0, 0);
    e->network.dueling = true;
    e->network.noisy_head = true;
    e->network.noise = RM_NOISE_FACTORISED;
    e->network.sigma0 = 0.5;
}

struct rm_experiment rm_test_updates_settings(enum rm_algorithm name)
{
    struct rm_experiment e;
    memset(&e, 0, sizeof e);
    e.seed = 9;
    e.sample.batch = RM_UPDATES_BATCH;
    e.algorithm.name = name;
    e.algorithm.double_q = true;
    e.algorithm.quantiles = 8;
    e.algorithm.target_quantiles = 6;
    e.algorithm.kappa = 1;
    e.algorithm.target.tau = 0.01;
    e.optimizer.learning_rate = 1e-3;
    e.optimizer.beta1 = 0.9;
    e.optimizer.beta2 = 0.999;
    e.optimizer.epsilon = 1e-8;
    return e;
}

struct rm_experiment rm_test_updates_experiment(enum rm_algorithm name, bool plain)
{
    struct rm_experiment e = rm_test_updates_settings(name);
    e.optimizer.epsilon = 1e-5;
    e.optimizer.grad_clip = 1;
    e.debug.finite_patience = 3;
    e.debug.rollbacks_max = 2;
    add_layers(&e, plain);
    return e;
}

struct rm_trainer_spec rm_test_updates_spec(const struct rm_experiment *e, struct rm_backend *b,
                                            uint32_t inputs, uint32_t actions)
{
    const bool fixed = rm_algo_of(e->algorithm.name)->fixed_fractions;
    return (struct rm_trainer_spec){
        .experiment = e,
        .backend = b,
        .shape = {.inputs = inputs,
                  .actions = actions,
                  .outputs_per_action = fixed ? e->algorithm.quantiles : 1},
        .name = "policy",
    };
}

struct rm_trainer *rm_test_updates_make(const struct rm_trainer_spec *spec)
{
    struct rm_error error = {""};
    struct rm_trainer *t;
    if (rm_trainer_create(&t, spec, &error))
        fail_msg("%s", error.text);
    return t;
}

struct rm_trainer_spec rm_test_updates_trainer_spec(const struct rm_experiment *e,
                                                    struct rm_backend *b)
{
    struct rm_trainer_spec spec = rm_test_updates_spec(e, b, RM_UPDATES_INPUTS, RM_UPDATES_ACTIONS);
    spec.policy = 2;
    spec.masks = true;
    return spec;
}

struct rm_trainer *rm_test_updates_trainer(const struct rm_experiment *e, struct rm_backend *b)
{
    const struct rm_trainer_spec spec = rm_test_updates_trainer_spec(e, b);
    return rm_test_updates_make(&spec);
}

void rm_test_updates_draw(struct rm_test_updates *u, const struct rm_experiment *e, uint64_t number)
{
    struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, 0, number);
    const bool priorities = e->priority.kind == RM_PRIORITY_PROPORTIONAL;
    u->batch = (struct rm_batch){
        .size = RM_UPDATES_BATCH,
        .inputs = RM_UPDATES_INPUTS,
        .actions = RM_UPDATES_ACTIONS,
        .obs = u->obs,
        .next_obs = u->next_obs,
        .action = u->action,
        .ret = u->ret,
        .discount = u->discount,
        .next_mask = u->next_mask,
        .weight = priorities ? u->weight : NULL,
        .error = priorities ? u->error : NULL,
    };
    for (uint32_t i = 0; i < RM_UPDATES_BATCH * RM_UPDATES_INPUTS; i++) {
        u->obs[i] = 2 * rm_rng_float(&rng) - 1;
        u->next_obs[i] = 2 * rm_rng_float(&rng) - 1;
    }
    for (uint32_t i = 0; i < RM_UPDATES_BATCH * RM_UPDATES_ACTIONS; i++)
        u->next_mask[i] = rm_rng_below(&rng, 3) > 0;
    for (uint32_t i = 0; i < RM_UPDATES_BATCH; i++) {
        u->ret[i] = 4 * rm_rng_float(&rng) - 2;
        u->discount[i] = rm_rng_below(&rng, 4) ? 0.9f : 0.0f;
        u->weight[i] = 0.5f + 0.5f * rm_rng_float(&rng);
        u->action[i] = (int32_t)rm_rng_below(&rng, RM_UPDATES_ACTIONS);
    }
}

float *rm_test_updates_copy(const struct rm_trainer *t, struct rm_backend *b, const float *arena)
{
    const size_t n = rm_net_param_count(rm_trainer_net(t));
    float *copy = malloc(n * sizeof *copy);
    assert_non_null(copy);
    b->ops->download(b, copy, arena, n);
    return copy;
}

double rm_test_updates_apart(const float *x, const float *y, size_t n)
{
    double apart = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        apart += pow((double)x[i] - (double)y[i], 2);
        size += pow((double)y[i], 2);
    }
    return sqrt(apart / size);
}
