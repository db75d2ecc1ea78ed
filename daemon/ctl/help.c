#include "daemon/ctl/command.h"

#include "config/config.h"
#include "daemon/ctl/exit_code.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#define TEXT_WIDTH    79
#define OPTION_COLUMN 22

/* Fills lines up to TEXT_WIDTH from `column` on, where the first line already is; the others begin
 * at `indent`. Paragraphs are separated by an empty line. */
static void wrap(FILE *out, const char *text, int indent, int column)
{
    bool begun = false;
    for (; *text; text += strspn(text, " ")) {
        if (*text == '\n') {
            if (text[1] == '\n') {
                fprintf(out, "\n\n%*s", indent, "");
                column = indent;
                begun = false;
            }
            text++;
            continue;
        }
        const int length = (int)strcspn(text, " \n");
        if (begun && column + 1 + length > TEXT_WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            begun = false;
        }
        column += fprintf(out, "%s%.*s", begun ? " " : "", length, text);
        begun = true;
        text += length;
    }
    fputc('\n', out);
}

/* "ringctl set [OPTION]... [NAME] KEY=VALUE" */
static void write_usage(FILE *out, const struct rm_ctl_command *command)
{
    fprintf(out, "ringctl %s [OPTION]...", command->name);
    for (size_t i = 0; i < RM_CTL_ARGUMENTS_MAX && command->arguments[i].name; i++)
        fprintf(out, command->arguments[i].optional ? " [%s]" : " %s", command->arguments[i].name);
    fputc('\n', out);
}

/* A name and, from OPTION_COLUMN on, what it means. */
static void print_option(void *user, const struct rm_ctl_option *option)
{
    FILE *out = user;
    int column = fprintf(out, "  --%s%s%s  ", option->name, option->value ? " " : "",
                         option->value ? option->value : "");
    column += fprintf(out, "%*s", column < OPTION_COLUMN ? OPTION_COLUMN - column : 0, "");
    wrap(out, option->doc, OPTION_COLUMN, column);
}

static void print_overview(FILE *out)
{
    fprintf(out, "Usage: ringctl COMMAND [OPTION]... [ARGUMENT]...\n"
                 "Runs, watches and steers experiments.\n\n");
    char others[512] = "and";
    size_t used = strlen(others);
    for (const struct rm_ctl_command *c = rm_ctl_commands; c->name; c++)
        if (c->shown == RM_CTL_SHOWN_FIRST)
            fprintf(out, "  %-10s%s\n", c->name, c->summary);
        else if (c->shown == RM_CTL_SHOWN && used < sizeof others)
            used += (size_t)snprintf(others + used, sizeof others - used, " %s", c->name);
    fprintf(out, "\n  ");
    wrap(out, others, 2, 2);
    fprintf(out,
            "\nA command that takes [NAME] means the only running experiment if none is named.\n"
            "'ringctl COMMAND --help' explains a command; ringctl(1) has it all.\n");
}

/* NULL: of ringctl itself */
static void write_help(FILE *out, const struct rm_ctl_command *command)
{
    if (!command) {
        print_overview(out);
        return;
    }
    fprintf(out, "Usage: ");
    write_usage(out, command);
    fprintf(out, "%c%s.\n", toupper(command->summary[0]), command->summary + 1);
    if (command->text) {
        fputc('\n', out);
        wrap(out, command->text, 0, 0);
    }
    fprintf(out, "\nOptions:\n");
    rm_ctl_each_option(command, print_option, out);
}

int rm_ctl_complain(int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "ringctl: ");
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    return code;
}

#define COMMANDS_MAX 64

static int unknown_command(const char *name)
{
    const char *names[COMMANDS_MAX + 1];
    size_t n = 0;
    for (const struct rm_ctl_command *c = rm_ctl_commands; c->name && n < COMMANDS_MAX; c++)
        if (c->shown != RM_CTL_HIDDEN)
            names[n++] = c->name;
    names[n] = NULL;
    const char *near = rm_nearest(name, names);
    if (near)
        return rm_ctl_complain(
            RM_CTL_USAGE, "there is no command \"%s\"; did you mean \"%s\"? See ringctl --help",
            name, near);
    return rm_ctl_complain(RM_CTL_USAGE, "there is no command \"%s\"; see ringctl --help", name);
}

int rm_ctl_help_command(const struct rm_ctl_arguments *given)
{
    const struct rm_ctl_command *command = NULL;
    if (given->argument[0]) {
        command = rm_ctl_command_find(given->argument[0]);
        if (!command)
            return unknown_command(given->argument[0]);
    }
    write_help(stdout, command);
    return RM_CTL_OK;
}

/* Output that could not be written (a full disk, a closed pipe) must not look like success. */
static int flushed(int code)
{
    if ((fflush(stdout) || ferror(stdout)) && code == RM_CTL_OK)
        return rm_ctl_complain(RM_CTL_FAILED, "the output could not be written");
    return code;
}

int rm_ctl_main(int argc, char **argv)
{
    if (argc < 2) {
        write_help(stderr, NULL);
        return RM_CTL_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        write_help(stdout, NULL);
        return flushed(RM_CTL_OK);
    }
    if (!strcmp(argv[1], "--version")) {
        printf("ringctl %s\n", RM_VERSION);
        return flushed(RM_CTL_OK);
    }
    const struct rm_ctl_command *command = rm_ctl_command_find(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    struct rm_ctl_arguments given;
    struct rm_error error = {""};
    if (rm_ctl_parse(&given, command, argc - 2, argv + 2, &error)) {
        rm_ctl_complain(RM_CTL_USAGE, "%s", error.text);
        fprintf(stderr, "Usage: ");
        write_usage(stderr, command);
        return RM_CTL_USAGE;
    }
    if (given.help) {
        write_help(stdout, command);
        return flushed(RM_CTL_OK);
    }
    return flushed(command->run(&given));
}
