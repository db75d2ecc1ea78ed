/* ranking: ranks of true queries among corrupted ones, by score: mean reciprocal rank and hits for
 * each side of the query (Bordes 2013). A query's candidates are the true query, number 0, then up
 * to `corruptions` with another head, then up to `corruptions` with another tail. The order of
 * equal scores is drawn by (seed, query, side).
 *
 * Belongs to one thread. */
#ifndef RM_ACTOR_RANKING_H
#define RM_ACTOR_RANKING_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rm_ranking_side { RM_RANKING_HEAD, RM_RANKING_TAIL, RM_RANKING_SIDES };

struct rm_ranking {
    uint64_t seed;
    uint32_t queries, corruptions;
    float *score;     /* (queries, 1 + 2 corruptions); NAN: the candidate does not exist */
    uint8_t *seen;    /* same shape; 1: the score is known */
    uint64_t missing; /* number of candidates without a known score */
};

/* Means over the queries that have a corruption of the side; NAN if no query has one. */
struct rm_ranks {
    uint64_t ranked; /* queries */
    double reciprocal, hits1, hits3, hits10;
};

int rm_ranking_create(struct rm_ranking *ranking, uint64_t seed, uint32_t queries,
                      uint32_t corruptions, struct rm_error *error);
void rm_ranking_destroy(struct rm_ranking *ranking);

/* Sets the score of a candidate; NAN: the candidate does not exist. Returns false, and changes
 * nothing, if the score is already set. */
bool rm_ranking_add(struct rm_ranking *ranking, uint32_t query, uint32_t candidate, double score);

/* The ranks of one side. */
struct rm_ranks rm_ranking_side(const struct rm_ranking *ranking, enum rm_ranking_side side);

/* The mean of both sides. If one side has no ranks, those of the other side. */
struct rm_ranks rm_ranking_both(const struct rm_ranking *ranking);

#endif
