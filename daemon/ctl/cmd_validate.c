/* validate: makes all checks that a start makes before the first process, and prints the result. */
#include "daemon/ctl/command.h"

#include "actor/worlds/plan.h"
#include "config/traits.h"
#include "config/config.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/format.h"
#include "daemon/table.h"
#include "daemon/probe.h"
#include "learner/offline.h"
#include "daemon/reader.h"
#include "shm/base/plural.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes of a policy's rings over all actors. */
static double ring_bytes(const struct rm_experiment *experiment, const struct rm_plan *plan,
                         uint32_t policy)
{
    double bytes = 0;
    for (uint32_t actor = 0; actor < rm_actor_processes(experiment); actor++) {
        struct rm_ring_spec spec =
            rm_session_ring_spec(experiment, &plan->policy[policy], actor, policy);
        bytes += (double)rm_ring_bytes(&spec);
    }
    return bytes;
}

static void print_policies(const struct rm_experiment *experiment, const struct rm_plan *plan)
{
    static const struct rm_column columns[] = {
        {"POLICY", true, 0},      {"AGENTS", false, 0}, {"INPUTS", false, 0}, {"ACTIONS", false, 0},
        {"PARAMETERS", false, 0}, {"ROWS", false, 2},   {"RINGS", false, 1},  {"WEIGHTS", false, 1},
    };
    struct rm_style style = rm_style_of(stdout);
    struct rm_table table;
    double rings = 0, weights = 0;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t p = 0; p < plan->policies; p++) {
        const struct rm_policy_plan *policy = &plan->policy[p];
        const uint32_t rows = rm_session_ring_spec(experiment, policy, 0, p).rows;
        double ring = ring_bytes(experiment, plan, p);
        double weight = (double)policy->param_count * sizeof(float) * RM_WEIGHTS_SLOTS;
        rm_table_cell(&table, "%s", policy->name);
        rm_table_cell(&table, "%u", policy->agents);
        rm_table_cell(&table, "%u", policy->inputs);
        rm_table_cell(&table, "%u", policy->actions);
        rm_table_cell(&table, "%llu", (unsigned long long)policy->param_count);
        rm_table_cell(&table, "%u x %u", rm_actor_processes(experiment), rows);
        rm_table_cell(&table, "%s", rm_format_bytes(ring).s);
        rm_table_cell(&table, "%s", rm_format_bytes(weight).s);
        rings += ring;
        weights += weight;
    }
    rm_table_end(&table, stdout, &style);
    printf("\nshared memory: %s of rings, %s of weights\n", rm_format_bytes(rings).s,
           rm_format_bytes(weights).s);
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static void print_summary(const char *file, const struct rm_experiment *experiment,
                          const struct rm_plan *plan, size_t runs)
{
    printf("%s: valid\n\n", file);
    printf("experiment  %s\n", experiment->name);
    const char *from =
        rm_experiment_is_foreign(experiment) ? rm_world_source(&experiment->world).value : "";
    printf("world       %s%s%s, %u agent%s%s, %u world%s in %u actor%s\n", experiment->world.name,
           from[0] ? " of " : "", from, plan->agents, plural(plan->agents),
           plan->phases > 1 ? " that act in turn" : "", experiment->actor.worlds,
           plural(experiment->actor.worlds), rm_actor_processes(experiment),
           plural(rm_actor_processes(experiment)));
    if (experiment->run.steps)
        printf("budget      %s %s\n", rm_format_count((double)experiment->run.steps).s,
               rm_experiment_is_offline(experiment) ? "updates" : "steps per agent");
    else
        printf("budget      none: %s\n", rm_experiment_only_evaluates(experiment)
                                             ? "evaluates only"
                                             : "runs until it is stopped");
    if (runs)
        printf("sweep       %zu %s\n", runs, rm_plural(runs, "run", "runs"));
    putchar('\n');
    print_policies(experiment, plan);
}

/* A line each, with the file before it. */
static void print_errors(const char *file, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        fprintf(stderr, "%s: %s\n", file, line);
}

static void print_unused(void *user, const char *path, const char *words)
{
    fprintf(user, "%s %s\n", path, words);
}

/* Is there a sweep whose runs can be read? Each reads the file, and a pipe can be read once: `run`
 * makes no sweep of it. */
static bool sweeps(const char *file, const struct rm_experiment *experiment)
{
    struct stat about;
    return strlen(experiment->sweep) > 2 && stat(file, &about) == 0 && S_ISREG(about.st_mode);
}

int rm_ctl_validate(const struct rm_ctl_arguments *given)
{
    struct rm_error error = {""};
    const char *file = given->argument[0];
    struct rm_experiment *experiment = calloc(1, sizeof *experiment);
    struct rm_plan *plan = malloc(sizeof *plan);
    int rc = RM_CTL_OK;
    size_t runs = 0; /* of a sweep */
    if (!experiment || !plan) {
        rc = rm_ctl_complain(RM_CTL_FAILED, "no memory");
    } else if ((rc = rm_ctl_load(given, NULL, experiment)) != RM_CTL_OK ||
               (sweeps(file, experiment) &&
                (rc = rm_ctl_sweep_check(given, experiment, &runs)) != RM_CTL_OK)) {
        /* what is wrong was printed */
    } else if (rm_reader_check(experiment, &error) ||
               rm_probe_world(experiment, RM_PROBE_PATIENCE_S, NULL, &error) ||
               rm_plan_make(plan, experiment, &error) ||
               rm_plan_check_from(plan, experiment, &error) ||
               rm_offline_check(experiment, plan, &error)) {
        print_errors(file, error.text);
        rc = RM_CTL_BAD_CONFIGURATION;
    } else if (rm_ctl_flag(given, "json")) {
        json_t *resolved = rm_config_to_json(experiment);
        json_dumpf(resolved, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(resolved);
    } else {
        print_summary(file, experiment, plan, runs);
    }
    if (rc == RM_CTL_OK)
        rm_config_unused(experiment, print_unused, stderr);
    if (experiment)
        rm_probe_forget(experiment);
    free(experiment);
    free(plan);
    return rc;
}
