#include "actor/evaluator.h"

#include "actor/stepping.h"
#include "actor/worlds/options.h"
#include "config/config.h"
#include "learner/net/policy_file.h"
#include "shm/atomic.h"
#include "shm/base/rng.h"
#include "shm/base/said.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Running mean and sum of squared deviations (Welford 1962). */
struct tally {
    uint64_t n;
    double mean, squares;
};

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
    uint64_t wanted;   /* episodes of this evaluation */
    uint64_t *played;  /* (worlds) */
    uint64_t missing;  /* episodes still to be played */
    struct tally agent[RM_BOARD_AGENTS], length[RM_BOARD_AGENTS];
    struct tally figure[RM_BOARD_AGENTS][RM_BOARD_FIGURES][RM_BOARD_WORDS]; /* as on the board */
    struct tally world;
};

/* --- scores ---------------------------------------------------------------------------------- */

static void add(struct tally *tally, double x)
{
    double off = x - tally->mean;

    tally->n++;
    tally->mean += off / (double)tally->n;
    tally->squares += off * (x - tally->mean);
}

static double mean_of(const struct tally *tally)
{
    return tally->n ? tally->mean : NAN;
}

static double standard_error(const struct tally *tally)
{
    if (tally->n < 2)
        return 0;
    double n = (double)tally->n;
    return sqrt(tally->squares / (n - 1) / n);
}

/* Each world plays its share whatever it takes: taking the first episodes to end, wherever they
 * end, would favour short ones. */
static bool counts(const struct rm_evaluator *e, uint32_t world)
{
    uint64_t each = e->wanted / e->stepping.worlds, more = e->wanted % e->stepping.worlds;

    return e->played[world] < each + (world < more);
}

static void agent_finished(void *self, uint32_t agent, uint32_t world,
                           const struct rm_episode *episode)
{
    struct rm_evaluator *e = self;
    const struct rm_plan *plan = &e->session->plan;

    if (!counts(e, world))
        return;
    add(&e->agent[agent], episode->score);
    add(&e->length[agent], episode->steps);
    for (uint32_t f = 0; episode->figures && f < plan->figures; f++) {
        struct tally *figure = e->figure[agent][f];
        const uint32_t words = plan->figure[f].words;
        if (isnan(episode->figures[f]))
            continue;
        if (!words)
            add(&figure[0], episode->figures[f]);
        for (uint32_t word = 0; word < words; word++)
            add(&figure[word], episode->figures[f] == word);
    }
}

static void world_finished(void *self, uint32_t world, double score, uint64_t steps)
{
    struct rm_evaluator *e = self;

    (void)steps;
    if (!counts(e, world))
        return;
    add(&e->world, score);
    e->played[world]++;
    e->missing--;
}

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
    e->wanted = s->experiment.evaluation.episodes;
    if (asked) {
        uint64_t episodes = RM_PEEK(&s->board.run->evaluate_episodes);
        if (episodes)
            e->wanted = episodes;
        e->requests = requests;
    }
    set_next(e, steps);
    e->steps = steps;
    e->missing = e->wanted;
    for (uint32_t w = 0; w < e->stepping.worlds; w++)
        e->played[w] = 0;
    memset(e->agent, 0, sizeof e->agent);
    memset(e->length, 0, sizeof e->length);
    memset(e->figure, 0, sizeof e->figure);
    e->world = (struct tally){0};
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
            fprintf(stderr, RM_SAID_WARNING "the best policy so far is not on disk: %s\n",
                    error.text);
    }
}

static void publish(struct rm_evaluator *e)
{
    struct rm_session *s = e->session;
    struct rm_board_run *run = s->board.run;
    const double best = RM_PEEK(&run->eval_best);
    const bool better = e->world.n && !(e->world.mean <= best);

    for (uint32_t a = 0; a < s->plan.agents; a++) {
        RM_POKE(&s->board.agents[a].eval_mean, mean_of(&e->agent[a]));
        RM_POKE(&s->board.agents[a].eval_stderr, standard_error(&e->agent[a]));
        RM_POKE(&s->board.agents[a].eval_length, mean_of(&e->length[a]));
        for (uint32_t f = 0; f < s->plan.figures; f++)
            for (uint32_t k = 0; k < rm_board_figure_values(&s->plan.figure[f]); k++)
                RM_POKE(&s->board.agents[a].eval_figures[f][k], mean_of(&e->figure[a][f][k]));
    }
    RM_POKE(&run->eval_score_mean, mean_of(&e->world));
    RM_POKE(&run->eval_score_stderr, standard_error(&e->world));
    RM_POKE(&run->eval_episodes, e->world.n);
    RM_POKE(&run->eval_request, e->requests);
    RM_POKE(&run->eval_steps, e->steps);
    if (better) {
        RM_POKE(&run->eval_best, e->world.mean);
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
    if (e->missing == 0) {
        publish(e);
        e->running = false;
    }
    return 1;
}

/* --- the duty -------------------------------------------------------------------------------- */

static int create(struct rm_evaluator *e, struct rm_error *error)
{
    struct rm_session *s = e->session;
    uint32_t worlds = s->experiment.evaluation.worlds;
    struct rm_ring *rings[RM_BOARD_POLICIES];
    struct rm_rng rng = rm_rng_at(s->experiment.seed, RM_STREAM_EVALUATE, 0, 0);
    uint64_t seed = rm_rng_u32(&rng);
    int rc;

    seed = seed << 32 | rm_rng_u32(&rng);
    e->played = calloc(worlds, sizeof *e->played);
    if (!e->played)
        return rm_fail(error, -ENOMEM, "no memory for %u worlds", worlds);
    if ((rc = rm_stepping_own_rings(&s->experiment, &s->plan, worlds, e->ring, rings, error)) < 0)
        return rc;
    if ((rc = rm_options_evaluation_world(&s->experiment, &e->world_config)) < 0)
        return rm_fail(error, rc, "evaluation.options: no memory");
    struct rm_stepping_options options = {
        .world = &e->world_config,
        .seed = seed,
        .total_worlds = worlds,
        .worlds = worlds,
        .quantiles = s->experiment.evaluation.quantiles,
        .greedy = s->experiment.evaluation.answer == RM_ANSWER_GREEDY,
        .rings = rings,
        .clock = &e->clock,
        .sink = {e, agent_finished, world_finished},
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
    rm_phase_start(&e->clock, e->slot);
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
    free(evaluator->played);
    free(evaluator);
}
