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

/* o(rows, units) from qkv(rows, 3 units); rows whose `valid` is 0 are neither looked at nor set.
 * valid NULL: all are. */
void reference_attention(const double *qkv, const uint8_t *valid, size_t rows, size_t heads,
                         size_t units, bool causal, double *o);

#endif
