/* disk: the system calls that make files, under a test's control: the n-th one fails, writes less
 * than it was given, or ends the process; or a recorder gets every one. For the whole program that
 * includes this, with its libraries; once in a program. */
#ifndef RM_TESTS_CRASH_DISK_H
#define RM_TESTS_CRASH_DISK_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum disk_way {
    DISK_WELL,
    DISK_KILLED,   /* before the call */
    DISK_NO_SPACE, /* ENOSPC, once */
    DISK_FULL,     /* the first write is half done, every one after it fails with ENOSPC */
    DISK_BROKEN,   /* EIO */
    DISK_SHORT,    /* half of it is written */
};

static enum disk_way disk_way;
static unsigned disk_wrong_at, disk_calls; /* the wrong_at-th call, from 1 */

/* Called after calls that succeeded; may be NULL. */
struct disk_recorder {
    void (*opened)(int fd, const char *path, int flags);
    void (*closed)(int fd);
    void (*wrote)(int fd, const void *data, size_t bytes);
    void (*synced)(int fd);
    void (*renamed)(const char *from, const char *to);
    void (*made)(const char *path, const char *target); /* a folder, or a link to `target` */
    void (*removed)(const char *path);
};
static const struct disk_recorder *disk_recorder;

#define DISK_TELL(...)                                                                             \
    do {                                                                                           \
        if (disk_recorder)                                                                         \
            disk_recorder->__VA_ARGS__;                                                            \
    } while (0)

/* What is to become of this call: 0, or an error. */
static inline int disk_pass(void)
{
    if (disk_way == DISK_WELL || ++disk_calls != disk_wrong_at)
        return 0;
    if (disk_way == DISK_KILLED)
        raise(SIGKILL);
    return disk_way == DISK_NO_SPACE ? ENOSPC : disk_way == DISK_BROKEN ? EIO : 0;
}

#define DISK_FAILS()                                                                               \
    do {                                                                                           \
        const int wrong = disk_pass();                                                             \
        if (wrong) {                                                                               \
            errno = wrong;                                                                         \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

ssize_t write(int fd, const void *data, size_t bytes)
{
    DISK_FAILS();
    if (disk_way == DISK_FULL && disk_calls > disk_wrong_at) {
        errno = ENOSPC;
        return -1;
    }
    if ((disk_way == DISK_SHORT || disk_way == DISK_FULL) && disk_calls == disk_wrong_at &&
        bytes > 1)
        bytes /= 2;
    const ssize_t n = syscall(SYS_write, fd, data, bytes);
    if (n > 0)
        DISK_TELL(wrote(fd, data, (size_t)n));
    return n;
}

int fsync(int fd)
{
    DISK_FAILS();
    const int rc = (int)syscall(SYS_fsync, fd);
    if (rc == 0)
        DISK_TELL(synced(fd));
    return rc;
}

/* Where a name in an open folder stands. */
static inline const char *disk_path(int folder, const char *name, char path[PATH_MAX])
{
    char link[32], at[PATH_MAX - 256];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    const ssize_t n = folder == AT_FDCWD || name[0] == '/' ? -1 : readlink(link, at, sizeof at - 1);
    at[n > 0 ? n : 0] = '\0';
    if (n > 0 && strcmp(name, ".") == 0)
        snprintf(path, PATH_MAX, "%s", at);
    else
        snprintf(path, PATH_MAX, "%s%s%s", at, n > 0 ? "/" : "", name);
    return path;
}

/* The descriptor is gone, whatever it says. One of a folder on the way to a file is none of the
 * calls that count. */
int close(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    const bool on_the_way = flags >= 0 && (flags & O_PATH);
    if (!on_the_way)
        DISK_TELL(closed(fd));
    const int rc = (int)syscall(SYS_close, fd), wrong = on_the_way ? 0 : disk_pass();
    if (wrong) {
        errno = wrong;
        return -1;
    }
    return rc;
}

static inline int disk_open(int folder, const char *name, int flags, int mode)
{
    char path[PATH_MAX];
    if (flags & O_PATH)
        return (int)syscall(SYS_openat, folder, name, flags, mode);
    DISK_FAILS();
    const int fd = (int)syscall(SYS_openat, folder, name, flags, mode);
    if (fd >= 0)
        DISK_TELL(opened(fd, disk_path(folder, name, path), flags));
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    return disk_open(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *name, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    return disk_open(folder, name, flags, mode);
}

int renameat(int folder, const char *from, int other, const char *to)
{
    char old[PATH_MAX], fresh[PATH_MAX];
    DISK_FAILS();
    const int rc = (int)syscall(SYS_renameat, folder, from, other, to);
    if (rc == 0)
        DISK_TELL(renamed(disk_path(folder, from, old), disk_path(other, to, fresh)));
    return rc;
}

int mkdirat(int folder, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    DISK_FAILS();
    const int rc = (int)syscall(SYS_mkdirat, folder, name, mode);
    if (rc == 0)
        DISK_TELL(made(disk_path(folder, name, path), NULL));
    return rc;
}

int symlinkat(const char *target, int folder, const char *name)
{
    char path[PATH_MAX];
    DISK_FAILS();
    const int rc = (int)syscall(SYS_symlinkat, target, folder, name);
    if (rc == 0)
        DISK_TELL(made(disk_path(folder, name, path), target));
    return rc;
}

int unlinkat(int folder, const char *name, int flags)
{
    char path[PATH_MAX];
    DISK_FAILS();
    const int rc = (int)syscall(SYS_unlinkat, folder, name, flags);
    if (rc == 0)
        DISK_TELL(removed(disk_path(folder, name, path)));
    return rc;
}

#endif
