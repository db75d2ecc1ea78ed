/* file: bytes as a file in memory that has a path, for readers that want one. */
#ifndef RM_TESTS_FUZZ_FILE_H
#define RM_TESTS_FUZZ_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void demand(int truth, const char *what)
{
    if (!truth) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

/* Returns the descriptor, to be closed. */
static inline int file_of(const void *data, size_t bytes, char path[64])
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    demand(fd >= 0, "no file in memory");
    demand(pwrite(fd, data, bytes, 0) == (ssize_t)bytes, "no room in memory");
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
