/* Subcommands that send one request to an experiment and print its reply. */
#include "daemon/ctl/command.h"

#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/find.h"
#include "daemon/format.h"
#include "daemon/ctl/view.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef void (*show_fn)(const json_t *reply, const struct rm_style *style);

/* A request over a connection that is open. On success *reply is the caller's. */
static int ask(struct rm_ctl_client *client, const char *command, json_t *arguments, json_t **reply)
{
    struct rm_error error = {""};
    int rc = rm_ctl_client_call(client, command, arguments, reply, &error);
    return rc ? rm_ctl_complain(rm_ctl_client_exit_code(rc), "%s: %s", command, error.text) : 0;
}

static void print_json(const json_t *reply)
{
    json_dumpf(reply, stdout, JSON_ENCODE_ANY | JSON_INDENT(2));
    putchar('\n');
}

static void show(const struct rm_ctl_arguments *given, const json_t *reply, show_fn human)
{
    struct rm_style style = rm_style_of(stdout);
    if (rm_ctl_flag(given, "json"))
        print_json(reply);
    else if (human)
        human(reply, &style);
}

/* Opens, asks, shows, closes. `arguments` is taken over. */
static int simple(const struct rm_ctl_arguments *given, const char *command, json_t *arguments,
                  show_fn human)
{
    struct rm_ctl_client client;
    json_t *reply = NULL;
    int rc = rm_find_open(&client, given);
    if (rc) {
        json_decref(arguments);
        return rc;
    }
    rc = ask(&client, command, arguments, &reply);
    if (rc == 0)
        show(given, reply, human);
    json_decref(reply);
    rm_ctl_client_close(&client);
    return rc;
}

static void show_status(const json_t *reply, const struct rm_style *style)
{
    struct rm_snapshot *snapshot = malloc(sizeof *snapshot);
    if (!snapshot)
        return;
    rm_snapshot_read(snapshot, reply);
    rm_view_status(stdout, snapshot, style);
    free(snapshot);
}

static void show_schema(const json_t *reply, const struct rm_style *style)
{
    rm_view_schema(stdout, reply, style);
}

static void show_metrics(const json_t *reply, const struct rm_style *style)
{
    rm_view_metrics(stdout, reply, style);
}

/* {"state": ...} */
static void show_state(const json_t *reply, const struct rm_style *style)
{
    const char *state = json_string_value(json_object_get(reply, "state"));
    printf("%s%s%s\n", rm_style_state(style, state ? state : ""), state ? state : "?",
           rm_style_off(style));
}

/* {"key", "before", "value"} */
static void show_change(const json_t *reply, const struct rm_style *style)
{
    const char *key = json_string_value(json_object_get(reply, "key"));
    (void)style;
    printf("%s: ", key ? key : "?");
    rm_view_value(stdout, json_object_get(reply, "before"));
    printf(" -> ");
    rm_view_value(stdout, json_object_get(reply, "value"));
    putchar('\n');
}

/* What has to happen before that which was asked for does. */
static void say_waits(const json_t *reply)
{
    const char *waits = json_string_value(json_object_get(reply, "waits"));
    if (waits && waits[0])
        fprintf(stderr, "%s\n", waits);
}

/* {"request": N, ...} */
static void show_request(const json_t *reply, const struct rm_style *style)
{
    (void)style;
    say_waits(reply);
    printf("request %lld\n", (long long)json_integer_value(json_object_get(reply, "request")));
}

static void show_evaluation(const json_t *data, const struct rm_style *style)
{
    (void)style;
    printf("greedy score %s +- %s over %lld episodes\n",
           rm_format_measure(json_number_value(json_object_get(data, "mean"))).s,
           rm_format_measure(json_number_value(json_object_get(data, "stderr"))).s,
           (long long)json_integer_value(json_object_get(data, "episodes")));
    const json_t *agents = json_object_get(data, "agents"), *agent;
    size_t a;
    json_array_foreach((json_t *)agents, a, agent)
    {
        struct rm_snapshot_figure figure[RM_SNAPSHOT_FIGURES];
        const unsigned n = rm_snapshot_figures(figure, RM_SNAPSHOT_FIGURES,
                                               json_object_get(agent, "figures"), NULL);
        const char *name = json_string_value(json_object_get(agent, "name"));
        printf("%s:", name ? name : "?");
        for (unsigned f = 0; f < n; f++)
            printf("%s %s %s", f ? "," : "", figure[f].name, rm_format_measure(figure[f].last).s);
        putchar('\n');
    }
}

int rm_ctl_status(const struct rm_ctl_arguments *given)
{
    return simple(given, "status", NULL, show_status);
}

int rm_ctl_metrics(const struct rm_ctl_arguments *given)
{
    return simple(given, "metrics", json_pack("{s:b}", "describe", 1), show_metrics);
}

int rm_ctl_query_schema(const struct rm_ctl_arguments *given)
{
    return simple(given, "query-schema", NULL, show_schema);
}

int rm_ctl_pause(const struct rm_ctl_arguments *given)
{
    return simple(given, "pause", NULL, show_state);
}

int rm_ctl_resume(const struct rm_ctl_arguments *given)
{
    return simple(given, "resume", NULL, show_state);
}

/* {"key": ..., "value": ...}, or the value itself. */
static void show_value(const json_t *reply, const struct rm_style *style)
{
    const json_t *value = json_object_get(reply, "value");
    (void)style;
    json_dumpf(value ? value : reply, stdout,
               JSON_ENCODE_ANY | JSON_INDENT(2) | JSON_REAL_PRECISION(15)); /* 0.9, not 0.90..02 */
    putchar('\n');
}

int rm_ctl_get(const struct rm_ctl_arguments *given)
{
    return simple(given, "get", json_pack("{s:s}", "key", given->argument[1]), show_value);
}

int rm_ctl_set(const struct rm_ctl_arguments *given)
{
    const char *setting = given->argument[1], *equals = strchr(setting, '=');
    if (!equals || equals == setting)
        return rm_ctl_complain(RM_CTL_USAGE, "set: \"%s\" is not KEY=VALUE", setting);
    /* What is not JSON is a string, so that words need no quotes within quotes. */
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
    if (!value)
        value = json_string(equals + 1);
    json_t *arguments =
        json_pack("{s:s%, s:o*}", "key", setting, (size_t)(equals - setting), "value", value);
    if (rm_ctl_flag(given, "keep")) /* left out, older daemons understand it too */
        json_object_set_new(arguments, "keep", json_true());
    if (!arguments || !value) {
        json_decref(arguments);
        return rm_ctl_complain(RM_CTL_USAGE, "set: \"%s\" is not valid UTF-8", setting);
    }
    return simple(given, "set", arguments, show_change);
}

static bool reached(const json_t *data, const char *member, json_int_t least)
{
    const json_t *number = json_object_get(data, member);
    return !number || json_integer_value(number) >= least;
}

/* Waits for an event `name` whose data has a number `member` of at least `least` (a daemon of
 * another version may not say it: then for any); NULL waits for the end of the connection. */
static int await(struct rm_ctl_client *client, const char *name, const char *member,
                 json_int_t least, uint64_t timeout_ns, json_t **event)
{
    uint64_t deadline = timeout_ns ? rm_now_ns() + timeout_ns : 0;
    struct rm_error error = {""};
    for (;;) {
        uint64_t now = rm_now_ns(), left = deadline > now ? deadline - now : 1;
        int rc = rm_ctl_client_event(client, deadline ? left : 0, event, &error);
        if (rc == -EREMOTEIO && !name)
            rc = rm_ctl_client_again(client, &error);
        if (rc == 0 && !*event)
            continue;
        if (rc == -ECONNRESET && !name)
            return 0;
        if (rc == -ETIMEDOUT)
            return rm_ctl_complain(RM_CTL_TIMED_OUT, "still waiting for the %s after --timeout",
                                   name ? name : "end");
        if (rc)
            return rm_ctl_complain(rm_ctl_client_exit_code(rc), "%s", error.text);
        const char *got = json_string_value(json_object_get(*event, "event"));
        if (name && got && !strcmp(got, name) &&
            reached(json_object_get(*event, "data"), member, least))
            return 0;
        json_decref(*event);
        *event = NULL;
    }
}

/* --wait is for as long as it takes, unless a time-out is given. */
static int wait_limit(const struct rm_ctl_arguments *given, uint64_t *timeout_ns)
{
    return rm_find_timeout(timeout_ns, given, 0);
}

/* Asks for an evaluation and waits for its result, past that of one that is being played or has
 * just been; `arguments` is taken over. */
static int evaluate_and_wait(struct rm_ctl_client *client, json_t *arguments, uint64_t limit,
                             json_t **event)
{
    json_t *subscribed = NULL, *reply = NULL;
    /* Events first, so that the end cannot be missed. */
    int rc = ask(client, "events", NULL, &subscribed);
    if (rc == 0)
        rc = ask(client, "evaluate", json_incref(arguments), &reply);
    if (rc == 0)
        say_waits(reply);
    if (rc == 0)
        rc = await(client, "evaluation", "request",
                   json_integer_value(json_object_get(reply, "request")), limit, event);
    json_decref(arguments);
    json_decref(subscribed);
    json_decref(reply);
    return rc;
}

/* --episodes as arguments of the request; NULL without. */
static int episodes_argument(const struct rm_ctl_arguments *given, json_t **arguments)
{
    uint32_t episodes = 0;
    const int rc = rm_ctl_whole(given, "episodes", 1, UINT32_MAX, &episodes);
    *arguments = episodes ? json_pack("{s:I}", "episodes", (json_int_t)episodes) : NULL;
    return rc;
}

int rm_ctl_evaluate(const struct rm_ctl_arguments *given)
{
    json_t *arguments = NULL, *event = NULL;
    struct rm_ctl_client client;
    uint64_t limit = 0;
    if (rm_ctl_value(given, "policy"))
        return rm_ctl_evaluate_files(given);
    if (rm_ctl_value(given, "set"))
        return rm_ctl_complain(RM_CTL_USAGE, "--set: is for an experiment's FILE, with --policy; "
                                             "a running one evaluates as it is configured");
    if (rm_ctl_value(given, "record"))
        return rm_ctl_complain(RM_CTL_USAGE,
                               "--record: is for an experiment's FILE, with --policy; "
                               "a run's own evaluations are not recorded");
    if (given->argument[0] && strchr(given->argument[0], '/'))
        return rm_ctl_complain(RM_CTL_USAGE,
                               "evaluate \"%s\": an experiment's FILE needs --policy PATH; without "
                               "it NAME is a running experiment",
                               given->argument[0]);
    int rc = episodes_argument(given, &arguments);
    if (rc)
        return rc;
    if (!rm_ctl_flag(given, "wait"))
        return simple(given, "evaluate", arguments, show_request);
    rc = wait_limit(given, &limit);
    if (rc == 0)
        rc = rm_find_open(&client, given);
    if (rc) {
        json_decref(arguments);
        return rc;
    }
    rc = evaluate_and_wait(&client, arguments, limit, &event);
    if (rc == 0)
        show(given, json_object_get(event, "data"), show_evaluation);
    json_decref(event);
    rm_ctl_client_close(&client);
    return rc;
}

static void show_checkpoint(const json_t *data, const struct rm_style *style)
{
    (void)style;
    printf("checkpoint %lld: step %lld\n",
           (long long)json_integer_value(json_object_get(data, "count")),
           (long long)json_integer_value(json_object_get(data, "step")));
}

/* Asks, and waits until it stands on the disk or was given up. */
static int checkpoint_and_wait(struct rm_ctl_client *client, uint64_t limit, json_t **event)
{
    json_t *subscribed = NULL, *reply = NULL;
    int rc = ask(client, "events", NULL, &subscribed);
    if (rc == 0)
        rc = ask(client, "checkpoint", NULL, &reply);
    if (rc == 0)
        say_waits(reply);
    if (rc == 0)
        rc = await(client, "checkpoint", "count",
                   json_integer_value(json_object_get(reply, "number")), limit, event);
    json_decref(subscribed);
    json_decref(reply);
    return rc;
}

int rm_ctl_checkpoint(const struct rm_ctl_arguments *given)
{
    struct rm_ctl_client client;
    json_t *event = NULL;
    uint64_t limit = 0;
    int rc = wait_limit(given, &limit);
    if (rc == 0)
        rc = rm_find_open(&client, given);
    if (rc)
        return rc;
    rc = checkpoint_and_wait(&client, limit, &event);
    const json_t *data = json_object_get(event, "data");
    if (rc == 0 && !json_is_true(json_object_get(data, "made")))
        rc = rm_ctl_complain(RM_CTL_FAILED, "the checkpoint was given up: %s",
                             json_string_value(json_object_get(data, "reason")));
    else if (rc == 0)
        show(given, data, show_checkpoint);
    json_decref(event);
    rm_ctl_client_close(&client);
    return rc;
}

/* It answers while it still runs: a checkpoint is written before anything is stopped. */
static void show_stop(const json_t *reply, const struct rm_style *style)
{
    const char *state = json_string_value(json_object_get(reply, "state"));
    if (state && (strcmp(state, "running") == 0 || strcmp(state, "paused") == 0))
        puts("stopping: a checkpoint is written first");
    else
        show_state(reply, style);
}

/* A pidfd of the process that listens there; -1: it is not seen from here, as that of another
 * container may be. */
static int process_of(const struct rm_ctl_client *client)
{
    return client->daemon > 0 ? (int)syscall(SYS_pidfd_open, client->daemon, 0) : -1;
}

/* The daemon closes its connections first, then writes the report and releases the run's lock: so
 * only the end of its process is the end of the experiment. */
static int await_end(struct rm_ctl_client *client, int process, uint64_t timeout_ns)
{
    if (process < 0) {
        json_t *event = NULL;
        return await(client, NULL, NULL, 0, timeout_ns, &event);
    }
    const uint64_t deadline = rm_now_ns() + timeout_ns;
    for (;;) {
        struct pollfd p = {.fd = process, .events = POLLIN};
        const uint64_t now = rm_now_ns(), left = deadline > now ? deadline - now : 0;
        const struct timespec limit = {(time_t)(left / RM_NS_PER_S), (long)(left % RM_NS_PER_S)};
        const int n = ppoll(&p, 1, timeout_ns ? &limit : NULL, NULL);
        if (n > 0)
            return 0;
        if (n == 0)
            return rm_ctl_complain(RM_CTL_TIMED_OUT, "still waiting for the end after --timeout");
        if (errno != EINTR)
            return rm_ctl_complain(RM_CTL_FAILED, "poll: %s", strerror(errno));
    }
}

int rm_ctl_stop(const struct rm_ctl_arguments *given)
{
    if (!rm_ctl_flag(given, "wait"))
        return simple(given, "stop", NULL, show_stop);
    struct rm_ctl_client client;
    uint64_t limit = 0;
    json_t *reply = NULL;
    int rc = wait_limit(given, &limit);
    if (rc == 0)
        rc = rm_find_open(&client, given);
    if (rc)
        return rc;
    const int process = process_of(&client); /* before it can end */
    rc = ask(&client, "stop", NULL, &reply);
    if (rc == 0)
        rc = await_end(&client, process, limit);
    if (rc == 0)
        show(given, reply, NULL); /* nothing for people: it is gone */
    json_decref(reply);
    if (process >= 0)
        close(process);
    rm_ctl_client_close(&client);
    return rc;
}

int rm_ctl_events(const struct rm_ctl_arguments *given)
{
    struct rm_ctl_client client;
    struct rm_style style = rm_style_of(stdout);
    struct rm_error error = {""};
    json_t *reply = NULL, *event = NULL;
    int rc = rm_find_open(&client, given);
    if (rc)
        return rc;
    rc = ask(&client, "events", NULL, &reply);
    json_decref(reply);
    if (rc) {
        rm_ctl_client_close(&client);
        return rc;
    }
    while ((rc = rm_ctl_client_event(&client, 0, &event, &error)) == 0) {
        if (rm_ctl_flag(given, "json")) {
            json_dumpf(event, stdout, JSON_COMPACT);
            putchar('\n');
        } else {
            rm_view_event(stdout, event, &style);
        }
        json_decref(event);
        /* Flush each line for the reader of a pipe; stop when the pipe is closed. */
        if (fflush(stdout))
            break;
    }
    rm_ctl_client_close(&client);
    if (rc == 0 || rc == -ECONNRESET) /* the experiment ended, which is how this ends */
        return RM_CTL_OK;
    return rm_ctl_complain(rm_ctl_client_exit_code(rc), "%s", error.text);
}
