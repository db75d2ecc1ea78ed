/* table: aligned columns for people. To fit a width, texts are cut first; then columns with `omit`
 * are left out, the highest `omit` first. With rm_style.whole, columns are left out before texts
 * are cut. */
#ifndef RM_DAEMON_TABLE_H
#define RM_DAEMON_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define RM_TABLE_COLUMNS_MAX 24

struct rm_column {
    const char *title;
    bool text; /* left-aligned and may be cut; numbers are right-aligned and never cut */
    int omit;  /* 0: always there */
};

/* How output looks: rm_style_of() asks the stream. */
struct rm_style {
    int width;   /* columns, 0 = any */
    bool colour; /* escape sequences allowed: a terminal, and NO_COLOR not set */
    bool whole;  /* columns are left out before texts are cut */
};

struct rm_style rm_style_of(FILE *out);

struct rm_table {
    const struct rm_column *columns;
    size_t column_count;
    char **cells; /* row-major */
    size_t cell_count, room;
    bool failed; /* out of memory: prints what there is */
};

void rm_table_begin(struct rm_table *table, const struct rm_column *columns, size_t count);

/* The next cell, row by row. */
void rm_table_cell(struct rm_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints and frees. An empty table prints nothing. */
void rm_table_end(struct rm_table *table, FILE *out, const struct rm_style *style);

/* Frees without printing. */
void rm_table_free(struct rm_table *table);

/* Escape sequences, "" without colour. */
const char *rm_style_bold(const struct rm_style *style);
const char *rm_style_state(const struct rm_style *style, const char *state); /* by what it means */
const char *rm_style_off(const struct rm_style *style);

#endif
