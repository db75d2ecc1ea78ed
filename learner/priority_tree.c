#include "learner/priority_tree.h"

#include "shm/base/fault.h"

#include <string.h>

#define FAN RM_PRIORITY_FAN
/* Descents or climbs side by side: as many as cache misses that a core has open at a time. */
#define SIDE_BY_SIDE 16u

/* One node, in the order in which find() takes it apart. */
static inline double sum_of(const double *c)
{
    return ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]));
}

void rm_priority_rebuild(struct rm_priorities *p)
{
    /* What fills levels up to whole lines stands for nothing, and must never be drawn. */
    for (uint64_t i = p->spec.slots * p->spec.lanes; i < p->nodes[0]; i++)
        p->level[0][i] = 0;
    for (uint32_t l = 0; l + 1 < p->levels; l++) {
        for (uint64_t i = 0; i < p->nodes[l] / FAN; i++)
            p->level[l + 1][i] = sum_of(p->level[l] + i * FAN);
        for (uint64_t i = p->nodes[l] / FAN; i < p->nodes[l + 1]; i++)
            p->level[l + 1][i] = 0;
    }
}

double rm_priority_total(const struct rm_priorities *p)
{
    return sum_of(p->level[p->levels - 1]);
}

uint64_t rm_priority_count(const struct rm_priorities *p)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < p->nodes[0]; i++)
        n += p->level[0][i] > 0;
    return n;
}

static int64_t set_some(struct rm_priorities *p, const uint64_t *leaf, const double *value,
                        uint32_t n)
{
    uint64_t at[SIDE_BY_SIDE];
    int64_t more = 0;
    for (uint32_t i = 0; i < n; i++) {
        double *here = p->level[0] + leaf[i];
        more += (value[i] > 0) - (*here > 0);
        *here = value[i];
        at[i] = leaf[i];
    }
    RM_FAULT("priorities.set.leaves");
    for (uint32_t l = 0; l + 1 < p->levels; l++) {
        const double *from = p->level[l];
        double *to = p->level[l + 1];
        for (uint32_t i = 0; i < n; i++) {
            at[i] /= FAN;
            to[at[i]] = sum_of(from + at[i] * FAN);
        }
        RM_FAULT("priorities.set.level");
    }
    return more;
}

/* The lines that set_some() will want of the two or three levels that are too large for the first
 * cache. */
static void fetch(const struct rm_priorities *p, const uint64_t *leaf, uint32_t n)
{
    const uint32_t levels = p->levels < 3 ? p->levels : 3;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = leaf[i];
        for (uint32_t l = 0; l < levels; l++, at /= FAN)
            __builtin_prefetch(p->level[l] + at, 1);
    }
}

int64_t rm_priority_set(struct rm_priorities *p, const uint64_t *leaf, const double *value,
                        uint32_t n)
{
    int64_t more = 0;
    fetch(p, leaf, n < SIDE_BY_SIDE ? n : SIDE_BY_SIDE);
    for (uint32_t i = 0; i < n; i += SIDE_BY_SIDE) {
        const uint32_t left = n - i, here = left < SIDE_BY_SIDE ? left : SIDE_BY_SIDE;
        const uint32_t after = left - here;
        fetch(p, leaf + i + here, after < SIDE_BY_SIDE ? after : SIDE_BY_SIDE);
        more += set_some(p, leaf + i, value + i, here);
    }
    RM_FAULT("priorities.set.after");
    return more;
}

/* yes or no as one of two numbers, by masks: a branch would be mispredicted every other time. */
static inline double pick(uint64_t which, double yes, double no)
{
    uint64_t y, n, mask = 0 - which;
    double picked;
    memcpy(&y, &yes, sizeof y);
    memcpy(&n, &no, sizeof n);
    y = (y & mask) | (n & ~mask);
    memcpy(&picked, &y, sizeof picked);
    return picked;
}

/* Which of eight neighbours, by three halvings: right where the left half is passed, but never into
 * nothing, so that rounding (u - left may come out as large as right) cannot lead to a leaf of 0.
 */
static inline uint64_t child_of(const double *c, double *u)
{
    const double s01 = c[0] + c[1], s23 = c[2] + c[3], s45 = c[4] + c[5], s67 = c[6] + c[7];
    const double low = s01 + s23, high = s45 + s67;
    double left = *u;
    const uint64_t half = (uint64_t)(left >= low) & (uint64_t)(high > 0);
    left -= pick(half, low, 0);
    const double pair = pick(half, s45, s01), other = pick(half, s67, s23);
    const uint64_t second = (uint64_t)(left >= pair) & (uint64_t)(other > 0);
    left -= pick(second, pair, 0);
    const uint64_t at = half * 4 + second * 2;
    const uint64_t third = (uint64_t)(left >= c[at]) & (uint64_t)(c[at + 1] > 0);
    *u = left - pick(third, c[at], 0);
    return at + third;
}

static void find_some(const struct rm_priorities *p, const double *at, uint32_t n, uint64_t *leaf)
{
    double u[SIDE_BY_SIDE];
    for (uint32_t i = 0; i < n; i++) {
        u[i] = at[i];
        leaf[i] = 0;
    }
    for (uint32_t l = p->levels; l-- > 0;) {
        const double *level = p->level[l];
        const double *below = l ? p->level[l - 1] : NULL;
        for (uint32_t i = 0; i < n; i++) {
            leaf[i] = leaf[i] * FAN + child_of(level + leaf[i] * FAN, &u[i]);
            if (below)
                __builtin_prefetch(below + leaf[i] * FAN);
        }
    }
}

void rm_priority_find(const struct rm_priorities *p, const double *at, uint32_t n, uint64_t *leaf)
{
    for (uint32_t i = 0; i < n; i += SIDE_BY_SIDE)
        find_some(p, at + i, n - i < SIDE_BY_SIDE ? n - i : SIDE_BY_SIDE, leaf + i);
}
