/* check-world: checks a world's rules in two processes (actor/worlds/rule_check.h) and prints the
 * result. */
#include "daemon/ctl/command.h"

#include "actor/worlds/described.h"
#include "actor/worlds/rule_check.h"
#include "config/config.h"
#include "config/utf8.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/format.h"
#include "daemon/ctl/world_view.h"
#include "daemon/probe.h"
#include "daemon/table.h"
#include "learner/net/features.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 600.0
#define STEPS_MAX  1000000

static bool ends_with(const char *world, const char *end)
{
    const size_t n = strlen(world), m = strlen(end);
    return n > m && !strcmp(world + n - m, end);
}

/* What ends in .so or has a slash is a path, unless it is "module:name". */
static bool is_path(const char *world)
{
    return (strchr(world, '/') && !strchr(world, ':')) || ends_with(world, ".so");
}

/* The key of a world that is given as an argument. */
static const char *key_of(const char *world)
{
    return ends_with(world, ".pl") ? "prolog"
           : is_path(world)        ? "library"
           : strchr(world, ':')    ? "python"
                                   : "name";
}

/* Returns an enum rm_ctl_exit value, after it printed what is wrong. */
static int configure(const struct rm_ctl_arguments *given, struct rm_experiment *experiment)
{
    struct rm_override overrides[RM_CTL_GIVEN_MAX];
    struct rm_error error = {""};
    const char *world = given->argument[0];
    const size_t count = rm_ctl_overrides(given, overrides);
    if (ends_with(world, ".json"))
        return rm_ctl_load(given, NULL, experiment);
    const char *key = key_of(world);
    json_t *file = !strcmp(key, "library")
                       ? json_pack("{s:{s:s, s:s}}", "world", "name", "checked", key, world)
                       : json_pack("{s:{s:s}}", "world", key, world);
    char *text = file ? json_dumps(file, JSON_COMPACT) : NULL;
    int rc = text ? rm_config_parse(experiment, "check-world", text, strlen(text), overrides, count,
                                    &error)
                  : rm_fail(&error, -EINVAL, "%s: is not UTF-8 text", world);
    free(text);
    json_decref(file);
    if (rc)
        fprintf(stderr, "%s\n", error.text);
    return rc ? RM_CTL_BAD_CONFIGURATION : RM_CTL_OK;
}

/* One process's report; NULL with an error. */
static json_t *play(const struct rm_experiment *experiment, uint32_t steps, double patience_s,
                    struct rm_error *error)
{
    char *text = NULL;
    const int rc = rm_probe_check(experiment, steps, patience_s, &text, error);
    if (rc == -ETIMEDOUT)
        rm_fail_within(error, rc,
                       "did not end within --timeout (%g s); give a longer time, or fewer --steps",
                       patience_s);
    if (rc)
        return NULL;
    json_t *report = json_loads(text, 0, NULL);
    free(text);
    if (!report || json_array_size(json_object_get(report, "rules")) != RM_RULE_COUNT) {
        json_decref(report);
        report = NULL;
        rm_fail(error, -EPROTO, "%s: the process wrote no valid report",
                rm_world_source(&experiment->world).value);
    }
    return report;
}

static bool same_text(const json_t *a, const json_t *b, const char *key)
{
    const char *x = json_string_value(json_object_get(a, key));
    const char *y = json_string_value(json_object_get(b, key));
    return x && y && !strcmp(x, y);
}

/* Waits until the clock shows another second, so that draws from it show: time() is read off a
 * coarse clock, which may lag some ticks behind. */
static void wait_for_next_second(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct timespec until = {.tv_sec = now.tv_sec + 1, .tv_nsec = 100000000};
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* The reports of two processes, one after the other. The second one knows what the first one found
 * the world to be. */
static int play_twice(struct rm_experiment *experiment, uint32_t steps, double patience_s,
                      json_t *reports[2], struct rm_error *error)
{
    if (!(reports[0] = play(experiment, steps, patience_s, error)))
        return -EPROTO;
    const char *known = json_string_value(json_object_get(reports[0], "description"));
    wait_for_next_second();
    experiment->world.description = (char *)known;
    reports[1] = play(experiment, steps, patience_s, error);
    experiment->world.description = NULL;
    return reports[1] ? 0 : -EPROTO;
}

/* Enters what only two processes can tell. */
static void compare(json_t *report, const json_t *second)
{
    json_t *rules = json_object_get(report, "rules");
    json_t *rule = json_array_get(rules, RM_RULE_PROCESS);
    if (json_integer_value(json_object_get(json_array_get(rules, RM_RULE_SEED), "broken")))
        return;
    const bool same = same_text(report, second, "digest");
    json_object_set_new(rule, "tried", json_true());
    json_object_set_new(rule, "broken", json_integer(!same));
    if (!same)
        json_object_set_new(
            rule, "text",
            json_string("its rows differ: they depend on the process or on the clock"));
}

/* A text of the report as one harmless line: the process that wrote it had loaded the world. */
struct line {
    char text[400];
};

static struct line plain(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    struct line line;
    snprintf(line.text, sizeof line.text, "%s", text ? text : "");
    rm_utf8_line(line.text);
    return line;
}

/* What agents see, and do: every observation by its name. */
static void print_agents(const json_t *report)
{
    static const struct rm_column columns[] = {{"AGENT", true, 0}, {"OBSERVATION", true, 0},
                                               {"TYPE", true, 0},  {"LOW", false, 0},
                                               {"HIGH", false, 0}, {"ACTIONS", true, 0}};
    const struct rm_style style = rm_style_of(stdout);
    const char *text = json_string_value(json_object_get(report, "description"));
    struct rm_described *described;
    struct rm_error error = {""};
    struct rm_table table;
    if (!text || rm_described_read(&described, text, &error))
        return;
    const struct rm_env_spec *spec = rm_described_spec(described);
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t a = 0; a < spec->agents; a++) {
        const struct rm_env_agent *agent = &spec->agent[a];
        for (uint32_t i = 0; i < rm_features_observations(agent); i++) {
            struct rm_env_observation of = rm_features_observation(agent, i);
            char type[RM_WORLD_TEXT_MAX], actions[96] = "";
            const char *name = of.name;
            of.name = NULL;
            rm_world_one_observation_text(&of, type, sizeof type);
            if (i == 0)
                rm_world_actions_text(agent, actions, sizeof actions);
            rm_table_cell(&table, "%s", i ? "" : agent->name);
            rm_table_cell(&table, "%s", name ? name : "-");
            rm_table_cell(&table, "%s", type);
            rm_table_cell(&table, "%s", rm_format_number(of.low).s);
            rm_table_cell(&table, "%s", rm_format_number(of.high).s);
            rm_table_cell(&table, "%s", actions);
        }
    }
    rm_table_end(&table, stdout, &style);
    putchar('\n');
    rm_described_free(described);
}

/* The report for people. */
static void print(const json_t *report)
{
    static const struct rm_column columns[] = {{"RULE", true, 0}, {"RESULT", true, 0}};
    const json_t *rules = json_object_get(report, "rules"), *rule;
    struct rm_style style = rm_style_of(stdout);
    struct rm_table table;
    size_t i;
    const json_int_t agents = json_integer_value(json_object_get(report, "agents"));
    const json_int_t phases = json_integer_value(json_object_get(report, "phases"));

    printf("%s: %lld agent%s in %lld phase%s; %lld worlds, %lld steps, %lld episodes, again and "
           "again\n\n",
           plain(report, "world").text, (long long)agents, agents == 1 ? "" : "s",
           (long long)phases, phases == 1 ? "" : "s",
           (long long)json_integer_value(json_object_get(report, "worlds")),
           (long long)json_integer_value(json_object_get(report, "steps")),
           (long long)json_integer_value(json_object_get(report, "episodes")));
    print_agents(report);
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(rules, i, rule)
    {
        const json_int_t times = json_integer_value(json_object_get(rule, "broken"));
        rm_table_cell(&table, "%s", rm_rule_words[i]);
        if (times)
            rm_table_cell(&table, "BROKEN");
        else
            rm_table_cell(&table, "%s",
                          json_is_true(json_object_get(rule, "tried")) ? "kept" : "not tried");
    }
    style.width = 0; /* rules are sentences */
    rm_table_end(&table, stdout, &style);
    json_array_foreach(rules, i, rule)
    {
        const json_int_t times = json_integer_value(json_object_get(rule, "broken"));
        const struct line line = plain(rule, "text");
        if (!line.text[0])
            continue;
        printf("\n%s: %s\n", rm_rule_words[i], line.text);
        if (times > 1)
            printf("(%lld times)\n", (long long)times);
    }
    if (json_is_true(json_object_get(report, "seedless")))
        printf(
            "\nAnother seed gives the same rows: nothing is random here, or what is does not come "
            "from the seed.\n");
    if (!json_integer_value(json_object_get(report, "episodes")))
        printf("\nNo episode ended: nothing is known about last rows. More steps: --steps\n");
}

static size_t count_broken(const json_t *report)
{
    const json_t *rules = json_object_get(report, "rules"), *rule;
    size_t i, broken = 0;
    json_array_foreach(rules, i, rule) broken +=
        json_integer_value(json_object_get(rule, "broken")) != 0;
    return broken;
}

int rm_ctl_check_world(const struct rm_ctl_arguments *given)
{
    double patience_s = PATIENCE_S, steps = 0;
    struct rm_error error = {""};
    json_t *reports[2] = {NULL, NULL};
    int rc = RM_CTL_OK;

    if (rm_ctl_number(given, "steps", 0, STEPS_MAX, &steps) ||
        rm_ctl_number(given, "timeout", 0, 86400, &patience_s))
        return RM_CTL_USAGE;
    struct rm_experiment *experiment = calloc(1, sizeof *experiment);
    if (!experiment)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory");
    if ((rc = configure(given, experiment)) != RM_CTL_OK) {
        /* what is wrong was printed */
    } else if (play_twice(experiment, (uint32_t)steps, patience_s, reports, &error)) {
        fprintf(stderr, "%s\n", error.text);
        rc = RM_CTL_BAD_CONFIGURATION;
    } else {
        compare(reports[0], reports[1]);
        if (rm_ctl_flag(given, "json")) {
            json_dumpf(reports[0], stdout, JSON_INDENT(2));
            putchar('\n');
        } else {
            print(reports[0]);
        }
        if (count_broken(reports[0]))
            rc = RM_CTL_BAD_CONFIGURATION;
    }
    json_decref(reports[0]);
    json_decref(reports[1]);
    free(experiment);
    return rc;
}
