/* lines: whole lines of a file that grows, as its writer adds them. */
#ifndef RM_DAEMON_CTL_LINES_H
#define RM_DAEMON_CTL_LINES_H

#include <stddef.h>
#include <stdio.h>

struct rm_lines {
    FILE *file; /* NULL = there is none */
    char *line;
    size_t room;
};

/* Opens the file. Without it the lines stay empty, and errno says why. */
void rm_lines_open(struct rm_lines *lines, const char *path);
void rm_lines_close(struct rm_lines *lines);

/* The next line with its newline, valid until the next call; NULL: the writer has not ended it. */
char *rm_lines_next(struct rm_lines *lines);

#endif
