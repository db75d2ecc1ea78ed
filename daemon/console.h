/* console: the output of a run in the foreground. If standard output is a terminal, a live line is
 * redrawn once a second; otherwise a plain line follows every few seconds. Tables follow at the
 * end. */
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
    bool drawn;       /* the live line is there, without its newline */
    uint64_t last_ns; /* when the last line was written */
    /* Writes lines in a thread, so that a stopped terminal does not stop the loop; NULL: lines are
     * written at once. The caller sets it after opening the console, and resets it before the
     * summary. */
    struct rm_writer *echoes;
};

void rm_console_open(struct rm_console *console, FILE *out);

/* Draws the live line if it is time for one. */
void rm_console_live(struct rm_console *console, const struct rm_progress *progress,
                     uint64_t now_ns);

/* Wipes the live line so that something else can be written. */
void rm_console_clear(struct rm_console *console);

/* Prints a separate line. */
void rm_console_say(struct rm_console *console, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the tables at the end and flushes them. If they cannot be written, ferror(out) is true,
 * unless `out` is a pipe whose reader has closed it. */
void rm_console_summary(struct rm_console *console, const struct rm_progress *progress,
                        const struct rm_supervisor *supervisor, const struct rm_world_facts *world,
                        const char *run_directory);

/* The path of the run's report; NULL: there is none, for a reason that was printed. */
void rm_console_report(const struct rm_console *console, const char *page);

/* The text of the live line, cut to `width` columns: pure, for tests. */
size_t rm_console_line(char *line, size_t size, const struct rm_progress *progress, unsigned width);

#endif
