/* moments: count, mean and sum of squared deviations of numbers that come in batches. Batches are
 * merged as in Chan, Golub and LeVeque (1979, "Updating formulae and a pairwise algorithm for
 * computing sample variances"); this loses no digits, however many numbers there are. All sums are
 * in double and in the order given, so the same sequence of calls gives the same bits. Plain
 * data. */
#ifndef RM_LEARNER_ALGO_MOMENTS_H
#define RM_LEARNER_ALGO_MOMENTS_H

#include <stddef.h>

struct rm_moments {
    double count, mean;
    double m2; /* sum of (x - mean)^2 */
};

/* The moments of n numbers, in two passes; n = 0 gives zeros. */
struct rm_moments rm_moments_of(const float *x, size_t n);

/* The moments of the numbers of both. */
struct rm_moments rm_moments_merge(struct rm_moments a, struct rm_moments b);

/* m2 / count; 0 without numbers. */
double rm_moments_variance(struct rm_moments m);

#endif
