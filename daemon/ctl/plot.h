/* plot: lines, points and bands over a number, as an element of SVG. */
#ifndef RM_DAEMON_CTL_PLOT_H
#define RM_DAEMON_CTL_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define RM_PLOT_SERIES 512
#define RM_PLOT_GREY   6 /* a colour's number */

struct rm_plot_series {
    char name[256];           /* "": not in the legend */
    const double *x, *y;      /* [count] */
    const double *low, *high; /* [count]: a band around y; NULL = none */
    size_t count;
    int colour;  /* counted from 0; those after the last begin again */
    bool points; /* not joined */
    bool thin;
};

struct rm_plot {
    const char *title, *x_label, *y_label;
    struct rm_plot_series series[RM_PLOT_SERIES];
    size_t count;
    bool alone; /* a file of its own: with a background */
};

/* The next series of a plot, empty, or NULL: it is full. */
struct rm_plot_series *rm_plot_add(struct rm_plot *plot);

/* Writes the element. Of series longer than the plot is wide, each column's lowest and highest
 * value are drawn, and the first and the last. Returns whether there was anything to draw. */
bool rm_plot_write(FILE *out, const struct rm_plot *plot);

/* The colour of a series or of a part of a bar, as SVG and CSS have it. */
const char *rm_plot_colour(int number);

/* Text of others in HTML and SVG: <, >, & and quotes are escaped, control characters left out. */
void rm_html_text(FILE *out, const char *text);

#endif
