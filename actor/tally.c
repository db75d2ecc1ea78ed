#include "actor/tally.h"

#include "config/json_value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- one ------------------------------------------------------------------------------------- */

void rm_tally_add(struct rm_tally *tally, double x)
{
    double off = x - tally->mean;

    tally->n++;
    tally->mean += off / (double)tally->n;
    tally->squares += off * (x - tally->mean);
}

double rm_tally_mean(const struct rm_tally *tally)
{
    return tally->n ? tally->mean : NAN;
}

double rm_tally_error(const struct rm_tally *tally)
{
    if (tally->n < 2)
        return 0;
    double n = (double)tally->n;
    return sqrt(tally->squares / (n - 1) / n);
}

/* --- those of all agents --------------------------------------------------------------------- */

int rm_tallies_create(struct rm_tallies *t, const struct rm_plan *plan, uint32_t worlds,
                      struct rm_error *error)
{
    *t = (struct rm_tallies){.plan = plan, .worlds = worlds};
    t->played = calloc(worlds, sizeof *t->played);
    return t->played ? 0 : rm_fail(error, -ENOMEM, "no memory for %u worlds", worlds);
}

void rm_tallies_destroy(struct rm_tallies *t)
{
    free(t->played);
    t->played = NULL;
}

void rm_tallies_begin(struct rm_tallies *t, uint64_t wanted)
{
    *t = (struct rm_tallies){.plan = t->plan,
                             .worlds = t->worlds,
                             .wanted = wanted,
                             .missing = wanted,
                             .played = t->played};
    memset(t->played, 0, t->worlds * sizeof *t->played);
}

/* Number of episodes of a world that count. */
static uint64_t share_of(const struct rm_tallies *t, uint32_t world)
{
    return t->wanted / t->worlds + (world < t->wanted % t->worlds);
}

bool rm_tallies_count(const struct rm_tallies *t, uint32_t world)
{
    return t->played[world] < share_of(t, world);
}

static void agent_finished(void *self, uint32_t agent, uint32_t world,
                           const struct rm_episode *episode)
{
    struct rm_tallies *t = self;

    if (!rm_tallies_count(t, world))
        return;
    rm_tally_add(&t->agent[agent], episode->score);
    rm_tally_add(&t->length[agent], episode->steps);
    for (uint32_t f = 0; episode->figures && f < t->plan->figures; f++) {
        struct rm_tally *figure = t->figure[agent][f];
        const uint32_t words = t->plan->figure[f].words;
        if (isnan(episode->figures[f]))
            continue;
        if (!words)
            rm_tally_add(&figure[0], episode->figures[f]);
        for (uint32_t word = 0; word < words; word++)
            rm_tally_add(&figure[word], episode->figures[f] == word);
    }
}

static void world_finished(void *self, uint32_t world, double score, uint64_t steps)
{
    struct rm_tallies *t = self;

    if (!rm_tallies_count(t, world))
        return;
    rm_tally_add(&t->score, score);
    rm_tally_add(&t->steps, (double)steps);
    rm_tally_add(&t->tenth[t->played[world] * RM_TALLY_TENTHS / share_of(t, world)], score);
    t->played[world]++;
    t->missing--;
}

struct rm_episode_sink rm_tallies_sink(struct rm_tallies *t)
{
    return (struct rm_episode_sink){t, agent_finished, world_finished};
}

/* --- as JSON --------------------------------------------------------------------------------- */

static json_t *measure(const struct rm_tally *tally)
{
    return json_pack("{s:o, s:o}", "mean", rm_json_finite(rm_tally_mean(tally)), "stderr",
                     rm_json_finite(rm_tally_error(tally)));
}

static json_t *figures(const struct rm_tallies *t, uint32_t agent)
{
    json_t *all = json_object();
    for (uint32_t f = 0; f < t->plan->figures; f++) {
        const struct rm_board_figure *figure = &t->plan->figure[f];
        json_t *words = figure->words ? json_object() : NULL;
        for (uint32_t k = 0; k < figure->words; k++)
            json_object_set_new(words, figure->word[k], measure(&t->figure[agent][f][k]));
        json_object_set_new(all, figure->name, words ? words : measure(&t->figure[agent][f][0]));
    }
    return all;
}

json_t *rm_tallies_json(const struct rm_tallies *t)
{
    json_t *agents = json_array(), *tenths = json_array();
    for (uint32_t i = 0; i < RM_TALLY_TENTHS; i++)
        json_array_append_new(tenths, measure(&t->tenth[i]));
    for (uint32_t a = 0; a < t->plan->agents; a++)
        json_array_append_new(agents,
                              json_pack("{s:s, s:o, s:o, s:o}", "name", t->plan->agent_name[a],
                                        "return", measure(&t->agent[a]), "length",
                                        measure(&t->length[a]), "figures", figures(t, a)));
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "episodes", (json_int_t)t->score.n, "score",
                     measure(&t->score), "length", measure(&t->steps), "tenths", tenths, "agents",
                     agents);
}
