/* kills: kill -9 of workers of a real run, and waiting for what becomes of it. */
#ifndef RM_TESTS_SUPPORT_KILLS_H
#define RM_TESTS_SUPPORT_KILLS_H

#include "tests/support/daemon.h"

/* The reply to `status`; the caller's. NULL when the daemon is gone. */
json_t *rm_test_status(int fd);

/* Kills worker `index` and waits until its successor works. */
void rm_test_kill_worker(int fd, unsigned index);

/* The daemon's exit code, or -1 when its run does not move any more. */
int rm_test_until_end(struct rm_test_daemon *daemon, int fd);

#endif
