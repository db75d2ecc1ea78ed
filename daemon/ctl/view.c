#include "daemon/ctl/view.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A terminal would obey control characters in what workers or files say. */
static void print_plain(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

void rm_view_value(FILE *out, const json_t *value)
{
    if (json_is_string(value)) {
        print_plain(out, json_string_value(value));
        return;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(10));
    fputs(text ? text : "?", out);
    free(text);
}

static char *value_text(const json_t *value)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return NULL;
    rm_view_value(memory, value);
    fclose(memory);
    return text;
}

/* Values of one policy or worker, by the definitions' order where there are some. */
static void add_metrics(struct rm_table *table, const json_t *block, const json_t *definitions)
{
    const json_t *values = json_object_get(block, "values");
    const char *name = json_string_value(json_object_get(block, "name"));
    size_t index;
    json_t *definition;
    json_array_foreach(definitions, index, definition)
    {
        const char *metric = json_string_value(json_object_get(definition, "name"));
        const char *unit = json_string_value(json_object_get(definition, "unit"));
        const json_t *value = metric ? json_object_get(values, metric) : NULL;
        if (!value)
            continue;
        char *text = value_text(value);
        rm_table_cell(table, "%s", name ? name : "?");
        rm_table_cell(table, "%s", metric);
        rm_table_cell(table, "%s", text ? text : "?");
        rm_table_cell(table, "%s", unit && strcmp(unit, "1") != 0 ? unit : "");
        free(text);
    }
}

void rm_view_metrics(FILE *out, const json_t *reply, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"OF", true, 0}, {"METRIC", true, 0}, {"VALUE", false, 0}, {"UNIT", true, 1}};
    static const char *const groups[] = {"policies", "workers"};
    const json_t *definitions = json_object_get(reply, "definitions");
    struct rm_table table;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        size_t index;
        json_t *block;
        json_array_foreach(json_object_get(reply, groups[g]), index, block)
        {
            add_metrics(&table, block, json_object_get(definitions, groups[g]));
        }
    }
    rm_table_end(&table, out, style);
}

/* "key, value": the arguments of a command, those that may be left out in brackets. */
static void arguments_text(const json_t *command, char *text, size_t size)
{
    const json_t *schema = json_object_get(command, "arguments");
    const json_t *required = json_object_get(schema, "required");
    const char *key;
    json_t *property;
    text[0] = '\0';
    json_object_foreach(json_object_get(schema, "properties"), key, property)
    {
        bool needed = false;
        for (size_t i = 0; i < json_array_size(required); i++) {
            const char *name = json_string_value(json_array_get(required, i));
            needed = needed || (name && !strcmp(name, key));
        }
        size_t used = strlen(text);
        snprintf(text + used, size - used, needed ? "%s%s" : "%s[%s]", used ? ", " : "", key);
    }
}

void rm_view_schema(FILE *out, const json_t *reply, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"COMMAND", true, 0}, {"ACCESS", true, 1}, {"ARGUMENTS", true, 2}, {"MEANING", true, 0}};
    struct rm_table table;
    size_t index;
    json_t *command;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(json_object_get(reply, "commands"), index, command)
    {
        char arguments[256];
        arguments_text(command, arguments, sizeof arguments);
        const char *const cells[] = {json_string_value(json_object_get(command, "name")),
                                     json_string_value(json_object_get(command, "access")),
                                     arguments,
                                     json_string_value(json_object_get(command, "description"))};
        for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++)
            rm_table_cell(&table, "%s", cells[c] ? cells[c] : "");
    }
    rm_table_end(&table, out, style);
}

static void print_member(FILE *out, const char *key, const json_t *value)
{
    char *text = value_text(value);
    fprintf(out, "  %s=%s", key, text ? text : "?");
    free(text);
}

/* Seconds since 1970 as local time; nothing if unknown. */
static void print_time(FILE *out, const json_t *time)
{
    char text[32];
    struct tm parts;
    time_t seconds = (time_t)json_number_value(time);
    if (json_is_number(time) && localtime_r(&seconds, &parts) &&
        strftime(text, sizeof text, "%F %T", &parts))
        fprintf(out, "%s  ", text);
}

void rm_view_event(FILE *out, const json_t *event, const struct rm_style *style)
{
    json_int_t lost = json_integer_value(json_object_get(event, "lost"));
    const char *name = json_string_value(json_object_get(event, "event"));
    const char *key;
    json_t *value;
    if (lost > 0)
        fprintf(out, "(%lld events lost)\n", (long long)lost);
    print_time(out, json_object_get(event, "time"));
    fprintf(out, "%s%s%s", rm_style_bold(style), name ? name : "?", rm_style_off(style));
    json_object_foreach((json_t *)event, key, value)
    {
        const char *inner;
        json_t *member;
        if (!strcmp(key, "event") || !strcmp(key, "lost") || !strcmp(key, "time"))
            continue;
        if (json_is_object(value) && !strcmp(key, "data")) {
            json_object_foreach(value, inner, member)
            {
                print_member(out, inner, member);
            }
        } else
            print_member(out, key, value);
    }
    fputc('\n', out);
}
