/* The updates of dqn_device.c: what is put on the device, and what is heard of it. */
#include "learner/algo/dqn_device.h"
#include "learner/algo/target.h"
#include "learner/backend/device_values.h"

#include <math.h>

static struct rm_dqn_device *of(struct rm_trainer *trainer)
{
    return (struct rm_dqn_device *)trainer;
}

static void enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

/* --- what is put on the device --------------------------------------------------------------- */

/* This device's part of fractions that are drawn for the whole batch; fixed ones are the same for
 * all rows. */
static float *own_tau(const struct rm_dqn_device *t, uint32_t quantiles)
{
    const size_t before = (size_t)t->replica * t->d.batch * quantiles;
    return t->d.algo->drawn_fractions ? t->tau + before : t->tau;
}

/* Rows, noise and fractions of one pass. Update n is the one after `before` = n - 1 others: keys
 * are RM_DQN_COUNT * before + what stands here. */
static struct rm_net_input input_of(struct rm_dqn_device *t, enum rm_dqn_pass pass,
                                    const struct rm_staging_slot *slot)
{
    struct rm_backend *b = t->d.f.backend;
    const struct rm_experiment *e = t->d.f.experiment;
    const uint64_t key = RM_DQN_COUNT + (uint64_t)pass;
    struct rm_net_input in = {.x = pass == RM_DQN_ONLINE ? slot->device.obs : slot->device.next_obs,
                              .batch = t->d.batch};
    b->device->draws(b, &slot->device.knobs->before, RM_DQN_COUNT);
    if (t->d.algo->drawn_fractions) {
        in.quantiles = pass == RM_DQN_ONLINE ? t->d.quantiles : t->d.target_quantiles;
        in.tau = own_tau(t, in.quantiles);
        b->ops->uniforms(b, e->seed, RM_STREAM_TAU, t->d.f.policy, key,
                         (size_t)t->d.batch * t->replicas * in.quantiles, t->tau);
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
        in.rows_before = t->replica * t->d.batch;
        b->device->draws(b, &slot->device.knobs->before, 1);
    }
    return in;
}

static struct rm_device_layout layout_of(const struct rm_dqn_device *t, uint32_t quantiles)
{
    const struct rm_algo_layout l = t->d.algo->layout(t->d.actions, quantiles);
    return (struct rm_device_layout){l.actions, l.quantiles, l.sample, l.action, l.quantile};
}

static void put_targets(struct rm_dqn_device *t, const struct rm_staging_slot *slot)
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
    const struct rm_dqn_device *trainer;
    const struct rm_staging_slot *slot;
};

/* For rm_net_learn(): all rows at once, and the sums are the figures'. */
static void put_loss(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                     double sums[RM_NET_SUMS])
{
    const struct row_loss *of = self;
    const struct rm_dqn_device *t = of->trainer;
    const struct rm_device_value_loss loss = {
        .kind = t->tau ? RM_DEVICE_QUANTILE_HUBER : RM_DEVICE_HUBER,
        .batch = rows,
        .layout = layout_of(t, t->d.quantiles),
        .q = out,
        .action = of->slot->device.action,
        .target = t->y,
        .targets = t->d.target_quantiles,
        .tau = t->tau ? own_tau(t, t->d.quantiles) : NULL,
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
void rm_dqn_put_gradient(struct rm_dqn_device *t, const struct rm_staging_slot *slot)
{
    struct rm_backend *b = t->d.f.backend;
    struct row_loss loss = {t, slot};
    const struct rm_net_loss rows = {put_loss, &loss};
    double sums[RM_NET_SUMS];
    rm_staging_gather(&t->staging, slot);
    rm_net_prepare(t->d.f.online_space, t->d.f.params);
    rm_net_prepare(t->d.f.target_space, t->d.f.target);
    put_targets(t, slot);
    const struct rm_net_input in = input_of(t, RM_DQN_ONLINE, slot);
    rm_net_learn(t->d.f.online_space, t->d.f.params, &in, &rows, t->d.f.grads, sums);
    b->device->draws(b, NULL, 0);
}

void rm_dqn_put_step(struct rm_dqn_device *t, const struct rm_staging_slot *slot)
{
    const struct rm_optimizer_put put = {
        .params = t->d.f.params,
        .grads = t->d.f.grads,
        .target = t->normalise ? NULL : t->d.f.target,
        .knobs = slot->device.knobs,
        .copy = slot->device.figures,
    };
    rm_optimizer_put(t->d.f.optimizer, &put);
    rm_staging_learned(&t->staging, slot);
}

/* --- an update ------------------------------------------------------------------------------- */

static struct rm_dqn_told fetch_figures(struct rm_dqn_device *t)
{
    struct rm_backend *b = t->d.f.backend;
    struct rm_dqn_told *told = t->pinned;
    b->device->copy_out(b, RM_STREAM_COMPUTE, &told->figures, t->figures, sizeof told->figures);
    if (t->staging.draw.batch)
        b->device->copy_out(b, RM_STREAM_COMPUTE, &told->drawn, t->staging.draw.drawn,
                            sizeof told->drawn);
    b->device->finish(b);
    return *told;
}

struct rm_trainer_result rm_dqn_look_at_gradient(struct rm_dqn_device *t)
{
    const struct rm_device_figures f = fetch_figures(t).figures;
    struct rm_trainer_result result = {
        .loss = f.last_loss,
        .grad_norm = rm_optimizer_norm(t->d.f.optimizer, t->d.f.grads),
        .q_mean = f.now_sums[RM_DEVICE_SUM_Q] / f.now_samples,
    };
    result.skipped = !isfinite(result.loss) || !isfinite(result.grad_norm);
    return result;
}

static void run_watched(struct rm_dqn_device *t, struct rm_staging_slot *slot)
{
    rm_dqn_put_gradient(t, slot);
    const struct rm_trainer_result result = rm_dqn_look_at_gradient(t);
    if (rm_finite_due(&t->d.f.finite, slot->number, result.skipped)) {
        const struct rm_net_input in = input_of(t, RM_DQN_ONLINE, slot);
        rm_net_forward(t->d.f.online_space, t->d.f.params, &in);
        rm_finite_look(&t->d.f.finite, slot->number, t->d.f.online_space, t->d.f.params, &in,
                       t->d.f.grads);
    }
    t->d.f.backend->device->draws(t->d.f.backend, NULL, 0);
    rm_dqn_put_step(t, slot);
}

static void run(struct rm_dqn_device *t, struct rm_staging_slot *slot)
{
    struct rm_backend *b = t->d.f.backend;
    if (t->watched)
        run_watched(t, slot);
    else
        b->device->launch(b, slot->graph);
}

/* What the host adds to an update that was made: moments of observations, and behind them the
 * target network. */
static void add_moments(struct rm_dqn_device *t, struct rm_staging_slot *slot, double part)
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

static void hear_draws(struct rm_dqn_device *t, const struct rm_device_drawn *drawn)
{
    struct rm_device_drawn *h = &t->heard.drawn;
    h->rejected += drawn->rejected - t->drawn.rejected;
    h->age_sum += drawn->age_sum - t->drawn.age_sum;
    h->age_count += drawn->age_count - t->drawn.age_count;
    h->dry += drawn->dry - t->drawn.dry;
    t->drawn = *drawn;
}

/* Figures as they were after update `number`, whose sums begin after those that were heard before.
 */
static void hear(struct rm_dqn_device *t, const struct rm_device_figures *f,
                 const struct rm_device_drawn *drawn, uint64_t number, double learning_rate)
{
    struct rm_trainer_report *h = &t->heard;
    if (drawn)
        hear_draws(t, drawn);
    h->made += f->made - t->made;
    h->skipped += f->skipped - t->skipped;
    h->skipped_in_row = f->skipped_in_row;
    h->through = number;
    h->last_loss = f->last_loss;
    h->last_grad_norm = f->last_grad_norm;
    h->mean.loss += f->loss;
    h->mean.grad_norm += f->grad_norm;
    h->mean.q_mean += f->sums[RM_DEVICE_SUM_Q];
    h->mean.learning_rate = learning_rate;
    t->samples += f->samples;
    t->made = f->made;
    t->skipped = f->skipped;
}

static void hear_slot(struct rm_dqn_device *t, struct rm_staging_slot *slot)
{
    rm_staging_wait(&t->staging, slot);
    if (slot->told)
        hear(t, slot->figures, slot->drawn, slot->number, slot->learning_rate);
    slot->told = false;
}

struct rm_batch *rm_dqn_device_batch(struct rm_trainer *trainer)
{
    struct rm_dqn_device *t = of(trainer);
    struct rm_staging_slot *slot = rm_staging_slot(&t->staging);
    hear_slot(t, slot);
    return &slot->host;
}

static struct rm_staging_slot *filled_slot(struct rm_dqn_device *t, const struct rm_batch *batch,
                                           uint64_t number)
{
    struct rm_staging_slot *slot = rm_staging_slot(&t->staging);
    rm_dqn_device_batch(&t->d.f.trainer);
    rm_staging_fill(slot, batch);
    slot->number = number;
    slot->learnable = false;
    slot->knobs->before = number - 1;
    rm_optimizer_knobs(t->d.f.optimizer, number, t->d.f.progress, slot->knobs);
    slot->learning_rate = slot->knobs->learning_rate;
    slot->knobs->afresh = t->afresh;
    return slot;
}

struct rm_trainer_result rm_dqn_device_update(struct rm_trainer *trainer,
                                              const struct rm_batch *batch, uint64_t number,
                                              struct rm_phase_clock *clock)
{
    struct rm_dqn_device *t = of(trainer);
    const struct rm_trainer_settings *settings = &t->d.f.settings;
    const uint32_t every = settings->report ? settings->report : 1;
    const double part = rm_target_part(t->d.f.experiment, settings->target_tau, number);
    enter(clock, RM_PHASE_UPLOAD);
    struct rm_staging_slot *slot = filled_slot(t, batch, number);
    slot->knobs->target_tau = (float)part;
    rm_staging_send(&t->staging, slot);
    enter(clock, RM_PHASE_FORWARD);
    run(t, slot);
    t->afresh = t->normalise || number % every == 0;
    rm_staging_sent(&t->staging, slot, t->afresh);
    t->launched = number;
    if (t->normalise)
        add_moments(t, slot, part);
    return (struct rm_trainer_result){.learning_rate = slot->learning_rate, .late = true};
}

struct rm_trainer_result rm_dqn_device_gradient(struct rm_trainer *trainer,
                                                const struct rm_batch *batch, uint64_t number,
                                                struct rm_phase_clock *clock)
{
    struct rm_dqn_device *t = of(trainer);
    struct rm_staging_slot *slot = filled_slot(t, batch, number);
    (void)clock;
    rm_staging_send(&t->staging, slot);
    rm_dqn_put_gradient(t, slot);
    return rm_dqn_look_at_gradient(t);
}

/* --- what came of updates -------------------------------------------------------------------- */

struct rm_batch *rm_dqn_device_learned(struct rm_trainer *trainer)
{
    struct rm_dqn_device *t = of(trainer);
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
static void end_all(struct rm_dqn_device *t)
{
    double learning_rate = 0.0;
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++) {
        struct rm_staging_slot *slot = rm_staging_oldest(&t->staging, i);
        hear_slot(t, slot);
        if (slot->number == t->launched)
            learning_rate = slot->learning_rate;
    }
    if (t->heard.through == t->launched)
        return;
    const struct rm_dqn_told told = fetch_figures(t);
    hear(t, &told.figures, &told.drawn, t->launched, learning_rate);
    t->afresh = true;
}

/* Draws were dry: what was begun behind them is so too, and ends; then updates may go on. */
static void take_back(struct rm_dqn_device *t)
{
    struct rm_backend *b = t->d.f.backend;
    end_all(t);
    b->device->clear(b, RM_STREAM_COMPUTE, &t->figures->stop, sizeof t->figures->stop);
    t->launched -= t->heard.drawn.dry;
    t->heard.through = t->launched;
}

bool rm_dqn_device_report(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *out)
{
    struct rm_dqn_device *t = of(trainer);
    struct rm_trainer_report *h = &t->heard;
    if (wait)
        end_all(t);
    if (h->drawn.dry)
        take_back(t);
    if (h->through == t->reported_through && !h->drawn.dry)
        return false;
    if (h->made > 0) {
        h->mean.loss /= (double)h->made;
        h->mean.grad_norm /= (double)h->made;
        h->mean.q_mean /= t->samples;
    }
    *out = *h;
    *h = (struct rm_trainer_report){.through = h->through};
    t->samples = 0.0;
    t->reported_through = h->through;
    return true;
}

const uint64_t *rm_dqn_device_made(const struct rm_trainer *trainer)
{
    return &((const struct rm_dqn_device *)trainer)->figures->made;
}
