/* The commands of the control socket, in one table. To add a command, write a function and a row.
 * Arguments are checked against the row before a function is called. */
#include "daemon/running.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <string.h>

#define FIELDS_END                                                                                 \
    {                                                                                              \
        NULL, RM_FIELD_ANY, false, NULL                                                            \
    }

#define TRACE_MOST_S 60

static enum rm_refusal failed(enum rm_refusal refusal, struct rm_error *error, const char *text)
{
    rm_fail(error, -1, "%s", text);
    return refusal;
}

static bool ending(const struct rm_daemon *daemon)
{
    return daemon->progress.life >= RM_LIFE_STOPPING;
}

#define COMMAND(name)                                                                              \
    static enum rm_refusal name(void *user, struct rm_connection *client, json_t *arguments,       \
                                json_t **reply, struct rm_error *error)
#define UNUSED_HERE() (void)user, (void)client, (void)arguments, (void)reply, (void)error

static json_t *state_reply(const struct rm_daemon *daemon)
{
    return json_pack("{s:s}", "state",
                     rm_run_state_name(RM_PEEK(&daemon->session.board.run->state)));
}

COMMAND(status)
{
    UNUSED_HERE();
    *reply = rm_daemon_status(user);
    return RM_REFUSED_NOT;
}

COMMAND(metrics)
{
    UNUSED_HERE();
    *reply = rm_daemon_metrics(user, json_is_true(json_object_get(arguments, "describe")));
    return RM_REFUSED_NOT;
}

COMMAND(counters)
{
    UNUSED_HERE();
    *reply = rm_daemon_counters(user);
    return RM_REFUSED_NOT;
}

COMMAND(get)
{
    UNUSED_HERE();
    struct rm_daemon *daemon = user;
    const char *key = json_string_value(json_object_get(arguments, "key"));
    json_t *value = key ? rm_config_get(&daemon->session.experiment, key, error)
                        : rm_config_to_json(&daemon->session.experiment);
    if (!value)
        return RM_REFUSED_INVALID_ARGUMENT;
    *reply = key ? json_pack("{s:s,s:o}", "key", key, "value", value)
                 : json_pack("{s:o}", "value", value);
    return RM_REFUSED_NOT;
}

COMMAND(set)
{
    struct rm_daemon *daemon = user;
    const char *key = json_string_value(json_object_get(arguments, "key"));
    if (ending(daemon))
        return failed(RM_REFUSED_NOT_NOW, error, "set: the run is ending");
    const struct rm_setting setting = {.key = key,
                                       .value = json_object_get(arguments, "value"),
                                       .keep = json_is_true(json_object_get(arguments, "keep")),
                                       .who = rm_connection_uid(client),
                                       .client = rm_connection_number(client)};
    const int rc = rm_settings_set(&daemon->settings, &setting, reply, error);
    if (rc < 0)
        return rc == -EPERM ? RM_REFUSED_NOT_NOW : RM_REFUSED_INVALID_ARGUMENT;
    if (rc == 1)
        rm_connection_defer(client);
    return RM_REFUSED_NOT;
}

static enum rm_refusal set_pause(struct rm_daemon *daemon, bool pause, json_t **reply,
                                 struct rm_error *error)
{
    if (ending(daemon))
        return failed(RM_REFUSED_NOT_NOW, error, "the run is ending");
    rm_daemon_pause(daemon, pause);
    *reply = state_reply(daemon);
    return RM_REFUSED_NOT;
}

COMMAND(trace)
{
    UNUSED_HERE();
    struct rm_daemon *daemon = user;
    const double seconds = json_number_value(json_object_get(arguments, "seconds"));
    if (!(seconds >= 0 && seconds <= TRACE_MOST_S))
        return failed(RM_REFUSED_INVALID_ARGUMENT, error,
                      "trace: seconds: should be a number from 0 to 60");
    const uint64_t now = rm_now_ns(), until = now + (uint64_t)(seconds * 1e9);
    for (uint32_t w = 0; w < daemon->session.board.run->workers; w++)
        RM_POKE(&daemon->session.board.workers[w].trace_until_ns, until);
    *reply = json_pack("{s:I,s:I}", "from_ns", (json_int_t)now, "until_ns", (json_int_t)until);
    return RM_REFUSED_NOT;
}

COMMAND(pause_run)
{
    UNUSED_HERE();
    return set_pause(user, true, reply, error);
}

COMMAND(resume)
{
    UNUSED_HERE();
    return set_pause(user, false, reply, error);
}

COMMAND(checkpoint)
{
    UNUSED_HERE();
    struct rm_daemon *daemon = user;
    if (ending(daemon))
        return failed(RM_REFUSED_NOT_NOW, error, "checkpoint: the run is ending");
    uint64_t number = 0;
    if (rm_checkpointer_ask(&daemon->checkpoint, &number, error))
        return RM_REFUSED_NOT_NOW;
    char after[96] = "";
    if (daemon->checkpoint.stage != RM_CHECKPOINT_IDLE && daemon->checkpoint.number != number)
        snprintf(after, sizeof after,
                 "checkpoint %llu is still being written; this checkpoint is made after it",
                 (unsigned long long)daemon->checkpoint.number);
    *reply = json_pack("{s:I,s:s,s:s}", "number", (json_int_t)number, "directory",
                       daemon->directory.path, "waits", after);
    return RM_REFUSED_NOT;
}

COMMAND(evaluate)
{
    UNUSED_HERE();
    struct rm_daemon *daemon = user;
    json_t *episodes = json_object_get(arguments, "episodes");
    json_int_t n = episodes ? json_integer_value(episodes) : 0;
    if (episodes && (n < 1 || n > 1000000)) {
        rm_fail(error, -1, "evaluate: episodes: must be in 1 .. 1000000");
        return RM_REFUSED_INVALID_ARGUMENT;
    }
    if (daemon->progress.life >= RM_LIFE_EVALUATING)
        return failed(RM_REFUSED_NOT_NOW, error,
                      "evaluate: the run is ending; its final evaluation is in status");
    /* Read before asking: the evaluator may be quick. */
    uint64_t finished = RM_PEEK(&daemon->session.board.run->evaluations);
    rm_daemon_request_evaluation(daemon, (uint32_t)n);
    const bool paused = RM_PEEK(&daemon->session.board.run->pause) != 0;
    *reply = json_pack("{s:I,s:I,s:s}", "request",
                       (json_int_t)RM_PEEK(&daemon->session.board.run->evaluate_request),
                       "finished", (json_int_t)finished, "waits",
                       paused ? "the run is paused; the evaluation is played after 'ringctl resume'"
                              : "");
    return RM_REFUSED_NOT;
}

COMMAND(policies)
{
    UNUSED_HERE();
    if (rm_policies_write(&((struct rm_daemon *)user)->policies, rm_connection_number(client),
                          error) < 0)
        return RM_REFUSED_NOT_NOW;
    rm_connection_defer(client);
    return RM_REFUSED_NOT;
}

COMMAND(stop)
{
    UNUSED_HERE();
    rm_daemon_stop_after_checkpoint(user, "requested by a client");
    *reply = state_reply(user);
    return RM_REFUSED_NOT;
}

COMMAND(events)
{
    UNUSED_HERE();
    json_t *on = json_object_get(arguments, "subscribe");
    bool subscribe = !on || json_is_true(on);
    rm_connection_subscribe(client, subscribe);
    *reply = json_pack("{s:b}", "subscribed", subscribe);
    return RM_REFUSED_NOT;
}

COMMAND(query_schema)
{
    UNUSED_HERE();
    *reply = json_pack("{s:o}", "commands", rm_commands_describe(rm_commands, rm_command_count));
    return RM_REFUSED_NOT;
}

static const struct rm_field nothing[] = {FIELDS_END};
static const struct rm_field state_fields[] = {
    {"state", RM_FIELD_STRING, true, "the run's state now"}, FIELDS_END};

static const struct rm_field status_fields[] = {
    {"name", RM_FIELD_STRING, true, "the experiment's name"},
    {"version", RM_FIELD_STRING, true, "of ringmasterd"},
    {"host", RM_FIELD_OBJECT, true, "name, kernel, processor, cores that the run may use"},
    {"pid", RM_FIELD_INTEGER, true, "of ringmasterd"},
    {"mode", RM_FIELD_STRING, true, "free, lockstep or sequential"},
    {"seed", RM_FIELD_INTEGER, true, "of the run"},
    {"state", RM_FIELD_STRING, true,
     "starting, running, paused, stopping, done, failed or stopped"},
    {"reason", RM_FIELD_STRING, false, "why it failed"},
    {"run_directory", RM_FIELD_STRING, true, "directory of the run's files"},
    {"config_file", RM_FIELD_STRING, true, "the configuration file"},
    {"uptime_s", RM_FIELD_NUMBER, true, "seconds that the run has taken, as in metrics.csv"},
    {"trained_s", RM_FIELD_NUMBER, true, "seconds from the run's start to the end of its budget"},
    {"adopted", RM_FIELD_ANY, true,
     "replay taken over from a killed daemon: rows_before (by its last count), rows_after, "
     "step; null: none"},
    {"progress", RM_FIELD_OBJECT, true,
     "steps and budget (per agent, over all worlds), fraction, left_s"},
    {"rates", RM_FIELD_OBJECT, true, "steps_per_s of all agents, updates_per_s of all policies"},
    {"score", RM_FIELD_OBJECT, true,
     "training score of whole episodes, summed over agents: episodes, first, last (means of up to "
     "100), latest"},
    {"evaluation", RM_FIELD_OBJECT, true,
     "latest greedy evaluation: count, episodes, mean, stderr; random, solved, low, high of the "
     "world"},
    {"curriculum", RM_FIELD_ANY, true,
     "stage, stages, changes, figure, bound, mean, episodes; null: there is none"},
    {"agents", RM_FIELD_ARRAY, true,
     "per agent: name, policy, env_steps, reward (as score), figures (length and what the world "
     "names: means over up to 100 episodes, of words the share of each), evaluation (mean, stderr, "
     "figures)"},
    {"policies", RM_FIELD_ARRAY, true,
     "per policy: steps, updates, versions, replay, lag, sample age, loss, time blocked"},
    {"workers", RM_FIELD_ARRAY, true,
     "per worker: role, pid, states, generation, deaths, heartbeat, phases (shares of time), "
     "memory"},
    {"control", RM_FIELD_OBJECT, true,
     "clients, requests, refusals, closed slow clients, lost events"},
    {"loop", RM_FIELD_OBJECT, true, "turns of the daemon's event loop and the longest of them"},
    {"writers", RM_FIELD_OBJECT, true,
     "the queues to files, and to standard error or the journal: lines and rows written, "
     "lost (the queue was full), failed; queued_bytes; longest_ms of one write"},
    {"reader", RM_FIELD_ANY, true,
     "the command of metrics.exec: running, sent, lost (rows); null: there is none"},
    FIELDS_END};

static const struct rm_field metrics_arguments[] = {
    {"describe", RM_FIELD_BOOLEAN, false, "with names, units, kinds and meanings"}, FIELDS_END};
static const struct rm_field metrics_fields[] = {
    {"time_s", RM_FIELD_NUMBER, true, "seconds that the run has taken, as in metrics.csv"},
    {"steps", RM_FIELD_INTEGER, true, "steps per agent"},
    {"host", RM_FIELD_OBJECT, true,
     "cores that the run may use; cpu_s and steal_s of all processors since boot; daemon_cpu_s"},
    {"settings", RM_FIELD_OBJECT, true, "values of the keys that may change while it runs"},
    {"policies", RM_FIELD_ARRAY, true, "per policy: name, values"},
    {"workers", RM_FIELD_ARRAY, true, "per worker: name, role, values"},
    {"loop", RM_FIELD_OBJECT, true, "turns of the daemon's event loop, as in status"},
    {"writers", RM_FIELD_OBJECT, true, "what the daemon's threads have written, as in status"},
    {"definitions", RM_FIELD_OBJECT, false, "per kind of block, what each value is"},
    FIELDS_END};

static const struct rm_field counters_fields[] = {
    {"path", RM_FIELD_STRING, true, "of the memory; root and the daemon's own user may open it"},
    {"bytes", RM_FIELD_INTEGER, true, "its size"},
    {"layout", RM_FIELD_INTEGER, true, "version of the layout, as in the memory's head"},
    {"layout_hash", RM_FIELD_STRING, true,
     "hash of the layout, hexadecimal, as in the memory's head"},
    {"policies", RM_FIELD_ARRAY, true, "per policy: name, at (bytes from the memory's start)"},
    {"workers", RM_FIELD_ARRAY, true, "per worker: name, at"},
    {"policy_values", RM_FIELD_ARRAY, true,
     "per value of a policy: name, type (u64 or f64, of 8 bytes), at (bytes from the policy's)"},
    {"worker_values", RM_FIELD_ARRAY, true, "per value of a worker: the same"},
    FIELDS_END};

static const struct rm_field trace_arguments[] = {
    {"seconds", RM_FIELD_NUMBER, true, "how long, at most 60; 0: no longer"}, FIELDS_END};
static const struct rm_field trace_fields[] = {
    {"from_ns", RM_FIELD_INTEGER, true, "the clock of the marks (CLOCK_MONOTONIC) now"},
    {"until_ns", RM_FIELD_INTEGER, true, "and at the end"},
    FIELDS_END};

static const struct rm_field get_arguments[] = {
    {"key", RM_FIELD_STRING, false, "a path such as optimizer.learning_rate; without: everything"},
    FIELDS_END};
static const struct rm_field get_fields[] = {{"key", RM_FIELD_STRING, false, "as asked for"},
                                             {"value", RM_FIELD_ANY, true, "in force now"},
                                             FIELDS_END};

static const struct rm_field set_arguments[] = {
    {"key", RM_FIELD_STRING, true, "path of a key that may change while running"},
    {"value", RM_FIELD_ANY, true, "its new value; \"default\": that of the configuration"},
    {"keep", RM_FIELD_BOOLEAN, false, "the value is kept when the run is resumed"},
    FIELDS_END};
static const struct rm_field set_fields[] = {
    {"key", RM_FIELD_STRING, true, "as asked for"},
    {"before", RM_FIELD_ANY, true, "the value that was"},
    {"value", RM_FIELD_ANY, true, "the value in force now"},
    FIELDS_END};

static const struct rm_field checkpoint_fields[] = {
    {"number", RM_FIELD_INTEGER, true, "of the checkpoint; the event of that name has the result"},
    {"directory", RM_FIELD_STRING, true, "the run directory that it is written under"},
    {"waits", RM_FIELD_STRING, true, "\"\", or that the one before is still being written"},
    FIELDS_END};

static const struct rm_field evaluate_arguments[] = {
    {"episodes", RM_FIELD_INTEGER, false, "how many; without: evaluation.episodes"}, FIELDS_END};
static const struct rm_field evaluate_fields[] = {
    {"request", RM_FIELD_INTEGER, true, "number of this request"},
    {"finished", RM_FIELD_INTEGER, true, "evaluations finished before it"},
    {"waits", RM_FIELD_STRING, true, "\"\", or that the run is paused"},
    FIELDS_END};

static const struct rm_field policies_fields[] = {
    {"directory", RM_FIELD_STRING, true, "where NAME.safetensors of each policy is"},
    {"versions", RM_FIELD_OBJECT, true, "by policy: which of its published weights these are"},
    FIELDS_END};

static const struct rm_field events_arguments[] = {
    {"subscribe", RM_FIELD_BOOLEAN, false, "false: no more; without: true"}, FIELDS_END};
static const struct rm_field events_fields[] = {
    {"subscribed", RM_FIELD_BOOLEAN, true, "whether events are sent from now on"}, FIELDS_END};

static const struct rm_field schema_fields[] = {
    {"commands", RM_FIELD_ARRAY, true,
     "per command: name, access, description, arguments, returns"},
    FIELDS_END};

const struct rm_command rm_commands[] = {
    {"status", RM_ACCESS_SEE, nothing, status_fields, "The whole state of the run.", status},
    {"metrics", RM_ACCESS_SEE, metrics_arguments, metrics_fields, "All counters and gauges.",
     metrics},
    {"counters", RM_ACCESS_SEE, nothing, counters_fields,
     "Where the counters and gauges are in shared memory, for programs that read them there.",
     counters},
    {"get", RM_ACCESS_SEE, get_arguments, get_fields, "A configuration key, or all of them.", get},
    {"set", RM_ACCESS_ADMINISTER, set_arguments, set_fields,
     "Changes a key that may change while the experiment runs.", set},
    {"trace", RM_ACCESS_ADMINISTER, trace_arguments, trace_fields,
     "Every duty writes a mark in shared memory when it enters a phase.", trace},
    {"pause", RM_ACCESS_OPERATE, nothing, state_fields,
     "All workers finish the current turn and sleep.", pause_run},
    {"resume", RM_ACCESS_OPERATE, nothing, state_fields, "Continues a paused run.", resume},
    {"checkpoint", RM_ACCESS_OPERATE, nothing, checkpoint_fields,
     "Writes a checkpoint, from which the run can be resumed.", checkpoint},
    {"evaluate", RM_ACCESS_OPERATE, evaluate_arguments, evaluate_fields,
     "Plays greedy episodes with the latest weights.", evaluate},
    {"policies", RM_ACCESS_OPERATE, nothing, policies_fields,
     "Writes the latest weights of all policies as files.", policies},
    {"stop", RM_ACCESS_OPERATE, nothing, state_fields,
     "Writes a checkpoint and ends the run; the daemon exits with 0.", stop},
    {"events", RM_ACCESS_SEE, events_arguments, events_fields,
     "Sends events from now on: state, worker, set, evaluation, stage, checkpoint.", events},
    {"query-schema", RM_ACCESS_SEE, nothing, schema_fields, "Describes all commands.",
     query_schema},
};
const size_t rm_command_count = sizeof rm_commands / sizeof rm_commands[0];

static enum rm_refusal execute(void *user, struct rm_connection *client,
                               const struct rm_request *request, json_t **reply,
                               struct rm_error *error)
{
    struct rm_daemon *daemon = user;
    const struct rm_command *command;
    enum rm_refusal refusal = rm_command_check(rm_commands, rm_command_count, request,
                                               rm_connection_access(client), &command, error);
    if (refusal == RM_REFUSED_NOT)
        refusal = command->run(user, client, request->arguments, reply, error);
    if (refusal == RM_REFUSED_NOT && command->access > RM_ACCESS_SEE) {
        struct rm_log_fields fields = RM_LOG_NO_FIELDS;
        fields.user = rm_connection_uid(client);
        rm_log_message(&daemon->log, RM_LOG_INFO, RM_MESSAGE_COMMAND, &fields,
                       "%s by user %u, process %d", command->name,
                       (unsigned)rm_connection_uid(client), (int)rm_connection_pid(client));
    }
    return refusal;
}

static void watched(void *user, bool on)
{
    (void)on;
    rm_daemon_arm(user);
}

const struct rm_control_ops rm_daemon_control_ops = {.execute = execute, .watched = watched};
