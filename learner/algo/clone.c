/* clone: updates of behaviour cloning, which maximise the likelihood of the recorded actions
 * (Pomerleau 1991). Loss over N samples: -1/N sum ln pi(a | s), the cross-entropy of discrete
 * actions or the negative log-likelihood of real ones. This is the plain policy gradient of
 * policy_loss.h with all advantages 1. The network has the form of ppo's; its value is not
 * trained. */
#include "learner/algo/updates.h"

#include "learner/net/reals.h"

_Static_assert((int)RM_SUM_ENTROPY == (int)RM_SUM_OF_ENTROPY, "figures have the entropy there");

struct clone {
    struct rm_updates u; /* first */
    uint32_t batch;
    struct rm_categorical distribution;
    struct rm_gaussian gaussian;

    float *ones, *zeros;              /* (batch) */
    float *part;                      /* scratch of a device */
    struct rm_rollout_passes *passes; /* one minibatch: the batch */
    struct rm_update_knobs *none;     /* without a bonus for entropy */
};

static int clone_open(struct rm_updates *u, const struct rm_trainer_spec *spec,
                      struct rm_error *error)
{
    struct clone *t = (struct clone *)u;
    t->batch = u->rows = spec->experiment->sample.batch / u->replicas;
    const size_t bytes = t->batch * sizeof(float);
    u->observations = t->batch;
    t->distribution = rm_categorical_of(&spec->shape);
    t->gaussian = (struct rm_gaussian){spec->shape.reals, rm_bounds_by_tanh(spec->experiment)};
    int rc = rm_updates_alloc(u, &t->ones, bytes, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->zeros, bytes, error);
    if (!rc && u->backend->staged)
        rc = rm_updates_alloc(u, &t->part, RM_SUM_COUNT * bytes, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->passes, sizeof *t->passes, error);
    return rc ? rc : rm_updates_alloc(u, &t->none, sizeof *t->none, error);
}

static void clone_reset(struct rm_updates *u)
{
    struct clone *t = (struct clone *)u;
    const struct rm_rollout_passes passes = {.batch = t->batch, .scale = 1};
    u->backend->ops->upload(u->backend, (float *)(void *)t->passes,
                            (const float *)(const void *)&passes, sizeof passes / sizeof(float));
    u->backend->ops->fill(u->backend, 1.0f, t->batch, t->ones);
}

struct rows {
    const struct clone *trainer;
    const struct rm_batch *batch;
};

/* For rm_net_learn(). */
static void put_loss(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                     double sums[RM_NET_SUMS])
{
    const struct rows *of = self;
    const struct clone *t = of->trainer;
    struct rm_backend *b = t->u.backend;
    const struct rm_minibatch_loss loss = {
        .loss = {.distribution = t->distribution,
                 .gaussian = t->gaussian,
                 .outputs = rm_net_outputs(t->u.nets[0].net),
                 .action = of->batch->action,
                 .mask = of->batch->mask,
                 .logp = t->zeros,
                 .advantage = t->ones,
                 .target = t->zeros,
                 .value = t->zeros,
                 .valid = t->ones},
        .first = first,
        .rows = rows,
        .out = out,
        .d_out = d_out,
        .weight = t->ones,
        .part = t->part,
        .knobs = t->none,
        .passes = t->passes,
        .figures = t->u.figures,
    };
    const double before = sums[1 + RM_SUM_POLICY];
    rm_policy_ops_of(b)->loss(b, &loss, sums); /* a device adds nothing: it sums by itself */
    sums[0] += (sums[1 + RM_SUM_POLICY] - before) / t->batch;
}

static void clone_put_gradient(struct rm_updates *u, const struct rm_update *update)
{
    struct clone *t = (struct clone *)u;
    struct rows rows = {t, update->batch};
    const struct rm_net_loss loss = {put_loss, &rows};
    struct rm_net_input in = {.x = update->batch->obs, .batch = t->batch};
    rm_updates_draw_dropout(u, update, &in);
    rm_update_phase(update->clock, RM_PHASE_BACKWARD);
    rm_updates_learn(u, &in, &loss, t->batch);
}

const struct rm_update_ops rm_clone_updates = {
    .bytes = sizeof(struct clone),
    .imitates = true,
    .open = clone_open,
    .put_gradient = clone_put_gradient,
    .reset = clone_reset,
};
