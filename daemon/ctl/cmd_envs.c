#include "daemon/ctl/command.h"

#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/world_view.h"

static void print_json(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(value);
}

static int show_one(const struct rm_ctl_arguments *given, const char *name, const char *library)
{
    struct rm_world_view view;
    struct rm_error error = {""};
    if (rm_world_view_open(&view, name, library, &error))
        return rm_ctl_complain(RM_CTL_BAD_CONFIGURATION, "%s", error.text);
    struct rm_style style = rm_style_of(stdout);
    if (rm_ctl_flag(given, "json"))
        print_json(rm_world_view_json(&view));
    else
        rm_world_view_print(stdout, &view, &style);
    rm_world_view_close(&view);
    return RM_CTL_OK;
}

int rm_ctl_envs(const struct rm_ctl_arguments *given)
{
    static const struct rm_column columns[] = {
        {"WORLD", true, 0}, {"AGENTS", false, 0}, {"MEANING", true, 0}};
    const char *library = rm_ctl_value(given, "library"), *name = given->argument[0];
    if (library || name)
        return show_one(given, name ? name : "", library ? library : "");
    struct rm_style style = rm_style_of(stdout);
    struct rm_table table;
    int rc = RM_CTL_OK;
    json_t *list = json_array();
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; rm_builtin_worlds[i]; i++) {
        struct rm_world_view view;
        struct rm_error error = {""};
        if (rm_world_view_open(&view, rm_builtin_worlds[i]->name, "", &error)) {
            rc = rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
            continue;
        }
        rm_table_cell(&table, "%s", view.spec->name);
        rm_table_cell(&table, "%u", view.spec->agents);
        rm_table_cell(&table, "%s", view.spec->doc ? view.spec->doc : "");
        json_array_append_new(list, rm_world_view_json(&view));
        rm_world_view_close(&view);
    }
    if (rm_ctl_flag(given, "json")) {
        print_json(list);
        rm_table_free(&table);
    } else {
        json_decref(list);
        rm_table_end(&table, stdout, &style);
    }
    return rc;
}
