/* dqn: updates of the value-based algorithms in the table of algo.h. An update has three forward
 * passes, each with its own noise and fractions: the online network on s' chooses a*, the target
 * network on s' values a*, and the online network on s is trained. Then follow the loss, a backward
 * pass, the gradient's norm, the optimizer and the target network. */
#include "learner/algo/algo.h"

#include "config/forms.h"
#include "learner/algo/updates.h"

#include <errno.h>
#include <stdlib.h>

/* The passes of an update, which key noise and fractions: pass p of update n has key
 * n * PASS_COUNT + p. */
enum pass { PASS_CHOOSE, PASS_TARGET, PASS_ONLINE, PASS_COUNT };

struct dqn {
    struct rm_updates u; /* first */
    const struct rm_algo *algo;
    uint32_t batch, actions;
    uint32_t quantiles, target_quantiles; /* of the two networks' outputs; DQN: 1 */

    /* The backend's memory. */
    float *tau;       /* (all replicas' batch, most quantiles) drawn, or fixed; NULL: none */
    float *y;         /* (batch, target_quantiles) */
    int32_t *best;    /* (batch): a* */
    double *partials; /* (2 * batch) */
};

/* Fixed fractions are the same in every row and update. */
static int make_midpoints(struct dqn *t, struct rm_error *error)
{
    struct rm_backend *b = t->u.backend;
    const size_t n = (size_t)t->batch * t->quantiles;
    float *tau = malloc(n * sizeof *tau);
    if (!tau)
        return rm_fail(error, -ENOMEM, "no memory for %zu fractions", n);
    rm_algo_midpoints(t->batch, t->quantiles, tau);
    b->ops->upload(b, t->tau, tau, n);
    free(tau);
    return 0;
}

static int make_buffers(struct dqn *t, struct rm_error *error)
{
    const bool fixed = t->algo->fixed_fractions;
    const uint32_t most = t->quantiles > t->target_quantiles ? t->quantiles : t->target_quantiles;
    const size_t rows = t->batch, all = rows * t->u.replicas; /* rows of all replicas */
    const size_t fractions = fixed || t->algo->drawn_fractions ? all * most : 0;
    int rc = rm_updates_alloc(&t->u, &t->tau, fractions * sizeof *t->tau, error);
    if (!rc)
        rc = rm_updates_alloc(&t->u, &t->y, rows * t->target_quantiles * sizeof *t->y, error);
    if (!rc)
        rc = rm_updates_alloc(&t->u, &t->best, rows * sizeof *t->best, error);
    if (!rc)
        rc = rm_updates_alloc(&t->u, &t->partials, 2 * rows * sizeof *t->partials, error);
    return rc || !fixed ? rc : make_midpoints(t, error);
}

static int dqn_open(struct rm_updates *u, const struct rm_trainer_spec *spec,
                    struct rm_error *error)
{
    struct dqn *t = (struct dqn *)u;
    const struct rm_experiment *e = spec->experiment;
    t->algo = rm_algo_of(e->algorithm.name);
    const bool drawn = t->algo->drawn_fractions;
    if (rm_net_uses_quantiles(u->nets[0].net) != drawn)
        return rm_fail(error, -EINVAL,
                       drawn ? "network.layers: algorithm.name %s needs a cosine_embedding layer"
                             : "network.layers: algorithm.name %s takes no cosine_embedding layer",
                       t->algo->name);
    t->batch = u->rows = e->sample.batch / u->replicas;
    t->actions = spec->shape.actions;
    t->quantiles = drawn || t->algo->fixed_fractions ? e->algorithm.quantiles : 1;
    t->target_quantiles = drawn ? e->algorithm.target_quantiles : t->quantiles;
    u->quantiles = drawn ? t->quantiles : 0;
    u->target_quantiles = drawn ? t->target_quantiles : 0;
    u->observations = e->sample.batch;
    return make_buffers(t, error);
}

/* This device's part of the fractions drawn for the whole batch; fixed ones are the same in all
 * rows. */
static float *own_tau(const struct dqn *t, uint32_t quantiles)
{
    const size_t before = (size_t)t->u.replica * t->batch * quantiles;
    return t->algo->drawn_fractions ? t->tau + before : t->tau;
}

/* Rows, noise and fractions of one pass. */
static struct rm_net_input input_of(struct dqn *t, enum pass pass, const struct rm_update *update)
{
    struct rm_backend *b = t->u.backend;
    const struct rm_experiment *e = t->u.experiment;
    const bool online = pass == PASS_ONLINE;
    struct rm_net_input in = {.x = online ? update->batch->obs : update->batch->next_obs,
                              .batch = t->batch};
    if (t->algo->drawn_fractions) {
        in.quantiles = online ? t->quantiles : t->target_quantiles;
        in.tau = own_tau(t, in.quantiles);
        b->ops->uniforms(b, e->seed, RM_STREAM_TAU, t->u.policy,
                         rm_updates_key(&t->u, update, PASS_COUNT, pass),
                         (size_t)t->batch * t->u.replicas * in.quantiles, t->tau);
    }
    if (!(pass == PASS_TARGET && rm_form_traits(e->algorithm.form)->noiseless_target))
        rm_updates_draw_noise(&t->u, update, PASS_COUNT, pass, &in);
    if (online) /* only the trained pass uses dropout */
        rm_updates_draw_dropout(&t->u, update, &in);
    return in;
}

/* y: the target network's value of the best action in s', which the online network chooses (double
 * Q) or the target network itself. */
static void put_targets(struct dqn *t, const struct rm_update *update)
{
    struct rm_value_targets targets = {
        .batch = t->batch,
        .layout = t->algo->layout(t->actions, t->target_quantiles),
        .mask = update->batch->next_mask,
        .ret = update->batch->ret,
        .discount = update->batch->discount,
        .y = t->y,
        .best = t->best,
    };
    if (t->u.experiment->algorithm.double_q) {
        const struct rm_net_input in = input_of(t, PASS_CHOOSE, update);
        targets.choose = rm_net_infer(t->u.nets[0].online, t->u.params, &in);
    }
    const struct rm_net_input in = input_of(t, PASS_TARGET, update);
    targets.value = rm_net_infer(t->u.nets[0].target, t->u.target, &in);
    if (!targets.choose)
        targets.choose = targets.value;
    rm_value_ops_of(t->u.backend)->targets(t->u.backend, &targets);
}

/* The loss of rows of the batch, for rm_net_learn(). */
struct row_loss {
    const struct dqn *trainer;
    const struct rm_batch *batch;
};

static void put_loss(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                     double sums[RM_NET_SUMS])
{
    const struct row_loss *row_loss = self;
    const struct dqn *t = row_loss->trainer;
    const struct rm_batch *batch = row_loss->batch;
    const struct rm_value_loss loss = {
        .kind = t->algo->loss,
        .batch = rows,
        .of = t->batch,
        .layout = t->algo->layout(t->actions, t->quantiles),
        .q = out,
        .action = batch->action + first,
        .target = t->y + (size_t)first * t->target_quantiles,
        .targets = t->target_quantiles,
        .tau = t->tau ? own_tau(t, t->quantiles) + (size_t)first * t->quantiles : NULL,
        .kappa = (float)t->u.experiment->algorithm.kappa,
        .cql = (float)t->u.experiment->algorithm.cql,
        .mask = batch->mask ? batch->mask + (size_t)first * t->actions : NULL,
        .mean_over_quantiles = rm_form_traits(t->u.experiment->algorithm.form)->mean_over_quantiles,
        .weight = batch->weight ? batch->weight + first : NULL,
        .error = batch->error ? batch->error + first : NULL,
        .d_q = d_out,
        .partials = t->partials,
        .figures = t->u.figures,
    };
    rm_value_ops_of(t->u.backend)->loss(t->u.backend, &loss, sums);
}

static void dqn_put_gradient(struct rm_updates *u, const struct rm_update *update)
{
    struct dqn *t = (struct dqn *)u;
    struct row_loss loss = {t, update->batch};
    const struct rm_net_loss rows = {put_loss, &loss};
    put_targets(t, update);
    rm_update_phase(update->clock, RM_PHASE_BACKWARD);
    const struct rm_net_input in = input_of(t, PASS_ONLINE, update);
    rm_updates_learn(u, &in, &rows, t->batch);
}

static double dqn_flops(const struct rm_updates *u)
{
    const struct dqn *t = (const struct dqn *)u;
    const double online = rm_net_forward_flops(u->nets[0].net, t->batch, u->quantiles) +
                          rm_net_backward_flops(u->nets[0].net, t->batch, u->quantiles);
    const double next = rm_net_forward_flops(u->nets[0].net, t->batch, u->target_quantiles);
    return (u->experiment->algorithm.double_q ? 2 : 1) * next + online;
}

const struct rm_update_ops rm_dqn_updates = {
    .bytes = sizeof(struct dqn),
    .open = dqn_open,
    .put_gradient = dqn_put_gradient,
    .flops = dqn_flops,
};
