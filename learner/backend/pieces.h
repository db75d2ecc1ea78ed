/* pieces: parts of a number of rows or columns. */
#ifndef RM_LEARNER_BACKEND_PIECES_H
#define RM_LEARNER_BACKEND_PIECES_H

#include <stdint.h>

static inline uint32_t rm_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Number of pieces of `per` in n; the last one may be smaller. */
static inline uint32_t rm_pieces(uint32_t n, uint32_t per)
{
    return (n + per - 1) / per;
}

struct rm_piece {
    uint32_t from, n;
};

static inline struct rm_piece rm_piece(uint32_t n, uint32_t per, uint32_t index)
{
    return (struct rm_piece){index * per, rm_least(n - index * per, per)};
}

/* Columns of a panel in memory: whole cache lines of floats. */
static inline uint32_t rm_pad_columns(uint32_t columns)
{
    return (columns + 15) / 16 * 16;
}

#endif
