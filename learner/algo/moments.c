#include "learner/algo/moments.h"

#include <stdbool.h>

/* Sums are made in this many chains, which are added last: the order is fixed, and one sum need not
 * wait for another. */
#define CHAINS 8

/* The sum of x - mean, or of its squares. */
static inline __attribute__((always_inline)) double sum(const float *x, size_t n, double mean,
                                                        bool squares)
{
    double chain[CHAINS] = {0};
    const size_t whole = n / CHAINS * CHAINS;
    for (size_t i = 0; i < whole; i += CHAINS)
        for (size_t c = 0; c < CHAINS; c++)
            chain[c] += (x[i + c] - mean) * (squares ? x[i + c] - mean : 1.0);
    for (size_t i = whole; i < n; i++)
        chain[i - whole] += (x[i] - mean) * (squares ? x[i] - mean : 1.0);
    double total = 0.0;
    for (size_t c = 0; c < CHAINS; c++)
        total += chain[c];
    return total;
}

struct rm_moments rm_moments_of(const float *x, size_t n)
{
    if (n == 0)
        return (struct rm_moments){0};
    const double mean = sum(x, n, 0.0, false) / (double)n;
    return (struct rm_moments){(double)n, mean, sum(x, n, mean, true)};
}

struct rm_moments rm_moments_merge(struct rm_moments a, struct rm_moments b)
{
    const double count = a.count + b.count;
    if (b.count <= 0)
        return a;
    if (a.count <= 0)
        return b;
    const double apart = b.mean - a.mean;
    return (struct rm_moments){
        count,
        a.mean + apart * (b.count / count),
        a.m2 + b.m2 + apart * apart * (a.count * b.count / count),
    };
}

double rm_moments_variance(struct rm_moments m)
{
    return m.count > 0 ? m.m2 / m.count : 0.0;
}
