#include "daemon/ctl/find.h"

#include "config/config.h"
#include "daemon/ctl/exit_code.h"
#include "shm/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMEOUT_S     10.0
#define TIMEOUT_MAX_S 1e9

struct list {
    struct rm_found *items;
    size_t count, room;
};

static int append(struct list *list, const char *name, const char *socket)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        struct rm_found *items = realloc(list->items, room * sizeof *items);
        if (!items)
            return -ENOMEM;
        list->items = items;
        list->room = room;
    }
    struct rm_found *item = &list->items[list->count++];
    snprintf(item->name, sizeof item->name, "%s", name);
    snprintf(item->socket, sizeof item->socket, "%s", socket);
    return 0;
}

/* All users can write to /tmp: a directory there with this user's number may be another user's
 * trap. */
static bool trusted(const char *directory)
{
    struct stat info;
    if (strncmp(directory, "/tmp/ringmaster-", strlen("/tmp/ringmaster-")) != 0)
        return true;
    return lstat(directory, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

/* What cannot be looked at may well be one: that of a service, whose directory is its group's. */
static bool is_socket(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? S_ISSOCK(info.st_mode) : errno == EACCES;
}

static int scan(struct list *list, const char *directory)
{
    DIR *stream = trusted(directory) ? opendir(directory) : NULL;
    if (!stream)
        return 0; /* no experiment ever ran there, or the directory is not readable */
    int rc = 0;
    /* cppcheck-suppress readdirCalled ; one thread, and glibc's is safe with a stream of one's own
     */
    for (struct dirent *entry; rc == 0 && (entry = readdir(stream));) {
        char path[RM_SOCKET_PATH_MAX];
        if (rm_socket_path_in(path, directory, entry->d_name, NULL) == 0 && is_socket(path))
            rc = append(list, entry->d_name, path);
    }
    closedir(stream);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct rm_found *)a)->name, ((const struct rm_found *)b)->name);
}

int rm_find_sockets(struct rm_found **found, struct rm_error *error)
{
    struct rm_socket_directories directories;
    rm_socket_directories(&directories);
    struct list list = {NULL, 0, 0};
    for (size_t i = 0; i < directories.count; i++) {
        if (scan(&list, directories.path[i])) {
            free(list.items);
            return rm_fail(error, -ENOMEM, "no memory for a list of %zu sockets", list.count);
        }
    }
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, by_name);
    *found = list.items;
    return (int)list.count;
}

/* Whether a daemon listens there: 0, or negative errno; -EACCES and -EPERM: it does not listen to
 * this user. */
static int reach(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
    close(fd);
    return rc == -EAGAIN ? 0 : rc; /* its backlog is full */
}

static bool denies(int rc)
{
    return rc == -EACCES || rc == -EPERM;
}

bool rm_find_alive(const char *socket_path)
{
    const int rc = reach(socket_path);
    return rc == 0 || denies(rc);
}

int rm_find_status(char *path, json_t **status, const struct rm_ctl_arguments *given,
                   const char *name)
{
    struct rm_ctl_client client;
    char file[PATH_MAX + 16];
    const int rc = rm_find_run(path, &client, status, given, name);
    if (rc)
        return rc;
    rm_ctl_client_close(&client);
    snprintf(file, sizeof file, "%s/summary.json", path);
    if (!*status)
        *status = json_load_file(file, 0, NULL);
    return 0;
}

int rm_find_timeout(uint64_t *timeout_ns, const struct rm_ctl_arguments *given, double fallback_s)
{
    double seconds = fallback_s;
    if (rm_ctl_number(given, "timeout", 0, TIMEOUT_MAX_S, &seconds))
        return RM_CTL_USAGE;
    *timeout_ns = (uint64_t)(seconds * (double)RM_NS_PER_S);
    return 0;
}

static int find_named(char *socket, const char *name)
{
    struct rm_socket_directories directories;
    struct rm_error error = {""};
    rm_socket_directories(&directories);
    for (size_t i = 0; i < directories.count; i++) {
        int rc = rm_socket_path_in(socket, directories.path[i], name, &error);
        if (rc == -EINVAL)
            return rm_ctl_complain(RM_CTL_USAGE, "%s", error.text);
        if (rc == 0 && trusted(directories.path[i]) && rm_find_alive(socket))
            return 0;
    }
    return rm_ctl_complain(RM_CTL_NO_EXPERIMENT,
                           "no experiment \"%s\" is running; 'ringctl list' shows those that are",
                           name);
}

/* Whom an experiment answers, by the owner of its socket's folder: "user U, group G". */
static void owner_of(const char *socket, char *text, size_t size)
{
    struct stat folder;
    char path[RM_SOCKET_PATH_MAX];
    const char *end = strrchr(socket, '/');
    snprintf(path, sizeof path, "%.*s", end ? (int)(end - socket) : 0, socket);
    if (lstat(path, &folder) < 0) {
        snprintf(text, size, "another user");
        return;
    }
    /* cppcheck-suppress getpwuidCalled ; one thread */
    const struct passwd *user = getpwuid(folder.st_uid);
    /* cppcheck-suppress getgrgidCalled ; one thread */
    const struct group *group = getgrgid(folder.st_gid);
    char names[2][24];
    snprintf(names[0], sizeof names[0], "%u", (unsigned)folder.st_uid);
    snprintf(names[1], sizeof names[1], "%u", (unsigned)folder.st_gid);
    snprintf(text, size, "user %s, group %s", user ? user->pw_name : names[0],
             group ? group->gr_name : names[1]);
}

/* Appends a name to a list, with its owner in brackets where there is one to name. */
static void add_name(char *list, size_t size, const char *name, const char *owner)
{
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s%s%s%s", used ? ", " : "", name, owner[0] ? " (" : "",
             owner, owner[0] ? ")" : "");
}

static int complain_of_none(const char *others)
{
    if (!others[0])
        return rm_ctl_complain(RM_CTL_NO_EXPERIMENT, "no experiment is running");
    return rm_ctl_complain(RM_CTL_NO_EXPERIMENT,
                           "no experiment of yours is running; experiments of other users: %s. An "
                           "experiment answers its user, members of its group, and root (sudo)",
                           others);
}

/* The only one that answers this user. */
static int find_only(char *socket)
{
    struct rm_found *found = NULL;
    struct rm_error error = {""};
    int count = rm_find_sockets(&found, &error);
    if (count < 0)
        return rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    int open = 0;
    char names[512] = "", others[512] = "", owner[128];
    for (int i = 0; found && i < count; i++) {
        const int rc = reach(found[i].socket);
        if (rc == 0 && open++ == 0)
            memcpy(socket, found[i].socket, sizeof found[i].socket);
        if (rc == 0) {
            add_name(names, sizeof names, found[i].name, "");
        } else if (denies(rc)) {
            owner_of(found[i].socket, owner, sizeof owner);
            add_name(others, sizeof others, found[i].name, owner);
        }
    }
    free(found);
    if (open == 0)
        return complain_of_none(others);
    if (open > 1)
        return rm_ctl_complain(RM_CTL_NO_EXPERIMENT, "%d experiments are running, name one of: %s",
                               open, names);
    return 0;
}

static int open_named(struct rm_ctl_client *client, const struct rm_ctl_arguments *given,
                      const char *name)
{
    client->fd = -1;
    const char *explicit = rm_ctl_value(given, "socket");
    uint64_t timeout_ns = 0;
    int rc = rm_find_timeout(&timeout_ns, given, TIMEOUT_S);
    if (rc)
        return rc;
    if (explicit && name)
        return rm_ctl_complain(RM_CTL_USAGE, "give either NAME or --socket, not both");
    char socket[RM_SOCKET_PATH_MAX];
    if (!explicit) {
        rc = name ? find_named(socket, name) : find_only(socket);
        if (rc)
            return rc;
    }
    struct rm_error error = {""};
    rc = rm_ctl_client_open(client, explicit ? explicit : socket, timeout_ns, &error);
    if (denies(rc)) {
        char owner[128];
        owner_of(explicit ? explicit : socket, owner, sizeof owner);
        return rm_ctl_complain(RM_CTL_NO_EXPERIMENT,
                               "%s: this experiment (%s) answers its user, members of its group, "
                               "and root (sudo)",
                               explicit ? explicit : socket, owner);
    }
    return rc ? rm_ctl_complain(rm_ctl_client_exit_code(rc), "%s", error.text) : 0;
}

int rm_find_open(struct rm_ctl_client *client, const struct rm_ctl_arguments *given)
{
    return open_named(client, given,
                      given->command->arguments[0].optional ? given->argument[0] : NULL);
}

/* NULL: the reason was printed, and the exit code is in *rc. */
static struct rm_experiment *load_file(const char *file, int *rc)
{
    struct rm_error error = {""};
    struct rm_experiment *e = malloc(sizeof *e);
    if (!e)
        *rc = rm_ctl_complain(RM_CTL_FAILED, "no memory");
    else if (rm_config_load(e, file, NULL, 0, &error) == 0)
        return e;
    else
        *rc = rm_ctl_complain(RM_CTL_BAD_CONFIGURATION, "%s", error.text);
    free(e);
    return NULL;
}

/* Writes the latest run of an experiment, or the latest of run `number` of its sweep. Is it there?
 */
static bool is_there(const struct rm_experiment *e, long number, char path[PATH_MAX])
{
    if (number < 0)
        snprintf(path, PATH_MAX, "%s/%s/latest", e->run.directory, e->name);
    else
        snprintf(path, PATH_MAX, "%s/%.40s.%03ld/latest", e->run.directory, e->name, number);
    return access(path, F_OK) == 0;
}

static bool is_file(const char *name)
{
    struct stat is;
    return strpbrk(name, "/.") && stat(name, &is) == 0 && !S_ISDIR(is.st_mode);
}

static int run_of_file(char *path, const char *file)
{
    char first[PATH_MAX];
    int rc = 0;
    struct rm_experiment *e = load_file(file, &rc);
    if (!e)
        return rc;
    if (!is_there(e, -1, path)) {
        if (is_there(e, 0, first))
            rc = rm_ctl_complain(RM_CTL_NO_EXPERIMENT, "%s has several runs: name one, as %s", file,
                                 first);
        else
            rc = rm_ctl_complain(RM_CTL_NO_EXPERIMENT, "no run of %s is in %s", e->name,
                                 e->run.directory);
    }
    free(e);
    return rc;
}

int rm_find_runs_of_sweep(char **runs, size_t room, size_t *count, const char *name)
{
    char path[PATH_MAX];
    int rc = RM_CTL_OK;
    *count = 0;
    if (!is_file(name))
        return rc;
    struct rm_experiment *e = load_file(name, &rc);
    if (!e)
        return rc;
    const bool one = strlen(e->sweep) <= 2 && is_there(e, -1, path);
    for (long i = 0; !one && rc == 0 && (size_t)i <= room; i++) {
        if (!is_there(e, i, path))
            continue;
        if (*count == room || (size_t)i == room)
            rc = rm_ctl_complain(RM_CTL_USAGE, "%s has more than %zu runs: name some, as %s", name,
                                 room, path);
        else if (!(runs[(*count)++] = strdup(path)))
            rc = rm_ctl_complain(RM_CTL_FAILED, "no memory");
    }
    free(e);
    return rc;
}

int rm_find_run(char *path, struct rm_ctl_client *client, json_t **status,
                const struct rm_ctl_arguments *given, const char *name)
{
    struct rm_error error = {""};
    struct stat is;
    *client = (struct rm_ctl_client){.fd = -1};
    *status = NULL;
    if (name && !rm_ctl_value(given, "socket") && strpbrk(name, "/.")) {
        if (is_file(name))
            return run_of_file(path, name);
        if (snprintf(path, PATH_MAX, "%s/config.json", name) < PATH_MAX && stat(path, &is) == 0) {
            *strrchr(path, '/') = '\0';
            return 0;
        }
        return rm_ctl_complain(RM_CTL_NO_EXPERIMENT,
                               "%s is no run directory: it has no config.json", name);
    }
    int rc = open_named(client, given, name);
    if (rc)
        return rc;
    rc = rm_ctl_client_call(client, "status", NULL, status, &error);
    if (rc) {
        rm_ctl_client_close(client);
        return rm_ctl_complain(rm_ctl_client_exit_code(rc), "status: %s", error.text);
    }
    const char *directory = json_string_value(json_object_get(*status, "run_directory"));
    snprintf(path, PATH_MAX, "%s", directory ? directory : "");
    return 0;
}
