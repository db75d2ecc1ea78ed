#include "daemon/web/runs.h"

#include "config/config.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/explain.h"
#include "daemon/ctl/find.h"
#include "shm/base/clock.h"
#include "shm/board.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASK_NS      (1 * RM_NS_PER_S)  /* for an experiment's answers */
#define SILENT_NS   (10 * RM_NS_PER_S) /* one that did not answer is not asked for so long */
#define COMMAND_NS  (10 * RM_NS_PER_S)
#define SUMMARY_MAX (16 << 20)

static void forget(struct rm_web_run *run)
{
    json_decref(run->status);
    json_decref(run->metrics);
    run->status = run->metrics = NULL;
}

static void free_run(struct rm_web_run *run)
{
    forget(run);
    json_decref(run->explained);
    free(run->directory);
    rm_columns_free(&run->curves);
    rm_columns_free(&run->losses);
    free(run);
}

/* A daemon that was not seen before: its counters began with it. */
static void meet(struct rm_web_run *run)
{
    const char *path = json_string_value(json_object_get(run->status, "run_directory"));
    if (path && path[0] == '/' && (!run->directory || strcmp(run->directory, path) != 0)) {
        free(run->directory);
        run->directory = strdup(path);
    }
    const json_int_t pid = json_integer_value(json_object_get(run->status, "pid"));
    if (pid == run->pid)
        return;
    run->pid = pid;
    run->created = (double)rm_clock_ns(CLOCK_REALTIME) / 1e9 -
                   json_number_value(json_object_get(run->status, "uptime_s"));
}

const char *rm_web_run_directory(const struct rm_web_run *run)
{
    return run->status ? run->directory : NULL;
}

static void ask(struct rm_web_run *run)
{
    struct rm_ctl_client client;
    struct rm_error error = {""};
    if (run->lost_ns || run->silent_ns > rm_now_ns())
        return;
    forget(run);
    int rc = rm_ctl_client_open(&client, run->socket, ASK_NS, &error);
    if (rc == 0) {
        rc = rm_ctl_client_call(&client, "status", NULL, &run->status, &error);
        if (rc == 0)
            rc = rm_ctl_client_call(&client, "metrics", NULL, &run->metrics, &error);
        rm_ctl_client_close(&client);
    }
    run->why[0] = '\0';
    if (rc) {
        forget(run);
        snprintf(run->why, sizeof run->why, "%.*s", (int)sizeof run->why - 1, error.text);
        run->silent_ns = rc == -ETIMEDOUT ? rm_now_ns() + SILENT_NS : 0;
        return;
    }
    meet(run);
}

static struct rm_web_run *at_socket(const struct rm_web_runs *runs, const char *socket)
{
    for (size_t i = 0; i < runs->count; i++)
        if (!strcmp(runs->run[i]->socket, socket))
            return runs->run[i];
    return NULL;
}

struct rm_web_run *rm_web_run_find(const struct rm_web_runs *runs, const char *name)
{
    for (size_t i = 0; i < runs->count; i++)
        if (!strcmp(runs->run[i]->name, name))
            return runs->run[i];
    return NULL;
}

static void add(struct rm_web_runs *runs, const struct rm_found *found)
{
    for (size_t i = 0; runs->count == RM_WEB_RUNS && i < runs->count; i++) {
        if (!runs->run[i]->lost_ns)
            continue;
        free_run(runs->run[i]);
        runs->run[i] = runs->run[--runs->count];
    }
    struct rm_web_run *run = runs->count < RM_WEB_RUNS ? calloc(1, sizeof *run) : NULL;
    if (!run)
        return;
    memcpy(run->socket, found->socket, sizeof run->socket);
    snprintf(run->name, sizeof run->name, "%s", found->name);
    for (int n = 2; rm_web_run_find(runs, run->name); n++)
        snprintf(run->name, sizeof run->name, "%.200s~%d", found->name, n);
    runs->run[runs->count++] = run;
}

static int by_name(const void *a, const void *b)
{
    const struct rm_web_run *one = *(struct rm_web_run *const *)a,
                            *other = *(struct rm_web_run *const *)b;
    return strcmp(one->name, other->name);
}

/* A regular file of the directory, -1: there is none, or it is a link. */
static int open_file(const char *directory, const char *name, struct stat *is)
{
    char path[PATH_MAX];
    if (!directory || snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, is) < 0 || !S_ISREG(is->st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The state in the summary that its last daemon wrote; RM_RUN_STARTING: it wrote none. */
static enum rm_run_state last_state(const struct rm_web_run *run)
{
    struct stat is;
    enum rm_run_state state = RM_RUN_STOPPED;
    const int fd = open_file(run->directory, "summary.json", &is);
    json_t *summary = NULL;
    if (fd < 0)
        return RM_RUN_STARTING;
    if (is.st_size <= SUMMARY_MAX &&
        (double)is.st_mtim.tv_sec + (double)is.st_mtim.tv_nsec / 1e9 > run->created)
        summary = json_loadfd(fd, 0, NULL);
    const char *name = json_string_value(json_object_get(summary, "state"));
    while (state > RM_RUN_STARTING && (!name || strcmp(name, rm_run_state_name(state)) != 0))
        state--;
    json_decref(summary);
    close(fd);
    return state;
}

/* Is it shown? One that no longer listens, and was neither done nor stopped, is for a while. */
static bool is_shown(struct rm_web_run *run)
{
    if (run->seen) {
        run->lost_ns = 0;
        return true;
    }
    if (run->lost_ns)
        return rm_now_ns() - run->lost_ns < RM_WEB_LOST_NS;
    const enum rm_run_state state = run->directory ? last_state(run) : RM_RUN_STOPPED;
    if (state == RM_RUN_DONE || state == RM_RUN_STOPPED)
        return false;
    forget(run);
    snprintf(run->why, sizeof run->why, "%s",
             state == RM_RUN_FAILED ? "the run failed" : "its daemon died");
    run->lost_ns = rm_now_ns();
    return true;
}

/* Experiments that began and ended. */
static void look(struct rm_web_runs *runs)
{
    struct rm_found *found = NULL;
    struct rm_error error = {""};
    const int count = rm_find_sockets(&found, &error);
    for (size_t i = 0; i < runs->count; i++)
        runs->run[i]->seen = false;
    for (int i = 0; found && i < count; i++) {
        if (!rm_find_alive(found[i].socket))
            continue;
        if (!at_socket(runs, found[i].socket))
            add(runs, &found[i]);
        struct rm_web_run *run = at_socket(runs, found[i].socket);
        if (run)
            run->seen = true;
    }
    free(found);
    size_t kept = 0;
    for (size_t i = 0; i < runs->count; i++) {
        if (is_shown(runs->run[i]))
            runs->run[kept++] = runs->run[i];
        else
            free_run(runs->run[i]);
    }
    runs->count = kept;
    if (kept)
        qsort(runs->run, kept, sizeof(void *), by_name);
}

void rm_web_runs_refresh(struct rm_web_runs *runs)
{
    if (runs->asked_ns && rm_now_ns() - runs->asked_ns < RM_WEB_FRESH_NS)
        return;
    look(runs);
    for (size_t i = 0; i < runs->count; i++)
        ask(runs->run[i]);
    runs->asked_ns = rm_now_ns();
}

void rm_web_runs_free(struct rm_web_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        free_run(runs->run[i]);
    runs->count = 0;
}

int rm_web_run_command(const struct rm_web_run *run, const char *command, json_t *arguments,
                       json_t **reply, struct rm_error *error)
{
    struct rm_ctl_client client;
    *reply = NULL;
    const int rc = rm_ctl_client_open(&client, run->socket, COMMAND_NS, error);
    if (rc) {
        json_decref(arguments);
        return rc;
    }
    const int called = rm_ctl_client_call(&client, command, arguments, reply, error);
    rm_ctl_client_close(&client);
    return called;
}

/* --- files of its directory ------------------------------------------------------------------- */

static json_t *explain(const struct rm_web_run *run)
{
    struct rm_explained x = {.experiment = NULL};
    struct rm_error error = {""};
    char verdict[RM_VERDICT_MAX];
    const char *directory = rm_web_run_directory(run);
    const char *state = json_string_value(json_object_get(run->status, "state"));
    const bool running = state && !strcmp(state, "running");
    const int rc = directory ? rm_explain_run(&x, directory, running ? run->metrics : NULL, &error)
                             : rm_fail(&error, -ENOENT, "the run's directory is not known");
    json_t *all = rc ? json_pack("{s:s}", "error", error.text) : rm_explained_json(&x);
    if (rc == 0) {
        rm_explained_verdict(&x, verdict, sizeof verdict);
        json_object_set_new(all, "verdict", json_string(verdict));
    }
    rm_explained_free(&x);
    return all;
}

const json_t *rm_web_run_explain(struct rm_web_run *run)
{
    const uint64_t now = rm_now_ns();
    if (!run->explained || now - run->explained_ns > RM_WEB_EXPLAIN_NS) {
        json_decref(run->explained);
        run->explained = explain(run);
        run->explained_ns = now;
    }
    return run->explained;
}

json_t *rm_web_run_log(const struct rm_web_run *run)
{
    struct stat is;
    const int fd = open_file(rm_web_run_directory(run), "log.txt", &is);
    if (fd < 0)
        return NULL;
    const off_t from = is.st_size > RM_WEB_LOG_BYTES ? is.st_size - RM_WEB_LOG_BYTES : 0;
    char *text = malloc(RM_WEB_LOG_BYTES + 1);
    const ssize_t n = text ? pread(fd, text, RM_WEB_LOG_BYTES, from) : -1;
    const size_t bytes = n > 0 ? (size_t)n : 0;
    close(fd);
    if (!text)
        return NULL;
    text[bytes] = '\0';
    const char *line = from ? strchr(text, '\n') : NULL;
    const char *begin = line ? line + 1 : text;
    for (char *c = text; c < text + bytes; c++)
        if (((unsigned char)*c < ' ' && *c != '\n') || *c == 0x7f)
            *c = '?';
    json_t *string = json_string(begin);
    for (char *c = text; !string && c < text + bytes; c++) /* not UTF-8 */
        if ((unsigned char)*c > 0x7f)
            *c = '?';
    if (!string)
        string = json_string(begin);
    free(text);
    return string;
}
