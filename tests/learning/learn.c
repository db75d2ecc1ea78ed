/* learn: does an experiment learn? Runs it in sequential mode, in this process, once per seed, with
 * greedy evaluations on the way and at the end, and counts the seeds that reach a score.
 *
 *   learn FILE SCORE SEEDS NEEDED RESULTS [key=value...]
 *
 * Seeds count up from the experiment's own (seed=N for others).
 *
 * A seed reaches SCORE when the mean over the 100 episodes of an evaluation does. Results go to the
 * file RESULTS as JSON. Exit code: 0 when at least NEEDED of SEEDS seeds did, 1 when not, 2 for a
 * wrong call. */
#include "actor/actor.h"
#include "actor/evaluator.h"
#include "actor/plan.h"
#include "config/config.h"
#include "learner/learner.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPISODES        100
#define EVALUATIONS_MAX 64
#define OVERRIDES_MAX   32

struct evaluation {
    uint64_t steps;
    double mean, standard_error;
};

struct outcome {
    uint64_t seed, steps, updates;
    double seconds, reached_at; /* agent steps; < 0: never */
    double first, last;         /* mean scores of the first and last 100 episodes of training */
    uint32_t evaluations;
    struct evaluation evaluation[EVALUATIONS_MAX];
};

struct run {
    struct rm_session session;
    struct rm_actor *actor;
    struct rm_learner *learner[RM_BOARD_POLICIES];
    struct rm_evaluator *evaluator;
    struct rm_duty duty[RM_BOARD_POLICIES + 1]; /* learners, then the actor */
    struct rm_duty evaluation;
};

static int open_run(struct run *run, const struct rm_experiment *experiment, struct rm_error *error)
{
    static struct rm_plan plan;
    int rc = rm_plan_make(&plan, experiment, error);
    memset(run, 0, sizeof *run);
    if (!rc)
        rc = rm_session_create(&run->session, experiment, &plan, error);
    if (rc)
        return rc;
    const uint32_t policies = run->session.objects.policies;
    for (uint32_t p = 0; p < policies && !rc; p++)
        rc = rm_learner_create(&run->learner[p], &run->session, p, "", &run->duty[p], error);
    if (!rc)
        rc = rm_actor_create(&run->actor, &run->session, 0, &run->duty[policies], error);
    if (!rc)
        rc = rm_evaluator_create(&run->evaluator, &run->session, &run->evaluation, error);
    return rc;
}

static void close_run(struct run *run)
{
    if (run->actor)
        rm_actor_destroy(run->actor);
    if (run->evaluator)
        rm_evaluator_destroy(run->evaluator);
    for (uint32_t p = 0; p < run->session.objects.policies; p++)
        rm_learner_destroy(run->learner[p]);
    rm_session_close(&run->session);
}

static int evaluate(struct run *run, struct outcome *outcome, double score, struct rm_error *error)
{
    struct rm_board_run *board = run->session.board.run;
    const uint64_t wanted = RM_PEEK(&board->evaluations) + 1;
    RM_POKE(&board->evaluate_episodes, EPISODES);
    RM_RAISE(&board->evaluate_request, RM_PEEK(&board->evaluate_request) + 1);
    while (RM_SEE(&board->evaluations) < wanted) {
        const int rc = run->evaluation.do_work(run->evaluation.self, error);
        if (rc < 0)
            return rc;
    }
    struct evaluation *e = &outcome->evaluation[outcome->evaluations++];
    e->steps = RM_PEEK(&run->session.board.policies[0].env_steps);
    e->mean = RM_PEEK(&board->eval_score_mean);
    e->standard_error = RM_PEEK(&board->eval_score_stderr);
    if (outcome->reached_at < 0 && e->mean >= score)
        outcome->reached_at = (double)e->steps;
    return 0;
}

static bool room_for_more(const struct outcome *outcome)
{
    return outcome->evaluations < EVALUATIONS_MAX - 1;
}

/* Learners and actor in turn until all are done; evaluated every `interval` steps. */
static int train(struct run *run, struct outcome *outcome, double score, uint64_t interval,
                 struct rm_error *error)
{
    const uint32_t duties = run->session.objects.policies + 1;
    bool done[RM_BOARD_POLICIES + 1] = {false};
    uint64_t next = interval;
    for (uint32_t left = duties; left > 0;) {
        for (uint32_t d = 0; d < duties; d++) {
            if (done[d])
                continue;
            const int rc = run->duty[d].do_work(run->duty[d].self, error);
            if (rc < 0 && rc != RM_DUTY_DONE)
                return rc;
            if (rc == RM_DUTY_DONE) {
                done[d] = true;
                left--;
            }
        }
        const uint64_t steps = RM_PEEK(&run->session.board.policies[0].env_steps);
        if (interval && steps >= next && left == duties && room_for_more(outcome)) {
            const int rc = evaluate(run, outcome, score, error);
            if (rc)
                return rc;
            next += interval;
        }
    }
    return evaluate(run, outcome, score, error);
}

static int one_seed(const struct rm_experiment *experiment, double score, struct outcome *outcome,
                    struct rm_error *error)
{
    static struct run run;
    const uint64_t began = rm_now_ns();
    outcome->seed = experiment->seed;
    outcome->reached_at = -1;
    int rc = open_run(&run, experiment, error);
    if (!rc)
        rc = train(&run, outcome, score, experiment->evaluation.interval, error);
    if (!rc) {
        outcome->steps = RM_PEEK(&run.session.board.policies[0].env_steps);
        outcome->updates = RM_PEEK(&run.session.board.policies[0].updates);
        rm_scores_first(&run.session.board.run->scores, &outcome->first);
        rm_scores_last(&run.session.board.run->scores, &outcome->last);
    }
    close_run(&run);
    outcome->seconds = (double)(rm_now_ns() - began) / 1e9;
    return rc;
}

static void print(const struct outcome *o)
{
    printf("seed %" PRIu64 ": ", o->seed);
    for (uint32_t i = 0; i < o->evaluations; i++)
        printf("%.0f ", o->evaluation[i].mean);
    if (o->reached_at < 0)
        printf(" never there");
    else
        printf(" there at %.0f", o->reached_at);
    printf("; while training %.0f at first, %.0f at last (%" PRIu64 " steps, %" PRIu64
           " updates, %.1f s)\n",
           o->first, o->last, o->steps, o->updates, o->seconds);
    fflush(stdout);
}

static json_t *to_json(const struct outcome *o)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < o->evaluations; i++)
        json_array_append_new(all, json_pack("{s:I, s:f, s:f}", "steps",
                                             (json_int_t)o->evaluation[i].steps, "mean",
                                             o->evaluation[i].mean, "standard_error",
                                             o->evaluation[i].standard_error));
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o}", "seed", (json_int_t)o->seed,
                     "steps", (json_int_t)o->steps, "updates", (json_int_t)o->updates, "seconds",
                     o->seconds, "train_first", o->first, "train_last", o->last, "reached_at",
                     o->reached_at < 0 ? json_null() : json_real(o->reached_at), "evaluations",
                     all);
}

static int load(struct rm_experiment *experiment, int argc, char **argv, struct rm_error *error)
{
    struct rm_override overrides[OVERRIDES_MAX] = {{"mode=sequential"}, {"actor.count=1"}};
    size_t n = 2;
    for (int i = 6; i < argc && n < OVERRIDES_MAX; i++)
        overrides[n++].text = argv[i];
    return rm_config_load(experiment, argv[1], overrides, n, error);
}

int main(int argc, char **argv)
{
    static struct rm_experiment experiment;
    static struct outcome outcome;
    struct rm_error error = {""};
    if (argc < 6) {
        fprintf(stderr, "usage: learn FILE SCORE SEEDS NEEDED RESULTS [key=value...]\n");
        return 2;
    }
    const double score = atof(argv[2]);
    const int seeds = atoi(argv[3]), needed = atoi(argv[4]);
    int reached = 0, rc = load(&experiment, argc, argv, &error);
    const uint64_t first = experiment.seed; /* of the file, or seed=N */
    json_t *results = json_array();
    for (int s = 0; s < seeds && !rc; s++) {
        memset(&outcome, 0, sizeof outcome);
        experiment.seed = first + (uint64_t)s;
        rc = one_seed(&experiment, score, &outcome, &error);
        if (!rc)
            print(&outcome);
        reached += outcome.reached_at >= 0;
        json_array_append_new(results, to_json(&outcome));
    }
    if (rc) {
        fprintf(stderr, "learn: %s\n", error.text);
        return 2;
    }
    json_t *all =
        json_pack("{s:s, s:f, s:i, s:i, s:i, s:o}", "experiment", experiment.name, "score", score,
                  "seeds", seeds, "needed", needed, "reached", reached, "runs", results);
    json_dump_file(all, argv[5], JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    json_decref(all);
    printf("%s: %d of %d seeds reached %g (needed %d)\n", experiment.name, reached, seeds, score,
           needed);
    return reached >= needed ? 0 : 1;
}
