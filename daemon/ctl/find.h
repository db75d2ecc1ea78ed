/* find: finds experiments by their sockets. */
#ifndef RM_DAEMON_CTL_FIND_H
#define RM_DAEMON_CTL_FIND_H

#include "daemon/ctl/client.h"
#include "daemon/ctl/command.h"
#include "daemon/socket_path.h"

struct rm_found {
    char name[256];
    char socket[RM_SOCKET_PATH_MAX];
};

/* Lists all sockets in the directories of daemon/socket_path.h, sorted by name, including stale
 * ones. The caller frees *found. Returns their number or a negative errno. */
int rm_find_sockets(struct rm_found **found, struct rm_error *error);

/* Does a daemon listen on this socket? Connects to it and closes the connection. */
bool rm_find_alive(const char *socket);

/* Opens the experiment that the command line means: --socket, NAME, or the only one running.
 * Returns 0, or prints the reason and returns an enum rm_ctl_exit value. */
int rm_find_open(struct rm_ctl_client *client, const struct rm_ctl_arguments *given);

/* Finds the run that `name` and --socket mean, and writes its directory to `path` (PATH_MAX bytes).
 * Without both it is the only running experiment. For a running experiment, *client is open and
 * *status is its reply to `status`; the caller closes the client and releases the reply. `name` can
 * also be an experiment FILE, which means its latest run, or a run directory: then client->fd is -1
 * and *status is NULL. Returns 0; or prints the reason and returns an enum rm_ctl_exit value. */
int rm_find_run(char *path, struct rm_ctl_client *client, json_t **status,
                const struct rm_ctl_arguments *given, const char *name);

/* The same for callers that need only the status. *status is the reply of a running experiment or
 * the summary.json of a run that has ended; NULL: the run was killed, or `name` is the directory of
 * a run that goes on. */
int rm_find_status(char *path, json_t **status, const struct rm_ctl_arguments *given,
                   const char *name);

/* Finds the runs of an experiment FILE that has been run with a sweep or with --seeds, at most
 * `room`; each path in `runs` is to be freed, also after an error. `name` can be anything that
 * rm_find_run takes: *count is 0 where it means one run. Returns 0; or prints the reason and
 * returns an enum rm_ctl_exit value. */
int rm_find_runs_of_sweep(char **runs, size_t room, size_t *count, const char *name);

/* --timeout in nanoseconds (0 = none) into *timeout_ns; `fallback_s` when it is not given.
 * Returns 0, or prints the reason and returns RM_CTL_USAGE. */
int rm_find_timeout(uint64_t *timeout_ns, const struct rm_ctl_arguments *given, double fallback_s);

#endif
