/* Loaded before the C library: what changes files takes as long as a test says, or fails. */
#include "tests/crash/slow_disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fsync(int fd);
int fdatasync(int fd);
ssize_t write(int fd, const void *data, size_t bytes);
int ftruncate(int fd, off_t bytes);
int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);
int openat(int folder, const char *path, int flags, ...);
int openat64(int folder, const char *path, int flags, ...);
int mkdirat(int folder, const char *path, mode_t mode);
int renameat(int folder, const char *from, int other, const char *to);
int unlinkat(int folder, const char *path, int flags);
int symlinkat(const char *to, int folder, const char *path);
int mkdir(const char *path, mode_t mode);
int rmdir(const char *path);
int unlink(const char *path);

static struct slow_disk *disk;
/* The next library's write(): a thread sanitizer takes what one thread writes to a pipe and another
 * reads from it for an order, if it sees both. */
static ssize_t (*next_write)(int fd, const void *data, size_t bytes);

__attribute__((constructor)) static void map(void)
{
    *(void **)&next_write = dlsym(RTLD_NEXT, "write");
    const char *path = getenv(SLOW_DISK_VARIABLE);
    const int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    disk = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (disk == MAP_FAILED)
        disk = NULL;
    close(fd);
}

static void wait_while(atomic_int *held, atomic_int *waiting)
{
    if (!atomic_load(held))
        return;
    atomic_fetch_add(waiting, 1);
    while (atomic_load(held))
        usleep(1000);
    atomic_fetch_sub(waiting, 1);
}

/* Before a call that changes something. Not 0: it fails. */
static int before_change(void)
{
    if (!disk)
        return 0;
    wait_while(&disk->all_held, &disk->all_held_in);
    errno = atomic_load(&disk->broken);
    return errno;
}

static int is_file(int fd)
{
    struct stat st;
    return disk && (atomic_load(&disk->all_held) || atomic_load(&disk->broken)) &&
           fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

int fsync(int fd)
{
    const int only = disk ? atomic_load(&disk->only) : 0;
    if (disk && (only == 0 || only == getpid()))
        wait_while(&disk->held, &disk->waiting);
    if (disk)
        usleep((useconds_t)atomic_load(&disk->fsync_ms) * 1000);
    return before_change() ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return before_change() ? -1 : (int)syscall(SYS_fdatasync, fd);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    if (is_file(fd) && before_change())
        return -1;
    return next_write ? next_write(fd, data, bytes) : syscall(SYS_write, fd, data, bytes);
}

int ftruncate(int fd, off_t bytes)
{
    return is_file(fd) && before_change() ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

static int open_it(int folder, const char *path, int flags, va_list list)
{
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
    if ((flags & O_CREAT) && before_change())
        return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int fd = open_it(AT_FDCWD, path, flags, list);
    va_end(list);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int fd = open_it(AT_FDCWD, path, flags, list);
    va_end(list);
    return fd;
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int fd = open_it(folder, path, flags, list);
    va_end(list);
    return fd;
}

int openat64(int folder, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int fd = open_it(folder, path, flags, list);
    va_end(list);
    return fd;
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    return before_change() ? -1 : (int)syscall(SYS_mkdirat, folder, path, mode);
}

int renameat(int folder, const char *from, int other, const char *to)
{
    return before_change() ? -1 : (int)syscall(SYS_renameat, folder, from, other, to);
}

int unlinkat(int folder, const char *path, int flags)
{
    return before_change() ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

int symlinkat(const char *to, int folder, const char *path)
{
    return before_change() ? -1 : (int)syscall(SYS_symlinkat, to, folder, path);
}

/* Of sockets and their folders; files of a run go by the calls above. */
int mkdir(const char *path, mode_t mode)
{
    return before_change() ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

int rmdir(const char *path)
{
    return before_change() ? -1 : (int)syscall(SYS_rmdir, path);
}

int unlink(const char *path)
{
    return before_change() ? -1 : (int)syscall(SYS_unlink, path);
}
