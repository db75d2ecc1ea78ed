#include "daemon/ctl/top.h"

#include <math.h>
#include <string.h>

const char *rm_top_order_name(enum rm_top_order order)
{
    static const char *const names[] = {
        [RM_TOP_BY_NUMBER] = "number",
        [RM_TOP_BY_WORK] = "work",
        [RM_TOP_BY_MEMORY] = "memory",
        [RM_TOP_BY_DEATHS] = "deaths",
    };
    _Static_assert(sizeof names / sizeof names[0] == RM_TOP_ORDER_COUNT, "every order has a name");
    return names[order];
}

const struct rm_snapshot_worker *rm_top_earlier(const struct rm_top *top,
                                                const struct rm_snapshot_worker *worker)
{
    for (unsigned i = 0; top->have_before && i < top->before->workers; i++)
        if (!strcmp(top->before->worker[i].name, worker->name))
            return &top->before->worker[i];
    return NULL;
}

/* Larger comes first; 0 for all keeps the experiment's own order. */
static double sort_key(const struct rm_top *top, const struct rm_snapshot_worker *worker)
{
    double share[RM_PHASE_COUNT], key = 0;
    switch (top->order) {
    case RM_TOP_BY_WORK:
        rm_snapshot_phases(worker, rm_top_earlier(top, worker), share);
        for (int p = 0; p < RM_PHASE_COUNT; p++)
            key += p == RM_PHASE_WAITING ? 0 : share[p];
        return key;
    case RM_TOP_BY_MEMORY:
        key = worker->rss_bytes;
        break;
    case RM_TOP_BY_DEATHS:
        key = worker->deaths;
        break;
    default:
        break;
    }
    return isnan(key) ? 0 : key;
}

void rm_top_sort(const struct rm_top *top, unsigned *index)
{
    double key[RM_BOARD_WORKERS];
    for (unsigned i = 0; i < top->now->workers; i++) {
        double k = sort_key(top, &top->now->worker[i]);
        unsigned at = i;
        for (; at > 0 && key[at - 1] < k; at--) {
            key[at] = key[at - 1];
            index[at] = index[at - 1];
        }
        key[at] = k;
        index[at] = i;
    }
}

double rm_top_speed(const struct rm_top *top)
{
    if (!isnan(top->now->steps_per_s))
        return top->now->steps_per_s;
    if (!top->have_before || top->seconds_between <= 0)
        return NAN;
    return (top->now->steps - top->before->steps) / top->seconds_between;
}

void rm_top_explain(struct rm_top *top, uint64_t now_ns)
{
    if (top->explained_ns && now_ns - top->explained_ns < RM_TOP_EXPLAIN_NS)
        return;
    top->explained_ns = now_ns;
    (void)rm_explain_sentence(top->now->directory, top->verdict, sizeof top->verdict);
}

void rm_top_split(const double *share, int cells, int *count)
{
    double total = 0, rest[RM_PHASE_COUNT];
    int given = 0;
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        total += share[p] > 0 ? share[p] : 0;
    for (int p = 0; p < RM_PHASE_COUNT; p++) {
        double exact = total > 0 && share[p] > 0 ? share[p] / total * cells : 0;
        count[p] = (int)exact;
        rest[p] = exact - count[p];
        given += count[p];
    }
    while (total > 0 && given < cells) {
        int most = 0;
        for (int p = 1; p < RM_PHASE_COUNT; p++)
            if (rest[p] > rest[most])
                most = p;
        count[most]++;
        rest[most] = -1;
        given++;
    }
}

char rm_top_phase_letter(int phase)
{
    static const char letters[] = {
        [RM_PHASE_OTHER] = '-',     [RM_PHASE_ENVIRONMENT] = 'e', [RM_PHASE_INFERENCE] = 'i',
        [RM_PHASE_RING] = 'r',      [RM_PHASE_WAITING] = '.',     [RM_PHASE_SAMPLING] = 's',
        [RM_PHASE_UPLOAD] = 'u',    [RM_PHASE_FORWARD] = 'f',     [RM_PHASE_BACKWARD] = 'b',
        [RM_PHASE_OPTIMIZER] = 'o', [RM_PHASE_PUBLISH] = 'p',     [RM_PHASE_CHECKPOINT] = 'c',
    };
    _Static_assert(sizeof letters == RM_PHASE_COUNT, "every phase has a letter");
    return letters[phase];
}
