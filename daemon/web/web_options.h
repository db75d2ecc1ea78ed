/* web_options: the table of ringmaster-web's options. The parser of the command line, --help, the
 * man page and the completion use this one table. */
#ifndef RM_DAEMON_WEB_WEB_OPTIONS_H
#define RM_DAEMON_WEB_WEB_OPTIONS_H

#include "daemon/web/server.h"

#include <stdio.h>

struct rm_web_options {
    struct rm_server_options server;
    const char *token_file, *generate;
    bool help, version;
};

/* Reads a command line. -EINVAL with a message. Strings belong to argv. */
int rm_web_options_read(struct rm_web_options *options, int argc, char **argv,
                        struct rm_error *error);

void rm_web_options_help(FILE *out);

/* Writes "man" (ringmaster-web(1)), "bash" (the completion) or "metrics" (docs/metrics.md).
 * -EINVAL: `what` is another word. */
int rm_web_options_generate(const char *what, FILE *out, struct rm_error *error);

#endif
