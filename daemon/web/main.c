#include "daemon/web/web_options.h"
#include "shm/base/file.h"

#include <errno.h>

static int complain(int code, const struct rm_error *error)
{
    fprintf(stderr, "ringmaster-web: %s\n", error->text);
    return code;
}

int main(int argc, char **argv)
{
    static struct rm_web_options options;
    struct rm_error error = {""};
    rm_file_hold_standard();
    if (rm_web_options_read(&options, argc, argv, &error))
        return complain(2, &error);
    if (options.help)
        rm_web_options_help(stdout);
    else if (options.version)
        printf("ringmaster-web %s\n", RM_VERSION);
    if (options.help || options.version)
        return fflush(stdout) ? 1 : 0;
    if (options.generate) {
        if (rm_web_options_generate(options.generate, stdout, &error))
            return complain(2, &error);
        return fflush(stdout) ? 1 : 0;
    }
    int rc = 0;
    if (options.token_file)
        rc = rm_web_guard_token_file(&options.server.guard, options.token_file, &error);
    if (rc == 0)
        rc = rm_server_run(&options.server, &error);
    return rc ? complain(1, &error) : 0;
}
