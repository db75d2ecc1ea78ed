#include "actor/worlds/builtin/prover_queries.h"

enum side { HEAD, TAIL, SIDES };
enum { DRAWS = 64, CANDIDATES = 3 /* of each side, with compat */ };

static uint32_t argument(rm_prover_atom query, enum side side)
{
    return side == HEAD ? rm_prover_first(query) : rm_prover_second(query);
}

static rm_prover_atom replaced(rm_prover_atom query, enum side side, uint32_t constant)
{
    const uint32_t pred = rm_prover_pred(query);
    return side == HEAD ? rm_prover_atom_of(pred, constant, rm_prover_second(query))
                        : rm_prover_atom_of(pred, rm_prover_first(query), constant);
}

/* Constants of the same domain, the argument itself among them; *count 0: there is no argument. */
static const uint32_t *domain_of(const struct rm_prover_kb *kb, rm_prover_atom query,
                                 enum side side, uint32_t *count)
{
    const uint32_t own = argument(query, side), domain = own ? kb->domain_of[own] : 0;
    *count = own ? kb->domain_at[domain + 1] - kb->domain_at[domain] : 0;
    return kb->member + kb->domain_at[domain];
}

/* The first corruption of one side that is not known, from constant `at` of its domain on; 0: all
 * are known. */
static rm_prover_atom scan(const struct rm_prover_kb *kb, rm_prover_atom query, enum side side,
                           uint32_t at)
{
    uint32_t count;
    const uint32_t *member = domain_of(kb, query, side, &count);
    for (uint32_t i = 0; i < count; i++) {
        const rm_prover_atom other = replaced(query, side, member[(at + i) % count]);
        if (other != query && !rm_prover_is_known(kb, other))
            return other;
    }
    return 0;
}

/* A corruption of one side; 0: all are known. */
static rm_prover_atom draw(const struct rm_prover_kb *kb, rm_prover_atom query, enum side side,
                           struct rm_rng *rng)
{
    uint32_t count, at = 0;
    const uint32_t *member = domain_of(kb, query, side, &count);
    for (int i = 0; count > 1 && i < DRAWS; i++) {
        at = rm_rng_below(rng, count);
        const rm_prover_atom other = replaced(query, side, member[at]);
        if (other != query && !rm_prover_is_known(kb, other))
            return other;
    }
    return scan(kb, query, side, at);
}

static bool precedes(rm_prover_atom a, rm_prover_atom b)
{
    if (rm_prover_first(a) != rm_prover_first(b))
        return rm_prover_first(a) < rm_prover_first(b);
    return a < b; /* predicate, then tail */
}

/* Three of each side, without what is known and repeats, in the order of their ids: the first, or
 * the second. 0: none is left. */
static rm_prover_atom draw_compat(const struct rm_prover_kb *kb, rm_prover_atom query,
                                  uint32_t second, struct rm_rng *rng)
{
    rm_prover_atom left[SIDES * CANDIDATES];
    uint32_t n = 0, count;
    for (int i = 0; i < SIDES * CANDIDATES; i++) {
        const enum side side = i < CANDIDATES ? HEAD : TAIL;
        const uint32_t *member = domain_of(kb, query, side, &count);
        if (count < 2)
            continue;
        const rm_prover_atom other = replaced(query, side, member[rm_rng_below(rng, count)]);
        uint32_t at = 0;
        while (at < n && precedes(left[at], other))
            at++;
        if (other == query || rm_prover_is_known(kb, other) || (at < n && left[at] == other))
            continue;
        for (uint32_t j = n++; j > at; j--)
            left[j] = left[j - 1];
        left[at] = other;
    }
    return n ? left[second < n ? second : 0] : 0;
}

struct rm_prover_question rm_prover_ask(const struct rm_prover_asking *asking, uint64_t turn,
                                        struct rm_rng *rng)
{
    const struct rm_prover_kb *kb = asking->kb;
    const struct rm_prover_queries *split = &kb->split[asking->split];
    const bool both = asking->labels == RM_PROVER_BOTH;
    uint32_t at = rm_rng_below(rng, split->count);
    if (both ? turn % 2 == 0 : asking->labels == RM_PROVER_POSITIVE)
        return (struct rm_prover_question){.query = split->query[at], .label = true};
    const uint32_t odd = (both ? turn / 2 : turn) % 2;
    rm_prover_atom other = 0;
    while (other == 0) { /* a query that cannot be corrupted: the next one, where one can */
        const rm_prover_atom query = split->query[at];
        const enum side side = odd ? TAIL : HEAD;
        other = asking->compat ? draw_compat(kb, query, odd, rng) : 0;
        if (other == 0)
            other = draw(kb, query, side, rng);
        if (other == 0)
            other = scan(kb, query, side == HEAD ? TAIL : HEAD, 0);
        at = at + 1 < split->count ? at + 1 : 0;
    }
    return (struct rm_prover_question){.query = other, .label = false};
}

const char *rm_prover_nothing_to_ask(const struct rm_prover_asking *asking)
{
    const struct rm_prover_queries *split = &asking->kb->split[asking->split];
    if (split->count == 0)
        return "has no queries";
    for (uint32_t q = 0; asking->labels != RM_PROVER_POSITIVE; q++) {
        if (q == split->count)
            return "has no query that can be corrupted: every replacement of a constant gives a "
                   "known fact";
        if (scan(asking->kb, split->query[q], HEAD, 0) ||
            scan(asking->kb, split->query[q], TAIL, 0))
            break;
    }
    return NULL;
}

static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Corruption number `number` of a side, in a drawn order: a step over the constants of the domain
 * that is coprime to their number reaches each of them once. 0: there are fewer. */
static rm_prover_atom corruption(const struct rm_prover_kb *kb, rm_prover_atom query,
                                 enum side side, uint32_t number, struct rm_rng *rng)
{
    uint32_t count;
    const uint32_t *member = domain_of(kb, query, side, &count);
    const uint32_t first = count ? rm_rng_below(rng, count) : 0;
    uint32_t stride = count > 1 ? 1 + rm_rng_below(rng, count - 1) : 1;
    while (count > 1 && greatest_divisor(stride, count) != 1)
        stride = stride + 1 < count ? stride + 1 : 1;
    for (uint32_t i = 0, at = first; i < count; i++, at = (at + stride) % count) {
        const rm_prover_atom other = replaced(query, side, member[at]);
        if (other != query && !rm_prover_is_known(kb, other) && number-- == 0)
            return other;
    }
    return 0;
}

struct rm_prover_question rm_prover_candidate(const struct rm_prover_asking *asking, uint64_t seed,
                                              uint32_t query, uint32_t candidate,
                                              uint32_t corruptions)
{
    const rm_prover_atom whole = asking->kb->split[asking->split].query[query];
    const enum side side = candidate <= corruptions ? HEAD : TAIL;
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_EVALUATE, query, SIDES + 1 + side);
    const rm_prover_atom other =
        candidate ? corruption(asking->kb, whole, side, (candidate - 1) % corruptions, &rng) : 0;
    return (struct rm_prover_question){.query = other ? other : whole, .label = !other};
}
