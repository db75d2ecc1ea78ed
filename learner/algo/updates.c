#include "learner/algo/updates.h"

#include "learner/algo/guard.h"
#include "learner/algo/parts_state.h"
#include "learner/algo/target.h"
#include "learner/backend/device.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- making ---------------------------------------------------------------------------------- */

int rm_updates_alloc(struct rm_updates *t, void *at, size_t bytes, struct rm_error *error)
{
    struct rm_backend *b = t->backend;
    void *p = NULL;
    if (bytes) {
        if (t->buffer_count == RM_UPDATES_BUFFERS)
            return rm_fail(error, -ENOMEM, "trainer: more than %u buffers", RM_UPDATES_BUFFERS);
        if (!(p = b->ops->alloc_bytes(b, bytes, error)))
            return -ENOMEM;
        t->buffers[t->buffer_count++] = p;
    }
    memcpy(at, &p, sizeof p);
    return 0;
}

int rm_updates_alloc_kept(struct rm_updates *t, const char *name, void *at, size_t bytes,
                          struct rm_error *error)
{
    const int rc = rm_updates_alloc(t, &t->kept, bytes, error);
    t->kept_name = name;
    t->kept_floats = bytes / sizeof(float);
    memcpy(at, &t->kept, sizeof t->kept);
    return rc;
}

/* Critics see what the policy does, and have values where it has logits; a value of real actions,
 * which they are given. */
static int compile(struct rm_updates *t, const struct rm_net_shape *shape, struct rm_error *error)
{
    const struct rm_network_config *config = &t->experiment->network;
    struct rm_net_shape values = *shape;
    int rc = 0;
    values.head = RM_HEAD_VALUES;
    if (shape->reals) {
        values.acts = shape->reals;
        values.reals = 0;
        values.actions = 1;
    }
    for (uint32_t i = 0; i <= t->ops->critics && !rc; i++) {
        rc = rm_net_compile(&t->nets[i].net, config, i ? &values : shape, error);
        t->net_count += !rc;
    }
    return rc;
}

static int make_spaces(struct rm_updates *t, struct rm_update_net *n, bool target,
                       struct rm_error *error)
{
    const uint32_t most = t->quantiles > t->target_quantiles ? t->quantiles : t->target_quantiles;
    const enum rm_net_use use = t->ops->from_rollouts ? RM_NET_LEARN : RM_NET_TRAIN;
    int rc = rm_net_workspace_create(&n->online, n->net, t->backend, t->rows, most, use, error);
    if (!rc)
        rc = rm_net_track_touched(n->online, error);
    if (!rc && !t->backend->staged) /* a device's pass is recorded: nothing can be read in it */
        rm_net_watch(n->online, t->finite.check == RM_CHECK_FINITE_ALWAYS);
    if (!rc && target)
        rc = rm_net_workspace_create(&n->target, n->net, t->backend, t->rows, t->target_quantiles,
                                     RM_NET_INFER, error);
    return rc;
}

static bool has_target(const struct rm_updates *t)
{
    return !t->ops->from_rollouts && !t->ops->untargeted;
}

static int make_networks(struct rm_updates *t, struct rm_error *error)
{
    const struct rm_net *nets[RM_OPTIMIZER_GROUPS];
    const struct rm_net *acts = t->nets[0].net;
    int rc = 0;
    for (uint32_t i = 0; i < t->net_count && !rc; i++) {
        struct rm_update_net *n = &t->nets[i];
        nets[i] = n->net;
        n->at = t->count;
        n->count = rm_net_param_count(n->net);
        t->count += t->net_count > 1 ? rm_optimizer_room(n->net) : n->count;
        rc = make_spaces(t, n, has_target(t) && (i > 0 || t->net_count == 1), error);
    }
    if (!rc)
        rc = rm_optimizer_create_joint(&t->optimizer, t->backend, t->experiment, nets, t->net_count,
                                       error);
    if (!rc && t->net_count == 1)
        rm_optimizer_follow(t->optimizer, t->nets[0].online);
    if (!rc)
        rc = rm_normaliser_create(&t->normaliser, t->backend, rm_net_inputs(acts),
                                  rm_net_input_mean_at(acts), rm_net_input_scale_at(acts), error);
    return rc;
}

static int make_parameters(struct rm_updates *t, struct rm_error *error)
{
    const size_t bytes = t->count * sizeof(float);
    const struct rm_net *acts = t->nets[0].net;
    int rc = rm_updates_alloc(t, &t->params, bytes, error);
    if (!rc && has_target(t))
        rc = rm_updates_alloc(t, &t->target, bytes, error);
    if (!rc)
        rc = rm_updates_alloc(t, &t->grads, bytes, error);
    if (!rc)
        rc = rm_updates_alloc(t, &t->noise, rm_net_noise_count(acts) * sizeof(float), error);
    if (rc)
        return rc;
    t->host_params = calloc(t->count, sizeof *t->host_params);
    if (!t->ops->from_rollouts)
        t->observed =
            calloc((size_t)t->experiment->sample.batch * rm_net_inputs(acts), sizeof *t->observed);
    return t->host_params && (t->observed || t->ops->from_rollouts)
               ? 0
               : rm_fail(error, -ENOMEM, "no memory for %zu parameters", t->count);
}

int rm_updates_create(struct rm_updates **updates, const struct rm_update_ops *ops,
                      const struct rm_trainer_spec *spec, struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    struct rm_updates *t = *updates = calloc(1, ops->bytes);
    if (!t)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    t->trainer.count = 1;
    t->trainer.all[0] = t;
    t->ops = ops;
    t->experiment = e;
    t->backend = spec->backend;
    t->policy = spec->policy;
    t->replica = spec->replica;
    t->replicas = spec->replicas ? spec->replicas : 1;
    t->settings = (struct rm_trainer_settings){
        .learning_rate = e->optimizer.learning_rate,
        .grad_clip = e->optimizer.grad_clip,
        .target_tau = e->algorithm.target.tau,
        .report = 1,
        .entropy_coefficient = e->algorithm.entropy_coefficient,
    };
    t->watched = e->debug.check_finite != RM_CHECK_FINITE_OFF;
    t->finite = rm_finite_of(e, spec->name);
    int rc = compile(t, &spec->shape, error);
    if (!rc)
        rc = ops->open(t, spec, error);
    if (rc)
        return rc;
    t->normalise = rm_net_input_mean_at(t->nets[0].net) != SIZE_MAX;
    t->rows_before = (double)spec->updates * t->observations + (double)spec->rows;
    rc = make_networks(t, error);
    if (rc)
        return rc;
    t->figures = rm_optimizer_figures(t->optimizer);
    return make_parameters(t, error);
}

void rm_updates_destroy(struct rm_updates *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->buffer_count; i++)
        t->backend->ops->release(t->backend, t->buffers[i]);
    for (uint32_t i = 0; i < t->net_count; i++) {
        rm_net_workspace_destroy(t->nets[i].online);
        rm_net_workspace_destroy(t->nets[i].target);
    }
    rm_optimizer_destroy(t->optimizer);
    rm_normaliser_destroy(&t->normaliser);
    for (uint32_t i = 0; i < t->net_count; i++)
        rm_net_destroy(t->nets[i].net);
    free(t->host_params);
    free(t->observed);
    free(t);
}

struct rm_batch_extras rm_updates_extras(const struct rm_trainer_spec *spec,
                                         const struct rm_update_ops *ops)
{
    const bool priorities = spec->experiment->priority.kind == RM_PRIORITY_PROPORTIONAL;
    return (struct rm_batch_extras){
        .next_masks = spec->masks,
        .masks = spec->masks &&
                 (ops->critics > 0 || ops->imitates || spec->experiment->algorithm.cql > 0),
        .priorities = priorities,
        .leaves = priorities,
    };
}

void rm_updates_init(struct rm_updates *t)
{
    rm_net_init(t->nets[0].net, t->host_params,
                rm_rng_at(t->experiment->seed, RM_STREAM_INIT, t->policy, 0));
    rm_updates_load(t, t->host_params);
}

/* --- for algorithms --------------------------------------------------------------------- */

uint64_t rm_updates_key(struct rm_updates *t, const struct rm_update *u, uint64_t times,
                        uint64_t pass)
{
    return t->backend->ops->draws(t->backend, &u->knobs->before, times) + pass;
}

void rm_updates_draw_noise(struct rm_updates *t, const struct rm_update *u, uint64_t passes,
                           uint64_t pass, struct rm_net_input *in)
{
    struct rm_backend *b = t->backend;
    if (!t->noise)
        return;
    b->ops->normals(b, t->experiment->seed, RM_STREAM_NOISE, t->policy,
                    rm_updates_key(t, u, passes, pass), rm_net_noise_count(t->nets[0].net),
                    t->noise);
    in->noise = t->noise;
}

void rm_updates_draw_dropout(struct rm_updates *t, const struct rm_update *u,
                             struct rm_net_input *in)
{
    in->dropout_seed = t->experiment->seed;
    in->dropout_update = rm_updates_key(t, u, 1, 0);
    in->rows_before = t->replica * t->rows;
}

void rm_updates_burn_in(struct rm_net_workspace *space, const float *params,
                        const struct rm_batch *batch, uint32_t steps, float *state,
                        struct rm_net_input *in)
{
    const uint32_t before = batch->burn_in * batch->size;
    in->x = batch->obs;
    in->batch = before;
    in->steps = batch->burn_in;
    in->state = batch->state;
    in->restart = batch->restart;
    if (before && state) {
        in->next_state = state;
        rm_net_forward(space, params, in);
        in->state = state;
    }
    in->x = batch->obs + (size_t)before * batch->inputs;
    in->batch = steps * batch->size;
    in->steps = steps;
    in->next_state = NULL;
    in->restart = batch->restart + before;
}

void rm_updates_learn(struct rm_updates *t, const struct rm_net_input *in,
                      const struct rm_net_loss *loss, double samples)
{
    double sums[RM_NET_SUMS];
    t->nets[0].trained_on = *in;
    t->nets[0].d_out = NULL;
    rm_net_learn(t->nets[0].online, t->params, in, loss, t->grads, sums);
    rm_updates_set_sums(t, sums, samples);
}

void rm_updates_set_sums(struct rm_updates *t, const double sums[RM_NET_SUMS], double samples)
{
    struct rm_update_figures *f = t->figures;
    if (t->backend->staged)
        return;
    f->last_loss = sums[0];
    memcpy(f->now_sums, sums + 1, (RM_NET_SUMS - 1) * sizeof *sums);
    f->now_samples = samples;
}

void rm_updates_backward(struct rm_updates *t, uint32_t net, const struct rm_net_input *in,
                         const float *d_out)
{
    struct rm_update_net *n = &t->nets[net];
    n->trained_on = *in;
    n->d_out = d_out;
    rm_net_backward(n->online, t->params + n->at, in, d_out, t->grads + n->at);
}

/* --- for the code that runs them ------------------------------------------------------------- */

void rm_updates_set_knobs(const struct rm_updates *t, uint64_t number,
                          struct rm_update_knobs *knobs)
{
    knobs->before = number - 1;
    knobs->target_tau = (float)rm_target_part(t->experiment, t->settings.target_tau, number);
    knobs->entropy_coefficient = t->settings.entropy_coefficient;
    rm_optimizer_knobs(t->optimizer, number, t->progress, knobs);
}

void rm_updates_put_step(struct rm_updates *t, const struct rm_update *u,
                         struct rm_update_figures *copy)
{
    const struct rm_optimizer_put put = {
        .params = t->params,
        .grads = t->grads,
        .target = t->normalise ? NULL : t->target,
        .knobs = u->knobs,
        .copy = copy,
    };
    rm_optimizer_put(t->optimizer, &put);
    if (t->ops->put_step)
        t->ops->put_step(t, u);
}

/* All networks have the same moments, each in its own arena. */
static void write_moments(struct rm_updates *t, uint32_t first, float *arena)
{
    for (uint32_t i = first; i < t->net_count; i++) {
        struct rm_normaliser view = t->normaliser;
        view.mean_at = rm_net_input_mean_at(t->nets[i].net);
        view.scale_at = rm_net_input_scale_at(t->nets[i].net);
        rm_normaliser_write(&view, arena + t->nets[i].at);
    }
}

/* Adds the rows of a trace where a transition starts; padding does not count. */
static void add_sequences(struct rm_updates *t, const struct rm_batch *batch)
{
    const size_t inputs = batch->inputs;
    for (uint32_t step = 0; step < batch->trace; step++) {
        float *kept = t->observed;
        for (uint32_t i = 0; i < batch->size; i++) {
            const size_t at = (size_t)step * batch->size + i;
            const size_t from = at + (size_t)batch->burn_in * batch->size;
            if (!batch->valid[at])
                continue;
            memcpy(kept, batch->obs + from * inputs, inputs * sizeof *kept);
            kept += inputs;
        }
        if (kept > t->observed)
            rm_normaliser_add(&t->normaliser, t->observed, (size_t)(kept - t->observed) / inputs);
    }
}

void rm_updates_add_moments(struct rm_updates *t, const struct rm_batch *batch, double part)
{
    if (batch->trace)
        add_sequences(t, batch);
    else
        rm_normaliser_add(&t->normaliser, batch->obs, batch->size);
    write_moments(t, 0, t->params);
    rm_target_move(t->backend, part, t->params, t->count, t->target);
}

struct rm_trainer_result rm_updates_result(const struct rm_update_figures *f, double grad_norm)
{
    return (struct rm_trainer_result){
        .loss = f->last_loss,
        .grad_norm = grad_norm,
        .q_mean = f->now_sums[RM_SUM_OF_Q] / f->now_samples,
        .entropy = f->now_sums[RM_SUM_OF_ENTROPY] / f->now_samples,
        .temperature = f->now_sums[RM_SUM_OF_TEMPERATURE] / f->now_samples,
        .policy_loss = f->now_sums[RM_SUM_OF_ACTIONS] / f->now_samples,
        .type_loss = f->now_sums[RM_SUM_OF_TYPES] / f->now_samples,
        .skipped = !isfinite(f->last_loss) || !isfinite(grad_norm),
    };
}

/* Whether nothing is to be found: passes of the CPU look at inputs and results on their way, and
 * the gradient's norm is finite (an update that is not skipped). */
static bool all_finite(const struct rm_updates *t, const struct rm_update_net *n, bool skipped)
{
    const size_t params = rm_net_param_count(n->net);
    return rm_net_learned_finite(n->online) && !skipped &&
           isfinite(t->backend->ops->sum_squares(t->backend, t->params + n->at, params));
}

void rm_updates_look(struct rm_updates *t, uint64_t number, bool skipped)
{
    if (!rm_finite_due(&t->finite, number, skipped))
        return;
    for (uint32_t i = 0; i < t->net_count; i++) {
        const struct rm_update_net *n = &t->nets[i];
        if (all_finite(t, n, skipped))
            continue;
        if (!t->backend->staged) /* learning in tiles keeps no rows */
            rm_net_forward(n->online, t->params + n->at, &n->trained_on);
        if (rm_finite_look(&t->finite, number, n->online, t->params + n->at, &n->trained_on,
                           t->grads + n->at))
            return;
    }
}

void rm_updates_prepare(struct rm_updates *t, bool online, bool target)
{
    for (uint32_t i = 0; i < t->net_count; i++) {
        const struct rm_update_net *n = &t->nets[i];
        if (online)
            rm_net_prepare(n->online, t->params + n->at);
        if (target && n->target)
            rm_net_prepare(n->target, t->target + n->at);
    }
}

/* --- how the time of passes grows with their rows --------------------------------------------- */

#define FEWER    4u                  /* part of the rows */
#define TRIES    2                   /* the first one finds cold caches */
#define LONG_NS  RM_NS_PER_S         /* one is enough if it takes so long */
#define TRIES_NS (10 * RM_NS_PER_MS) /* no more tries after so long, and so many */
#define MOST     500

/* Processor time of a network's trained pass over so many of its lanes. */
static double pass_s(struct rm_updates *t, const struct rm_update_net *n, uint32_t lanes)
{
    struct rm_net_input in = n->trained_on;
    in.batch = lanes * (in.steps ? in.steps : 1);
    rm_net_prepare(n->online, t->params + n->at); /* as after an update */
    const uint64_t start_ns = rm_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    rm_net_repeat(n->online, t->params + n->at, &in, n->d_out, t->grads + n->at);
    return (double)(rm_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns) / (double)RM_NS_PER_S;
}

/* Adds a network's time of all lanes and the part of that time that is fixed: NAN with too few. */
static void add_fixed(struct rm_updates *t, const struct rm_update_net *n, double *all,
                      double *fixed)
{
    const uint32_t lanes = n->trained_on.batch / (n->trained_on.steps ? n->trained_on.steps : 1);
    const uint32_t some = lanes / FEWER;
    const double part = (double)some / fmax(1, lanes);
    double least = INFINITY, fewer = INFINITY, spent = 0;
    if (some == 0) {
        *fixed = NAN;
        return;
    }
    for (int i = 0; i == 0 || (i < TRIES && spent < LONG_NS) || (i < MOST && spent < TRIES_NS);
         i++) {
        const double a = pass_s(t, n, lanes), b = pass_s(t, n, some);
        least = fmin(least, a);
        fewer = fmin(fewer, b);
        spent += (a + b) * (double)RM_NS_PER_S;
    }
    *all += least;
    *fixed += (fewer - part * least) / (1 - part);
}

double rm_updates_fixed(struct rm_updates *t)
{
    double all = 0, fixed = 0;
    for (uint32_t i = 0; i < t->net_count; i++)
        add_fixed(t, &t->nets[i], &all, &fixed);
    return all > 0 ? fixed / all : NAN;
}

/* --- settings and parameters ----------------------------------------------------------------- */

void rm_updates_set(struct rm_updates *t, const struct rm_trainer_settings *settings)
{
    t->settings = *settings;
    rm_optimizer_set(t->optimizer, settings->learning_rate, settings->grad_clip);
}

void rm_updates_load(struct rm_updates *t, const float *params)
{
    struct rm_backend *b = t->backend;
    for (uint32_t i = 0; i < t->net_count; i++) {
        const struct rm_update_net *n = &t->nets[i];
        if (i)
            rm_net_init(n->net, t->host_params,
                        rm_rng_at(t->experiment->seed, RM_STREAM_INIT, t->policy, i));
        else
            rm_normaliser_resume(&t->normaliser, params, t->rows_before);
        b->ops->upload(b, t->params + n->at, i ? t->host_params : params, n->count);
        if (t->target)
            b->ops->upload(b, t->target + n->at, i ? t->host_params : params, n->count);
    }
    write_moments(t, 1, t->params);
    write_moments(t, 1, t->target);
    rm_optimizer_reset(t->optimizer);
    if (t->ops->reset)
        t->ops->reset(t);
    rm_updates_prepare(t, true, true);
}

void rm_updates_guarded(struct rm_updates *t, struct rm_guard *guard)
{
    rm_guard_floats(guard, t->params, t->count);
    if (t->target)
        rm_guard_floats(guard, t->target, t->count);
    rm_guard_optimizer(guard, t->optimizer);
    if (t->kept)
        rm_guard_floats(guard, t->kept, t->kept_floats);
}

void rm_updates_restored(struct rm_updates *t)
{
    rm_updates_prepare(t, true, true);
    t->backend->ops->clear(t->backend, &t->figures->skipped_in_row,
                           sizeof t->figures->skipped_in_row);
}

void rm_updates_state(struct rm_updates *t, struct rm_state *s)
{
    const uint64_t policy = t->net_count > 1 ? t->nets[1].at : t->count;
    rm_device_state(s, t->backend, "params", t->params, policy);
    if (t->net_count > 1)
        rm_device_state(s, t->backend, "critics", t->params + policy, t->count - policy);
    if (t->target)
        rm_device_state(s, t->backend, "target", t->target, t->count);
    rm_optimizer_state(t->optimizer, t->backend, "optimizer", s);
    rm_normaliser_state(&t->normaliser, s);
    if (t->kept)
        rm_device_state(s, t->backend, t->kept_name, t->kept, t->kept_floats);
}
