#include "daemon/table.h"

#include "config/utf8.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP        2
#define TEXT_LEAST 8 /* a text column is not cut below this */
#define ELLIPSIS   "\xe2\x80\xa6"

struct rm_style rm_style_of(FILE *out)
{
    struct rm_style style = {0};
    int fd = fileno(out);
    struct winsize size;
    if (fd < 0 || !isatty(fd))
        return style;
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    style.colour = !(no_colour && *no_colour) && !(terminal && !strcmp(terminal, "dumb"));
    style.width = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
    return style;
}

const char *rm_style_bold(const struct rm_style *style)
{
    return style->colour ? "\033[1m" : "";
}

const char *rm_style_off(const struct rm_style *style)
{
    return style->colour ? "\033[0m" : "";
}

const char *rm_style_state(const struct rm_style *style, const char *state)
{
    static const struct {
        const char *state, *sequence;
    } colours[] = {
        {"running", "\033[32m"},     {"up", "\033[32m"},       {"done", "\033[32m"},
        {"paused", "\033[33m"},      {"starting", "\033[33m"}, {"stopping", "\033[33m"},
        {"backing off", "\033[33m"}, {"failed", "\033[1;31m"},
    };
    for (size_t i = 0; style->colour && i < sizeof colours / sizeof colours[0]; i++)
        if (!strcmp(state, colours[i].state))
            return colours[i].sequence;
    return "";
}

/* Terminal columns of a UTF-8 text: one per character. */
static int text_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void rm_table_begin(struct rm_table *table, const struct rm_column *columns, size_t count)
{
    *table = (struct rm_table){.columns = columns,
                               .column_count =
                                   count < RM_TABLE_COLUMNS_MAX ? count : RM_TABLE_COLUMNS_MAX};
}

/* Text of other processes may have control characters, which a terminal would obey. */
void rm_table_cell(struct rm_table *table, const char *format, ...)
{
    if (table->cell_count == table->room) {
        size_t room = table->room ? 2 * table->room : 64;
        char **cells = realloc(table->cells, room * sizeof *cells);
        if (!cells) {
            table->failed = true;
            return;
        }
        table->cells = cells;
        table->room = room;
    }
    char *text = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        text = NULL;
    va_end(list);
    if (!text) {
        table->failed = true;
        return;
    }
    rm_utf8_line(text);
    table->cells[table->cell_count++] = text;
}

static int total_width(const struct rm_table *table, const int *widths)
{
    int total = 0;
    for (size_t c = 0; c < table->column_count; c++)
        if (widths[c] > 0)
            total += widths[c] + (total ? GAP : 0);
    return total;
}

/* The widest text column that can still be cut, or -1. */
static int widest_text(const struct rm_table *table, const int *widths)
{
    int widest = -1;
    for (size_t c = 0; c < table->column_count; c++)
        if (table->columns[c].text && widths[c] > TEXT_LEAST &&
            (widest < 0 || widths[c] > widths[widest]))
            widest = (int)c;
    return widest;
}

static int most_omissible(const struct rm_table *table, const int *widths)
{
    int most = -1;
    for (size_t c = 0; c < table->column_count; c++)
        if (widths[c] > 0 && table->columns[c].omit > 0 &&
            (most < 0 || table->columns[c].omit >= table->columns[most].omit))
            most = (int)c;
    return most;
}

static void fit(const struct rm_table *table, int *widths, const struct rm_style *style)
{
    while (style->width > 0 && total_width(table, widths) > style->width) {
        const int column = most_omissible(table, widths), text = widest_text(table, widths);
        if (column >= 0 && (style->whole || text < 0))
            widths[column] = 0;
        else if (text >= 0)
            widths[text]--;
        else
            return;
    }
}

/* `width` characters of `text`, the last one an ellipsis if it had to be cut. */
static void print_cut(FILE *out, const char *text, int width)
{
    bool cut = text_width(text) > width;
    int left = cut ? width - 1 : width;
    while (*text && left > 0) {
        fputc(*text++, out);
        while (((unsigned char)*text & 0xc0) == 0x80)
            fputc(*text++, out);
        left--;
    }
    if (cut)
        fputs(ELLIPSIS, out);
}

static void print_row(const struct rm_table *table, FILE *out, const int *widths,
                      const char *const *cells, const struct rm_style *style, bool head)
{
    size_t last = 0;
    for (size_t c = 0; c < table->column_count; c++)
        if (widths[c] > 0)
            last = c;
    bool first = true;
    for (size_t c = 0; c < table->column_count; c++) {
        if (widths[c] == 0)
            continue;
        const char *text = cells[c];
        int space = widths[c] - text_width(text);
        const char *colour = head ? rm_style_bold(style) : rm_style_state(style, text);
        fprintf(out, "%*s", first ? 0 : GAP, "");
        first = false;
        if (!table->columns[c].text && space > 0)
            fprintf(out, "%*s", space, "");
        fputs(colour, out);
        print_cut(out, text, widths[c]);
        fputs(*colour ? rm_style_off(style) : "", out);
        if (table->columns[c].text && space > 0 && c != last)
            fprintf(out, "%*s", space, "");
    }
    fputc('\n', out);
}

void rm_table_free(struct rm_table *table)
{
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct rm_table){0};
}

void rm_table_end(struct rm_table *table, FILE *out, const struct rm_style *style)
{
    size_t columns = table->column_count, rows = columns ? table->cell_count / columns : 0;
    const char *titles[RM_TABLE_COLUMNS_MAX];
    int widths[RM_TABLE_COLUMNS_MAX];
    for (size_t c = 0; c < columns; c++) {
        titles[c] = table->columns[c].title;
        widths[c] = text_width(titles[c]);
        for (size_t r = 0; r < rows; r++) {
            int width = text_width(table->cells[r * columns + c]);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    if (rows) {
        fit(table, widths, style);
        print_row(table, out, widths, titles, style, true);
        for (size_t r = 0; r < rows; r++)
            print_row(table, out, widths, (const char *const *)table->cells + r * columns, style,
                      false);
    }
    rm_table_free(table);
}
