/* A library that ringmaster-web loads as NVML, and that attempts what ringmaster-web gave up. It
 * prints one line: of each attempt its name and its errno, 0 if it succeeded. RM_TEST_FOLDER has a
 * file "old". */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(const char *name, int rc)
{
    fprintf(stderr, "%s=%d ", name, rc < 0 ? errno : 0);
}

__attribute__((constructor)) static void attempt(void)
{
    const char *folder = getenv("RM_TEST_FOLDER");
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (!folder || chdir(folder) < 0)
        return;
    tell("create", open("new", O_WRONLY | O_CREAT, 0600));
    tell("write", open("old", O_WRONLY));
    tell("append", open("old", O_RDWR | O_APPEND));
    tell("truncate", truncate("old", 0));
    tell("folder", mkdir("folder", 0700));
    tell("link", symlink("old", "link"));
    tell("rename", rename("old", "other"));
    tell("remove", unlink("old"));
    const int tcp = socket(AF_INET, SOCK_STREAM, 0);
    tell("bind", bind(tcp, (const struct sockaddr *)&address, sizeof address));
    close(tcp);
    const pid_t child = fork();
    if (child == 0) {
        char *const words[] = {"true", NULL};
        execv("/bin/true", words);
        _exit(errno);
    }
    int status = 0;
    waitpid(child, &status, 0);
    errno = WEXITSTATUS(status);
    tell("start", errno ? -1 : 0);
    tell("signal", kill(getppid(), 0));
    fputc('\n', stderr);
}
