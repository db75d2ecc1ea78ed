#include "tests/support/reference_sequence.h"

#include <math.h>
#include <stdlib.h>

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static double row_product(const double *w, const double *bias, const double *x, size_t row,
                          size_t n)
{
    double sum = bias[row];
    for (size_t i = 0; i < n; i++)
        sum += w[row * n + i] * x[i];
    return sum;
}

/* W_ih x + b_ih, and W_hh h + b_hh, of one row of gates. */
static double from_x(const struct reference_cell *c, const double *x, size_t row)
{
    return row_product(c->w_ih, c->b_ih, x, row, c->in);
}

static double from_h(const struct reference_cell *c, const double *h, size_t row)
{
    return row_product(c->w_hh, c->b_hh, h, row, c->n);
}

void reference_gru(const struct reference_cell *cell, const double *x, double *h)
{
    size_t n = cell->n;
    double *next = malloc(n * sizeof *next);
    for (size_t i = 0; i < n; i++) {
        double reset = logistic(from_x(cell, x, i) + from_h(cell, h, i));
        double update = logistic(from_x(cell, x, n + i) + from_h(cell, h, n + i));
        double fresh = tanh(from_x(cell, x, 2 * n + i) + reset * from_h(cell, h, 2 * n + i));
        next[i] = (1 - update) * fresh + update * h[i];
    }
    for (size_t i = 0; i < n; i++)
        h[i] = next[i];
    free(next);
}

void reference_lstm(const struct reference_cell *cell, const double *x, double *h, double *c)
{
    size_t n = cell->n;
    double *next = malloc(n * sizeof *next);
    for (size_t i = 0; i < n; i++) {
        double in = logistic(from_x(cell, x, i) + from_h(cell, h, i));
        double forget = logistic(from_x(cell, x, n + i) + from_h(cell, h, n + i));
        double fresh = tanh(from_x(cell, x, 2 * n + i) + from_h(cell, h, 2 * n + i));
        double out = logistic(from_x(cell, x, 3 * n + i) + from_h(cell, h, 3 * n + i));
        c[i] = forget * c[i] + in * fresh;
        next[i] = out * tanh(c[i]);
    }
    for (size_t i = 0; i < n; i++)
        h[i] = next[i];
    free(next);
}

static double score(const double *q, const double *k, size_t width)
{
    double sum = 0;
    for (size_t i = 0; i < width; i++)
        sum += q[i] * k[i];
    return sum / sqrt((double)width);
}

void reference_see(const uint8_t *valid, size_t rows, bool causal, size_t queries, uint8_t *sees)
{
    size_t *place = malloc((rows + 1) * sizeof *place); /* among rows that are no padding */
    place[0] = 0;
    for (size_t r = 0; r < rows; r++)
        place[r + 1] = place[r] + (!valid || valid[r]);
    const size_t context = place[rows] > queries ? place[rows] - queries : 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t s = 0; s < rows; s++) {
            const size_t i = place[r], j = place[s];
            const bool there = !valid || (valid[r] && valid[s]);
            bool seen = !causal || j <= i;
            if (queries && i >= context) /* its share of the context, and itself */
                seen = i == j || (j < context && j + queries < i + 1);
            sees[r * rows + s] = there && seen;
        }
    free(place);
}

void reference_attention(const double *qkv, const uint8_t *all_sees, const float *all_kept,
                         size_t rows, size_t heads, size_t units, double *o)
{
    size_t width = units / heads;
    double *weight = malloc(rows * sizeof *weight);
    for (size_t head = 0; head < heads; head++)
        for (size_t r = 0; r < rows; r++) {
            const uint8_t *sees = all_sees + r * rows;
            const float *kept = all_kept ? all_kept + (head * rows + r) * rows : NULL;
            if (!sees[r])
                continue;
            const double *q = qkv + r * 3 * units + head * width;
            double sum = 0, most = -INFINITY;
            for (size_t s = 0; s < rows; s++) {
                weight[s] = sees[s] ? score(q, qkv + s * 3 * units + units + head * width, width)
                                    : -INFINITY;
                most = fmax(most, weight[s]);
            }
            for (size_t s = 0; s < rows; s++)
                sum += weight[s] = exp(weight[s] - most);
            double *to = o + r * units + head * width;
            for (size_t i = 0; i < width; i++) {
                to[i] = 0;
                for (size_t s = 0; s < rows; s++)
                    to[i] += weight[s] / sum * (kept ? (double)kept[s] : 1.0) *
                             qkv[s * 3 * units + 2 * units + head * width + i];
            }
        }
    free(weight);
}
