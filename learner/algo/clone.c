/* clone: updates of behaviour cloning, which maximise the likelihood of the recorded actions
 * (Pomerleau 1991). Loss over N samples: -1/N sum ln pi(a | s), the cross-entropy of discrete
 * actions or the negative log-likelihood of real ones. This is the plain policy gradient of
 * policy_loss.h with all advantages 1. The network has the form of ppo's; its value is not
 * trained.
 *
 * A recurrent network learns from sequences: it runs over the burn-in rows, without gradients, from
 * a state of zeros, as recordings have none. Samples are the rows of the trace where a transition
 * starts. */
#include "learner/algo/updates.h"

#include "config/traits.h"
#include "learner/net/reals.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert((int)RM_SUM_ENTROPY == (int)RM_SUM_OF_ENTROPY, "figures have the entropy there");

struct clone {
    struct rm_updates u; /* first */
    uint32_t batch;
    uint32_t burn_in, trace; /* rows of sequences; trace 1 without them */
    bool sequences;
    struct rm_categorical distribution;
    struct rm_gaussian gaussian;

    float *ones, *zeros;              /* (trace, batch) */
    float *part;                      /* scratch of a device */
    struct rm_rollout_passes *passes; /* one minibatch: the batch */
    struct rm_update_knobs *none;     /* without a bonus for entropy */
    /* Only for sequences: */
    float *state;           /* (batch, state_count) after burn-in */
    uint32_t *lane, *index; /* (batch) and (trace, batch): 0, 1, 2, ... */
    float *weight;          /* (trace, batch) 1: a sample; 0: none */
};

/* The lanes of a batch in their order. */
static int put_lanes(struct clone *t, struct rm_error *error)
{
    struct rm_backend *b = t->u.backend;
    uint32_t *lanes = malloc(t->batch * sizeof *lanes);
    if (!lanes)
        return rm_fail(error, -ENOMEM, "clone: no memory for %u lanes", t->batch);
    for (uint32_t i = 0; i < t->batch; i++)
        lanes[i] = i;
    b->ops->upload(b, (float *)(void *)t->lane, (const float *)(const void *)lanes, t->batch);
    free(lanes);
    return 0;
}

static int open_sequences(struct clone *t, struct rm_error *error)
{
    const size_t rows = (size_t)t->batch * t->trace;
    const size_t state = (size_t)t->batch * rm_net_state_count(t->u.nets[0].net);
    int rc = rm_updates_alloc(&t->u, &t->state, state * sizeof *t->state, error);
    if (!rc)
        rc = rm_updates_alloc(&t->u, &t->lane, t->batch * sizeof *t->lane, error);
    if (!rc)
        rc = rm_updates_alloc(&t->u, &t->index, rows * sizeof *t->index, error);
    if (!rc)
        rc = rm_updates_alloc(&t->u, &t->weight, rows * sizeof *t->weight, error);
    return rc ? rc : put_lanes(t, error);
}

static int clone_open(struct rm_updates *u, const struct rm_trainer_spec *spec,
                      struct rm_error *error)
{
    struct clone *t = (struct clone *)u;
    const struct rm_experiment *e = spec->experiment;
    t->batch = e->sample.batch / u->replicas;
    t->sequences = rm_learns_sequences(e);
    t->trace = t->sequences ? e->sample.sequence : 1;
    t->burn_in = t->sequences ? e->sample.burn_in : 0;
    u->rows = t->batch * (t->burn_in > t->trace ? t->burn_in : t->trace);
    u->observations = t->batch * t->trace;
    const size_t bytes = (size_t)t->trace * t->batch * sizeof(float);
    t->distribution = rm_categorical_of(&spec->shape);
    t->gaussian = (struct rm_gaussian){spec->shape.reals, rm_bounds_by_tanh(e)};
    int rc = rm_updates_alloc(u, &t->ones, bytes, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->zeros, bytes, error);
    if (!rc && u->backend->staged)
        rc = rm_updates_alloc(u, &t->part, RM_SUM_COUNT * bytes, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->passes, sizeof *t->passes, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->none, sizeof *t->none, error);
    return rc || !t->sequences ? rc : open_sequences(t, error);
}

static void clone_reset(struct rm_updates *u)
{
    struct clone *t = (struct clone *)u;
    const struct rm_rollout_passes passes = {.batch = t->batch,
                                             .scale = 1,
                                             .whole_scale = 1,
                                             .entries = t->batch,
                                             .parts = 1,
                                             .epochs = 1};
    u->backend->ops->upload(u->backend, (float *)(void *)t->passes,
                            (const float *)(const void *)&passes, sizeof passes / sizeof(float));
    u->backend->ops->fill(u->backend, 1.0f, (size_t)t->trace * t->batch, t->ones);
}

struct rows {
    const struct clone *trainer;
    const struct rm_batch *batch;
    const uint8_t *mask; /* of the trained rows; NULL: all actions are legal */
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
                 .index = t->index,
                 .action = of->batch->action,
                 .mask = of->mask,
                 .logp = t->zeros,
                 .advantage = t->ones,
                 .target = t->zeros,
                 .value = t->zeros,
                 .valid = t->sequences ? of->batch->valid : t->ones},
        .first = first,
        .rows = rows,
        .out = out,
        .d_out = d_out,
        .weight = t->sequences ? t->weight : t->ones,
        .part = t->part,
        .knobs = t->none,
        .passes = t->passes,
        .figures = t->u.figures,
    };
    const double before = sums[1 + RM_SUM_POLICY];
    rm_policy_ops_of(b)->loss(b, &loss, sums); /* a device adds nothing: it sums by itself */
    if (!b->staged)
        sums[0] += (sums[1 + RM_SUM_POLICY] - before) / t->passes->batch;
}

/* Counts the samples, and runs the network over the burn-in rows. */
static void begin_sequences(struct clone *t, const struct rm_batch *batch, struct rm_net_input *in)
{
    struct rm_backend *b = t->u.backend;
    const struct rm_next_minibatch whole = {
        .order = t->lane,
        .stride = t->batch,
        .most = t->batch,
        .whole = t->batch,
        .steps = t->trace,
        .lanes = t->batch,
        .valid = batch->valid,
        .advantage = t->ones,
        .knobs_of = t->none,
        .knobs_stride = 1,
        .index = t->index,
        .weight = t->weight,
        .knobs = t->none,
        .passes = t->passes,
    };
    rm_policy_ops_of(b)->minibatch(b, &whole);
    rm_updates_burn_in(t->u.nets[0].online, t->u.params, batch, t->trace, t->state, in);
}

static void clone_put_gradient(struct rm_updates *u, const struct rm_update *update)
{
    struct clone *t = (struct clone *)u;
    const struct rm_batch *batch = update->batch;
    const size_t before = (size_t)t->burn_in * t->batch * batch->actions;
    struct rows rows = {t, batch, batch->mask ? batch->mask + before : NULL};
    const struct rm_net_loss loss = {put_loss, &rows};
    struct rm_net_input in = {.x = batch->obs, .batch = t->batch};
    rm_updates_draw_dropout(u, update, &in);
    if (t->sequences)
        begin_sequences(t, batch, &in);
    rm_update_phase(update->clock, RM_PHASE_BACKWARD);
    rm_updates_learn(u, &in, &loss, u->backend->staged ? 0 : t->passes->batch);
}

/* A pass over burn-in, and one with a gradient over the trace. */
static double clone_flops(const struct rm_updates *u)
{
    const struct clone *t = (const struct clone *)u;
    const uint32_t rows = t->trace * t->batch;
    const struct rm_net *net = u->nets[0].net;
    return rm_net_forward_flops(net, t->burn_in * t->batch, 0) +
           rm_net_forward_flops(net, rows, 0) + rm_net_backward_flops(net, rows, 0);
}

const struct rm_update_ops rm_clone_updates = {
    .bytes = sizeof(struct clone),
    .imitates = true,
    .open = clone_open,
    .put_gradient = clone_put_gradient,
    .flops = clone_flops,
    .reset = clone_reset,
};
