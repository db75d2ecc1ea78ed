#include "daemon/ctl/command.h"

#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/man_pages.h"

#include <string.h>

const struct rm_man_page rm_man_pages[] = {
    {"ringctl.1", rm_man_ringctl},
    {"ringmaster.json.5", rm_man_config},
    {"ringmaster-worlds.7", rm_man_worlds},
    {"ringmaster-metrics.7", rm_man_metrics},
    {NULL, NULL},
};

int rm_ctl_man(const struct rm_ctl_arguments *given)
{
    for (const struct rm_man_page *page = rm_man_pages; page->file; page++) {
        if (!strcmp(given->argument[0], page->file)) {
            page->write(stdout);
            return RM_CTL_OK;
        }
    }
    fprintf(stderr,
            "ringctl: there is no generated page \"%s\"; these are generated:", given->argument[0]);
    for (const struct rm_man_page *page = rm_man_pages; page->file; page++)
        fprintf(stderr, " %s", page->file);
    fputc('\n', stderr);
    return RM_CTL_USAGE;
}
