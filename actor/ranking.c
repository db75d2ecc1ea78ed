#include "actor/ranking.h"

#include "shm/base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static uint32_t candidates(const struct rm_ranking *r)
{
    return 1 + 2 * r->corruptions;
}

int rm_ranking_create(struct rm_ranking *r, uint64_t seed, uint32_t queries, uint32_t corruptions,
                      struct rm_error *error)
{
    *r = (struct rm_ranking){.seed = seed, .queries = queries, .corruptions = corruptions};
    r->missing = (uint64_t)queries * candidates(r);
    r->score = calloc(r->missing, sizeof *r->score);
    r->seen = calloc(r->missing, sizeof *r->seen);
    if (r->score && r->seen)
        return 0;
    rm_ranking_destroy(r);
    return rm_fail(error, -ENOMEM, "no memory to rank %u queries among %u", queries,
                   2 * corruptions);
}

void rm_ranking_destroy(struct rm_ranking *r)
{
    free(r->score);
    free(r->seen);
    *r = (struct rm_ranking){.seed = 0};
}

bool rm_ranking_add(struct rm_ranking *r, uint32_t query, uint32_t candidate, double score)
{
    const size_t at = (size_t)query * candidates(r) + candidate;
    if (query >= r->queries || candidate >= candidates(r) || r->seen[at])
        return false;
    r->seen[at] = 1;
    r->score[at] = (float)score;
    r->missing--;
    return true;
}

/* 1: the true query is first; 0: it has no corruption of this side. */
static uint32_t rank_of(const struct rm_ranking *r, uint32_t query, enum rm_ranking_side side)
{
    const float *score = r->score + (size_t)query * candidates(r);
    const float *other = score + 1 + side * r->corruptions;
    uint32_t better = 0, equal = 0, there = 0;
    for (uint32_t i = 0; i < r->corruptions; i++) {
        there += !isnan(other[i]);
        better += other[i] > score[0];
        equal += other[i] == score[0];
    }
    struct rm_rng rng = rm_rng_at(r->seed, RM_STREAM_EVALUATE, query, 1 + side);
    return there ? 1 + better + rm_rng_below(&rng, equal + 1) : 0;
}

struct rm_ranks rm_ranking_side(const struct rm_ranking *r, enum rm_ranking_side side)
{
    struct rm_ranks sum = {.ranked = 0};
    for (uint32_t q = 0; q < r->queries; q++) {
        const uint32_t rank = rank_of(r, q, side);
        if (!rank)
            continue;
        sum.ranked++;
        sum.reciprocal += 1.0 / rank;
        sum.hits1 += rank <= 1;
        sum.hits3 += rank <= 3;
        sum.hits10 += rank <= 10;
    }
    const double n = sum.ranked ? (double)sum.ranked : NAN;
    return (struct rm_ranks){sum.ranked, sum.reciprocal / n, sum.hits1 / n, sum.hits3 / n,
                             sum.hits10 / n};
}

struct rm_ranks rm_ranking_both(const struct rm_ranking *r)
{
    const struct rm_ranks head = rm_ranking_side(r, RM_RANKING_HEAD),
                          tail = rm_ranking_side(r, RM_RANKING_TAIL);
    if (!head.ranked || !tail.ranked)
        return head.ranked ? head : tail;
    return (struct rm_ranks){head.ranked + tail.ranked, (head.reciprocal + tail.reciprocal) / 2,
                             (head.hits1 + tail.hits1) / 2, (head.hits3 + tail.hits3) / 2,
                             (head.hits10 + tail.hits10) / 2};
}
