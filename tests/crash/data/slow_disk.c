/* Loaded before the C library: fsync takes as long as a test says. */
#include "tests/crash/slow_disk.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int fsync(int fd);

static struct slow_disk *disk;

__attribute__((constructor)) static void map(void)
{
    const char *path = getenv(SLOW_DISK_VARIABLE);
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    disk = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (disk == MAP_FAILED)
        disk = NULL;
    close(fd);
}

int fsync(int fd)
{
    if (disk && atomic_load(&disk->held)) {
        atomic_fetch_add(&disk->waiting, 1);
        while (atomic_load(&disk->held))
            usleep(1000);
        atomic_fetch_sub(&disk->waiting, 1);
    }
    return (int)syscall(SYS_fsync, fd);
}
