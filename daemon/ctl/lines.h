/* lines: reads whole lines from a file while another process appends to it. */
#ifndef RM_DAEMON_CTL_LINES_H
#define RM_DAEMON_CTL_LINES_H

#include <stddef.h>
#include <stdio.h>

struct rm_lines {
    FILE *file; /* NULL = there is none */
    char *line;
    size_t room;
};

/* Opens the file. If it cannot be opened, rm_lines_next() returns NULL, and errno has the
 * reason. */
struct rm_lines rm_lines_open(const char *path);
void rm_lines_close(struct rm_lines *lines);

/* The next line with its newline, valid until the next call; NULL if the file has no further whole
 * line yet. */
char *rm_lines_next(struct rm_lines *lines);

#endif
