/* An opponent that is not trained (policy.frozen): it plays snapshots of another policy, the source
 * policy. Every `every` updates of the source policy it copies the source's latest published
 * weights. It keeps the latest `keep` snapshots and publishes one of them drawn at random, by
 * (seed, policy, number of snapshots). The first snapshot is the source policy's initial weights,
 * or the weights in the file of policy.from.
 *
 * The table says when it checks the source policy. In modes with rounds, results then depend only
 * on the seed.
 *
 *   free          whenever the other policy has published
 *   rounds        once a round, at what was published before the round; what it publishes is
 *                 acted with in the next
 *   synchronous   in lockstep and sequential mode every version of the other policy has a version
 *   rollouts      of this one with the same number, renewed or not: actors ask for both by number
 *
 * No learner reads the rings of this policy. The method ends when the actors have ended, or with
 * the last round. */
#include "config/traits.h"
#include "learner/algo/parts_state.h"
#include "learner/method.h"
#include "learner/rounds.h"
#include "shm/atomic.h"
#include "shm/base/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct frozen {
    struct rm_method method; /* first; its updates: of the source policy at the snapshot played */
    struct rm_session *session;
    uint32_t policy;
    const struct rm_frozen_config *config;
    struct rm_publisher *publisher;
    struct rm_backend *backend;
    struct rm_phase_clock *clock;
    struct rm_rounds rounds;
    bool by_number;

    struct rm_net *net;
    size_t count;
    float *params;       /* (count), in the backend's memory: the snapshot that is played */
    float *snapshots;    /* (keep, count), host */
    uint64_t taken;      /* number of snapshots so far; the k-th is at k % keep */
    uint64_t due;        /* updates of the source policy at which the next snapshot is due */
    uint64_t *of_update; /* (keep): the source policy's updates at each snapshot */
    uint64_t version;    /* by_number: the source's last version that has a version here */
};

static struct frozen *frozen_of(struct rm_method *method)
{
    return (struct frozen *)method;
}

/* --- making ---------------------------------------------------------------------------------- */

static void frozen_destroy(struct rm_method *method)
{
    struct frozen *f = frozen_of(method);
    if (!f)
        return;
    f->backend->ops->release(f->backend, f->params);
    rm_net_destroy(f->net);
    free(f->snapshots);
    free(f->of_update);
    free(f);
}

static float *snapshot_at(struct frozen *f, uint64_t number)
{
    return f->snapshots + number % f->config->keep * f->count;
}

static int make_buffers(struct frozen *f, const struct rm_experiment *e, struct rm_error *error)
{
    int rc = rm_net_compile(&f->net, &e->network, &f->session->plan.policy[f->policy].shape, error);
    if (rc)
        return rc;
    f->count = rm_net_param_count(f->net);
    f->params = f->backend->ops->alloc(f->backend, f->count);
    f->method.net = f->net;
    f->method.params = f->params;
    f->snapshots = calloc(f->config->keep, f->count * sizeof *f->snapshots);
    f->of_update = calloc(f->config->keep, sizeof *f->of_update);
    if (!f->params || !f->snapshots || !f->of_update)
        return rm_fail(error, -ENOMEM,
                       "policy.frozen: no memory for %u snapshots of %zu parameters",
                       f->config->keep, f->count);
    return 0;
}

/* Initial state: the source policy's initial weights, with no snapshot taken. */
static void begin(struct frozen *f, const struct rm_experiment *e)
{
    rm_net_init(f->net, f->snapshots, rm_rng_at(e->seed, RM_STREAM_INIT, f->config->of, 0));
    f->backend->ops->upload(f->backend, f->params, f->snapshots, f->count);
    f->taken = 1;
    f->due = f->config->every;
    f->version = 1;
}

static int frozen_create(struct rm_method **method, const struct rm_method_spec *spec,
                         struct rm_error *error)
{
    const struct rm_experiment *e = &spec->session->experiment;
    struct frozen *f = calloc(1, sizeof *f);
    if (!f)
        return rm_fail(error, -ENOMEM, "no memory for a learner");
    const bool synchronous = rm_algorithm_traits(e->algorithm.name)->synchronous;
    f->method.ops = &rm_frozen_method;
    f->session = spec->session;
    f->policy = spec->policy;
    f->config = rm_frozen_policy(e, spec->policy);
    f->publisher = spec->publisher;
    f->backend = spec->backend;
    f->clock = spec->clock;
    rm_rounds_start(&f->rounds, spec->session, spec->policy,
                    !synchronous && e->mode != RM_MODE_FREE);
    f->by_number = synchronous && e->mode != RM_MODE_FREE;
    int rc = make_buffers(f, e, error);
    if (rc) {
        frozen_destroy(&f->method);
        return rc;
    }
    begin(f, e);
    /* The source policy's learner wakes it; actors' inserts do not. */
    RM_POKE(&spec->session->board.workers[f->rounds.who].wake.threshold, UINT64_MAX);
    *method = &f->method;
    return 0;
}

/* --- the source policy ----------------------------------------------------------------------- */

static const struct rm_weights *source_weights(const struct frozen *f)
{
    return &f->session->weights[f->config->of];
}

/* Takes a snapshot of this version if one is due, then draws one of the kept snapshots to play. */
static void renew(struct frozen *f, const struct rm_weights_stamp *stamp)
{
    struct rm_weights_stamp read;
    if (stamp->updates < f->due ||
        !rm_weights_read_version(source_weights(f), stamp->version, snapshot_at(f, f->taken),
                                 f->count, &read))
        return;
    f->of_update[f->taken % f->config->keep] = read.updates;
    f->taken++;
    f->due = read.updates + f->config->every;
    const uint64_t kept = f->taken < f->config->keep ? f->taken : f->config->keep;
    struct rm_rng rng =
        rm_rng_at(f->session->experiment.seed, RM_STREAM_FROZEN, f->policy, f->taken);
    const uint64_t drawn = f->taken - 1 - rm_rng_below(&rng, (uint32_t)kept);
    f->backend->ops->upload(f->backend, f->params, snapshot_at(f, drawn), f->count);
    f->method.updates = f->of_update[drawn % f->config->keep];
}

static void publish(struct frozen *f, const struct rm_weights_stamp *stamp, uint64_t round)
{
    rm_phase_enter(f->clock, RM_PHASE_PUBLISH);
    f->publisher->env_steps = stamp->env_steps;
    rm_publisher_publish(f->publisher, f->params, f->method.updates, round);
}

static enum rm_method_turn turn_free(struct frozen *f)
{
    const bool done = rm_actors_done(f->session); /* read before the published versions */
    const struct rm_weights_stamp stamp = rm_weights_latest(source_weights(f));
    const uint64_t taken = f->taken;
    renew(f, &stamp);
    if (f->taken != taken) {
        publish(f, &stamp, 0);
        return RM_METHOD_WORKED;
    }
    return done ? RM_METHOD_FINISHED : RM_METHOD_WAIT;
}

/* The source policy is at most two versions ahead: it needs rollouts whose actors wait for these
 * versions. So its version is still kept. */
static enum rm_method_turn turn_by_number(struct frozen *f)
{
    const bool done = rm_actors_done(f->session);
    struct rm_weights_stamp stamp;
    if (!rm_weights_read_version(source_weights(f), f->version + 1, NULL, 0, &stamp))
        return done ? RM_METHOD_FINISHED : RM_METHOD_WAIT;
    renew(f, &stamp);
    publish(f, &stamp, 0);
    f->version++;
    rm_session_wake_actors(f->session);
    return RM_METHOD_WORKED;
}

static enum rm_method_turn turn_in_rounds(struct frozen *f)
{
    const uint64_t taken = f->taken;
    struct rm_weights_stamp stamp;
    const enum rm_rounds_turn turn = rm_rounds_next(&f->rounds);
    if (turn != RM_ROUNDS_WORK)
        return turn == RM_ROUNDS_OVER ? RM_METHOD_FINISHED : RM_METHOD_WAIT;
    /* Before the end of the first round the source may have no version yet, and no snapshot is
     * due. */
    if (rm_weights_read_before(source_weights(f), f->rounds.current, NULL, 0, &stamp))
        renew(f, &stamp);
    if (f->taken != taken)
        publish(f, &stamp, f->rounds.current);
    if (f->rounds.last)
        return RM_METHOD_FINISHED;
    rm_rounds_arrive(&f->rounds, false);
    return RM_METHOD_WORKED;
}

static int frozen_turn(struct rm_method *method, enum rm_method_turn *did, struct rm_error *error)
{
    struct frozen *f = frozen_of(method);
    (void)error;
    *did = f->rounds.on ? turn_in_rounds(f) : f->by_number ? turn_by_number(f) : turn_free(f);
    return 0;
}

/* --- the rest -------------------------------------------------------------------------------- */

/* Of a predecessor's snapshots only the played one is left. */
static void frozen_load(struct rm_method *method, const float *params)
{
    struct frozen *f = frozen_of(method);
    const struct rm_weights_stamp own = rm_weights_latest(&f->session->weights[f->policy]);
    memcpy(snapshot_at(f, 0), params, f->count * sizeof *params);
    f->backend->ops->upload(f->backend, f->params, params, f->count);
    f->taken = 1;
    f->of_update[0] = f->method.updates = own.updates;
    f->due = rm_weights_latest(source_weights(f)).updates / f->config->every * f->config->every +
             f->config->every;
    f->version = own.version ? own.version : 1;
}

static void frozen_state(struct rm_method *method, struct rm_state *s)
{
    struct frozen *f = frozen_of(method);
    const uint32_t keep = f->config->keep;
    RM_STATE(s, "taken", f->taken);
    RM_STATE(s, "due", f->due);
    RM_STATE(s, "updates", f->method.updates);
    RM_STATE(s, "version", f->version);
    rm_rounds_state(&f->rounds, s);
    rm_state_bytes(s, "of_update", f->of_update, keep * sizeof *f->of_update);
    rm_state_floats(s, "snapshots", f->snapshots, keep * f->count);
    rm_device_state(s, f->backend, "params", f->params, f->count);
}

static void frozen_leave(struct rm_method *method)
{
    rm_rounds_arrive(&frozen_of(method)->rounds, true);
}

const struct rm_method_ops rm_frozen_method = {
    .name = "frozen",
    .create = frozen_create,
    .destroy = frozen_destroy,
    .turn = frozen_turn,
    .load = frozen_load,
    .state = frozen_state,
    .leave = frozen_leave,
};
