/* plot: draws lines, points and bands over an x axis, as an SVG element. */
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
    int colour;  /* from 0; numbers after the last colour start again with the first */
    bool points; /* not joined */
    bool thin;
};

struct rm_plot {
    const char *title, *x_label, *y_label;
    struct rm_plot_series series[RM_PLOT_SERIES];
    size_t count;
    bool alone; /* the element is a file by itself and has a background */
};

/* Adds an empty series to the plot. NULL: the plot is full. */
struct rm_plot_series *rm_plot_add(struct rm_plot *plot);

/* Writes the element. If a series has more points than the plot has columns, draws the lowest and
 * highest value of each column and the first and last point. Returns whether there was anything to
 * draw. */
bool rm_plot_write(FILE *out, const struct rm_plot *plot);

/* The colour of a series or of a part of a bar, in the notation of SVG and CSS. */
const char *rm_plot_colour(int number);

/* Writes untrusted text into HTML or SVG: escapes <, >, & and quotes, and omits control
 * characters. */
void rm_html_text(FILE *out, const char *text);

#endif
