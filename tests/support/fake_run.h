/* fake_run: whole runs of the daemon with pretended workers (fake_worker.h), as tests start and end
 * them. Asserts inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_FAKE_RUN_H
#define RM_TESTS_SUPPORT_FAKE_RUN_H

#include "tests/support/daemon.h"

/* A run of `steps` (0: without end) with more JSON members, its workers as they should be. */
int rm_test_run_home(struct rm_test_daemon *d, const char *name, unsigned steps, const char *more);

/* Arguments end in NULL, or are NULL. */
void rm_test_run_start(struct rm_test_daemon *d, const char *const *arguments);

/* It ends with this exit code, and its socket is gone. */
void rm_test_run_ends(struct rm_test_daemon *d, int code);

/* The text is in what it wrote to standard output and error. */
void rm_test_run_says(struct rm_test_daemon *d, const char *text);

/* A process of the status, such as "workers.0.pid". */
pid_t rm_test_run_pid(int fd, const char *path);

/* None of these processes stays. */
void rm_test_run_all_gone(const pid_t *pids, size_t n);

/* Kills what is left and removes the directory; later runs' workers are as they should be. */
void rm_test_run_remove(struct rm_test_daemon *d);

#endif
