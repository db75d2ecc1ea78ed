/* seeds: curves of several seeds as one. */
#ifndef RM_DAEMON_CTL_SEEDS_H
#define RM_DAEMON_CTL_SEEDS_H

#include "daemon/ctl/curve.h"
#include "daemon/ctl/plot.h"

#define RM_SEEDS_GRID 100

/* Interquartile mean over seeds, and its interval of 95 % by bootstrap over seeds, on one grid of
 * steps (Agarwal et al., Deep RL at the Edge of the Statistical Precipice, 2021). */
struct rm_seeds {
    size_t count; /* of points; 0 = no step that all curves have reached */
    double at[RM_SEEDS_GRID], mean[RM_SEEDS_GRID], low[RM_SEEDS_GRID], high[RM_SEEDS_GRID];
};

/* The mean of values[count], which are sorted here, without the lowest and the highest count / 4 of
 * them, rounded down: of five the mean of the middle three. */
double rm_interquartile_mean(double *values, size_t count);

/* Its interval of 95 % by bootstrap: percentiles of the means of RM_SEEDS_DRAWS samples that are
 * drawn with replacement. Always the same for the same values; NAN with fewer than 2. */
#define RM_SEEDS_DRAWS 2000
void rm_interquartile_interval(const double *values, size_t count, double *low, double *high);

/* Of `count` curves, 2 or more: from the first step that all have to the last one. */
void rm_seeds_of(struct rm_seeds *seeds, const struct rm_curve *const *curves, size_t count);

/* Draws them, `count` curves, as a line with a band, and returns the line; NULL: there are no
 * points, or the plot is full. The plot holds pointers into *seeds. */
struct rm_plot_series *rm_plot_add_seeds(struct rm_plot *plot, const struct rm_seeds *seeds,
                                         size_t count);

#endif
