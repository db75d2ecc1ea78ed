#include "learner/priority_tree.h"

#include "learner/backend/priority_node.h"
#include "shm/base/fault.h"

#define FAN RM_PRIORITY_FAN
_Static_assert(FAN == RM_PRIORITY_CHILDREN, "a node is a line");
/* Number of descents or climbs side by side: the number of cache misses that a core can have
 * open. */
#define SIDE_BY_SIDE 16u

void rm_priority_rebuild(struct rm_priorities *p)
{
    /* Padding of levels to whole lines must never be drawn. */
    for (uint64_t i = p->spec.slots * p->spec.lanes; i < p->nodes[0]; i++)
        p->level[0][i] = 0;
    for (uint32_t l = 0; l + 1 < p->levels; l++) {
        for (uint64_t i = 0; i < p->nodes[l] / FAN; i++)
            p->level[l + 1][i] = rm_priority_sum(p->level[l] + i * FAN);
        for (uint64_t i = p->nodes[l] / FAN; i < p->nodes[l + 1]; i++)
            p->level[l + 1][i] = 0;
    }
}

double rm_priority_total(const struct rm_priorities *p)
{
    return rm_priority_sum(p->level[p->levels - 1]);
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
            to[at[i]] = rm_priority_sum(from + at[i] * FAN);
        }
        RM_FAULT("priorities.set.level");
    }
    return more;
}

/* Prefetches the lines that set_some() needs of the two or three levels that exceed the first-level
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
            leaf[i] = leaf[i] * FAN + rm_priority_child(level + leaf[i] * FAN, &u[i]);
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
