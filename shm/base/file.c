#include "shm/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int rm_file_write_all(int fd, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        const ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int rm_file_open(const char *path, int flags, mode_t mode, struct rm_error *error)
{
    struct stat about;
    /* O_NONBLOCK: no waiting for whoever would write into a pipe. It says nothing to a file. */
    const int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
    if (fd < 0 && errno == ELOOP)
        return rm_fail(error, -ELOOP, "%s: is a symbolic link", path);
    if (fd < 0)
        return rm_fail(error, -errno, "%s: %s", path, strerror(errno));
    int rc = fstat(fd, &about) < 0 ? rm_fail(error, -errno, "%s: %s", path, strerror(errno)) : 0;
    if (rc == 0 && !S_ISREG(about.st_mode))
        rc = rm_fail(error, -EINVAL, "%s: is not a regular file", path);
    if (rc == 0 && about.st_uid != geteuid())
        rc = rm_fail(error, -EPERM, "%s: belongs to user %u, and this runs as user %u", path,
                     (unsigned)about.st_uid, (unsigned)geteuid());
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

void rm_file_hold_standard(void)
{
    static const int ways[] = {O_RDONLY, O_RDONLY, O_RDWR};
    /* Descriptors are given out from below, so each of these gets the number that is looked for. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", ways[fd]) < 0)
            return;
}

int rm_file_sync_folder(const char *folder, struct rm_error *error)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc ? rm_fail(error, rc, "%s: %s", folder, strerror(-rc)) : 0;
}

int rm_file_sync_above(const char *path, struct rm_error *error)
{
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return rm_fail(error, -ENAMETOOLONG, "%.100s...: path too long", path);
    return rm_file_sync_folder(dirname(copy), error);
}

const char *rm_file_start(const char *path, char *text, size_t size)
{
    char here[PATH_MAX];
    text[0] = '\0';
    if (path[0] != '/' && getcwd(here, sizeof here))
        snprintf(text, size, " (relative paths start at the working directory, %s)", here);
    return text;
}
