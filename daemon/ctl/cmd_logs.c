#include "daemon/ctl/command.h"

#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/find.h"
#include "daemon/ctl/lines.h"
#include "shm/board.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define FOLLOW_MS 200

struct logs {
    struct rm_lines lines;
    const char *worker; /* NULL: all lines */
};

/* "TIME LEVEL WORKER: text". A role stands for all of its workers: "actor" for "actor-0". */
static bool of_worker(const char *line, const char *worker)
{
    const size_t length = strlen(worker);
    const char *text = line + strcspn(line, " ");
    text += strspn(text, " ");
    text += strcspn(text, " ");
    text += strspn(text, " ");
    return strncmp(text, worker, length) == 0 && (text[length] == ':' || text[length] == '-');
}

/* Does NAME mean a worker of the only running experiment, as in `ringctl logs actor-0`? An
 * experiment of that name has precedence. */
static bool means_worker(const char *name)
{
    struct rm_found *found = NULL;
    struct rm_error error = {""};
    bool means = false;
    for (int role = 0; name && role < RM_ROLE_COUNT; role++) {
        const size_t length = strlen(rm_role_name(role));
        means = means || (strncmp(name, rm_role_name(role), length) == 0 &&
                          (name[length] == '\0' || name[length] == '-'));
    }
    for (int i = means ? rm_find_sockets(&found, &error) : 0; i > 0; i--)
        means =
            means && (strcmp(found[i - 1].name, name) != 0 || !rm_find_alive(found[i - 1].socket));
    free(found);
    return means;
}

/* The next line that is wanted, or NULL. */
static const char *next_line(struct logs *l)
{
    const char *line;
    do
        line = rm_lines_next(&l->lines);
    while (line && l->worker && !of_worker(line, l->worker));
    return line;
}

static void print_rest(struct logs *l, uint64_t skip)
{
    for (const char *line; (line = next_line(l)); skip -= skip > 0)
        if (!skip)
            fputs(line, stdout);
}

/* How many of the wanted lines stand before the last `most`. */
static uint64_t lines_before(struct logs *l, uint64_t most)
{
    uint64_t count = 0;
    while (next_line(l))
        count++;
    rewind(l->lines.file);
    return count > most ? count - most : 0;
}

/* Until the experiment ends, or the reader of standard output is gone. */
static void follow(struct logs *l, struct rm_ctl_client *client)
{
    struct pollfd reader = {.fd = fileno(stdout)};
    struct rm_error error = {""};
    bool ended = false;
    while (!ended && fflush(stdout) == 0) {
        struct pollfd daemon = {.fd = client->fd, .events = POLLRDHUP};
        if (poll(&daemon, 1, FOLLOW_MS) > 0 || client->fd < 0)
            ended = rm_ctl_client_again(client, &error) == -ECONNRESET;
        if (poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR))
            return;
        print_rest(l, 0);
    }
}

int rm_ctl_logs(const struct rm_ctl_arguments *given)
{
    struct rm_ctl_client client;
    char path[PATH_MAX], file[PATH_MAX + 16];
    uint32_t most = 0;
    json_t *status;
    int rc = rm_ctl_whole(given, "lines", 0, UINT32_MAX, &most);
    if (rc)
        return rc;
    const char *name = given->argument[0], *worker = rm_ctl_value(given, "worker");
    if (!worker && means_worker(name)) {
        worker = name;
        name = NULL;
    }
    rc = rm_find_run(path, &client, &status, given, name);
    json_decref(status);
    if (rc)
        return rc;
    snprintf(file, sizeof file, "%s/log.txt", path);
    struct logs l = {.worker = worker};
    l.lines = rm_lines_open(file);
    if (l.lines.file) {
        print_rest(&l, rm_ctl_flag(given, "lines") ? lines_before(&l, most) : 0);
        if (rm_ctl_flag(given, "follow"))
            follow(&l, &client);
    } else {
        rc = rm_ctl_complain(RM_CTL_FAILED, "%s: %s", file, strerror(errno));
    }
    rm_lines_close(&l.lines);
    rm_ctl_client_close(&client);
    return rc;
}
