#include "daemon/ctl/start_run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void become_run(const struct rm_run_start *l, pid_t parent, const sigset_t *before)
{
    char *line[2 * RM_CTL_GIVEN_MAX + 2 * RM_START_SETTINGS + 9];
    size_t n = 0;
    line[n++] = (char *)"ringctl";
    line[n++] = (char *)"run";
    for (size_t i = 0; i < l->given->given_count; i++) {
        if (strcmp(l->given->given[i].option->name, "set") != 0)
            continue;
        line[n++] = (char *)"--set";
        line[n++] = (char *)l->given->given[i].value;
    }
    for (size_t i = 0; i < l->settings && i < RM_START_SETTINGS; i++) {
        line[n++] = (char *)"--set";
        line[n++] = l->setting[i];
    }
    line[n++] = (char *)"--name";
    line[n++] = (char *)l->name;
    line[n++] = (char *)"--run-directory";
    line[n++] = (char *)l->directory;
    if (l->fresh)
        line[n++] = (char *)"--fresh";
    line[n++] = (char *)l->given->argument[0];
    line[n] = NULL;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, before, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int out = open(l->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (getppid() == parent && out >= 0 && in >= 0) {
        dup2(in, 0);
        dup2(out, 1);
        dup2(out, 2);
        execv("/proc/self/exe", line);
    }
    _exit(127);
}

pid_t rm_start_run(const struct rm_run_start *start)
{
    const pid_t parent = getpid();
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    fflush(NULL);
    /* A signal that comes before the child is a program of its own must end it: the handlers of
     * this program would take the signal in its place. */
    sigprocmask(SIG_BLOCK, &stops, &before);
    const pid_t pid = fork();
    if (pid == 0)
        become_run(start, parent, &before);
    const int failure = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid < 0 ? -failure : pid;
}

size_t rm_usable_cores(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) < 0 ? 1 : (size_t)CPU_COUNT(&allowed);
}
