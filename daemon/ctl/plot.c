#include "daemon/ctl/plot.h"

#include "daemon/format.h"

#include <math.h>
#include <stdint.h>

#define WIDTH  760
#define HEIGHT 320
#define LEFT   64
#define RIGHT  16
#define TOP    34
#define BOTTOM 46
#define TICKS  5
#define ACROSS (WIDTH - LEFT - RIGHT)
#define DOWN   (HEIGHT - TOP - BOTTOM)
#define LEGEND 3  /* names in a row */
#define ROW    18 /* of the legend, which stands below */

/* Distinct for people who are colour-blind: seven of Okabe and Ito (Color Universal Design, 2008),
 * then five of Tol's muted ones (Colour Schemes, 2021). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#7f7f7f", "#882255",
                                      "#999933", "#332288", "#117733", "#ddcc77"};
#define COLOURS ((int)(sizeof colours / sizeof colours[0]))

const char *rm_plot_colour(int number)
{
    return colours[(unsigned)number % COLOURS];
}

void rm_html_text(FILE *out, const char *text)
{
    static const char *const names[128] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;"};
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < 128 && names[c])
            fputs(names[c], out);
        else if ((c >= ' ' && c != 0x7f) || c == '\n')
            fputc(c, out);
    }
}

struct rm_plot_series *rm_plot_add(struct rm_plot *plot)
{
    if (plot->count == RM_PLOT_SERIES)
        return NULL;
    struct rm_plot_series *s = &plot->series[plot->count++];
    *s = (struct rm_plot_series){.name = "", .colour = (int)plot->count - 1};
    return s;
}

/* What the axes span. */
struct span {
    double from, to;
};

static void include(struct span *span, double value)
{
    if (isfinite(value)) {
        span->from = fmin(span->from, value);
        span->to = fmax(span->to, value);
    }
}

static double at_x(const struct span *x, double value)
{
    return LEFT + ACROSS * (value - x->from) / (x->to - x->from);
}

static double at_y(const struct span *y, double value)
{
    return TOP + DOWN * (y->to - value) / (y->to - y->from);
}

/* 1, 2 or 5 times a power of ten, about `count` of them in the span. */
static double tick_of(const struct span *span, int count)
{
    const double raw = (span->to - span->from) / count, power = pow(10, floor(log10(raw)));
    return power * (raw <= power ? 1 : raw <= 2 * power ? 2 : raw <= 5 * power ? 5 : 10);
}

static void widen(struct span *span)
{
    if (span->from > span->to)
        *span = (struct span){0, 1};
    if (span->from > 0 && span->from < 0.5 * span->to)
        span->from = 0;
    const double room = span->to > span->from ? 0.04 * (span->to - span->from) : 1;
    span->from -= span->from == 0 ? 0 : room;
    span->to += room;
}

static void write_axes(FILE *out, const struct rm_plot *plot, const struct span *x,
                       const struct span *y)
{
    const double dx = tick_of(x, TICKS), dy = tick_of(y, TICKS);
    for (long i = lround(ceil(y->from / dy)); (double)i * dy <= y->to; i++) {
        const double at = at_y(y, (double)i * dy);
        fprintf(out,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 4, rm_format_number((double)i * dy).s);
    }
    for (long i = lround(ceil(x->from / dx)); (double)i * dx <= x->to; i++)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                at_x(x, (double)i * dx), HEIGHT - BOTTOM + 16, rm_format_count((double)i * dx).s);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", LEFT + ACROSS / 2, HEIGHT - 8);
    rm_html_text(out, plot->x_label);
    fprintf(out,
            "</text>\n<text transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">",
            TOP + DOWN / 2);
    rm_html_text(out, plot->y_label);
    fprintf(out, "</text>\n<text class=\"title\" x=\"%d\" y=\"20\">", LEFT);
    rm_html_text(out, plot->title);
    fputs("</text>\n", out);
}

/* A series' points by columns of the plot: of each, the first, the lowest, the highest and the last
 * in their order. */
static void write_line(FILE *out, const struct rm_plot_series *s, const struct span *x,
                       const struct span *y)
{
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" points=\"",
            rm_plot_colour(s->colour), s->thin ? "1\" opacity=\"0.45" : "2");
    for (size_t i = 0; i < s->count;) {
        const int column = (int)at_x(x, s->x[i]);
        size_t low = i, high = i, end = i;
        for (; end < s->count && (int)at_x(x, s->x[end]) == column; end++) {
            low = s->y[end] < s->y[low] ? end : low;
            high = s->y[end] > s->y[high] ? end : high;
        }
        const size_t kept[] = {i, low < high ? low : high, low < high ? high : low, end - 1};
        for (int k = 0; k < 4; k++)
            if (k == 0 || kept[k] > kept[k - 1])
                fprintf(out, "%.1f,%.1f ", at_x(x, s->x[kept[k]]), at_y(y, s->y[kept[k]]));
        i = end;
    }
    fputs("\"/>\n", out);
}

static void write_band(FILE *out, const struct rm_plot_series *s, const struct span *x,
                       const struct span *y)
{
    fprintf(out, "<polygon fill=\"%s\" opacity=\"0.2\" points=\"", rm_plot_colour(s->colour));
    for (size_t i = 0; i < s->count; i++)
        fprintf(out, "%.1f,%.1f ", at_x(x, s->x[i]), at_y(y, s->high[i]));
    for (size_t i = s->count; i-- > 0;)
        fprintf(out, "%.1f,%.1f ", at_x(x, s->x[i]), at_y(y, s->low[i]));
    fputs("\"/>\n", out);
}

static void write_legend(FILE *out, const struct rm_plot *plot)
{
    int n = 0;
    for (size_t i = 0; i < plot->count; i++) {
        const struct rm_plot_series *s = &plot->series[i];
        if (!s->name[0])
            continue;
        const int x = LEFT + n % LEGEND * (ACROSS / LEGEND), y = HEIGHT + n / LEGEND * ROW + 10;
        fprintf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">", x,
                y - 4, rm_plot_colour(s->colour), x + 10, y);
        rm_html_text(out, s->name);
        fputs("</text>\n", out);
        n++;
    }
}

bool rm_plot_write(FILE *out, const struct rm_plot *plot)
{
    struct span x = {INFINITY, -INFINITY}, y = {INFINITY, -INFINITY};
    size_t points = 0, named = 0;
    for (size_t i = 0; i < plot->count; i++) {
        const struct rm_plot_series *s = &plot->series[i];
        points += s->count;
        named += s->name[0] != '\0';
        for (size_t p = 0; p < s->count; p++) {
            include(&x, s->x[p]);
            include(&y, s->low ? s->low[p] : s->y[p]);
            include(&y, s->high ? s->high[p] : s->y[p]);
        }
    }
    if (!points)
        return false;
    widen(&y);
    x.from = fmin(x.from, 0);
    x.to = x.to > x.from ? x.to : x.from + 1;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\" role=\"img\">\n"
            "<style>.grid{stroke:currentColor;opacity:.15}.title{font-weight:bold;font-size:14px}"
            "</style>\n",
            WIDTH, HEIGHT + ROW * (int)((named + LEGEND - 1) / LEGEND));
    if (plot->alone)
        fputs("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", out);
    write_axes(out, plot, &x, &y);
    for (size_t i = 0; i < plot->count; i++) {
        const struct rm_plot_series *s = &plot->series[i];
        if (s->low && s->high)
            write_band(out, s, &x, &y);
        const bool apart = s->points || s->count == 1;
        if (!apart)
            write_line(out, s, &x, &y);
        for (size_t p = 0; apart && p < s->count; p++)
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                    at_x(&x, s->x[p]), at_y(&y, s->y[p]), rm_plot_colour(s->colour));
    }
    write_legend(out, plot);
    fputs("</svg>\n", out);
    return true;
}
