/* console: what people see in the foreground: a live line a second redrawn in place when standard
 * output is a terminal, a plain line every few seconds when it is not, and tables at the end. */
#ifndef RM_DAEMON_CONSOLE_H
#define RM_DAEMON_CONSOLE_H

#include "daemon/progress.h"
#include "daemon/supervisor.h"
#include "daemon/world_facts.h"
#include "daemon/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct rm_console {
    FILE *out;        /* NULL = no console */
    bool terminal;    /* redraw in place */
    bool drawn;       /* a live line stands unfinished */
    uint64_t last_ns; /* when the last line was written */
    /* Writes lines, so that a terminal that is held does not hold the loop; NULL = at once. Set by
     * who opened it, and taken away before the summary. */
    struct rm_writer *echoes;
};

void rm_console_open(struct rm_console *console, FILE *out);

/* Draws the live line if it is time for one. */
void rm_console_live(struct rm_console *console, const struct rm_progress *progress,
                     uint64_t now_ns);

/* Wipes the live line so that something else can be written. */
void rm_console_clear(struct rm_console *console);

/* A line of its own. */
void rm_console_say(struct rm_console *console, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The tables at the end, flushed. Where they could not be written ferror() of `out` says so, unless
 * it was a pipe whose reader has gone. */
void rm_console_summary(struct rm_console *console, const struct rm_progress *progress,
                        const struct rm_supervisor *supervisor, const struct rm_world_facts *world,
                        const char *run_directory);

/* The path of the run's report; NULL: there is none, for a reason that was printed. */
void rm_console_report(const struct rm_console *console, const char *page);

/* The text of the live line, cut to `width` columns: pure, for tests. */
size_t rm_console_line(char *line, size_t size, const struct rm_progress *progress, unsigned width);

#endif
