/* Learning from replay: draws batches from the policy's rings, or takes batches of histories that
 * were prepared, makes one update with each batch, and publishes weights once per interval. */
#include "config/config.h"
#include "config/forms.h"
#include "config/traits.h"
#include "learner/algo/guard.h"
#include "learner/algo/parallel.h"
#include "learner/algo/trainer.h"
#include "learner/counting.h"
#include "learner/feed.h"
#include "learner/method.h"
#include "learner/offline.h"
#include "learner/pace.h"
#include "learner/prepared.h"
#include "learner/sampler.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "shm/base/plural.h"
#include "shm/base/severity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Updates between late reports; fewer if weights are published more often. */
#define REPORT 16u

struct replay {
    struct rm_method method; /* first */
    struct rm_session *session;
    uint32_t policy;
    const struct rm_experiment *experiment;
    const struct rm_policy_plan *plan;
    struct rm_board_policy *counters;
    const struct rm_env_agent *agent;
    struct rm_publisher *publisher;
    struct rm_phase_clock *clock;

    struct rm_trainer *trainer;
    struct rm_guard *guard;
    struct rm_offline recorded;     /* the rows, with a recording */
    struct rm_sampler *sampler;     /* NULL: batches are prepared */
    struct rm_histories *histories; /* distill: instead of these rows, and so the next */
    struct rm_prepared *prepared;
    uint64_t measured;    /* updates before the latest measurement */
    struct rm_feed *feed; /* NULL: batches are made on the host */
    struct rm_pace pace;

    bool late; /* the trainer's results arrive after its update returned */
    bool dry;  /* the latest results include draws of the device that found too few rows */
    uint64_t torn_before; /* counts already on the board */
    uint64_t age_sum_before, age_count_before;
    uint64_t blocked_since_ns; /* since when the limiter blocks the learner; 0 = it does not */
};

static struct replay *replay_of(struct rm_method *method)
{
    return (struct replay *)method;
}

/* Adds the sampler's new counts to the board. */
static void count_draws(struct replay *r)
{
    if (!r->sampler)
        return;
    const struct rm_sampler_counts now = rm_sampler_counts(r->sampler);
    struct rm_board_policy *c = r->counters;
    RM_ADD_OWN(&c->samples_torn, now.torn - r->torn_before);
    RM_ADD_OWN(&c->age_sum, now.age_sum - r->age_sum_before);
    RM_ADD_OWN(&c->age_count, now.age_count - r->age_count_before);
    r->torn_before = now.torn;
    r->age_sum_before = now.age_sum;
    r->age_count_before = now.age_count;
}

static void count_samples(struct replay *r)
{
    const uint32_t batch = r->experiment->sample.batch;
    RM_ADD_OWN(&r->counters->samples, r->histories ? batch * r->experiment->sample.region : batch);
    if (r->sampler)
        RM_POKE(&r->counters->replay_rows, rm_sampler_held(r->sampler));
    count_draws(r);
}

/* The numbers that depend on the algorithm; clone has only the entropy. */
static void count_means(struct replay *r, const struct rm_trainer_result *result)
{
    struct rm_board_policy *c = r->counters;
    RM_POKE(&c->entropy, result->entropy);
    if (r->histories) {
        RM_POKE(&c->policy_loss, result->policy_loss);
        RM_POKE(&c->type_loss, result->type_loss);
    } else if (!rm_algorithm_traits(r->experiment->algorithm.name)->value) {
        RM_POKE(&c->q_mean, result->q_mean);
        RM_POKE(&c->temperature, result->temperature);
    }
}

static int count_update(struct replay *r, const struct rm_trainer_result *result,
                        struct rm_error *error)
{
    struct rm_board_policy *c = r->counters;
    const struct rm_counted_update u = {.skipped = result->skipped,
                                        .loss = result->loss,
                                        .grad_norm = result->grad_norm,
                                        .learning_rate = result->learning_rate};
    const int verdict = rm_count_update(c, r->guard, &r->method.updates, &u, error);
    if (verdict == RM_GUARD_BACK)
        rm_trainer_restored(r->trainer);
    if (verdict != RM_GUARD_GOOD)
        return verdict < 0 ? verdict : 0;
    count_means(r, result);
    return 0;
}

/* Share of the run's steps taken when the batch was drawn; in rounds by the end of the round
 * before. With a recording, of its updates. */
static double progress(const struct replay *r)
{
    const uint64_t all = r->experiment->run.steps * r->plan->agents;
    if (r->pace.offline)
        return rm_share_of_run(r->pace.attempts, r->experiment->run.steps);
    const uint64_t taken = r->pace.rounds.on ? r->pace.inserted : RM_PEEK(&r->counters->env_steps);
    return rm_share_of_run(taken, all);
}

/* Exponent of the importance weights: linear over priority.beta_span updates, or over the run. */
static double beta(const struct replay *r)
{
    const struct rm_experiment *e = r->experiment;
    const uint64_t span = e->priority.beta_span;
    double part = progress(r);
    if (span)
        part = r->pace.attempts < span ? (double)r->pace.attempts / (double)span : 1;
    return e->priority.beta_start + part * (e->priority.beta_end - e->priority.beta_start);
}

/* Stores the errors of a trained batch as priorities. */
static void learned(struct replay *r, const struct rm_batch *batch)
{
    if (!r->sampler)
        return;
    rm_phase_enter(r->clock, RM_PHASE_SAMPLING);
    rm_sampler_learned(r->sampler, batch);
    RM_POKE(&r->counters->priority_max, rm_sampler_largest(r->sampler));
}

/* --- late results (algo/trainer.h) ---------------------------------------------------------- */

/* Too many consecutive skips: waits for updates in progress, which have the same parameters, so
 * that none of them follows the rollback. */
static void await_rest(struct replay *r, struct rm_trainer_report *report)
{
    struct rm_trainer_report rest;
    if (report->skipped_in_row < r->experiment->debug.finite_patience ||
        !rm_trainer_report(r->trainer, true, &rest))
        return;
    rest.made += report->made;
    rest.skipped += report->skipped;
    if (rest.made == report->made)
        rest.mean = report->mean;
    rest.drawn.rejected += report->drawn.rejected;
    rest.drawn.age_sum += report->drawn.age_sum;
    rest.drawn.age_count += report->drawn.age_count;
    rest.drawn.dry += report->drawn.dry;
    *report = rest;
}

/* Counts the device's draws. Dry draws are taken back, since they were counted when they began. */
static void count_drawn(struct replay *r, const struct rm_device_drawn *drawn)
{
    const struct rm_sampler_counts counts = {
        .rejected = drawn->rejected, .age_sum = drawn->age_sum, .age_count = drawn->age_count};
    rm_sampler_drawn(r->sampler, &counts);
    count_draws(r);
    RM_POKE(&r->counters->priority_max, rm_sampler_largest(r->sampler));
    if (!drawn->dry)
        return;
    r->dry = true;
    rm_pace_undrawn(&r->pace, drawn->dry);
    RM_ADD_OWN(&r->counters->samples, 0 - drawn->dry * r->experiment->sample.batch);
}

static int count_report(struct replay *r, struct rm_trainer_report *report, struct rm_error *error)
{
    struct rm_board_policy *c = r->counters;
    await_rest(r, report);
    if (r->feed && rm_feed_draw(r->feed))
        count_drawn(r, &report->drawn);
    const struct rm_counted_update mean = {.loss = report->mean.loss,
                                           .grad_norm = report->mean.grad_norm,
                                           .learning_rate = report->mean.learning_rate};
    struct rm_guard_report judged = {
        .made = report->made,
        .skipped = report->skipped,
        .skipped_in_row = report->skipped_in_row,
        .through = report->through,
        .launched = r->pace.attempts,
        .loss = report->last_loss,
        .grad_norm = report->last_grad_norm,
    };
    const int verdict = rm_count_late(c, r->guard, &r->method.updates, &mean, &judged, error);
    if (verdict == RM_GUARD_BACK)
        rm_trainer_restored(r->trainer);
    if (report->made)
        count_means(r, &report->mean);
    return verdict < 0 ? verdict : 0;
}

/* Counts results that have arrived; with `wait` waits for those of all updates. Does nothing if
 * results are not late. */
static int poll_results(struct replay *r, bool wait, struct rm_error *error)
{
    struct rm_trainer_report report;
    struct rm_batch *batch;
    int rc = 0;
    if (!r->late)
        return 0;
    if (rm_trainer_report(r->trainer, wait, &report))
        rc = count_report(r, &report, error);
    while ((batch = rm_trainer_learned(r->trainer)))
        learned(r, batch);
    return rc;
}

/* Waits for all results, before the learner sleeps, publishes at once or is saved. */
static int settle(struct replay *r, struct rm_error *error)
{
    const int rc = poll_results(r, true, error);
    rm_publisher_end(r->publisher);
    return rc;
}

/* --- updates --------------------------------------------------------------------------------- */

static struct rm_batch *next_batch(struct replay *r, int *rc, struct rm_error *error)
{
    struct rm_batch *batch = NULL;
    if (r->late) {
        rm_phase_enter(r->clock, RM_PHASE_FORWARD);
        batch = rm_trainer_batch(r->trainer);
        *rc = poll_results(r, false, error);
    }
    if (r->prepared) {
        rm_phase_enter(r->clock, RM_PHASE_SAMPLING);
        return rm_prepared_batch(r->prepared, r->pace.attempts + 1);
    }
    return batch ? batch : rm_sampler_batch(r->sampler);
}

/* Draws on the host, or prepares the device's draw. */
static bool draw(struct replay *r, struct rm_batch *batch)
{
    if (r->prepared)
        return true;
    if (r->feed)
        rm_feed_copy(r->feed, r->sampler);
    if (batch->turn)
        return rm_feed_turn(r->feed, r->sampler, beta(r), batch->turn);
    rm_sampler_set_beta(r->sampler, beta(r));
    return rm_sampler_draw(r->sampler, r->pace.attempts + 1, batch);
}

/* One update. Returns false when no batch could be drawn. */
static bool update(struct replay *r, int *rc, struct rm_error *error)
{
    r->dry = false;
    struct rm_batch *batch = next_batch(r, rc, error);
    if (*rc)
        return true;
    rm_phase_enter(r->clock, RM_PHASE_SAMPLING);
    if (r->dry || !draw(r, batch))
        return false;
    rm_pace_drawn(&r->pace);
    count_samples(r);
    if (!r->pace.rounds.on)
        rm_session_wake_actors(r->session); /* the samples may let actors insert */
    rm_trainer_progress(r->trainer, progress(r));
    const struct rm_trainer_result result =
        rm_trainer_update(r->trainer, batch, r->pace.attempts, r->clock);
    if (result.late)
        return true;
    if (!result.skipped)
        learned(r, batch);
    *rc = count_update(r, &result, error);
    return true;
}

/* --- sampler, feed and trainer -------------------------------------------------------------- */

static struct rm_sampler_source *make_sources(const struct replay *r, struct rm_error *error)
{
    const uint32_t actors = r->session->objects.actors;
    struct rm_sampler_source *sources = calloc(actors, sizeof *sources);
    if (!sources)
        rm_fail(error, -ENOMEM, "no memory for %u rings", actors);
    for (uint32_t a = 0; sources && a < actors; a++) {
        sources[a].ring = rm_session_ring(r->session, a, r->policy);
        rm_session_worlds(r->experiment, a, &sources[a].first_world, &sources[a].worlds);
    }
    return sources;
}

static int load_recording(struct replay *r, struct rm_error *error)
{
    const int rc =
        rm_offline_open(&r->recorded, r->experiment, &r->session->plan, r->policy, r->agent, error);
    if (rc == 0)
        fprintf(stderr,
                RM_SEVERITY_NOTICE "learner of %s: learns from %s: %u %s, %" PRIu64
                                   " rows in the longest\n",
                r->plan->name, r->experiment->sample.from, r->recorded.count,
                rm_plural(r->recorded.count, "stream", "streams"), r->recorded.rows);
    return rc;
}

/* Why batches must be made on the host; NULL: they need not. */
static const char *staged_because(const struct replay *r, struct rm_backend *backend)
{
    const struct rm_experiment *e = r->experiment;
    if (rm_parallel_devices(backend) > 1)
        return "learner.devices: the host divides a batch among the devices";
    if (rm_form_traits(e->algorithm.form)->slots)
        return "algorithm.form has stacks across episodes";
    if (rm_learns_sequences(e))
        return "sequences are made on the host";
    if (rm_algorithm_traits(e->algorithm.name)->policy && r->agent->has_mask)
        return "algorithm.name: the host has the legal actions of both states";
    if (e->algorithm.cql > 0 && r->agent->has_mask)
        return "algorithm.cql: the host has the legal actions of both states";
    if (r->plan->reals)
        return "real actions are copied on the host";
    if (e->network.normalize_observations)
        return "network.normalize_observations: the host computes the moments";
    if (r->pace.offline && e->priority.kind != RM_PRIORITY_UNIFORM)
        return "sample.from: the host has the priorities of a recording";
    return NULL;
}

static int open_feed(struct replay *r, struct rm_backend *backend,
                     const struct rm_sampler_spec *sampler, struct rm_error *error)
{
    const struct rm_experiment *e = r->experiment;
    const struct rm_feed_spec spec = {
        .backend = backend,
        .sampler = sampler,
        .kind = e->learner.feed,
        .cannot = staged_because(r, backend),
        .name = r->plan->name,
    };
    const int rc = backend->device ? rm_feed_create(&r->feed, &spec, error) : 0;
    rm_sampler_device_draws(r->sampler, r->feed && rm_feed_draw(r->feed));
    return rc;
}

static int open_histories(struct replay *r, struct rm_error *error)
{
    const struct rm_experiment *e = r->experiment;
    struct rm_prepared_spec spec = {
        .shape = r->plan->shape,
        .batch = e->sample.batch,
        .seed = e->seed,
        .policy = r->policy,
    };
    int rc = rm_histories_open(&r->histories, e, &r->session->plan, r->policy, r->agent, error);
    if (rc)
        return rc;
    const struct rm_histories_count own = rm_histories_count(r->histories, RM_HISTORIES_TRAINED),
                                    out = rm_histories_count(r->histories, RM_HISTORIES_HELD_OUT);
    fprintf(stderr,
            RM_SEVERITY_NOTICE "learner of %s: learns from %u %s: %u %s, %" PRIu64
                               " samples, in %zu KiB; held out %u: %u, %" PRIu64 "\n",
            r->plan->name, own.recordings, rm_plural(own.recordings, "recording", "recordings"),
            own.lanes, rm_plural(own.lanes, "history", "histories"), own.pairs * e->sample.region,
            rm_histories_bytes(r->histories) / 1024, out.recordings, out.lanes,
            out.pairs * e->sample.region);
    RM_POKE(&r->counters->replay_rows, own.pairs * e->sample.region);
    RM_POKE(&r->counters->replay_capacity, own.pairs * e->sample.region);
    spec.histories = r->histories;
    return rm_prepared_create(&r->prepared, &spec, error);
}

static int open_sampler(struct replay *r, struct rm_backend *backend, struct rm_error *error)
{
    const struct rm_experiment *e = r->experiment;
    const bool offline = r->pace.offline;
    struct rm_sampler_source *sources = offline ? NULL : make_sources(r, error);
    int rc = sources ? 0 : offline ? load_recording(r, error) : -ENOMEM;
    if (rc)
        return rc;
    const struct rm_sampler_spec spec = {
        .sources = offline ? r->recorded.source : sources,
        .source_count = offline ? r->recorded.count : r->session->objects.actors,
        .agents = r->plan->agents,
        .agent = r->agent,
        .codes = rm_network_codes(&e->network, r->agent),
        .reals = r->plan->reals,
        .batch = e->sample.batch,
        .n_step = rm_steps_ahead(e),
        .frame_stack = e->sample.frame_stack,
        .gamma = e->sample.gamma,
        .capacity = offline ? r->recorded.rows * r->recorded.lanes : e->ring.capacity,
        .form = e->algorithm.form,
        .seed = e->seed,
        .policy = r->policy,
        .priorities = r->session->priorities ? &r->session->priorities[r->policy] : NULL,
        .own_priorities = offline && e->priority.kind == RM_PRIORITY_PROPORTIONAL,
        .alpha = e->priority.alpha,
        .epsilon = e->priority.epsilon,
        .sequence.trace = rm_learns_sequences(e) ? e->sample.sequence : 0,
        .sequence.burn_in = e->sample.burn_in,
        .sequence.period = e->sample.period,
        .sequence.state_floats = offline ? 0 : r->plan->state_floats, /* not recorded */
    };
    rc = rm_sampler_create(&r->sampler, &spec, error);
    if (!rc)
        rc = open_feed(r, backend, &spec, error);
    free(sources);
    return rc;
}

/* Creates the trainer for the feed's batches. If a feed chosen by `auto` leaves too little device
 * memory, creates it for staged batches instead. */
static int open_trainer(struct replay *r, struct rm_trainer_spec *spec, struct rm_error *error)
{
    spec->draw = r->feed ? rm_feed_draw(r->feed) : NULL;
    const int rc = rm_trainer_create(&r->trainer, spec, error);
    if (rc != -ENOMEM || !r->feed || r->experiment->learner.feed != RM_FEED_AUTO)
        return rc;
    fprintf(stderr, "learner of %s: batches are staged on the host from now on: %s\n",
            r->plan->name, error->text);
    rm_feed_destroy(r->feed);
    r->feed = NULL;
    rm_sampler_device_draws(r->sampler, false);
    spec->draw = NULL;
    return rm_trainer_create(&r->trainer, spec, error);
}

static int open_guard(struct replay *r, struct rm_backend *backend, struct rm_error *error)
{
    int rc = rm_guard_create(&r->guard, r->experiment, backend, r->counters, r->plan->name, error);
    if (rc)
        return rc;
    rm_trainer_guarded(r->trainer, r->guard);
    return rm_guard_ready(r->guard, error);
}

static void replay_destroy(struct rm_method *method)
{
    struct replay *r = replay_of(method);
    if (!r)
        return;
    rm_guard_destroy(r->guard);
    rm_trainer_destroy(r->trainer);
    rm_feed_destroy(r->feed);
    rm_sampler_destroy(r->sampler);
    rm_prepared_destroy(r->prepared);
    rm_histories_close(r->histories);
    rm_offline_close(&r->recorded);
    free(r);
}

static int replay_create(struct rm_method **method, const struct rm_method_spec *spec,
                         struct rm_error *error)
{
    struct replay *r = calloc(1, sizeof *r);
    if (!r)
        return rm_fail(error, -ENOMEM, "no memory for a learner");
    r->method.ops = &rm_replay_method;
    r->session = spec->session;
    r->policy = spec->policy;
    r->experiment = &spec->session->experiment;
    r->plan = &spec->session->plan.policy[spec->policy];
    r->counters = &spec->session->board.policies[spec->policy];
    r->agent = spec->agent;
    r->publisher = spec->publisher;
    r->clock = spec->clock;
    r->method.updates = spec->updates;
    r->pace.offline = rm_experiment_is_offline(r->experiment);
    struct rm_trainer_spec trainer = {
        .experiment = r->experiment,
        .backend = spec->backend,
        .policy = r->policy,
        .shape = r->plan->shape,
        .name = r->plan->name,
        .updates = spec->updates,
        .rows = spec->rows,
        .masks = r->agent->has_mask,
    };
    int rc = 0;
    if (r->plan->choices > 1)
        rc = rm_fail(error, -EINVAL,
                     "policy %s: %u choices a step; algorithms that learn from replay support only "
                     "one choice; use ppo, appo or vtrace",
                     r->plan->name, r->plan->choices);
    if (!rc)
        rc = rm_algorithm_traits(r->experiment->algorithm.name)->histories
                 ? open_histories(r, error)
                 : open_sampler(r, spec->backend, error);
    if (!rc)
        rc = open_trainer(r, &trainer, error);
    if (!rc)
        rc = open_guard(r, spec->backend, error);
    if (rc) {
        replay_destroy(&r->method);
        return rc;
    }
    if ((r->late = rm_trainer_is_late(r->trainer)))
        rm_publisher_go_late(r->publisher, rm_trainer_made(r->trainer), spec->updates);
    r->method.net = rm_trainer_net(r->trainer);
    r->method.params = rm_trainer_params(r->trainer);
    r->method.flops = rm_trainer_update_flops(r->trainer);
    r->method.space = rm_trainer_workspace(r->trainer);
    r->method.trainer = r->trainer;
    rm_pace_start(&r->pace, r->session, r->sampler, r->policy, spec->updates + spec->attempts);
    r->measured = UINT64_MAX;
    if (r->sampler)
        RM_POKE(&r->counters->replay_capacity, rm_sampler_capacity(r->sampler));
    *method = &r->method;
    return 0;
}

/* The losses over the histories held out, every evaluation.interval updates and at the end. */
static void measure(struct replay *r, bool end)
{
    const double interval = RM_PEEK(&r->session->board.run->settings[RM_HOT_EVALUATION_INTERVAL]);
    const uint64_t all = r->pace.attempts, every = (uint64_t)interval;
    struct rm_trainer_result sum = {.loss = 0};
    uint64_t pairs = 0;
    struct rm_batch *batch;
    if (!r->prepared || all == r->measured || !(end || (every && all % every == 0)))
        return;
    r->measured = all;
    rm_phase_enter(r->clock, RM_PHASE_FORWARD);
    while ((batch = rm_prepared_held_out(r->prepared, pairs))) {
        const struct rm_trainer_result one = rm_trainer_measure(r->trainer, batch);
        sum.loss += one.loss * batch->size;
        sum.policy_loss += one.policy_loss * batch->size;
        pairs += batch->size;
    }
    if (!pairs)
        return;
    RM_POKE(&r->counters->held_out_loss, sum.loss / (double)pairs);
    RM_POKE(&r->counters->held_out_policy_loss, sum.policy_loss / (double)pairs);
    fprintf(stderr,
            RM_SEVERITY_NOTICE "learner of %s: update %" PRIu64
                               ": loss %.4f, of actions %.4f, over "
                               "%" PRIu64 " samples held out\n",
            r->plan->name, all, sum.loss / (double)pairs, sum.policy_loss / (double)pairs,
            pairs * r->experiment->sample.region);
}

/* With a recording. An update is a step of the run, which the first policy counts. No row is to
 * come, so without a batch there will be none. */
static int count_steps(struct replay *r, enum rm_turn turn, struct rm_error *error)
{
    struct rm_session *s = r->session;
    if (turn == RM_TURN_WAIT)
        return rm_fail(
            error, RM_DUTY_NEVER, "sample.from: %s: too few transitions to draw a batch of%s",
            r->experiment->sample.from,
            rm_learns_sequences(r->experiment) ? "; shorter sequences may do (sample.sequence)"
                                               : "");
    if (r->policy != 0)
        return 0;
    RM_POKE(&s->board.workers[rm_worker_learner(&s->objects, 0)].steps, r->pace.attempts);
    struct rm_wake evaluator = rm_session_wake(s, rm_worker_evaluator(&s->objects));
    if (r->pace.attempts >= rm_atomic_awaited_count(&evaluator.word->threshold))
        rm_wake_signal(&evaluator);
    rm_session_ring_at(s, r->pace.attempts);
    return 0;
}

static int replay_turn(struct rm_method *method, enum rm_method_turn *did, struct rm_error *error)
{
    struct replay *r = replay_of(method);
    const float *params = method->params;
    int rc = 0;
    enum rm_turn turn = rm_pace_next(&r->pace);
    if (turn == RM_TURN_UPDATE && !update(r, &rc, error))
        turn = rm_pace_too_few(&r->pace);
    if (!rc)
        measure(r, turn == RM_TURN_FINISHED);
    if (!rc && r->pace.offline)
        rc = count_steps(r, turn, error);
    if (!rc && turn != RM_TURN_UPDATE && turn != RM_TURN_AGAIN)
        rc = settle(r, error);
    rm_count_waiting(r->counters, &r->blocked_since_ns, turn == RM_TURN_WAIT && !r->pace.rounds.on);
    *did = RM_METHOD_WORKED;
    switch (turn) {
    case RM_TURN_WAIT:
        *did = RM_METHOD_WAIT;
        break;
    case RM_TURN_AGAIN:
        break;
    case RM_TURN_UPDATE:
        if (rc || r->pace.rounds.on)
            break;
        rm_phase_enter(r->clock, RM_PHASE_PUBLISH);
        rm_publisher_poll(r->publisher);
        rm_publisher_offer(r->publisher, params, r->method.updates, 0);
        break;
    case RM_TURN_ROUND_END:
        rm_phase_enter(r->clock, RM_PHASE_PUBLISH);
        rm_publisher_offer(r->publisher, params, r->method.updates, r->pace.rounds.current);
        rm_rounds_arrive(&r->pace.rounds, false);
        break;
    case RM_TURN_FINISHED:
        rm_phase_enter(r->clock, RM_PHASE_PUBLISH);
        if (r->method.updates > r->publisher->stamped)
            rm_publisher_publish(r->publisher, params, r->method.updates, r->pace.rounds.current);
        *did = RM_METHOD_FINISHED;
        break;
    }
    return rc;
}

static void replay_settings(struct rm_method *method, const struct rm_board_run *run)
{
    struct replay *r = replay_of(method);
    const double interval = RM_PEEK(&run->settings[RM_HOT_PUBLISH_INTERVAL]);
    const struct rm_trainer_settings settings = {
        .learning_rate = RM_PEEK(&run->settings[RM_HOT_LEARNING_RATE]),
        .grad_clip = RM_PEEK(&run->settings[RM_HOT_GRAD_CLIP]),
        .target_tau = RM_PEEK(&run->settings[RM_HOT_TARGET_TAU]),
        .report = interval < REPORT ? (uint32_t)interval : REPORT,
    };
    rm_trainer_set(r->trainer, &settings);
    rm_pace_set_rate(&r->pace, RM_PEEK(&run->settings[RM_HOT_UPDATES_PER_STEP]));
    RM_POKE(&r->counters->learning_rate, settings.learning_rate); /* until the next update */
}

static void replay_load(struct rm_method *method, const float *params)
{
    rm_trainer_load(replay_of(method)->trainer, params);
    rm_guard_renew(replay_of(method)->guard);
}

static void replay_state(struct rm_method *method, struct rm_state *s)
{
    struct replay *r = replay_of(method);
    struct rm_error error = {""};
    if (!rm_state_loading(s) && settle(r, &error))
        fprintf(stderr, RM_SEVERITY_WARNING "learner of %s: %s\n", r->plan->name, error.text);
    RM_STATE(s, "updates", r->method.updates);
    if (rm_state_loading(s)) { /* the board may have been saved before these results arrived */
        RM_POKE(&r->counters->updates, r->method.updates);
        r->publisher->before = r->method.updates;
    }
    rm_pace_state(&r->pace, s);
    if (r->pace.offline) {
        const uint64_t own = r->histories ? rm_histories_hash(r->histories) : r->recorded.hash;
        uint64_t hash = own;
        RM_STATE(s, "recording", hash);
        if (hash != own)
            rm_state_fail(s, -EPROTO,
                          "sample.from: %s has other rows than the recording of the checkpoint",
                          r->experiment->sample.from);
    }
    if (r->sampler)
        rm_sampler_state(r->sampler, s);
    rm_trainer_state(r->trainer, s);
    rm_guard_state(r->guard, s);
}

static void replay_leave(struct rm_method *method)
{
    rm_rounds_arrive(&replay_of(method)->pace.rounds, true);
}

const struct rm_method_ops rm_replay_method = {
    .name = "replay",
    .create = replay_create,
    .destroy = replay_destroy,
    .turn = replay_turn,
    .settings = replay_settings,
    .load = replay_load,
    .takes_rest = true,
    .state = replay_state,
    .leave = replay_leave,
};
