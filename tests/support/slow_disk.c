#include "tests/support/slow_disk.h"

#include "tests/support/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct slow_disk *rm_test_disk;

static char page[64];

int rm_test_disk_make(void **state)
{
    (void)state;
    snprintf(page, sizeof page, "/tmp/rm-slow-disk-XXXXXX");
    const int fd = mkstemp(page);
    if (fd < 0 || ftruncate(fd, sizeof *rm_test_disk) < 0)
        return -1;
    rm_test_disk = mmap(NULL, sizeof *rm_test_disk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    setenv(SLOW_DISK_VARIABLE, page, 1);
    setenv("LD_PRELOAD", rm_test_build_path("tests/crash/slow_disk.so"), 1);
    /* A sanitizer wants to be first; it need not be. */
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    return rm_test_disk == MAP_FAILED ? -1 : 0;
}

int rm_test_disk_remove(void **state)
{
    (void)state;
    munmap(rm_test_disk, sizeof *rm_test_disk);
    unlink(page);
    return 0;
}
