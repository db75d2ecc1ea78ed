/* run: becomes ringmasterd --foreground. Its own program, not a child: signals, the terminal and
 * the exit code are then the daemon's without a process in between. */
#include "daemon/ctl/command.h"

#include "config/config.h"
#include "daemon/ctl/exit_code.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAEMON "ringmasterd"

/* The daemon beside this program, or "" if there is none. */
static void beside(char *path, size_t size)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    path[0] = '\0';
    if (n <= 0)
        return;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash)
        return;
    *slash = '\0';
    int length = snprintf(path, size, "%s/" DAEMON, self);
    if (length < 0 || (size_t)length >= size || access(path, X_OK))
        path[0] = '\0';
}

/* Has the experiment a sweep? What is wrong with it the daemon says. */
static bool sweeps(const struct rm_ctl_arguments *given, struct rm_experiment *experiment)
{
    struct rm_override overrides[RM_CTL_GIVEN_MAX];
    size_t count = 0;
    for (size_t i = 0; i < given->given_count; i++)
        if (!strcmp(given->given[i].option->name, "set"))
            overrides[count++].text = given->given[i].value;
    return rm_config_load(experiment, given->argument[0], overrides, count, NULL) == 0 &&
           strlen(experiment->sweep) > 2;
}

int rm_ctl_run(const struct rm_ctl_arguments *given)
{
    static struct rm_experiment experiment;
    struct stat about;
    if (access(given->argument[0], R_OK))
        return rm_ctl_complain(RM_CTL_FAILED, "%s: %s", given->argument[0], strerror(errno));
    /* A pipe can be read once: the daemon reads it. */
    if (stat(given->argument[0], &about) == 0 && S_ISREG(about.st_mode) &&
        sweeps(given, &experiment))
        return rm_ctl_sweep(given, &experiment);
    if (rm_ctl_value(given, "jobs"))
        return rm_ctl_complain(RM_CTL_USAGE, "--jobs is for experiments with a sweep; %s has none",
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
    beside(path, sizeof path);
    /* A distribution may install it in another folder: then look in PATH. */
    if (path[0])
        execv(path, line);
    else
        execvp(DAEMON, line);
    int rc = rm_ctl_complain(RM_CTL_FAILED, "%s cannot be started: %s", path[0] ? path : DAEMON,
                             strerror(errno));
    while (options)
        free(option_text[--options]);
    free(line);
    return rc;
}
