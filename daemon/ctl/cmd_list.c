#include "daemon/ctl/command.h"

#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/find.h"
#include "daemon/format.h"
#include "daemon/ctl/view.h"

#include <errno.h>
#include <stdlib.h>

#define TIMEOUT_S 2.0

static const struct rm_column columns[] = {
    {"NAME", true, 0},      {"STATE", true, 0}, {"PID", false, 2},   {"UP", false, 3},
    {"PROGRESS", false, 1}, {"LEFT", false, 4}, {"SCORE", false, 5}, {"SOCKET", true, 6},
};

/* Its status, or NULL with a word that stands for the state it cannot tell. */
static json_t *status_of(const char *socket, uint64_t timeout_ns, const char **why)
{
    struct rm_ctl_client client;
    struct rm_error error;
    json_t *reply = NULL;
    int rc = rm_ctl_client_open(&client, socket, timeout_ns, &error);
    if (rc == 0) {
        rc = rm_ctl_client_call(&client, "status", NULL, &reply, &error);
        rm_ctl_client_close(&client);
    }
    *why = rc == -ETIMEDOUT                       ? "silent"
           : rc == -EACCES || rc == -EPERM        ? "not yours"
           : rc == -EREMOTEIO                     ? "not yours"
           : rc == -ECONNREFUSED || rc == -ENOENT ? NULL
                                                  : "unknown";
    return reply;
}

static void add_row(struct rm_table *table, const struct rm_found *found, const json_t *reply,
                    const char *why, struct rm_snapshot *s)
{
    rm_snapshot_read(s, reply);
    rm_table_cell(table, "%s", found->name);
    rm_table_cell(table, "%s", reply ? s->state : why);
    if (s->pid > 0)
        rm_table_cell(table, "%.0f", s->pid);
    else
        rm_table_cell(table, "-");
    rm_table_cell(table, "%s", rm_format_duration(s->uptime_s).s);
    rm_table_cell(table, "%s", rm_format_percent(rm_snapshot_progress(s)).s);
    rm_table_cell(table, "%s", rm_format_duration(s->left_s).s);
    rm_table_cell(table, "%s", rm_format_measure(s->score_last).s);
    rm_table_cell(table, "%s", found->socket);
}

int rm_ctl_list(const struct rm_ctl_arguments *given)
{
    struct rm_found *found = NULL;
    struct rm_error error = {""};
    uint64_t timeout_ns = 0;
    if (rm_find_timeout(&timeout_ns, given, TIMEOUT_S))
        return RM_CTL_USAGE;
    int count = rm_find_sockets(&found, &error);
    if (count < 0)
        return rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    struct rm_snapshot *snapshot = malloc(sizeof *snapshot);
    json_t *list = json_array();
    struct rm_table table;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < count && snapshot; i++) {
        const char *why = NULL;
        if (!rm_find_alive(found[i].socket))
            continue;
        json_t *reply = status_of(found[i].socket, timeout_ns, &why);
        if (!reply && !why)
            continue; /* ended while we looked */
        add_row(&table, &found[i], reply, why, snapshot);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o?}", "name", found[i].name,
                                              "socket", found[i].socket, "state",
                                              reply ? snapshot->state : why, "status", reply));
    }
    struct rm_style style = rm_style_of(stdout);
    if (rm_ctl_flag(given, "json")) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        putchar('\n');
        rm_table_free(&table);
    } else {
        if (json_array_size(list) == 0)
            fprintf(stderr, "no experiment is running\n");
        rm_table_end(&table, stdout, &style);
    }
    json_decref(list);
    free(snapshot);
    free(found);
    return RM_CTL_OK;
}
