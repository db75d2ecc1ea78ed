/* mdoc: writes the source of man pages. Lines have at most 80 columns, each sentence begins a new
 * line, and text is escaped so that it is not read as a macro. `x` in backticks becomes bold. */
#ifndef RM_DAEMON_CTL_MDOC_H
#define RM_DAEMON_CTL_MDOC_H

#include <stdio.h>

/* Date of the pages, as their footers show it. */
#define RM_MDOC_DATE "November 21, 2026"

/* .Dd, .Dt, .Os, NAME */
void rm_mdoc_head(FILE *out, const char *name, const char *section, const char *summary);

/* Filled text; blank lines separate paragraphs. */
void rm_mdoc_text(FILE *out, const char *text);

/* Writes a macro line and a newline. */
void rm_mdoc_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
