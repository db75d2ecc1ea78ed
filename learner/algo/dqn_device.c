/* dqn_device: the trainer of dqn.c where the backend is a device's. The same update with the same
 * draws, but all of it on the device: three passes, loss, backward pass, norm, optimizer and target
 * network, captured once for each slot of staging.h and launched from then on. The host says what
 * it knows of an update in its knobs, copied with the batch, and hears of it late (trainer.h).
 *
 * Two settings make every update wait for its end, because the host has a part in it:
 * network.normalize_observations, whose moments are the host's and take in no skipped batch, and
 * debug.check_finite, which looks through numbers between gradient and step. */
#include "learner/algo/dqn_private.h"
#include "learner/algo/staging.h"
#include "learner/algo/target.h"
#include "learner/backend/device_values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dqn_device {
    struct rm_dqn d; /* first */
    struct rm_staging staging;
    bool watched;   /* debug.check_finite: not captured */
    bool normalise; /* network.normalize_observations */

    /* Device memory. */
    struct rm_device_figures *figures; /* the optimizer's */
    float *noise;                      /* (noise_count), NULL when the network has no noisy layer */
    float *tau; /* (batch, most quantiles) drawn, or fixed, NULL where there are none */
    float *y;   /* (batch, target_quantiles) */
    double *partials; /* (2 * batch) */

    /* What was told last, and whether it was reported. Figures are sums since create. */
    struct rm_device_figures told, reported;
    uint64_t told_through, reported_through;
    uint64_t launched; /* number of the last update begun */
    double told_rate;  /* learning rate of told_through */
    struct rm_device_figures *pinned; /* for figures out of turn */
};

static struct dqn_device *of(struct rm_trainer *trainer)
{
    return (struct dqn_device *)trainer;
}

static void enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

/* --- what is put on the device --------------------------------------------------------------- */

/* Rows, noise and fractions of one pass. Update n is the one after `before` = n - 1 others: keys
 * are RM_DQN_COUNT * before + what stands here. */
static struct rm_net_input input_of(struct dqn_device *t, enum rm_dqn_pass pass,
                                    const struct rm_staging_slot *slot)
{
    struct rm_backend *b = t->d.f.backend;
    const struct rm_experiment *e = t->d.f.experiment;
    const uint64_t key = RM_DQN_COUNT + (uint64_t)pass;
    struct rm_net_input in = {.x = pass == RM_DQN_ONLINE ? slot->device.obs : slot->device.next_obs,
                              .batch = t->d.batch};
    b->device->draws(b, &slot->device.knobs->before, RM_DQN_COUNT);
    if (t->d.algo->drawn_fractions) {
        in.tau = t->tau;
        in.quantiles = pass == RM_DQN_ONLINE ? t->d.quantiles : t->d.target_quantiles;
        b->ops->uniforms(b, e->seed, RM_STREAM_TAU, t->d.f.policy, key,
                         (size_t)t->d.batch * in.quantiles, t->tau);
    }
    /* Compat: the original's parallel form trains against a noiseless target network. */
    if (t->noise && !(pass == RM_DQN_TARGET && e->algorithm.form == RM_FORM_SORREL_MP)) {
        b->ops->normals(b, e->seed, RM_STREAM_NOISE, t->d.f.policy, key,
                        rm_net_noise_count(t->d.f.net), t->noise);
        in.noise = t->noise;
    }
    if (pass == RM_DQN_ONLINE) {
        in.dropout_seed = e->seed;
        in.dropout_update = 1;
        b->device->draws(b, &slot->device.knobs->before, 1);
    }
    return in;
}

static struct rm_device_layout layout_of(const struct dqn_device *t, uint32_t quantiles)
{
    const struct rm_algo_layout l = t->d.algo->layout(t->d.actions, quantiles);
    return (struct rm_device_layout){l.actions, l.quantiles, l.sample, l.action, l.quantile};
}

static void put_targets(struct dqn_device *t, const struct rm_staging_slot *slot)
{
    struct rm_backend *b = t->d.f.backend;
    struct rm_device_targets targets = {
        .batch = t->d.batch,
        .layout = layout_of(t, t->d.target_quantiles),
        .mask = slot->device.next_mask,
        .ret = slot->device.ret,
        .discount = slot->device.discount,
        .y = t->y,
    };
    if (t->d.f.experiment->algorithm.double_q) {
        const struct rm_net_input in = input_of(t, RM_DQN_CHOOSE, slot);
        targets.choose = rm_net_infer(t->d.f.online_space, t->d.f.params, &in);
    }
    const struct rm_net_input in = input_of(t, RM_DQN_TARGET, slot);
    targets.value = rm_net_infer(t->d.f.target_space, t->d.f.target, &in);
    if (!targets.choose)
        targets.choose = targets.value;
    b->device->values->targets(b, &targets);
}

struct row_loss {
    const struct dqn_device *trainer;
    const struct rm_staging_slot *slot;
};

/* For rm_net_learn(): all rows at once, and the sums are the figures'. */
static void put_loss(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                     double sums[RM_NET_SUMS])
{
    const struct row_loss *of = self;
    const struct dqn_device *t = of->trainer;
    const struct rm_device_value_loss loss = {
        .kind = t->tau ? RM_DEVICE_QUANTILE_HUBER : RM_DEVICE_HUBER,
        .batch = rows,
        .layout = layout_of(t, t->d.quantiles),
        .q = out,
        .action = of->slot->device.action,
        .target = t->y,
        .targets = t->d.target_quantiles,
        .tau = t->tau,
        .kappa = (float)t->d.f.experiment->algorithm.kappa,
        .mean_over_quantiles = t->d.f.experiment->algorithm.form != RM_FORM_PAPER,
        .weight = of->slot->device.weight,
        .error = of->slot->device.error,
        .d_q = d_out,
        .partials = t->partials,
        .figures = t->figures,
    };
    (void)first;
    (void)sums;
    t->d.f.backend->device->values->loss(t->d.f.backend, &loss);
}

/* Up to the gradient. Weights are packed anew in every update. */
static void put_gradient(struct dqn_device *t, const struct rm_staging_slot *slot)
{
    struct rm_backend *b = t->d.f.backend;
    struct row_loss loss = {t, slot};
    const struct rm_net_loss rows = {put_loss, &loss};
    double sums[RM_NET_SUMS];
    rm_net_prepare(t->d.f.online_space, t->d.f.params);
    rm_net_prepare(t->d.f.target_space, t->d.f.target);
    put_targets(t, slot);
    const struct rm_net_input in = input_of(t, RM_DQN_ONLINE, slot);
    rm_net_learn(t->d.f.online_space, t->d.f.params, &in, &rows, t->d.f.grads, sums);
    b->device->draws(b, NULL, 0);
}

static void put_step(struct dqn_device *t, const struct rm_staging_slot *slot)
{
    const struct rm_optimizer_put put = {
        .params = t->d.f.params,
        .grads = t->d.f.grads,
        .target = t->normalise ? NULL : t->d.f.target,
        .knobs = slot->device.knobs,
        .copy = slot->device.figures,
    };
    rm_optimizer_put(t->d.f.optimizer, &put);
}

/* --- an update ------------------------------------------------------------------------------- */

static struct rm_device_figures fetch_figures(struct dqn_device *t)
{
    struct rm_backend *b = t->d.f.backend;
    b->device->copy_out(b, RM_STREAM_COMPUTE, t->pinned, t->figures, sizeof *t->pinned);
    b->device->finish(b);
    return *t->pinned;
}

/* Waits; the norm is of the gradient as it is, not yet judged. */
static struct rm_trainer_result look_at_gradient(struct dqn_device *t)
{
    const struct rm_device_figures f = fetch_figures(t);
    struct rm_trainer_result result = {
        .loss = f.last_loss,
        .grad_norm = rm_optimizer_norm(t->d.f.optimizer, t->d.f.grads),
        .q_mean = f.now_sums[RM_DEVICE_SUM_Q] / f.now_samples,
    };
    result.skipped = !isfinite(result.loss) || !isfinite(result.grad_norm);
    return result;
}

static void run_watched(struct dqn_device *t, struct rm_staging_slot *slot)
{
    put_gradient(t, slot);
    const struct rm_trainer_result result = look_at_gradient(t);
    if (rm_finite_due(&t->d.f.finite, slot->number, result.skipped)) {
        const struct rm_net_input in = input_of(t, RM_DQN_ONLINE, slot);
        rm_net_forward(t->d.f.online_space, t->d.f.params, &in);
        rm_finite_look(&t->d.f.finite, slot->number, t->d.f.online_space, t->d.f.params, &in,
                       t->d.f.grads);
    }
    put_step(t, slot);
}

static void run(struct dqn_device *t, struct rm_staging_slot *slot)
{
    struct rm_backend *b = t->d.f.backend;
    if (t->watched)
        run_watched(t, slot);
    else
        b->device->launch(b, slot->graph);
}

/* What the host adds to an update that was made: moments of observations, and behind them the
 * target network. */
static void add_moments(struct dqn_device *t, struct rm_staging_slot *slot, double part)
{
    struct rm_backend *b = t->d.f.backend;
    rm_staging_wait(&t->staging, slot);
    if (slot->figures->skip)
        return;
    rm_normaliser_add(&t->d.f.normaliser, slot->host.obs, t->d.batch);
    rm_normaliser_write(&t->d.f.normaliser, t->d.f.params);
    if (part == 1.0)
        b->device->copy(b, RM_STREAM_COMPUTE, t->d.f.target, t->d.f.params,
                        t->d.f.count * sizeof *t->d.f.params);
    else if (part > 0.0)
        b->ops->lerp(b, (float)part, t->d.f.params, t->d.f.count, t->d.f.target);
}

static void hear(struct dqn_device *t, struct rm_staging_slot *slot)
{
    if (!slot->told)
        return;
    slot->told = false;
    t->told = *slot->figures;
    t->told_through = slot->number;
    t->told_rate = slot->learning_rate;
}

static struct rm_batch *next_batch(struct rm_trainer *trainer)
{
    struct dqn_device *t = of(trainer);
    struct rm_staging_slot *slot = rm_staging_slot(&t->staging);
    rm_staging_wait(&t->staging, slot);
    hear(t, slot);
    return &slot->host;
}

static struct rm_staging_slot *filled_slot(struct dqn_device *t, const struct rm_batch *batch,
                                           uint64_t number)
{
    struct rm_staging_slot *slot = rm_staging_slot(&t->staging);
    next_batch(&t->d.f.trainer);
    rm_staging_fill(slot, batch);
    slot->number = number;
    slot->learnable = false;
    slot->knobs->before = number - 1;
    rm_optimizer_knobs(t->d.f.optimizer, number, t->d.f.progress, slot->knobs);
    slot->learning_rate = slot->knobs->learning_rate;
    return slot;
}

static struct rm_trainer_result update(struct rm_trainer *trainer, const struct rm_batch *batch,
                                       uint64_t number, struct rm_phase_clock *clock)
{
    struct dqn_device *t = of(trainer);
    const struct rm_trainer_settings *settings = &t->d.f.settings;
    const uint32_t every = settings->report ? settings->report : 1;
    const double part = rm_target_part(t->d.f.experiment, settings->target_tau, number);
    enter(clock, RM_PHASE_UPLOAD);
    struct rm_staging_slot *slot = filled_slot(t, batch, number);
    slot->knobs->target_tau = (float)part;
    rm_staging_send(&t->staging, slot);
    enter(clock, RM_PHASE_FORWARD);
    run(t, slot);
    rm_staging_sent(&t->staging, slot, t->normalise || number % every == 0);
    t->launched = number;
    if (t->normalise)
        add_moments(t, slot, part);
    return (struct rm_trainer_result){.learning_rate = slot->learning_rate, .late = true};
}

static struct rm_trainer_result gradient(struct rm_trainer *trainer, const struct rm_batch *batch,
                                         uint64_t number, struct rm_phase_clock *clock)
{
    struct dqn_device *t = of(trainer);
    struct rm_staging_slot *slot = filled_slot(t, batch, number);
    (void)clock;
    rm_staging_send(&t->staging, slot);
    put_gradient(t, slot);
    return look_at_gradient(t);
}

/* --- what came of updates -------------------------------------------------------------------- */

static struct rm_batch *learned(struct rm_trainer *trainer)
{
    struct dqn_device *t = of(trainer);
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++) {
        struct rm_staging_slot *slot = rm_staging_oldest(&t->staging, i);
        if (!slot->learnable)
            continue;
        slot->learnable = false;
        return &slot->host;
    }
    return NULL;
}

/* Everything that was begun ends, and is heard of. */
static void end_all(struct dqn_device *t)
{
    bool any = false;
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++) {
        struct rm_staging_slot *slot = rm_staging_oldest(&t->staging, i);
        any |= rm_staging_wait(&t->staging, slot);
        hear(t, slot);
        if (slot->number == t->launched)
            t->told_rate = slot->learning_rate;
    }
    if (!any && t->told_through == t->launched)
        return;
    t->told = fetch_figures(t);
    t->told_through = t->launched;
}

static bool report(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *out)
{
    struct dqn_device *t = of(trainer);
    const struct rm_device_figures *now = &t->told, *before = &t->reported;
    if (wait)
        end_all(t);
    if (t->told_through == t->reported_through)
        return false;
    const double n = (double)(now->reports - before->reports);
    const double samples = now->samples - before->samples;
    *out = (struct rm_trainer_report){
        .made = now->made - before->made,
        .skipped = now->skipped - before->skipped,
        .skipped_in_row = now->skipped_in_row,
        .through = t->told_through,
        .last_loss = now->last_loss,
        .last_grad_norm = now->last_grad_norm,
        .mean.learning_rate = t->told_rate,
    };
    if (n > 0) {
        out->mean.loss = (now->loss - before->loss) / n;
        out->mean.grad_norm = (now->grad_norm - before->grad_norm) / n;
        out->mean.q_mean =
            (now->sums[RM_DEVICE_SUM_Q] - before->sums[RM_DEVICE_SUM_Q]) / samples;
    }
    t->reported = t->told;
    t->reported_through = t->told_through;
    return true;
}

static const uint64_t *made(const struct rm_trainer *trainer)
{
    return &((const struct dqn_device *)trainer)->figures->made;
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_buffers(struct dqn_device *t, struct rm_error *error)
{
    struct rm_backend *b = t->d.f.backend;
    const size_t rows = t->d.batch, noise = rm_net_noise_count(t->d.f.net);
    const bool quantiles = t->d.algo->drawn_fractions || t->d.algo->fixed_fractions;
    struct {
        void *at;
        size_t bytes;
    } buffers[] = {
        {&t->noise, noise * sizeof(float)},
        {&t->tau, quantiles ? rows * rm_dqn_most_quantiles(&t->d) * sizeof(float) : 0},
        {&t->y, rows * t->d.target_quantiles * sizeof(float)},
        {&t->partials, 2 * rows * sizeof(double)},
    };
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        void *p = buffers[i].bytes ? b->device->alloc(b, buffers[i].bytes, error) : NULL;
        if (buffers[i].bytes && !p)
            return -ENOMEM;
        memcpy(buffers[i].at, &p, sizeof p);
    }
    t->pinned = b->device->alloc_host(b, sizeof *t->pinned, error);
    return t->pinned ? 0 : -ENOMEM;
}

static int send_midpoints(struct dqn_device *t, struct rm_error *error)
{
    struct rm_backend *b = t->d.f.backend;
    const size_t n = (size_t)t->d.batch * t->d.quantiles;
    if (!t->d.algo->fixed_fractions)
        return 0;
    float *tau = malloc(n * sizeof *tau);
    if (!tau)
        return rm_fail(error, -ENOMEM, "no memory for %zu fractions", n);
    rm_algo_midpoints(t->d.batch, t->d.quantiles, tau);
    b->ops->upload(b, t->tau, tau, n);
    free(tau);
    return 0;
}

/* What an update changes: [0] there, [1] a copy. */
struct kept {
    void *at[2];
    size_t bytes;
};

static size_t list_kept(const struct dqn_device *t, struct kept kept[4 + RM_OPTIMIZER_ARENAS])
{
    const size_t bytes = t->d.f.count * sizeof(float);
    struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS];
    const size_t arena_count = rm_optimizer_arenas(t->d.f.optimizer, arenas);
    size_t n = 0;
    kept[n++] = (struct kept){{t->d.f.params}, bytes};
    kept[n++] = (struct kept){{t->d.f.target}, bytes};
    kept[n++] = (struct kept){{t->d.f.grads}, bytes};
    kept[n++] = (struct kept){{t->figures}, sizeof *t->figures};
    for (size_t i = 0; i < arena_count; i++)
        kept[n++] = (struct kept){{arenas[i].data}, arenas[i].count * sizeof(float)};
    return n;
}

/* An update that is run before it is captured: libraries choose their kernels and load them, which
 * may allocate. Everything it changes is put back to the bit. */
static int warm_up(struct dqn_device *t, struct rm_error *error)
{
    struct rm_backend *b = t->d.f.backend;
    struct kept kept[4 + RM_OPTIMIZER_ARENAS];
    const size_t n = list_kept(t, kept);
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        kept[i].at[1] = rc ? NULL : b->device->alloc(b, kept[i].bytes, error);
        if (!kept[i].at[1])
            rc = -ENOMEM;
    }
    for (size_t i = 0; i < n && !rc; i++)
        b->device->copy(b, RM_STREAM_COMPUTE, kept[i].at[1], kept[i].at[0], kept[i].bytes);
    if (!rc) {
        put_gradient(t, &t->staging.slots[0]);
        put_step(t, &t->staging.slots[0]);
    }
    for (size_t i = 0; i < n && !rc; i++)
        b->device->copy(b, RM_STREAM_COMPUTE, kept[i].at[0], kept[i].at[1], kept[i].bytes);
    b->device->finish(b);
    for (size_t i = 0; i < n; i++)
        if (kept[i].at[1])
            b->ops->release(b, kept[i].at[1]);
    return rc ? rc : b->device->failed(b, error) ? -EIO : 0;
}

static int capture(struct dqn_device *t, struct rm_error *error)
{
    struct rm_backend *b = t->d.f.backend;
    int rc = warm_up(t, error);
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH && !rc && !t->watched; i++) {
        rc = b->device->capture(b, error);
        if (rc)
            break;
        put_gradient(t, &t->staging.slots[i]);
        put_step(t, &t->staging.slots[i]);
        rc = b->device->captured(b, &t->staging.slots[i].graph, error);
    }
    return rc;
}

static void destroy(struct rm_trainer *trainer)
{
    struct dqn_device *t = of(trainer);
    struct rm_backend *b = t->d.f.backend;
    void *buffers[] = {t->noise, t->tau, t->y, t->partials};
    rm_staging_destroy(&t->staging);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            b->ops->release(b, buffers[i]);
    if (t->pinned)
        b->device->release_host(b, t->pinned);
    rm_followed_close(&t->d.f);
    free(t);
}

static int make(struct dqn_device *t, const struct rm_trainer_spec *spec, struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    const struct rm_staging_spec staging = {
        .batch = e->sample.batch,
        .inputs = spec->shape.inputs,
        .actions = spec->shape.actions,
        .masks = spec->masks,
        .priorities = e->priority.kind == RM_PRIORITY_PROPORTIONAL,
    };
    int rc = rm_dqn_open(&t->d, spec, error);
    if (!rc)
        rc = make_buffers(t, error);
    if (!rc)
        rc = rm_staging_create(&t->staging, spec->backend, &staging, error);
    if (!rc)
        rc = send_midpoints(t, error);
    if (rc)
        return rc;
    t->figures = rm_optimizer_figures(t->d.f.optimizer);
    t->watched = e->debug.check_finite != RM_CHECK_FINITE_OFF;
    t->normalise = rm_net_input_mean_at(t->d.f.net) != SIZE_MAX;
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++)
        t->staging.slots[i].host.codes = rm_net_takes_codes(t->d.f.net);
    rm_followed_init(&t->d.f);
    return capture(t, error);
}

static int create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                  struct rm_error *error)
{
    struct dqn_device *t = calloc(1, sizeof *t);
    if (!t)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    t->d.f.trainer.ops = &rm_dqn_device_trainer;
    t->d.f.backend = spec->backend;
    const int rc = make(t, spec, error);
    if (rc) {
        destroy(&t->d.f.trainer);
        return rc;
    }
    *trainer = &t->d.f.trainer;
    return 0;
}

static void restored(struct rm_trainer *trainer)
{
    struct dqn_device *t = of(trainer);
    struct rm_backend *b = t->d.f.backend;
    rm_followed_restored(trainer);
    b->device->clear(b, RM_STREAM_COMPUTE, &t->figures->skipped_in_row,
                     sizeof t->figures->skipped_in_row);
}

const struct rm_trainer_ops rm_dqn_device_trainer = {
    .create = create,
    .destroy = destroy,
    .update = update,
    .gradient = gradient,
    .batch = next_batch,
    .learned = learned,
    .report = report,
    .made = made,
    RM_FOLLOWED_OPS,
    .update_flops = rm_dqn_update_flops,
};
