#include "actor/evaluator.h"

#include "actor/stepping.h"
#include "actor/tally.h"
#include "actor/worlds/options.h"
#include "config/config.h"
#include "learner/net/policy_file.h"
#include "shm/atomic.h"
#include "shm/base/rng.h"
#include "shm/base/severity.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rm_evaluator {
    struct rm_session *session;
    struct rm_board_worker *slot;
    struct rm_phase_clock clock;
    struct rm_world_config world_config; /* with evaluation.options */
    struct rm_stepping stepping;
    struct rm_ring ring[RM_BOARD_POLICIES]; /* its own, unshared: memory for stacks of frames */
    struct rm_wake wake;
    uint64_t version[RM_BOARD_POLICIES];
    float *kept[RM_BOARD_POLICIES]; /* the whole weights being played, for a file; NULL: none is
                                       wanted */
    uint64_t env_steps[RM_BOARD_POLICIES]; /* that they were trained on */
    bool running;
    uint64_t requests; /* answered, or being answered */
    uint64_t next_at;  /* agent steps at which the next evaluation is due */
    uint64_t steps;    /* agent steps when this one began */
    struct rm_tallies tallies;
};

/* --- an evaluation --------------------------------------------------------------------------- */

/* Steps between evaluations, which may be changed while running. 0 = none by steps. */
static uint64_t interval(const struct rm_session *s)
{
    RM_SEE(&s->board.run->settings_version);
    return (uint64_t)RM_PEEK(&s->board.run->settings[RM_HOT_EVALUATION_INTERVAL]);
}

/* The actors read it after every vector step and wake the evaluator when it is reached. */
static void set_next(struct rm_evaluator *e, uint64_t steps)
{
    uint64_t every = interval(e->session);

    e->next_at = every ? (steps / every + 1) * every : UINT64_MAX;
    rm_atomic_await_count(&e->wake.word->threshold, e->next_at);
}

/* What it takes to act, and all of a policy that may go into a file. */
static bool read_policy(struct rm_evaluator *e, uint32_t p, struct rm_weights_stamp *stamp)
{
    const struct rm_weights *weights = &e->session->weights[p];
    float *params = e->stepping.policies[p].acting.params;

    if (!e->kept[p])
        return rm_weights_read(weights, params, weights->act_count, stamp, NULL);
    if (!rm_weights_read(weights, e->kept[p], weights->count, stamp, NULL))
        return false;
    memcpy(params, e->kept[p], weights->act_count * sizeof *params);
    return true;
}

static bool read_weights(struct rm_evaluator *e)
{
    struct rm_session *s = e->session;

    for (uint32_t p = 0; p < s->plan.policies; p++)
        if (rm_weights_latest(&s->weights[p]).version == 0)
            return false;
    for (uint32_t p = 0; p < s->plan.policies; p++) {
        struct rm_stepping_policy *policy = &e->stepping.policies[p];
        struct rm_weights_stamp stamp;
        if (!read_policy(e, p, &stamp))
            return false;
        e->version[p] = stamp.version;
        e->env_steps[p] = stamp.env_steps;
        policy->updates = stamp.updates;
        rm_acting_prepare(&policy->acting);
    }
    return true;
}

/* Is one due, and can it begin? */
static bool begin(struct rm_evaluator *e)
{
    struct rm_session *s = e->session;
    uint64_t requests = RM_SEE(&s->board.run->evaluate_request), steps = rm_session_steps(s);
    bool asked = requests != e->requests;

    if (!asked && (interval(s) == 0) != (e->next_at == UINT64_MAX)) {
        set_next(e, steps); /* switched on or off while running */
        steps = rm_session_steps(s);
    }
    if (!asked && steps < e->next_at)
        return false;
    if (!read_weights(e))
        return false;
    uint64_t wanted = s->experiment.evaluation.episodes;
    if (asked) {
        uint64_t episodes = RM_PEEK(&s->board.run->evaluate_episodes);
        if (episodes)
            wanted = episodes;
        e->requests = requests;
    }
    set_next(e, steps);
    e->steps = steps;
    rm_tallies_begin(&e->tallies, wanted);
    e->stepping.started = false;
    e->running = true;
    return true;
}

/* The policies that were played, beside those of the run's end. */
static void write_best(const struct rm_evaluator *e)
{
    const struct rm_session *s = e->session;
    char directory[RM_SESSION_PATH_MAX];
    struct rm_error error = {""};

    snprintf(directory, sizeof directory, "%.*s/policies/best", RM_SESSION_DIRECTORY_MAX,
             s->directory);
    for (uint32_t p = 0; p < s->plan.policies; p++) {
        const struct rm_stepping_policy *policy = &e->stepping.policies[p];
        const struct rm_policy_file file = {
            .experiment = &s->experiment,
            .policy = s->plan.policy[p].name,
            .agent = policy->kind,
            .net = policy->acting.net,
            .params = e->kept[p],
            .updates = policy->updates,
            .env_steps = e->env_steps[p],
        };
        if (e->kept[p] && rm_policy_file_write(&file, directory, &error) < 0)
            fprintf(stderr, RM_SEVERITY_WARNING "the best policy so far could not be written: %s\n",
                    error.text);
    }
}

static void publish(struct rm_evaluator *e)
{
    struct rm_session *s = e->session;
    struct rm_board_run *run = s->board.run;
    const struct rm_tallies *t = &e->tallies;
    const double best = RM_PEEK(&run->eval_best);
    const bool better = t->score.n && !(t->score.mean <= best);

    for (uint32_t a = 0; a < s->plan.agents; a++) {
        RM_POKE(&s->board.agents[a].eval_mean, rm_tally_mean(&t->agent[a]));
        RM_POKE(&s->board.agents[a].eval_stderr, rm_tally_error(&t->agent[a]));
        RM_POKE(&s->board.agents[a].eval_length, rm_tally_mean(&t->length[a]));
        for (uint32_t f = 0; f < s->plan.figures; f++)
            for (uint32_t k = 0; k < rm_board_figure_values(&s->plan.figure[f]); k++)
                RM_POKE(&s->board.agents[a].eval_figures[f][k], rm_tally_mean(&t->figure[a][f][k]));
    }
    RM_POKE(&run->eval_score_mean, rm_tally_mean(&t->score));
    RM_POKE(&run->eval_score_stderr, rm_tally_error(&t->score));
    RM_POKE(&run->eval_episodes, t->score.n);
    RM_POKE(&run->eval_request, e->requests);
    RM_POKE(&run->eval_steps, e->steps);
    if (better) {
        RM_POKE(&run->eval_best, t->score.mean);
        write_best(e);
    }
    for (uint32_t p = 0; p < s->plan.policies; p++) {
        struct rm_board_policy *board = &s->board.policies[p];
        RM_POKE(&board->eval_version, e->version[p]);
        RM_RAISE(&board->eval_seq, RM_PEEK(&board->eval_seq) + 1);
    }
    RM_RAISE(&run->evaluations, RM_PEEK(&run->evaluations) + 1);
    rm_session_ring_bell(s);
}

static int do_work(void *self, struct rm_error *error)
{
    struct rm_evaluator *e = self;
    int rc;

    if (!e->running && !begin(e))
        return 0;
    if (!e->stepping.started && (rc = rm_stepping_begin(&e->stepping, error)) < 0)
        return rm_fail_within(error, rc, "evaluation");
    if ((rc = rm_stepping_step(&e->stepping, error)) < 0)
        return rm_fail_within(error, rc, "evaluation");
    RM_ADD_OWN(&e->slot->steps, e->stepping.agent_counted[0]);
    if (e->tallies.missing == 0) {
        publish(e);
        e->running = false;
    }
    return 1;
}

/* --- the duty -------------------------------------------------------------------------------- */

uint64_t rm_evaluator_seed(const struct rm_experiment *experiment)
{
    struct rm_rng rng = rm_rng_at(experiment->seed, RM_STREAM_EVALUATE, 0, 0);
    const uint64_t high = rm_rng_u32(&rng);

    return high << 32 | rm_rng_u32(&rng);
}

static int create(struct rm_evaluator *e, struct rm_error *error)
{
    struct rm_session *s = e->session;
    uint32_t worlds = s->experiment.evaluation.worlds;
    struct rm_ring *rings[RM_BOARD_POLICIES];
    int rc = rm_tallies_create(&e->tallies, &s->plan, worlds, error);

    if (rc < 0)
        return rc;
    if ((rc = rm_stepping_own_rings(&s->experiment, &s->plan, worlds, e->ring, rings, error)) < 0)
        return rc;
    if ((rc = rm_options_evaluation_world(&s->experiment, &e->world_config)) < 0)
        return rm_fail(error, rc, "evaluation.options: no memory");
    struct rm_stepping_options options = {
        .world = &e->world_config,
        .seed = rm_evaluator_seed(&s->experiment),
        .total_worlds = worlds,
        .worlds = worlds,
        .quantiles = s->experiment.evaluation.quantiles,
        .greedy = s->experiment.evaluation.answer == RM_ANSWER_GREEDY,
        .rings = rings,
        .clock = &e->clock,
        .sink = rm_tallies_sink(&e->tallies),
    };
    return rm_stepping_create(&e->stepping, &s->experiment, &s->plan, &options, error);
}

/* Whole weights are taken along where a file may be wanted of them. */
static int keep_weights(struct rm_evaluator *e, struct rm_error *error)
{
    const struct rm_session *s = e->session;

    for (uint32_t p = 0;
         s->experiment.checkpoint.keep_best && s->directory[0] && p < s->plan.policies; p++) {
        if (s->plan.policy[p].frozen)
            continue;
        const uint64_t count = s->weights[p].count;
        e->kept[p] = malloc(count * sizeof *e->kept[p]);
        if (!e->kept[p])
            return rm_fail(error, -ENOMEM, "no memory for %" PRIu64 " parameters", count);
    }
    return 0;
}

int rm_evaluator_create(struct rm_evaluator **evaluator, struct rm_session *session,
                        struct rm_duty *duty, struct rm_error *error)
{
    struct rm_evaluator *e = calloc(1, sizeof *e);
    uint32_t worker = rm_worker_evaluator(&session->objects);

    if (!e)
        return rm_fail(error, -ENOMEM, "evaluator: no memory");
    e->session = session;
    e->slot = &session->board.workers[worker];
    e->wake = rm_session_wake(session, worker);
    for (uint32_t p = 0; p < RM_BOARD_POLICIES; p++)
        e->ring[p].region.fd = -1;
    rm_session_phase_start(session, &e->clock, worker, RM_ROLE_EVALUATOR);
    int rc = create(e, error);
    if (rc == 0)
        rc = keep_weights(e, error);
    if (rc < 0) {
        rm_evaluator_destroy(e);
        return rm_fail_within(error, rc, "evaluator");
    }
    set_next(e, rm_session_steps(session));
    *duty = (struct rm_duty){
        .self = e,
        .do_work = do_work,
        .run = session->board.run,
        .slot = e->slot,
        .wake = e->wake,
        .look_ns = rm_experiment_loads(&session->experiment) ? RM_DUTY_LOOK_NS : 0,
        .clock = &e->clock,
    };
    *evaluator = e;
    return 0;
}

void rm_evaluator_destroy(struct rm_evaluator *evaluator)
{
    if (!evaluator)
        return;
    if (evaluator->stepping.experiment)
        rm_stepping_destroy(&evaluator->stepping);
    for (uint32_t p = 0; p < RM_BOARD_POLICIES; p++) {
        rm_ring_close(&evaluator->ring[p]);
        free(evaluator->kept[p]);
    }
    rm_tallies_destroy(&evaluator->tallies);
    free(evaluator);
}
