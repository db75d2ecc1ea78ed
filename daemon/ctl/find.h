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

/* All sockets in the directories of daemon/socket_path.h, sorted by name, stale ones among them.
 * The caller frees *found. Returns how many, or negative errno. */
int rm_find_sockets(struct rm_found **found, struct rm_error *error);

/* Does a daemon listen there? Connects and closes. */
bool rm_find_alive(const char *socket);

/* Opens the experiment that the command line means: --socket, NAME, or the only one running.
 * Returns 0, or prints the reason and returns an enum rm_ctl_exit value. */
int rm_find_open(struct rm_ctl_client *client, const struct rm_ctl_arguments *given);

/* The directory of the run that `name` and --socket mean, into `path` of PATH_MAX bytes. Of a
 * running experiment (the only one, where both are left out): *client is open and *status its reply
 * to `status`, for the caller to close and to json_decref. Of the latest run of an experiment's
 * FILE, or of a run's directory: client->fd is -1 and *status NULL. Returns 0, or prints the reason
 * and returns an enum rm_ctl_exit value. */
int rm_find_run(char *path, struct rm_ctl_client *client, json_t **status,
                const struct rm_ctl_arguments *given, const char *name);

/* The same, of which only what `status` said is needed: *status is the reply of a running
 * experiment, the summary.json of a run that has ended, or NULL: it was killed. */
int rm_find_status(char *path, json_t **status, const struct rm_ctl_arguments *given,
                   const char *name);

/* --timeout in nanoseconds (0 = none) into *timeout_ns; `fallback_s` when it is not given.
 * Returns 0, or prints the reason and returns RM_CTL_USAGE. */
int rm_find_timeout(uint64_t *timeout_ns, const struct rm_ctl_arguments *given, double fallback_s);

#endif
