/* man_pages: writes the man pages that are generated from tables. */
#ifndef RM_DAEMON_CTL_MAN_PAGES_H
#define RM_DAEMON_CTL_MAN_PAGES_H

#include <stdio.h>

struct rm_man_page {
    const char *file; /* "ringctl.1" */
    void (*write)(FILE *out);
};

extern const struct rm_man_page rm_man_pages[]; /* ends with file NULL */

void rm_man_ringctl(FILE *out);
void rm_man_config(FILE *out);
void rm_man_worlds(FILE *out);
void rm_man_metrics(FILE *out);

#endif
