/* seeds: combines the curves of several seeds into one. */
#ifndef RM_DAEMON_CTL_SEEDS_H
#define RM_DAEMON_CTL_SEEDS_H

#include "daemon/ctl/curve.h"
#include "daemon/ctl/plot.h"

#define RM_SEEDS_GRID 100

/* Interquartile mean over seeds, and its interval of 95 % by bootstrap over seeds, on one grid of
 * steps (Agarwal et al., Deep RL at the Edge of the Statistical Precipice, 2021). */
struct rm_seeds {
    size_t count; /* number of points; 0: there is no step that all curves have reached */
    double at[RM_SEEDS_GRID], mean[RM_SEEDS_GRID], low[RM_SEEDS_GRID], high[RM_SEEDS_GRID];
};

/* The mean of values[count] without the count / 4 lowest and the count / 4 highest values, rounded
 * down: of five values, the mean of the middle three. Sorts the values. */
double rm_interquartile_mean(double *values, size_t count);

/* The 95 % interval of this mean by bootstrap: percentiles of the means of RM_SEEDS_DRAWS samples,
 * drawn with replacement. The same values always give the same interval; NAN with fewer than 2
 * values. */
#define RM_SEEDS_DRAWS 2000
void rm_interquartile_interval(const double *values, size_t count, double *low, double *high);

/* Combines `count` curves, at least 2, from the first step that all curves have to the last such
 * step: one point where these are the same. */
void rm_seeds_of(struct rm_seeds *seeds, const struct rm_curve *const *curves, size_t count);

/* Adds a line with a band for the `count` combined curves, and returns the line. NULL: there are no
 * points, or the plot is full. The plot keeps pointers into *seeds. */
struct rm_plot_series *rm_plot_add_seeds(struct rm_plot *plot, const struct rm_seeds *seeds,
                                         size_t count);

#endif
