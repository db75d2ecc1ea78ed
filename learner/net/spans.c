/* Finds the tokens of a batch that have rows. A token is padding, and has no row, if all its
 * numbers are 0 or if it is after the last one of a counted observation. The first token of a
 * pointer always has a row, because it is the state. */
#include "learner/net/parts.h"

#include <string.h>

#define ALL_BITS 0xffffffffu
#define NO_SIGN  0x7fffffffu /* of a float: either zero is 0 */

/* Whether one of n words is not 0, but for bits that are not in `mask`. */
static bool any(const float *x, uint32_t n, uint32_t mask)
{
    uint32_t one;
    uint64_t bits = 0, two; /* padding is read to its end, so two words at a time */
    memcpy(&one, x, sizeof one);
    if (one & mask)
        return true;
    uint32_t i = 1;
    for (; i + 2 <= n; i += 2) {
        memcpy(&two, x + i, sizeof two);
        bits |= two;
    }
    if (i < n) {
        memcpy(&one, x + i, sizeof one);
        bits |= one;
    }
    return bits & ((uint64_t)mask << 32 | mask);
}

static uint32_t count_of(const struct rm_token_piece *piece, const float *word)
{
    int32_t code;
    memcpy(&code, word, sizeof code);
    return (uint32_t)(piece->codes ? code : (int32_t)*word);
}

/* Token t of a piece of an input row. */
static bool there(const struct rm_token_piece *piece, const float *row, uint32_t t)
{
    const float *token = row + piece->at + (size_t)t * piece->numbers;
    if (piece->numbers == 0)
        return true;
    if (piece->counts) {
        const uint32_t of_frame = piece->tokens / piece->counts, frame = t / of_frame;
        return t % of_frame * piece->numbers <
               count_of(piece, row + piece->counts_at + frame) * piece->item;
    }
    return any(token, piece->numbers, piece->codes ? ALL_BITS : NO_SIGN);
}

static void find(const struct rm_token_set *set, const float *x, uint32_t batch, uint32_t *spans,
                 uint32_t *slots)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < batch; i++, x += set->width) {
        spans[i] = row;
        for (uint32_t p = 0, slot = 0; p < set->pieces; p++)
            for (uint32_t t = 0; t < set->piece[p].tokens; t++, slot++)
                if ((slot == 0 && set->keeps_first) || there(&set->piece[p], x, t))
                    slots[row++] = slot;
    }
    spans[batch] = row;
}

void rm_spans_find(struct rm_net_workspace *w, uint32_t batch)
{
    const struct rm_net *net = w->net;
    for (uint32_t k = 0; k < net->set_count; k++)
        if (rm_on_device(w))
            w->backend->ops->find_spans(w->backend, w->x, batch, &net->sets[k], w->spans[k],
                                        w->slots[k]);
        else {
            find(&net->sets[k], w->x, batch, w->spans[k], w->slots[k]);
            w->tokens[k] += w->spans[k][batch];
            w->padding[k] += (uint64_t)batch * net->sets[k].tokens - w->spans[k][batch];
        }
}

uint32_t rm_spans_group(const struct rm_net_workspace *w, uint32_t first, uint32_t batch,
                        uint32_t most)
{
    uint32_t n = 1;
    bool fits = true;
    while (fits && n < most && first + n < batch) {
        for (uint32_t k = 0; k < w->net->set_count; k++)
            fits = fits && w->spans[k][first + n + 1] - w->spans[k][first] <= most;
        n += fits;
    }
    return n;
}
