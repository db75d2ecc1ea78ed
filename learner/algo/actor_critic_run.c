/* Runs the updates of a rollout (actor_critic_private.h), and collects their results.
 *
 * One transfer copies a rollout to a device (rollout_rows.h). A rollout of worlds on the device
 * (native_worlds.h) is already there, with its orders. Once a rollout the host scales the rewards
 * before the copy, draws the orders of all passes, and writes the normaliser's moments into the
 * parameters.
 *
 * WARM-UP. Before the pieces are recorded, all of them run once on a rollout without samples. This
 * run makes no update and moves no running mean. It changes only the recurrent states of the
 * value's own layers, which are cleared afterwards. */
#include "learner/algo/actor_critic_private.h"
#include "learner/algo/guard.h"
#include "learner/algo/parallel.h"
#include "learner/algo/record.h"
#include "shm/base/state.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* --- pieces ---------------------------------------------------------------------------------- */

static void put_piece(struct rm_updates *const *all, uint32_t count,
                      const struct rm_rollout_piece *piece)
{
    for (uint32_t i = 0; i < count; i++)
        piece->put(rm_actor_critic_of(all[i]));
    if (piece->sum)
        rm_record_joined(all, count, piece->sum);
}

static void put_part(struct rm_updates *const *all, uint32_t count, uint32_t part)
{
    for (uint32_t i = 0; i < RM_ROLLOUT_PIECES && rm_rollout_pieces[part][i].put; i++)
        put_piece(all, count, &rm_rollout_pieces[part][i]);
}

static void run(struct rm_actor_critic *ac, enum rm_rollout_part part)
{
    if (!ac->graphs[part])
        put_part(ac->all, ac->count, part);
    for (uint32_t i = 0; ac->graphs[part] && i < ac->count; i++) {
        struct rm_backend *b = ac->all[i]->backend;
        b->device->launch(b, rm_actor_critic_of(ac->all[i])->graphs[part]);
    }
}

/* Runs a minibatch without its graph, and waits between gradient and step to search the numbers
 * (debug.check_finite). */
static void run_watched(struct rm_actor_critic *ac, uint64_t update)
{
    struct rm_backend *b = ac->u.backend;
    const struct rm_update_figures *f = &ac->results->figures;
    for (int i = 0; i < RM_PIECE_STEP; i++)
        put_piece(ac->all, ac->count, &rm_rollout_pieces[RM_ROLLOUT_MINIBATCH][i]);
    b->ops->copy_out(b, RM_QUEUE_COMPUTE, &ac->results->figures, ac->u.figures, sizeof *f);
    const double norm = rm_optimizer_norm(ac->u.optimizer, ac->u.grads); /* waits */
    if (!f->stop)
        rm_updates_look(&ac->u, update, !isfinite(f->last_loss) || !isfinite(norm));
    put_piece(ac->all, ac->count, &rm_rollout_pieces[RM_ROLLOUT_MINIBATCH][RM_PIECE_STEP]);
}

/* --- one learner of several devices ---------------------------------------------------------- */

static void one_state(struct rm_updates *u, struct rm_state *s)
{
    rm_updates_state(u, s);
    rm_actor_critic_parts(rm_actor_critic_of(u), s);
}

/* After parameters, moments or the value head were replaced. Between updates whose results are
 * known the head is in host memory, else in the backend's. */
static void renewed(struct rm_actor_critic *ac)
{
    rm_parallel_make_equal(ac->all, ac->count, one_state);
    for (uint32_t i = 0; i < ac->count; i++) {
        struct rm_actor_critic *m = rm_actor_critic_of(ac->all[i]);
        struct rm_backend *b = m->u.backend;
        b->ops->upload(b, (float *)(void *)m->head,
                       (const float *)(const void *)&m->value_head.state,
                       sizeof m->value_head.state / sizeof(float));
    }
}

/* --- making ---------------------------------------------------------------------------------- */

static int warm_up(struct rm_actor_critic *ac, struct rm_error *error)
{
    for (uint32_t part = 0; part < RM_ROLLOUT_PARTS; part++)
        put_part(ac->all, ac->count, part);
    for (uint32_t i = 0; i < ac->count; i++) {
        struct rm_actor_critic *m = rm_actor_critic_of(ac->all[i]);
        struct rm_backend *b = m->u.backend;
        b->ops->clear(b, m->value_now,
                      (size_t)m->rollout->lanes * m->own_floats * sizeof *m->value_now);
    }
    for (uint32_t i = 0; i < ac->count; i++)
        ac->all[i]->backend->ops->finish(ac->all[i]->backend);
    return ac->u.backend->ops->failed(ac->u.backend, error) ? -EIO : 0;
}

static int record(struct rm_actor_critic *ac, struct rm_error *error)
{
    struct rm_device_graph *graph[RM_DEVICE_MEMBERS] = {NULL};
    int rc = warm_up(ac, error);
    for (uint32_t part = 0; part < RM_ROLLOUT_PARTS && !rc; part++) {
        rc = rm_record_graph(ac->all, ac->count, put_part, part, graph, error);
        for (uint32_t i = 0; i < ac->count; i++)
            rm_actor_critic_of(ac->all[i])->graphs[part] = graph[i];
    }
    return rc;
}

static int make_results(struct rm_actor_critic *ac, struct rm_error *error)
{
    struct rm_backend *b = ac->u.backend;
    ac->results = b->ops->alloc_host(b, sizeof *ac->results, error);
    int rc = ac->results ? 0 : -ENOMEM;
    for (int i = 0; i < 2 && !rc; i++)
        rc = b->ops->mark_create(b, &ac->passed[i], error);
    for (uint32_t i = 0; i < ac->count && !rc; i++)
        rc = b->ops->mark_create(ac->all[i]->backend, &rm_actor_critic_of(ac->all[i])->over, error);
    return rc;
}

static void destroy_one(struct rm_actor_critic *ac)
{
    struct rm_backend *b = ac->u.backend;
    struct rm_queue_mark *marks[] = {ac->over, ac->passed[0], ac->passed[1]};
    for (size_t i = 0; i < RM_ROLLOUT_PARTS && ac->graphs[i]; i++)
        b->device->graph_destroy(b, ac->graphs[i]);
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        b->ops->mark_destroy(b, marks[i]);
    if (ac->here.passes && ac->here.passes != ac->there.passes)
        b->ops->release_host(b, ac->here.passes);
    b->ops->release_host(b, ac->results);
    rm_actor_critic_free(ac);
    rm_updates_destroy(&ac->u);
}

void rm_actor_critic_destroy(struct rm_actor_critic *ac)
{
    for (uint32_t i = 1; ac && i < ac->count; i++)
        destroy_one(rm_actor_critic_of(ac->all[i]));
    if (ac)
        destroy_one(ac);
}

/* Creates the first device's, then the others'. After a failure the caller destroys *out. */
static int make_all(struct rm_actor_critic **out, const struct rm_trainer_spec *spec,
                    struct rm_error *error)
{
    struct rm_backend *members[RM_DEVICE_MEMBERS] = {spec->backend};
    const uint32_t devices = rm_parallel_devices(spec->backend), count = devices ? devices : 1;
    struct rm_trainer_spec own = *spec;
    int rc = 0;
    own.replicas = count;
    if (devices > 1)
        spec->backend->device->collective->members(spec->backend, members);
    for (uint32_t i = 0; i < count && !rc; i++) {
        struct rm_updates *u;
        own.backend = members[i];
        own.replica = i;
        rc = rm_updates_create(&u, &rm_actor_critic_updates, &own, error);
        if (!u)
            return rc ? rc : -ENOMEM;
        if (i == 0)
            *out = rm_actor_critic_of(u);
        (*out)->all[(*out)->count++] = u;
    }
    return rc;
}

int rm_actor_critic_create(struct rm_actor_critic **out, const struct rm_trainer_spec *spec,
                           struct rm_error *error)
{
    struct rm_actor_critic *ac = NULL;
    int rc = make_all(&ac, spec, error);
    if (!rc && ac->count > 1 && ac->u.watched)
        rc = rm_fail(error, -ENOTSUP, "debug.check_finite is for one device");
    if (!rc)
        rc = make_results(ac, error);
    if (!rc) {
        rm_updates_init(&ac->u);
        renewed(ac);
        rc = ac->u.backend->staged ? record(ac, error) : 0;
    }
    if (rc)
        rm_actor_critic_destroy(ac);
    else
        *out = ac;
    return rc;
}

/* --- the beginning of a rollout -------------------------------------------------------------- */

/* A sample's reward is in the next row. In worlds of several phases the last row has no successor
 * yet. */
static void scale_rewards(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t steps = r->successors ? r->steps : r->steps - 1;
    if (!ac->reward_scale.on)
        return;
    for (uint32_t t = 0; t < steps; t++) {
        const size_t at = (size_t)t * r->lanes;
        for (uint32_t i = 0; i < r->lanes; i++)
            ac->lane[i] = r->valid[at + i] > 0 ? RM_REWARD_GOES_ON : RM_REWARD_ABSENT;
        rm_reward_scale_add(&ac->reward_scale, r->reward + at + r->lanes, ac->lane);
    }
    rm_reward_scale_apply(&ac->reward_scale, r->reward, (size_t)(r->steps + 1) * r->lanes);
}

static void send_rollout(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    for (uint32_t i = 0; r->pinned && i < ac->count; i++) {
        struct rm_backend *b = ac->all[i]->backend;
        b->ops->copy_in(b, RM_QUEUE_COMPUTE, rm_actor_critic_of(ac->all[i])->rollout->there,
                        r->pinned, r->bytes);
    }
}

/* Copies a part of the host's input to all devices. */
static void send_input(struct rm_actor_critic *ac, size_t at, size_t bytes)
{
    for (uint32_t i = 0; i < ac->count; i++) {
        struct rm_backend *b = ac->all[i]->backend;
        char *there = (char *)rm_actor_critic_of(ac->all[i])->there.passes;
        b->ops->copy_in(b, RM_QUEUE_COMPUTE, there + at, (char *)ac->here.passes + at, bytes);
    }
}

/* Each pass shuffles the order of the one before. */
static void draw_orders(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const struct rm_rollout_input *s = &ac->here;
    struct rm_minibatches *m = &ac->minibatches;
    rm_minibatches_begin(m, ac->recurrent ? ac->lanes : r->sample,
                         ac->recurrent ? r->lanes : r->samples);
    *s->passes = (struct rm_rollout_passes){.samples = r->samples,
                                            .entries = m->samples,
                                            .parts = MIN(m->samples, m->spec.parts),
                                            .epochs = ac->epochs};
    for (uint32_t pass = 0; pass < ac->epochs; pass++) {
        rm_minibatches_shuffle(m, ac->number * ac->epochs + pass);
        memcpy(s->order + (size_t)pass * ac->entries, m->row, m->samples * sizeof *m->row);
    }
    send_input(ac, 0, sizeof *s->passes);
    send_input(ac, s->order_at, s->bytes - s->order_at);
}

/* Knobs of all possible updates of the rollout; `update` is the first one's number. */
static void set_knobs(struct rm_actor_critic *ac, uint64_t update)
{
    const struct rm_rollout_input *s = &ac->here;
    for (uint32_t pass = 0; pass < ac->epochs; pass++)
        for (uint32_t part = 0; part < s->passes->parts; part++, update++)
            rm_updates_set_knobs(&ac->u, update,
                                 &s->knobs[pass * ac->minibatches.spec.parts + part]);
    send_input(ac, s->knobs_at, s->order_at - s->knobs_at);
}

void rm_actor_critic_begin(struct rm_actor_critic *ac, uint64_t number,
                           struct rm_phase_clock *clock)
{
    rm_update_phase(clock, RM_PHASE_SAMPLING);
    ac->number = number;
    ac->pass = ac->part_of_pass = 0;
    ac->begun = ac->known = 0;
    ac->seen = ac->samples = 0;
    ac->figures = (struct rm_actor_critic_figures){0};
    scale_rewards(ac);
    send_rollout(ac);
    if (ac->rollout->native)
        ac->here.passes->parts = ac->minibatches.spec.parts;
    else
        draw_orders(ac);
    ac->stopped = ac->rollout->samples == 0;
    rm_update_phase(clock, RM_PHASE_FORWARD);
    run(ac, RM_ROLLOUT_VALUES);
    run(ac, RM_ROLLOUT_RETURNS);
}

static void wait_for_all(struct rm_actor_critic *ac)
{
    for (uint32_t i = 0; i < ac->count; i++) {
        struct rm_backend *b = ac->all[i]->backend;
        b->ops->mark(b, RM_QUEUE_COMPUTE, rm_actor_critic_of(ac->all[i])->over);
    }
    for (uint32_t i = 0; i < ac->count; i++) {
        struct rm_backend *b = ac->all[i]->backend;
        b->ops->wait(b, rm_actor_critic_of(ac->all[i])->over);
    }
}

/* Waits, because the next rollout is copied to the same place. */
void rm_actor_critic_pass_by(struct rm_actor_critic *ac)
{
    if (!ac->own_floats || ac->rollout->value)
        return;
    send_rollout(ac);
    run(ac, RM_ROLLOUT_VALUES);
    wait_for_all(ac);
}

/* --- updates of a rollout -------------------------------------------------------------------- */

bool rm_actor_critic_due(const struct rm_actor_critic *ac)
{
    return !ac->stopped && ac->pass < ac->epochs;
}

static bool kl_bounded(const struct rm_actor_critic *ac)
{
    return ac->u.experiment->algorithm.target_kl > 0;
}

/* With a bound on KL, a pass starts once the result of the pass before the previous one is known,
 * so at most one pass is made for nothing. */
static bool kl_exceeded(struct rm_actor_critic *ac)
{
    struct rm_backend *b = ac->u.backend;
    if (!kl_bounded(ac) || ac->pass < 2 || ac->part_of_pass > 0)
        return false;
    b->ops->wait(b, ac->passed[ac->pass % 2]);
    return ac->results->stop[ac->pass % 2];
}

static void end_pass(struct rm_actor_critic *ac)
{
    struct rm_backend *b = ac->u.backend;
    const uint32_t slot = ac->pass++ % 2;
    ac->part_of_pass = 0;
    if (!kl_bounded(ac))
        return;
    b->ops->copy_out(b, RM_QUEUE_COMPUTE, &ac->results->stop[slot], &ac->u.figures->stop,
                     sizeof ac->u.figures->stop);
    b->ops->mark(b, RM_QUEUE_COMPUTE, ac->passed[slot]);
    ac->stopped = !b->staged && ac->results->stop[slot];
}

/* The results of updates that are not counted yet. */
static struct rm_actor_critic_update new_results(struct rm_actor_critic *ac)
{
    const struct rm_rollout_passes *passes = &ac->results->passes;
    const struct rm_update_figures *f = &ac->results->figures;
    const uint32_t stride = ac->minibatches.spec.parts, parts = ac->here.passes->parts;
    struct rm_actor_critic_update u = {
        .loss = f->last_loss,
        .grad_norm = f->last_grad_norm,
        .made = (uint32_t)(f->made - ac->made),
        .skipped = (uint32_t)(f->skipped - ac->skipped),
        .samples = (uint64_t)(passes->seen - ac->seen),
    };
    u.skipped_last = (uint32_t)MIN(f->skipped_in_row, u.skipped);
    ac->made = f->made;
    ac->skipped = f->skipped;
    ac->seen = passes->seen;
    ac->known += u.made + u.skipped;
    if (ac->known)
        ac->learning_rate =
            ac->here.knobs[(ac->known - 1) / parts * stride + (ac->known - 1) % parts]
                .learning_rate;
    u.learning_rate = ac->learning_rate;
    ac->figures = (struct rm_actor_critic_figures){
        .policy_loss = f->sums[RM_SUM_POLICY],
        .value_loss = f->sums[RM_SUM_VALUE],
        .entropy = f->sums[RM_SUM_ENTROPY],
        .clip_fraction = f->sums[RM_SUM_CLIPPED],
        .kl = passes->kl,
        .explained_variance = passes->explained_variance,
        .passes = passes->pass,
    };
    ac->samples = f->samples;
    return u;
}

struct rm_actor_critic_update rm_actor_critic_collect(struct rm_actor_critic *ac,
                                                      struct rm_phase_clock *clock)
{
    struct rm_backend *b = ac->u.backend;
    struct rm_rollout_results *r = ac->results;
    rm_update_phase(clock, RM_PHASE_BACKWARD);
    b->ops->copy_out(b, RM_QUEUE_COMPUTE, &r->passes, ac->there.passes, sizeof r->passes);
    b->ops->copy_out(b, RM_QUEUE_COMPUTE, &r->head, ac->head, sizeof r->head);
    b->ops->copy_out(b, RM_QUEUE_COMPUTE, &r->figures, ac->u.figures, sizeof r->figures);
    wait_for_all(ac);
    ac->value_head.state = r->head;
    return new_results(ac);
}

struct rm_actor_critic_update rm_actor_critic_step(struct rm_actor_critic *ac, uint64_t update,
                                                   double progress, struct rm_phase_clock *clock)
{
    rm_update_phase(clock, RM_PHASE_BACKWARD);
    if (kl_exceeded(ac)) {
        ac->stopped = true;
        return (struct rm_actor_critic_update){0};
    }
    if (ac->begun == 0) {
        ac->u.progress = progress;
        set_knobs(ac, update);
    }
    ac->clock = clock;
    if (ac->u.watched)
        run_watched(ac, update + ac->begun - ac->known);
    else
        run(ac, RM_ROLLOUT_MINIBATCH);
    ac->begun++;
    if (++ac->part_of_pass >= ac->here.passes->parts)
        end_pass(ac);
    if (ac->u.backend->staged)
        return (struct rm_actor_critic_update){0};
    return rm_actor_critic_collect(ac, NULL);
}

/* Adds runs of consecutive samples in order, which does not depend on the number of actors. */
void rm_actor_critic_end(struct rm_actor_critic *ac, struct rm_phase_clock *clock)
{
    const struct rm_rollout *r = ac->rollout;
    struct rm_normaliser own;
    if (!ac->u.normalise)
        return;
    rm_update_phase(clock, RM_PHASE_SAMPLING);
    for (uint32_t from = 0, to; from < r->samples; from = to) {
        for (to = from + 1; to < r->samples && r->sample[to] == r->sample[to - 1] + 1;)
            to++;
        rm_normaliser_add(&ac->u.normaliser, r->x + (size_t)r->sample[from] * r->inputs, to - from);
    }
    own = ac->u.normaliser;
    for (uint32_t i = 0; i < ac->count; i++) {
        own.backend = ac->all[i]->backend;
        rm_normaliser_write(&own, ac->all[i]->params);
    }
}

struct rm_actor_critic_figures rm_actor_critic_figures(const struct rm_actor_critic *ac)
{
    struct rm_actor_critic_figures f = ac->figures;
    const double n = ac->samples > 0 ? ac->samples : 1;
    f.policy_loss /= n;
    f.value_loss /= n;
    f.entropy /= n;
    f.clip_fraction /= n;
    f.value_mean = ac->value_head.state.mean;
    f.value_deviation = ac->value_head.state.deviation;
    f.reward_scale = rm_reward_scale_divisor(&ac->reward_scale);
    return f;
}

/* --- changes from outside -------------------------------------------------------------------- */

void rm_actor_critic_restored(struct rm_actor_critic *ac)
{
    rm_updates_restored(&ac->u);
    renewed(ac);
    ac->stopped = true; /* the rollout's targets are in units of the replaced value head */
}

void rm_actor_critic_set(struct rm_actor_critic *ac, const struct rm_trainer_settings *settings)
{
    rm_updates_set(&ac->u, settings);
}

void rm_actor_critic_load(struct rm_actor_critic *ac, const float *params)
{
    rm_updates_load(&ac->u, params);
    renewed(ac);
}

void rm_actor_critic_resume(struct rm_actor_critic *ac, const struct rm_actor_critic_figures *left,
                            const float *params, uint64_t rows, uint64_t rollouts)
{
    rm_value_head_resume(&ac->value_head,
                         rm_value_head_left(left->value_mean, left->value_deviation, rollouts));
    rm_reward_scale_resume(&ac->reward_scale, left->reward_scale, (double)rows);
    rm_normaliser_resume(&ac->u.normaliser, params, (double)rows);
    renewed(ac);
}

void rm_actor_critic_guarded(struct rm_actor_critic *ac, struct rm_guard *guard)
{
    rm_updates_guarded(&ac->u, guard);
    rm_guard_bytes(guard, &ac->value_head.state, sizeof ac->value_head.state);
}

void rm_actor_critic_state(struct rm_actor_critic *ac, struct rm_state *s)
{
    one_state(&ac->u, s);
    if (rm_state_loading(s))
        rm_actor_critic_restored(ac);
}

const uint64_t *rm_actor_critic_made(const struct rm_actor_critic *ac)
{
    return &ac->u.figures->made;
}

const float *rm_actor_critic_params(const struct rm_actor_critic *ac)
{
    return ac->u.params;
}

const struct rm_net *rm_actor_critic_net(const struct rm_actor_critic *ac)
{
    return ac->u.nets[0].net;
}

struct rm_trainer *rm_actor_critic_trainer(struct rm_actor_critic *ac)
{
    return &ac->u.trainer;
}

double rm_actor_critic_update_flops(const struct rm_actor_critic *ac)
{
    const struct rm_rollout_passes *last = ac->here.passes;
    const double entries = last->entries ? (double)last->entries / last->parts : ac->whole;
    return rm_trainer_update_flops(&ac->u.trainer) / ac->u.rows * entries *
           (ac->recurrent ? ac->rollout->steps : 1);
}

struct rm_actor_critic *rm_actor_critic_replica(struct rm_actor_critic *ac, uint32_t i)
{
    return rm_actor_critic_of(ac->all[i]);
}

uint32_t *rm_actor_critic_orders(struct rm_actor_critic *ac)
{
    return ac->there.order;
}

struct rm_rollout_passes *rm_actor_critic_passes(struct rm_actor_critic *ac)
{
    return ac->there.passes;
}
