#include "daemon/ctl/lines.h"

#include <stdlib.h>

struct rm_lines rm_lines_open(const char *path)
{
    return (struct rm_lines){.file = fopen(path, "re")};
}

void rm_lines_close(struct rm_lines *lines)
{
    if (lines->file)
        fclose(lines->file);
    free(lines->line);
    *lines = (struct rm_lines){.file = NULL};
}

char *rm_lines_next(struct rm_lines *lines)
{
    if (!lines->file)
        return NULL;
    const long began = ftell(lines->file);
    const ssize_t length = getline(&lines->line, &lines->room, lines->file);
    if (length > 0 && lines->line[length - 1] == '\n')
        return lines->line;
    clearerr(lines->file);
    fseek(lines->file, began, SEEK_SET);
    return NULL;
}
