/* run: executes ringmasterd --foreground in this process, not in a child. So the daemon gets
 * signals and the terminal directly, and its exit code is the command's. */
#include "daemon/ctl/command.h"

#include "config/config.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/libexec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAEMON "ringmasterd"

/* Has the experiment a sweep? What is wrong with it the daemon says. */
static bool sweeps(const struct rm_ctl_arguments *given, struct rm_experiment *experiment)
{
    struct rm_override overrides[RM_CTL_GIVEN_MAX];
    const size_t count = rm_ctl_overrides(given, overrides);
    return rm_config_load(experiment, given->argument[0], overrides, count, NULL) == 0 &&
           strlen(experiment->sweep) > 2;
}

int rm_ctl_run(const struct rm_ctl_arguments *given)
{
    static struct rm_experiment experiment;
    struct stat about;
    if (rm_ctl_flag(given, "resume") && rm_ctl_flag(given, "fresh"))
        return rm_ctl_complain(RM_CTL_USAGE, "give either --resume or --fresh, not both");
    if (access(given->argument[0], R_OK))
        return rm_ctl_complain(RM_CTL_FAILED, "%s: %s", given->argument[0], strerror(errno));
    if (rm_ctl_value(given, "tune")) {
        const int rc = rm_ctl_load(given, NULL, &experiment);
        return rc ? rc : rm_ctl_tune(given, &experiment);
    }
    if (rm_ctl_value(given, "seeds")) {
        const int rc = rm_ctl_load(given, NULL, &experiment);
        return rc ? rc : rm_ctl_sweep(given, &experiment);
    }
    /* A pipe can be read once: the daemon reads it. */
    if (stat(given->argument[0], &about) == 0 && S_ISREG(about.st_mode) &&
        sweeps(given, &experiment))
        return rm_ctl_sweep(given, &experiment);
    if (rm_ctl_value(given, "jobs"))
        return rm_ctl_complain(
            RM_CTL_USAGE, "--jobs needs --seeds or an experiment with a sweep; %s has no sweep",
            given->argument[0]);
    char **line = calloc(2 * given->given_count + 5, sizeof *line);
    if (!line)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory for a command line");
    size_t n = 0, options = 0;
    line[n++] = DAEMON;
    line[n++] = "--foreground";
    char *option_text[RM_CTL_GIVEN_MAX];
    for (size_t i = 0; i < given->given_count; i++) {
        if (asprintf(&option_text[options], "--%s", given->given[i].option->name) < 0)
            break;
        line[n++] = option_text[options++];
        if (given->given[i].option->value)
            line[n++] = (char *)given->given[i].value;
    }
    line[n++] = "--";
    line[n++] = (char *)given->argument[0];
    char path[PATH_MAX + sizeof DAEMON];
    rm_program_beside(path, sizeof path, DAEMON);
    execvp(path, line);
    int rc = rm_ctl_complain(RM_CTL_FAILED, "%s cannot be started: %s", path, strerror(errno));
    while (options)
        free(option_text[--options]);
    free(line);
    return rc;
}
