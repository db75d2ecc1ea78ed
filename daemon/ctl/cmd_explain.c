/* explain: why a run is as fast as it is, and what would change that. */
#include "daemon/ctl/command.h"

#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/explain.h"
#include "daemon/ctl/find.h"
#include "daemon/format.h"
#include "daemon/table.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SHOWN 0.005 /* shares below are not shown */

static void print_verdict(const struct rm_explained *x, const struct rm_style *style)
{
    char verdict[RM_VERDICT_MAX];
    rm_explained_verdict(x, verdict, sizeof verdict);
    printf("%s%s: %s%s\n", rm_style_bold(style), x->experiment->name, verdict, rm_style_off(style));
    printf("%s agent steps/s over %s s: %s steps, %s updates\n", rm_format_number(x->steps_per_s).s,
           rm_format_number(x->window_s).s, rm_format_count(x->steps).s,
           rm_format_count(x->updates).s);
    printf("cores: %s, of which the run keeps %.2f busy and other processes %.2f",
           rm_format_number(x->load.cores).s, rm_load_busy(&x->load), x->load.around);
    if (x->alone_steps_per_s > 1.05 * x->steps_per_s)
        printf("; alone on the host about %s steps/s", rm_format_number(x->alone_steps_per_s).s);
    printf("\n\n");
}

/* The largest shares by name: "forward 31%, backward 20%". */
static void largest(char *text, size_t size, const double *shares, int count,
                    const char *(*name)(int), int skip)
{
    bool taken[RM_PHASE_COUNT] = {false};
    text[0] = '\0';
    for (int n = 0; n < 4; n++) {
        int best = -1;
        for (int i = 0; i < count; i++)
            if (i != skip && !taken[i] && shares[i] >= SHOWN &&
                (best < 0 || shares[i] > shares[best]))
                best = i;
        if (best < 0)
            return;
        taken[best] = true;
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s %.0f%%", used ? ", " : "", name(best),
                 100 * shares[best]);
    }
}

static const char *phase_name(int phase)
{
    return rm_phase_name((enum rm_phase)phase);
}

static const char *wait_name(int wait)
{
    return rm_wait_name((enum rm_wait)wait);
}

static void print_duties(const struct rm_explained *x, const struct rm_style *style)
{
    static const struct rm_column columns[] = {{"DUTY", true, 0},     {"CORES", false, 0},
                                               {"NO CORE", false, 0}, {"ASLEEP", false, 0},
                                               {"FOR", true, 0},      {"WORK", true, 0}};
    static_assert((int)RM_WAIT_COUNT <= (int)RM_PHASE_COUNT, "largest() has room for both");
    struct rm_table table;
    char text[128];
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < x->duties; i++) {
        const struct rm_explained_duty *d = &x->duty[i];
        rm_table_cell(&table, "%s", d->name);
        rm_table_cell(&table, "%.2f", d->cpu);
        rm_table_cell(&table, "%.0f%%", 100 * d->no_core);
        rm_table_cell(&table, "%.0f%%", 100 * d->phase[RM_PHASE_WAITING]);
        largest(text, sizeof text, d->wait, RM_WAIT_COUNT, wait_name, -1);
        rm_table_cell(&table, "%s", text);
        largest(text, sizeof text, d->phase, RM_PHASE_COUNT, phase_name, RM_PHASE_WAITING);
        rm_table_cell(&table, "%s", text);
    }
    rm_table_end(&table, stdout, style);
}

static void print_stations(const struct rm_explained *x, const struct rm_style *style)
{
    static const struct rm_column columns[] = {{"10 % MORE OF", true, 0}, {"COSTS", false, 0}};
    struct rm_table table;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (int s = 0; s < RM_STATION_COUNT; s++)
        if (x->elasticity[s] >= SHOWN) {
            rm_table_cell(&table, "%s", rm_explained_station(s));
            rm_table_cell(&table, "%.1f%%", 10 * x->elasticity[s]);
        }
    putchar('\n');
    rm_table_end(&table, stdout, style);
}

static void print_changes(const char *title, const struct rm_explained_change *changes,
                          uint32_t count, const struct rm_explained *x)
{
    if (count)
        printf("\n%s\n", title);
    for (uint32_t i = 0; i < count; i++)
        printf("  %s=%s: %s steps/s, %+.0f %%%s\n", changes[i].key, changes[i].value,
               rm_format_number(changes[i].steps_per_s).s,
               100 * (changes[i].steps_per_s / x->steps_per_s - 1),
               changes[i].learns ? " (changes what is learned)" : "");
}

static void print_human(const struct rm_explained *x)
{
    const struct rm_style style = rm_style_of(stdout);
    print_verdict(x, &style);
    print_duties(x, &style);
    if (!x->known)
        return;
    print_stations(x, &style);
    print_changes("would move it, by the model:", x->move, x->moves, x);
    if (!x->moves)
        printf("\nno setting that the model knows would move it by 3 %%\n");
    print_changes("would not, although people try it:", x->idle, x->idles, x);
}

/* --- the run --------------------------------------------------------------------------------- */

/* A running experiment: its directory and its counters of now. */
static int ask_running(const struct rm_ctl_arguments *given, char *directory, size_t size,
                       json_t **now)
{
    struct rm_ctl_client client;
    struct rm_error error = {""};
    json_t *status = NULL;
    int rc = rm_find_open(&client, given);
    if (rc)
        return rc;
    rc = rm_ctl_client_call(&client, "status", NULL, &status, &error);
    if (rc == 0)
        rc = rm_ctl_client_call(&client, "metrics", NULL, now, &error);
    if (rc)
        rc = rm_ctl_complain(rm_ctl_client_exit_code(rc), "%s", error.text);
    const char *at = json_string_value(json_object_get(status, "run_directory"));
    const char *state = json_string_value(json_object_get(status, "state"));
    snprintf(directory, size, "%s", at ? at : "");
    /* While the run ends, counters move on and steps do not: the rows have its training. */
    if (state && strcmp(state, "running") != 0) {
        json_decref(*now);
        *now = NULL;
    }
    json_decref(status);
    rm_ctl_client_close(&client);
    return rc;
}

static bool is_run(const char *path)
{
    char config[PATH_MAX];
    struct stat about;
    return snprintf(config, sizeof config, "%s/config.json", path) < (int)sizeof config &&
           stat(config, &about) == 0;
}

static int explain(struct rm_explained *x, const struct rm_ctl_arguments *given)
{
    const char *name = given->argument[0];
    char directory[PATH_MAX] = "";
    json_t *now = NULL;
    struct rm_error error = {""};
    int rc = 0;
    if (name && strchr(name, '/') && !is_run(name))
        return rm_ctl_complain(RM_CTL_NO_EXPERIMENT,
                               "%s is no run directory: it has no config.json", name);
    if (name && is_run(name))
        snprintf(directory, sizeof directory, "%s", name);
    else if ((rc = ask_running(given, directory, sizeof directory, &now)))
        return rc;
    rc = rm_explain_run(x, directory, now, &error);
    json_decref(now);
    return rc ? rm_ctl_complain(RM_CTL_FAILED, "%s", error.text) : 0;
}

/* --set: the rate with other settings. */
static int print_what_if(const struct rm_explained *x, const char *const *settings, size_t count,
                         bool json)
{
    struct rm_error error = {""};
    double rate = 0;
    if (rm_explain_change(x, settings, count, &rate, &error))
        return rm_ctl_complain(RM_CTL_REFUSED, "%s", error.text);
    if (json)
        printf("{\"steps_per_s\": %.9g, \"predicted\": %.9g, \"ratio\": %.9g}\n", x->steps_per_s,
               rate, rate / x->steps_per_s);
    else
        printf("%s steps/s would become %s, %+.0f %%\n", rm_format_number(x->steps_per_s).s,
               rm_format_number(rate).s, 100 * (rate / x->steps_per_s - 1));
    return 0;
}

static int print(const struct rm_explained *x, const struct rm_ctl_arguments *given)
{
    const char *settings[RM_CTL_GIVEN_MAX];
    const bool json = rm_ctl_flag(given, "json");
    size_t count = 0;
    for (size_t i = 0; i < given->given_count; i++)
        if (!strcmp(given->given[i].option->name, "set"))
            settings[count++] = given->given[i].value;
    if (count)
        return print_what_if(x, settings, count, json);
    if (!json) {
        print_human(x);
        return 0;
    }
    json_t *all = rm_explained_json(x);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
    return 0;
}

int rm_ctl_explain(const struct rm_ctl_arguments *given)
{
    struct rm_explained *x = calloc(1, sizeof *x);
    if (!x)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory");
    int rc = explain(x, given);
    if (rc == 0)
        rc = print(x, given);
    rm_explained_free(x);
    free(x);
    return rc;
}
