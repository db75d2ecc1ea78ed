/* A ringmasterd of the test's own: in a temporary directory, with real or pretended workers. */
#ifndef RM_TESTS_SUPPORT_DAEMON_H
#define RM_TESTS_SUPPORT_DAEMON_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct rm_test_daemon {
    pid_t pid;     /* 0 = none running */
    char home[64]; /* temporary directory: config.json, out.txt, sockets/, runs/ */
    char name[32];
    char socket[108];
};

/* Makes the directory and writes `config` (JSON text) there. Returns 0 or -1. */
int rm_test_daemon_home(struct rm_test_daemon *daemon, const char *name, const char *config);

/* Starts ringmasterd on that file with more arguments (ends with NULL, may be NULL). `fake`:
 * workers are this program (fake_worker.h), else the built ones. `file_limit` != 0: RLIMIT_FSIZE in
 * bytes. supervisor.heartbeat_s and stop_grace_s are minutes where neither the file nor the
 * arguments say otherwise. */
int rm_test_daemon_start(struct rm_test_daemon *daemon, const char *const *arguments, bool fake,
                         unsigned long file_limit);

/* Only what fails waits so long, on the slowest host. */
#define RM_TEST_PATIENCE_S 240.0

/* Waits for the exit. Exit code, 128 + signal, or -1 when it did not end within `seconds`. */
int rm_test_daemon_wait(struct rm_test_daemon *daemon, double seconds);

/* Kills what is left and removes the directory. */
void rm_test_daemon_end(struct rm_test_daemon *daemon);

/* What it wrote to standard output and error. Static storage. */
const char *rm_test_daemon_output(struct rm_test_daemon *daemon);
/* A file of the latest run directory. Static storage; "" when absent. */
const char *rm_test_daemon_file(struct rm_test_daemon *daemon, const char *file);

/* Waits up to a minute until a file of the latest run directory has `text` in it: the daemon writes
 * its journal soon after it has answered. false: it has not. */
bool rm_test_until_file(struct rm_test_daemon *daemon, const char *file, const char *text);

/* Connects, waiting for the socket up to a minute; reads the greeting. Descriptor or -1. */
int rm_test_connect(struct rm_test_daemon *daemon);
/* Sends text as it is. */
int rm_test_send(int fd, const char *text, size_t bytes);
/* The next line as JSON (new reference); NULL at the end or after a minute of nothing. */
json_t *rm_test_read(int fd);
/* Sends a request (JSON text of arguments or NULL) and returns the next reply, skipping events. */
json_t *rm_test_ask(int fd, const char *command, const char *arguments);
/* The class of an error reply, "" if it is none. Borrowed. */
const char *rm_test_error(const json_t *reply);
/* Status by dotted path, e.g. "workers.0.pid"; borrowed from *status, NULL if absent. */
json_t *rm_test_path(json_t *value, const char *path);

/* Polls `status` until text or number at `path` equals / reaches the value. false after a minute.
 */
bool rm_test_until_text(int fd, const char *path, const char *text);
bool rm_test_until_at_least(int fd, const char *path, double value);

/* Is process `pid` there (not a zombie)? */
bool rm_test_process_there(pid_t pid);

#endif
