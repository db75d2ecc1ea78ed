#include "actor/player.h"

#include "actor/evaluator.h"
#include "actor/ranking.h"
#include "actor/stepping.h"
#include "actor/tally.h"
#include "actor/worlds/options.h"
#include "actor/worlds/plan.h"
#include "config/json_value.h"
#include "config/names.h"
#include "config/traits.h"
#include "learner/net/policy_file.h"
#include "shm/base/file.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Figures that ranking reads, by name. */
enum { QUERY, CANDIDATE, QUERIES, LABEL, PROVED, RANK_FIGURES };
static const char *const rank_figures[] = {"query", "candidate", "queries", "label", "proved"};
_Static_assert(sizeof rank_figures / sizeof rank_figures[0] == RANK_FIGURES, "a name each");
#define UNPROVED 100.0

struct player {
    const struct rm_experiment *experiment;
    const struct rm_player_options *options;
    struct rm_plan plan;
    struct rm_world_config world; /* with evaluation.options */
    struct rm_stepping stepping;
    struct rm_ring ring[RM_BOARD_POLICIES];
    struct rm_player_head head; /* of the next frame */
    char text[RM_PLAYER_TEXT_MAX];
    uint8_t *rgb;
    uint32_t finished; /* episodes */
    bool begins;       /* another one, that has not been shown yet */
    double score;      /* of the latest */
    uint64_t steps;
    uint32_t worlds;
    struct rm_tallies tallies;
    uint64_t sent[RM_BOARD_POLICIES]; /* rows of each ring */
    struct ranks {
        struct rm_ranking ranking;
        uint32_t corruptions;
        double unproved;               /* is taken from the score of what was not proved */
        uint32_t figure[RANK_FIGURES]; /* which of the world's */
        double *logp;                  /* (worlds) */
        struct rm_tally returns, proved[2];
        struct rm_error error;
        bool over;
    } rank;
};

static bool shows_pictures(const struct player *p)
{
    return p->options->purpose == RM_PLAYER_PICTURE;
}

/* --- frames ---------------------------------------------------------------------------------- */

static int put_frame(struct player *p, enum rm_player_kind kind, struct rm_error *error)
{
    p->head.magic = RM_PLAYER_MAGIC;
    p->head.kind = kind;
    int rc = rm_file_write_all(p->options->fd, &p->head, sizeof p->head);
    if (rc == 0)
        rc = rm_file_write_all(p->options->fd, p->text, p->head.text_bytes);
    if (rc == 0)
        rc = rm_file_write_all(p->options->fd, p->rgb, (size_t)p->head.width * p->head.height * 3);
    return rc < 0 ? rm_fail(error, rc, "the reader of the pictures has closed the pipe") : 0;
}

static int shown(const struct player *p, int rc, struct rm_error *error)
{
    const char *why = p->stepping.batch.world.ops->last_error(p->stepping.batch.env);
    if (rc >= 0)
        return rc;
    return rm_fail(error, -EIO, "world %s cannot be shown: %s", p->stepping.batch.spec->name,
                   why && *why ? why : "the world gave no reason");
}

/* The state in which the world stands. */
static int show(struct player *p, struct rm_error *error)
{
    const struct rm_env_ops *ops = p->stepping.batch.world.ops;
    const struct rm_env_spec *spec = p->stepping.batch.spec;
    int rc;

    rm_watch_enter(&p->stepping.batch.watch, RM_WATCH_SHOW);
    if (shows_pictures(p))
        rc = ops->show_picture(p->stepping.batch.env, 0, p->rgb);
    else
        rc = ops->show_text(p->stepping.batch.env, 0, p->text, sizeof p->text);
    rm_watch_leave();
    if ((rc = shown(p, rc, error)) < 0)
        return rc;
    p->head.width = shows_pictures(p) ? spec->picture_width : 0;
    p->head.height = shows_pictures(p) ? spec->picture_height : 0;
    p->head.text_bytes = 0;
    if (!shows_pictures(p))
        p->head.text_bytes = (uint32_t)strnlen(p->text, sizeof p->text - 1);
    p->head.episode = p->finished + 1;
    /* A first row arrives with the next step. */
    p->head.step = p->begins ? 0 : (uint32_t)(p->stepping.steps - p->stepping.arrivals.began[0]);
    p->head.score = p->stepping.arrivals.total[0];
    for (uint32_t a = 0; a < spec->agents; a++)
        if (p->stepping.arrivals.playing[a]) {
            p->head.score += p->stepping.arrivals.score[a];
            /* The next step counts the reward of arriving in this state. */
            if (spec->agent[a].phase == 0)
                p->head.score += (double)p->stepping.buffers[a].reward[0];
        }
    return put_frame(p, RM_PLAYER_FRAME, error);
}

static int end_episode(struct player *p, struct rm_error *error)
{
    p->head.text_bytes = p->head.width = p->head.height = 0;
    p->head.episode = p->finished;
    p->head.step = (uint32_t)p->steps;
    p->head.score = p->score;
    return put_frame(p, RM_PLAYER_END, error);
}

/* --- episodes -------------------------------------------------------------------------------- */

static void agent_finished(void *self, uint32_t agent, uint32_t world,
                           const struct rm_episode *episode)
{
    (void)self, (void)agent, (void)world, (void)episode;
}

static void world_finished(void *self, uint32_t world, double score, uint64_t steps)
{
    struct player *p = self;
    (void)world;
    p->finished++;
    p->score = score;
    p->steps = steps;
}

/* The weights of policy `index` from whichever file has its name; the only one may have any. */
static int read_policy(struct player *p, uint32_t index, struct rm_error *error)
{
    struct rm_acting *acting = &p->stepping.policies[index].acting;
    const struct rm_policy_plan *plan = &p->plan.policy[index];
    float *all = calloc(plan->param_count, sizeof *all);
    int rc = 0;
    bool found = false;
    if (!all)
        return rm_fail(error, -ENOMEM, "policy %s: no memory", plan->name);

    for (uint32_t i = 0; rc == 0 && !found && i < p->options->file_count; i++) {
        struct rm_policy_file_facts facts;
        rc = rm_policy_file_facts(p->options->files[i], &facts, error);
        found = rc == 0 && (!strcmp(facts.name, plan->name) ||
                            (p->plan.policies == 1 && p->options->file_count == 1));
        if (found)
            rc = rm_policy_file_read(acting->net, p->options->files[i], all, error);
    }
    if (rc == 0 && !found)
        rc = rm_fail(error, -ENOENT, "no file has policy %s; it needs a --policy", plan->name);
    if (rc == 0) {
        memcpy(acting->params, all, plan->act_count * sizeof *all);
        rm_acting_prepare(acting);
    }
    free(all);
    return rc;
}

/* Names of built-in worlds, with commas: those that draw pictures, or those that show text. */
static void names_of_shown(bool pictures, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (const struct rm_env_ops *const *ops = rm_builtin_worlds; *ops && used < size; ops++)
        if (pictures ? (*ops)->show_picture != NULL : (*ops)->show_text != NULL)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", (*ops)->name);
}

static int check_shown(const struct player *p, struct rm_error *error)
{
    char others[256];
    const struct rm_env_ops *ops = p->stepping.batch.world.ops;
    const struct rm_env_spec *spec = p->stepping.batch.spec;
    const bool picture = ops->show_picture && spec->picture_width && spec->picture_height;
    if (shows_pictures(p) && !picture) {
        names_of_shown(true, others, sizeof others);
        return rm_fail(
            error, -EINVAL, "world %s draws no pictures to record%s; built-in worlds that do: %s",
            spec->name, ops->show_text ? "; without --record its text is shown" : "", others);
    }
    if (p->options->purpose == RM_PLAYER_SHOW && !ops->show_text) {
        names_of_shown(false, others, sizeof others);
        return rm_fail(error, -EINVAL,
                       "world %s does not show itself as text%s; built-in worlds that do: %s",
                       spec->name, picture ? "; --record FILE.gif has its picture" : "", others);
    }
    return 0;
}

/* --- ranking --------------------------------------------------------------------------------- */

static double figure_of(const struct player *p, const struct rm_episode *episode, uint32_t which)
{
    return episode->figures[p->rank.figure[which]];
}

/* How many queries there are the world says with the first episode. */
static int begin_ranking(struct player *p, double queries)
{
    struct ranks *r = &p->rank;
    if (!(queries >= 1 && queries <= INT32_MAX))
        return rm_fail(&r->error, -EPROTO,
                       "the world reports %g queries to rank; must be 1 to 2147483647", queries);
    const uint32_t there = (uint32_t)queries, wanted = p->options->episodes;
    return rm_ranking_create(&r->ranking, p->experiment->seed,
                             wanted && wanted < there ? wanted : there, r->corruptions, &r->error);
}

static void candidate_finished(void *self, uint32_t agent, uint32_t world,
                               const struct rm_episode *episode)
{
    struct player *p = self;
    struct ranks *r = &p->rank;
    double score = r->logp[world];
    (void)agent;
    r->logp[world] = 0;
    if (r->over || (!r->ranking.score && begin_ranking(p, figure_of(p, episode, QUERIES)) < 0)) {
        r->over = true;
        return;
    }
    const bool label = figure_of(p, episode, LABEL) > 0, proved = figure_of(p, episode, PROVED) > 0;
    const uint32_t candidate = (uint32_t)figure_of(p, episode, CANDIDATE);
    const bool none = candidate && label; /* the query has fewer corruptions than that */
    if (!proved)
        score -= r->unproved;
    if (rm_ranking_add(&r->ranking, (uint32_t)figure_of(p, episode, QUERY), candidate,
                       none ? (double)NAN : score) &&
        !none) {
        rm_tally_add(&r->returns, episode->score);
        rm_tally_add(&r->proved[label], proved);
    }
    r->over = r->ranking.missing == 0;
}

static void nothing_finished(void *self, uint32_t world, double score, uint64_t steps)
{
    (void)self, (void)world, (void)score, (void)steps;
}

static int prepare_ranking(struct player *p, struct rm_error *error)
{
    struct ranks *r = &p->rank;
    json_t *options = json_loads(p->world.options[0] ? p->world.options : "{}", 0, NULL);
    r->corruptions = (uint32_t)json_integer_value(json_object_get(options, "ranking"));
    r->unproved = json_integer_value(json_object_get(options, "compat")) ? 0 : UNPROVED;
    json_decref(options);
    if (!rm_algorithm_traits(p->experiment->algorithm.name)->logp)
        return rm_fail(error, -EINVAL,
                       "algorithm.name: policies of %s have no probabilities to rank by; those of "
                       "ppo, appo and vtrace have",
                       rm_algorithm_names[p->experiment->algorithm.name]);
    for (uint32_t i = 0; i < RANK_FIGURES; i++) {
        uint32_t f = 0;
        while (f < p->plan.figures && strcmp(p->plan.figure[f].name, rank_figures[i]) != 0)
            f++;
        if (f == p->plan.figures || p->plan.agents != 1)
            return rm_fail(error, -EINVAL, "world \"%s\" has no queries to rank", p->world.name);
        r->figure[i] = f;
    }
    r->logp = calloc(p->worlds, sizeof *r->logp);
    return r->logp ? 0 : rm_fail(error, -ENOMEM, "no memory to rank");
}

static json_t *ranks_json(struct rm_ranks r)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "ranked", (json_int_t)r.ranked, "mrr",
                     rm_json_finite(r.reciprocal), "hits1", rm_json_finite(r.hits1), "hits3",
                     rm_json_finite(r.hits3), "hits10", rm_json_finite(r.hits10));
}

static json_t *ranking_json(const struct ranks *r)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:{s:o, s:o}, s:{s:o, s:o}}", "queries",
                     (json_int_t)r->ranking.queries, "corruptions", (json_int_t)r->corruptions,
                     "head", ranks_json(rm_ranking_side(&r->ranking, RM_RANKING_HEAD)), "tail",
                     ranks_json(rm_ranking_side(&r->ranking, RM_RANKING_TAIL)), "both",
                     ranks_json(rm_ranking_both(&r->ranking)), "proved", "true",
                     rm_json_finite(rm_tally_mean(&r->proved[1])), "corrupted",
                     rm_json_finite(rm_tally_mean(&r->proved[0])), "return", "mean",
                     rm_json_finite(rm_tally_mean(&r->returns)), "stderr",
                     rm_json_finite(rm_tally_error(&r->returns)));
}

/* --- all episodes ---------------------------------------------------------------------------- */

static bool tallies(const struct player *p)
{
    return p->options->purpose == RM_PLAYER_TALLY || p->options->purpose == RM_PLAYER_ROWS_TOO;
}

static bool ranks(const struct player *p)
{
    return p->options->purpose == RM_PLAYER_RANK;
}

static struct rm_episode_sink sink_of(struct player *p)
{
    if (tallies(p))
        return rm_tallies_sink(&p->tallies);
    return ranks(p) ? (struct rm_episode_sink){p, candidate_finished, nothing_finished}
                    : (struct rm_episode_sink){p, agent_finished, world_finished};
}

uint32_t rm_player_worlds(const struct rm_experiment *experiment, uint32_t episodes)
{
    const uint32_t wanted = experiment->evaluation.worlds;
    return wanted < episodes ? wanted : episodes;
}

/* What is needed for a result. */
static int prepare(struct player *p, struct rm_error *error)
{
    p->worlds = 1;
    if (tallies(p))
        p->worlds = rm_player_worlds(p->experiment, p->options->episodes);
    else if (ranks(p))
        p->worlds = p->experiment->evaluation.worlds;
    int rc = rm_tallies_create(&p->tallies, &p->plan, p->worlds, error);
    if (rc == 0)
        rm_tallies_begin(&p->tallies, p->options->episodes);
    return rc == 0 && ranks(p) ? prepare_ranking(p, error) : rc;
}

static int create(struct player *p, struct rm_error *error)
{
    struct rm_ring *rings[RM_BOARD_POLICIES];
    const struct rm_experiment *e = p->experiment;
    const bool shows = !tallies(p) && !ranks(p);
    int rc = rm_plan_make(&p->plan, e, error);
    if (rc < 0)
        return rc;
    if ((rc = rm_options_evaluation_world(e, &p->world)) < 0)
        return rm_fail(error, rc, "evaluation.options: no memory");
    if ((rc = prepare(p, error)) < 0 ||
        (rc = rm_stepping_own_rings(e, &p->plan, p->worlds, p->ring, rings, error)) < 0)
        return rc;
    struct rm_stepping_options options = {
        .world = &p->world,
        .seed = shows ? e->seed : rm_evaluator_seed(e),
        .total_worlds = p->worlds,
        .worlds = p->worlds,
        .quantiles = e->evaluation.quantiles,
        .greedy = ranks(p) || e->evaluation.answer == RM_ANSWER_GREEDY,
        .logp = p->rank.logp,
        .rings = rings,
        .sink = sink_of(p),
    };
    if ((rc = rm_stepping_create(&p->stepping, e, &p->plan, &options, error)) < 0 ||
        (rc = shows ? check_shown(p, error) : 0) < 0)
        return rc;
    for (uint32_t i = 0; i < p->plan.policies; i++)
        if ((rc = read_policy(p, i, error)) < 0)
            return rc;
    const struct rm_env_spec *spec = p->stepping.batch.spec;
    p->rgb = calloc((size_t)spec->picture_width * spec->picture_height + 1, 3);
    return p->rgb ? 0 : rm_fail(error, -ENOMEM, "no memory for a picture");
}

static int play_shown(struct player *p, struct rm_error *error)
{
    int rc = 0;
    while (rc == 0 && p->finished < p->options->episodes) {
        const uint32_t before = p->finished;
        if ((rc = show(p, error)) < 0 || (rc = rm_stepping_step(&p->stepping, error)) < 0)
            break;
        p->begins = p->finished > before;
        if (p->begins)
            rc = end_episode(p, error);
    }
    return rc;
}

static int put_result(struct player *p, struct rm_error *error)
{
    json_t *result = tallies(p) ? rm_tallies_json(&p->tallies) : ranking_json(&p->rank);
    char *text = json_dumps(result, JSON_COMPACT);
    const size_t bytes = text ? strlen(text) : 0;
    int rc = 0;
    if (!text || bytes >= sizeof p->text)
        rc = rm_fail(error, -ENOMEM, "no memory for the result");
    else
        memcpy(p->text, text, bytes);
    p->head = (struct rm_player_head){.text_bytes = (uint32_t)bytes};
    free(text);
    json_decref(result);
    return rc == 0 ? put_frame(p, RM_PLAYER_RESULT, error) : rc;
}

/* A row in parts that fit into frames. */
static int put_row(struct player *p, uint32_t policy, const uint8_t *row, size_t bytes,
                   struct rm_error *error)
{
    int rc = 0;
    for (size_t at = 0, n; rc == 0 && at < bytes; at += n) {
        n = bytes - at < RM_PLAYER_TEXT_MAX ? bytes - at : RM_PLAYER_TEXT_MAX;
        memcpy(p->text, row + at, n);
        p->head = (struct rm_player_head){.episode = policy, .text_bytes = (uint32_t)n};
        rc = put_frame(p, RM_PLAYER_ROWS, error);
    }
    return rc;
}

static int put_rows(struct player *p, struct rm_error *error)
{
    int rc = 0;
    for (uint32_t i = 0; i < p->plan.policies; i++) {
        const struct rm_ring *ring = &p->ring[i];
        const struct rm_stepping_policy *of = &p->stepping.policies[i];
        for (; rc == 0 && p->sent[i] + of->reserved < of->next; p->sent[i]++)
            rc = put_row(p, i, ring->data + (p->sent[i] & ring->mask) * ring->row_bytes,
                         ring->row_bytes, error);
    }
    return rc;
}

static int step(struct player *p, struct rm_error *error)
{
    const int rc = rm_stepping_step(&p->stepping, error);
    return rc == 0 && p->options->purpose == RM_PLAYER_ROWS_TOO ? put_rows(p, error) : rc;
}

static int play_for_result(struct player *p, struct rm_error *error)
{
    int rc = 0;
    while (rc == 0 && (tallies(p) ? p->tallies.missing > 0 : !p->rank.over))
        rc = step(p, error);
    if (rc == 0 && p->rank.error.text[0])
        rc = rm_fail(error, -EPROTO, "%s", p->rank.error.text);
    return rc == 0 ? put_result(p, error) : rc;
}

static int play(struct player *p, struct rm_error *error)
{
    const int rc = rm_stepping_begin(&p->stepping, error);
    if (rc < 0)
        return rc;
    return tallies(p) || ranks(p) ? play_for_result(p, error) : play_shown(p, error);
}

int rm_player_run(const struct rm_experiment *experiment, const struct rm_player_options *options,
                  struct rm_error *error)
{
    struct player *p = calloc(1, sizeof *p);
    if (!p)
        return rm_fail(error, -ENOMEM, "no memory to play");
    p->experiment = experiment;
    p->options = options;
    for (uint32_t i = 0; i < RM_BOARD_POLICIES; i++)
        p->ring[i].region.fd = -1;
    int rc = create(p, error);
    if (rc == 0)
        rc = play(p, error);
    if (rc < 0 && rc != -EPIPE) {
        struct rm_error ignored;
        p->head = (struct rm_player_head){.text_bytes = (uint32_t)strlen(error->text)};
        memcpy(p->text, error->text, p->head.text_bytes);
        put_frame(p, RM_PLAYER_REFUSED, &ignored);
    }
    if (p->stepping.experiment)
        rm_stepping_destroy(&p->stepping);
    for (uint32_t i = 0; i < RM_BOARD_POLICIES; i++)
        rm_ring_close(&p->ring[i]);
    rm_tallies_destroy(&p->tallies);
    rm_ranking_destroy(&p->rank.ranking);
    free(p->rank.logp);
    free(p->rgb);
    free(p);
    return rc;
}
