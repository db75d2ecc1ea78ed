/* disk: the system calls by which files come about, under a test's control: the n-th fails, writes
 * less than it was given, or is the last thing the process does; or every one is told to a
 * recorder. For the whole program that includes this, its libraries too; once in a program. */
#ifndef RM_TESTS_CRASH_DISK_H
#define RM_TESTS_CRASH_DISK_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

/* Told of calls that succeeded; NULL: nobody. */
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

/* The descriptor is gone, whatever it says. */
int close(int fd)
{
    DISK_TELL(closed(fd));
    const int rc = (int)syscall(SYS_close, fd), wrong = disk_pass();
    if (wrong) {
        errno = wrong;
        return -1;
    }
    return rc;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    DISK_FAILS();
    const int fd = (int)syscall(SYS_open, path, flags, mode);
    if (fd >= 0)
        DISK_TELL(opened(fd, path, flags));
    return fd;
}

int rename(const char *from, const char *to)
{
    DISK_FAILS();
    const int rc = (int)syscall(SYS_rename, from, to);
    if (rc == 0)
        DISK_TELL(renamed(from, to));
    return rc;
}

int mkdir(const char *path, mode_t mode)
{
    DISK_FAILS();
    const int rc = (int)syscall(SYS_mkdir, path, mode);
    if (rc == 0)
        DISK_TELL(made(path, NULL));
    return rc;
}

int symlink(const char *target, const char *path)
{
    DISK_FAILS();
    const int rc = (int)syscall(SYS_symlink, target, path);
    if (rc == 0)
        DISK_TELL(made(path, target));
    return rc;
}

int unlink(const char *path)
{
    DISK_FAILS();
    const int rc = (int)syscall(SYS_unlink, path);
    if (rc == 0)
        DISK_TELL(removed(path));
    return rc;
}

int rmdir(const char *path)
{
    DISK_FAILS();
    const int rc = (int)syscall(SYS_rmdir, path);
    if (rc == 0)
        DISK_TELL(removed(path));
    return rc;
}

#endif
