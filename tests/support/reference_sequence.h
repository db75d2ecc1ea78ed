/* reference_sequence: recurrent cells, attention and pointer scores once more, slowly, in double,
 * straight from the equations. */
#ifndef RM_TESTS_SUPPORT_REFERENCE_SEQUENCE_H
#define RM_TESTS_SUPPORT_REFERENCE_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Weights as PyTorch's: w_ih (gates n, in), w_hh (gates n, n), two biases. h (and c) are changed in
 * place; one lane. */
struct reference_cell {
    size_t in, n;
    const double *w_ih, *w_hh, *b_ih, *b_hh;
};
void reference_gru(const struct reference_cell *cell, const double *x, double *h);
void reference_lstm(const struct reference_cell *cell, const double *x, double *h, double *c);

/* Whether each row of a sample sees each: (rows, rows) of 0 and 1. Rows whose `valid` is 0 neither
 * see nor are seen; valid NULL: there are none. The last `queries` rows of the others are queries
 * of a packed history (learner/net/history.h). */
void reference_see(const uint8_t *valid, size_t rows, bool causal, size_t queries, uint8_t *sees);

/* o(rows, units) from qkv(rows, 3 units); rows that see nothing are not set. `kept`: what dropout
 * makes of each weight, (heads, rows, rows); NULL: nothing. */
void reference_attention(const double *qkv, const uint8_t *sees, const float *kept, size_t rows,
                         size_t heads, size_t units, double *o);

#endif
