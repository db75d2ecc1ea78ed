/* tally: the results of a number of episodes: means and standard errors of returns, lengths and the
 * world's figures, for each agent. Each world plays its share of the episodes, however long they
 * are, because counting the episodes that end first would favour short ones.
 *
 * Belongs to one thread; nothing is allocated after create. */
#ifndef RM_ACTOR_TALLY_H
#define RM_ACTOR_TALLY_H

#include "actor/worlds/arrivals.h"
#include "shm/session/session.h"

#include <jansson.h>

/* Running mean and sum of squared deviations (Welford 1962). */
struct rm_tally {
    uint64_t n;
    double mean, squares;
};

void rm_tally_add(struct rm_tally *tally, double x);
double rm_tally_mean(const struct rm_tally *tally);  /* NAN without values */
double rm_tally_error(const struct rm_tally *tally); /* standard error of the mean; 0 below two */

/* Each world's episodes in their order, in parts of equal length: does the score rise? */
#define RM_TALLY_TENTHS 10u

struct rm_tallies {
    const struct rm_plan *plan;
    uint32_t worlds;
    uint64_t wanted;              /* episodes of all worlds */
    uint64_t missing;             /* episodes of these that are still to be played */
    uint64_t *played;             /* (worlds) */
    struct rm_tally score, steps; /* of a world's episodes: sum over agents; vector steps */
    struct rm_tally tenth[RM_TALLY_TENTHS]; /* of the score; none in some if a world plays fewer
                                             * episodes */
    struct rm_tally agent[RM_BOARD_AGENTS], length[RM_BOARD_AGENTS];
    struct rm_tally figure[RM_BOARD_AGENTS][RM_BOARD_FIGURES][RM_BOARD_WORDS]; /* as on the board */
};

/* The plan outlives the tallies. */
int rm_tallies_create(struct rm_tallies *tallies, const struct rm_plan *plan, uint32_t worlds,
                      struct rm_error *error);
void rm_tallies_destroy(struct rm_tallies *tallies);

/* Resets all results; `wanted` episodes follow. */
void rm_tallies_begin(struct rm_tallies *tallies, uint64_t wanted);

/* Does the episode that this world plays count? */
bool rm_tallies_count(const struct rm_tallies *tallies, uint32_t world);

struct rm_episode_sink rm_tallies_sink(struct rm_tallies *tallies);

/* {"episodes", "score", "length", "tenths": [...], "agents": [{"name", "return", "length",
 * "figures"}]}; every number is {"mean", "stderr"}, a figure of words an object of these by word.
 * NULL: no memory. */
json_t *rm_tallies_json(const struct rm_tallies *tallies);

#endif
