#include "learner/learner.h"

#include "actor/worlds.h"
#include "config/config.h"
#include "learner/algo/trainer.h"
#include "learner/pace.h"
#include "learner/policy_file.h"
#include "learner/publisher.h"
#include "learner/sampler.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rm_learner {
    struct rm_session *session;
    uint32_t policy;
    const struct rm_experiment *experiment;
    const struct rm_policy_plan *plan;
    struct rm_board_policy *counters;
    struct rm_board_run *run;
    char directory[PATH_MAX]; /* of the run; "" = no files */

    struct rm_world world;
    struct rm_env *env; /* held for its description */
    const struct rm_env_agent *agent;

    struct rm_backend *backend;
    struct rm_trainer *trainer;
    struct rm_sampler *sampler;
    struct rm_publisher publisher;
    struct rm_pace pace;
    struct rm_phase_clock clock;

    uint64_t updates;          /* made, predecessors' included */
    uint64_t saved;            /* updates in the final policy file, UINT64_MAX when there is none */
    uint32_t not_finite;       /* skipped in a row */
    uint64_t settings_version; /* of the board's settings in use */
    uint64_t checkpoints;      /* requests answered */
    uint64_t torn_before;      /* counts already on the board */
    uint64_t age_sum_before, age_count_before;
    uint64_t blocked_since_ns; /* when the limiter held it up; 0 = it does not */
};

/* --- making ---------------------------------------------------------------------------------- */

static int open_world(struct rm_learner *l, struct rm_error *error)
{
    const struct rm_experiment *e = l->experiment;
    int rc = rm_world_open(&l->world, e->world.name, e->world.library, error);
    if (!rc)
        rc = rm_world_create(&l->world, &e->world, e->seed, 0, 1, &l->env, error);
    if (rc)
        return rc;
    l->agent = &l->world.ops->describe(l->env)->agent[l->plan->agent[0]];
    return 0;
}

static int open_sampler(struct rm_learner *l, struct rm_error *error)
{
    const struct rm_experiment *e = l->experiment;
    const uint32_t actors = l->session->objects.actors;
    struct rm_sampler_source *sources = calloc(actors, sizeof *sources);
    if (!sources)
        return rm_fail(error, -ENOMEM, "no memory for %u rings", actors);
    for (uint32_t a = 0; a < actors; a++) {
        sources[a].ring = rm_session_ring(l->session, a, l->policy);
        rm_session_worlds(e, a, &sources[a].first_world, &sources[a].worlds);
    }
    const struct rm_sampler_spec spec = {
        .sources = sources,
        .source_count = actors,
        .agents = l->plan->agents,
        .agent = l->agent,
        .batch = e->sample.batch,
        .n_step = e->sample.n_step,
        .frame_stack = e->sample.frame_stack,
        .gamma = e->sample.gamma,
        .capacity = e->ring.capacity,
        .form = e->algorithm.form,
        .seed = e->seed,
        .policy = l->policy,
    };
    const int rc = rm_sampler_create(&l->sampler, &spec, error);
    free(sources);
    return rc;
}

static int open_trainer(struct rm_learner *l, struct rm_error *error)
{
    const struct rm_experiment *e = l->experiment;
    int rc = rm_backend_cpu_create(&l->backend, e->learner.threads, e->learner.isa, error);
    if (rc)
        return rm_fail_within(error, rc, "learner.isa \"%s\"", e->learner.isa);
    const struct rm_trainer_spec spec = {
        .experiment = e,
        .backend = l->backend,
        .policy = l->policy,
        .shape = l->plan->shape,
    };
    rc = rm_trainer_create(&l->trainer, &spec, error);
    if (rc)
        return rc;
    return rm_publisher_open(&l->publisher, &l->session->weights[l->policy], l->backend,
                             l->counters, error);
}

static void wake_actors(struct rm_learner *l)
{
    for (uint32_t a = 0; a < l->session->objects.actors; a++) {
        struct rm_wake wake = rm_session_wake(l->session, rm_worker_actor(&l->session->objects, a));
        rm_wake_signal(&wake);
    }
}

/* Publishes the first version, or goes on from what a predecessor published last: its parameters,
 * and its counts, which are on the board. What it learned since, its target network and its
 * optimizer's moments went with it. */
static int begin(struct rm_learner *l, struct rm_error *error)
{
    struct rm_weights_stamp stamp;
    const uint64_t count = l->session->weights[l->policy].count;
    if (rm_weights_latest(&l->session->weights[l->policy]).version == 0) {
        rm_publisher_publish(&l->publisher, rm_trainer_params(l->trainer), 0, 0);
        wake_actors(l);
    } else {
        float *params = malloc(count * sizeof *params);
        if (!params)
            return rm_fail(error, -ENOMEM, "no memory for %" PRIu64 " parameters", count);
        rm_weights_read(&l->session->weights[l->policy], params, count, &stamp, NULL);
        rm_trainer_load(l->trainer, params);
        rm_publisher_resume(&l->publisher, params, stamp.updates);
        free(params);
        l->updates = RM_PEEK(&l->counters->updates);
        fprintf(stderr,
                "learner of %s: goes on from version %" PRIu64 " (update %" PRIu64 "); %" PRIu64
                " updates after it are lost, the optimizer starts afresh\n",
                l->plan->name, stamp.version, stamp.updates, l->updates - stamp.updates);
    }
    rm_pace_start(&l->pace, l->session, l->sampler, l->policy,
                  l->updates + RM_PEEK(&l->counters->updates_skipped));
    l->checkpoints = RM_SEE(&l->run->checkpoint_request);
    RM_POKE(&l->counters->replay_capacity, rm_sampler_capacity(l->sampler));
    return 0;
}

/* --- one turn -------------------------------------------------------------------------------- */

static void read_settings(struct rm_learner *l)
{
    const uint64_t version = RM_SEE(&l->run->settings_version);
    if (version == l->settings_version)
        return;
    l->settings_version = version;
#define SETTING(name) RM_PEEK(&l->run->settings[RM_HOT_##name])
    const struct rm_trainer_settings settings = {
        .learning_rate = SETTING(LEARNING_RATE),
        .grad_clip = SETTING(GRAD_CLIP),
        .target_tau = SETTING(TARGET_TAU),
    };
    rm_trainer_set(l->trainer, &settings);
    l->publisher.interval = (uint32_t)SETTING(PUBLISH_INTERVAL);
    l->publisher.min_change = SETTING(PUBLISH_MIN_CHANGE);
    rm_pace_set_rate(&l->pace, SETTING(UPDATES_PER_STEP));
    RM_POKE(&l->counters->learning_rate, settings.learning_rate);
#undef SETTING
}

static int write_policy(struct rm_learner *l, const char *folder, struct rm_error *error)
{
    char directory[PATH_MAX];
    if (!l->directory[0])
        return 0;
    rm_phase_enter(&l->clock, RM_PHASE_CHECKPOINT);
    if (snprintf(directory, sizeof directory, "%s/%s", l->directory, folder) >=
        (int)sizeof directory)
        return rm_fail(error, -ENAMETOOLONG, "%s: path too long", l->directory);
    l->backend->ops->download(l->backend, l->publisher.host, rm_trainer_params(l->trainer),
                              l->session->weights[l->policy].count);
    const struct rm_policy_file file = {
        .experiment = l->experiment,
        .policy = l->plan->name,
        .agent = l->agent,
        .net = rm_trainer_net(l->trainer),
        .params = l->publisher.host,
        .updates = l->updates,
        .env_steps = RM_PEEK(&l->counters->env_steps),
    };
    return rm_policy_file_write(&file, directory, error);
}

/* A checkpoint that cannot be written does not end the training: it is said, and tried again when
 * the next one is asked for. */
static void answer_checkpoint(struct rm_learner *l)
{
    const uint64_t asked = RM_SEE(&l->run->checkpoint_request);
    char folder[64];
    struct rm_error error = {""};
    if (asked == l->checkpoints)
        return;
    l->checkpoints = asked;
    snprintf(folder, sizeof folder, "checkpoints/%" PRIu64, l->updates);
    if (write_policy(l, folder, &error))
        fprintf(stderr, "learner of %s: checkpoint: %s\n", l->plan->name, error.text);
}

static void count_samples(struct rm_learner *l)
{
    const struct rm_sampler_counts now = rm_sampler_counts(l->sampler);
    struct rm_board_policy *c = l->counters;
    RM_ADD_OWN(&c->samples, l->experiment->sample.batch);
    RM_ADD_OWN(&c->samples_torn, now.torn - l->torn_before);
    RM_ADD_OWN(&c->age_sum, now.age_sum - l->age_sum_before);
    RM_ADD_OWN(&c->age_count, now.age_count - l->age_count_before);
    RM_POKE(&c->replay_rows, rm_sampler_held(l->sampler));
    l->torn_before = now.torn;
    l->age_sum_before = now.age_sum;
    l->age_count_before = now.age_count;
}

static int count_update(struct rm_learner *l, const struct rm_trainer_result *result,
                        struct rm_error *error)
{
    struct rm_board_policy *c = l->counters;
    const uint32_t patience = l->experiment->debug.finite_patience;
    if (result->skipped) {
        RM_ADD_OWN(&c->updates_skipped, 1);
        if (++l->not_finite >= patience)
            return rm_fail(error, -EDOM,
                           "policy %s: %u updates in a row were not finite (loss %g, gradient norm "
                           "%g); after %" PRIu64 " good ones; lower optimizer.learning_rate",
                           l->plan->name, l->not_finite, result->loss, result->grad_norm,
                           l->updates);
        return 0;
    }
    l->not_finite = 0;
    RM_POKE(&c->updates, ++l->updates);
    RM_POKE(&c->loss, result->loss);
    RM_POKE(&c->grad_norm, result->grad_norm);
    RM_POKE(&c->q_mean, result->q_mean);
    return 0;
}

static void count_waiting(struct rm_learner *l, bool waits)
{
    if (waits) {
        if (!l->blocked_since_ns)
            l->blocked_since_ns = rm_now_ns();
    } else if (l->blocked_since_ns) {
        RM_ADD_OWN(&l->counters->sample_blocked_ns, rm_now_ns() - l->blocked_since_ns);
        l->blocked_since_ns = 0;
    }
}

/* One update. Returns false when no batch could be drawn. */
static bool update(struct rm_learner *l, int *rc, struct rm_error *error)
{
    struct rm_batch *batch = rm_sampler_batch(l->sampler);
    rm_phase_enter(&l->clock, RM_PHASE_SAMPLING);
    if (!rm_sampler_draw(l->sampler, l->pace.attempts + 1, batch))
        return false;
    rm_pace_drawn(&l->pace);
    count_samples(l);
    if (!l->pace.rounds)
        wake_actors(l); /* what was sampled may let them insert */
    const struct rm_trainer_result result =
        rm_trainer_update(l->trainer, batch, l->pace.attempts, &l->clock);
    *rc = count_update(l, &result, error);
    return true;
}

static int end_round(struct rm_learner *l)
{
    rm_phase_enter(&l->clock, RM_PHASE_PUBLISH);
    rm_publisher_offer(&l->publisher, rm_trainer_params(l->trainer), l->updates, l->pace.round);
    rm_pace_arrive(&l->pace, false);
    return 1;
}

int rm_learner_save(struct rm_learner *l, struct rm_error *error)
{
    if (l->saved == l->updates)
        return 0;
    const int rc = write_policy(l, "policies", error);
    if (!rc)
        l->saved = l->updates;
    return rc;
}

static int finish(struct rm_learner *l, struct rm_error *error)
{
    rm_phase_enter(&l->clock, RM_PHASE_PUBLISH);
    if (l->updates > l->publisher.stamped)
        rm_publisher_publish(&l->publisher, rm_trainer_params(l->trainer), l->updates,
                             l->pace.round);
    const int rc = rm_learner_save(l, error);
    rm_pace_arrive(&l->pace, true);
    return rc ? rc : RM_DUTY_DONE;
}

static int take_turn(struct rm_learner *l, struct rm_error *error)
{
    int rc = 0;
    enum rm_turn turn = rm_pace_next(&l->pace);
    if (turn == RM_TURN_UPDATE && !update(l, &rc, error))
        turn = rm_pace_too_few(&l->pace);
    count_waiting(l, turn == RM_TURN_WAIT && !l->pace.rounds);
    switch (turn) {
    case RM_TURN_WAIT:
        return 0;
    case RM_TURN_UPDATE:
        if (!rc && !l->pace.rounds) {
            rm_phase_enter(&l->clock, RM_PHASE_PUBLISH);
            rm_publisher_offer(&l->publisher, rm_trainer_params(l->trainer), l->updates, 0);
        }
        return rc ? rc : 1;
    case RM_TURN_ROUND_END:
        return end_round(l);
    case RM_TURN_FINISHED:
        return finish(l, error);
    }
    return 0;
}

static int do_work(void *self, struct rm_error *error)
{
    struct rm_learner *l = self;
    rm_phase_enter(&l->clock, RM_PHASE_OTHER);
    read_settings(l);
    answer_checkpoint(l);
    const int rc = take_turn(l, error);
    rm_phase_enter(&l->clock, RM_PHASE_OTHER);
    return rc;
}

/* --------------------------------------------------------------------------------------------- */

int rm_learner_create(struct rm_learner **learner, struct rm_session *session, uint32_t policy,
                      const char *run_directory, struct rm_duty *duty, struct rm_error *error)
{
    struct rm_learner *l = calloc(1, sizeof *l);
    if (!l)
        return rm_fail(error, -ENOMEM, "no memory for a learner");
    const uint32_t worker = rm_worker_learner(&session->objects, policy);
    l->session = session;
    l->policy = policy;
    l->experiment = &session->experiment;
    l->plan = &session->plan.policy[policy];
    l->counters = &session->board.policies[policy];
    l->run = session->board.run;
    l->saved = UINT64_MAX;
    snprintf(l->directory, sizeof l->directory, "%s", run_directory);
    rm_phase_start(&l->clock, &session->board.workers[worker]);
    int rc = open_world(l, error);
    if (!rc)
        rc = open_sampler(l, error);
    if (!rc)
        rc = open_trainer(l, error);
    if (!rc)
        rc = begin(l, error);
    if (rc) {
        rm_fail_within(error, rc, "learner of policy %s", l->plan->name);
        rm_learner_destroy(l);
        return rc;
    }
    *duty = (struct rm_duty){
        .self = l,
        .do_work = do_work,
        .run = session->board.run,
        .slot = &session->board.workers[worker],
        .wake = rm_session_wake(session, worker),
        .clock = &l->clock,
        .poll_us =
            l->experiment->mode == RM_MODE_FREE && l->experiment->limiter.wake == RM_WAKE_POLL
                ? l->experiment->limiter.poll_us
                : 0,
    };
    *learner = l;
    return 0;
}

void rm_learner_destroy(struct rm_learner *l)
{
    if (!l)
        return;
    rm_publisher_close(&l->publisher);
    rm_trainer_destroy(l->trainer);
    rm_sampler_destroy(l->sampler);
    if (l->backend)
        rm_backend_destroy(l->backend);
    if (l->env)
        l->world.ops->close(l->env);
    rm_world_close(&l->world);
    free(l);
}
