/* history_codes: the rows of a table that each row of a packed history (learner/net/history.h)
 * takes, for both backends. The table has, one after another:
 *
 *   1                   what every transition has, and every query if query_codes is 0
 *   query_codes         queries
 *   RM_HISTORY_ENDS     <c> and </c>
 *   RM_HISTORY_TYPES    types
 *   positions           positions */
#ifndef RM_LEARNER_BACKEND_HISTORY_CODES_H
#define RM_LEARNER_BACKEND_HISTORY_CODES_H

#include "learner/backend/attention.h"
#include "shm/base/both.h"

#include <stdint.h>

enum rm_history_kind {
    RM_HISTORY_PADDING = 0,
    RM_HISTORY_TRANSITION,
    RM_HISTORY_BEGIN, /* <c> */
    RM_HISTORY_END,   /* </c> */
    RM_HISTORY_QUERY,
    RM_HISTORY_KINDS
};

#define RM_HISTORY_ENDS  2u /* <c>, </c> */
#define RM_HISTORY_TYPES 3u /* a transition or query, <c>, </c> */

/* The type, in the network's head, of a step at which the region ends; other steps have type 0. */
#define RM_HISTORY_TYPE_END (RM_HISTORY_TYPES - 1)

/* The type of a query, one of a region's steps. */
RM_BOTH uint32_t rm_history_type(uint32_t queries, uint32_t query)
{
    return query + 1 == queries ? RM_HISTORY_TYPE_END : 0;
}

/* Rows of the table that a row takes: its own, its type's, its position's. */
#define RM_HISTORY_CODES 3u

struct rm_history_codes {
    const uint32_t *spans; /* (batch + 1), as in rm_spans */
    uint32_t batch, rows;  /* as in rm_spans */
    uint32_t width;        /* floats of a row */
    uint32_t queries, query_codes, positions;
};

RM_BOTH uint32_t rm_history_types_at(const struct rm_history_codes *h)
{
    return 1 + h->query_codes + RM_HISTORY_ENDS;
}

/* Rows of the table. */
RM_BOTH uint32_t rm_history_table_rows(const struct rm_history_codes *h)
{
    return rm_history_types_at(h) + RM_HISTORY_TYPES + h->positions;
}

/* Row i of a sample of `rows` rows. A code or a position outside of its table is the table's first,
 * or last. */
RM_BOTH void rm_history_row_codes(const struct rm_history_codes *h, const float *x, uint32_t i,
                                  uint32_t rows, int32_t codes[RM_HISTORY_CODES])
{
    const uint32_t context = rm_attention_context(rows, h->queries);
    const uint32_t at = i < context ? i : rm_attention_seen(rows, h->queries, i);
    uint32_t own = 0, type = 0;
    if (i >= context) {
        if (h->query_codes)
            own = 1 + (x[1] >= 0 && x[1] < (float)h->query_codes ? (uint32_t)x[1] : 0);
    } else if (x[0] == (float)RM_HISTORY_BEGIN || x[0] == (float)RM_HISTORY_END) {
        const uint32_t end = x[0] == (float)RM_HISTORY_END;
        own = 1 + h->query_codes + end;
        type = 1 + end;
    }
    codes[0] = (int32_t)own;
    codes[1] = (int32_t)(rm_history_types_at(h) + type);
    codes[2] = (int32_t)(rm_history_types_at(h) + RM_HISTORY_TYPES +
                         (at < h->positions ? at : h->positions - 1));
}

#endif
