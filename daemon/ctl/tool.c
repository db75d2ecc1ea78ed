#include "daemon/ctl/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

pid_t rm_tool_start(const char *const *arguments, int input, bool quiet)
{
    posix_spawn_file_actions_t files;
    pid_t pid = -1;
    if (posix_spawn_file_actions_init(&files) != 0)
        return -1;
    if (input >= 0)
        posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    else
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (quiet)
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, arguments[0], &files, NULL, (char **)arguments, environ) != 0)
        pid = -1;
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

int rm_tool_wait(pid_t pid)
{
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int rm_tool_call(const char *const *arguments)
{
    return rm_tool_wait(rm_tool_start(arguments, -1, true));
}
