#include "daemon/ctl/command.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/man_pages.h"
#include "daemon/ctl/mdoc.h"

static void write_option(FILE *out, const struct rm_ctl_option *option)
{
    if (option->value)
        rm_mdoc_line(out, ".It Fl -%s Ar %s", option->name, option->value);
    else
        rm_mdoc_line(out, ".It Fl -%s", option->name);
    rm_mdoc_text(out, option->doc);
}

static void write_list(FILE *out, const struct rm_ctl_option *options)
{
    rm_mdoc_line(out, ".Bl -tag -width Ds");
    for (; options->name; options++)
        write_option(out, options);
    rm_mdoc_line(out, ".El");
}

static void write_command(FILE *out, const struct rm_ctl_command *command)
{
    fprintf(out, ".It Cm %s", command->name);
    for (size_t i = 0; i < RM_CTL_ARGUMENTS_MAX && command->arguments[i].name; i++)
        fprintf(out, command->arguments[i].optional ? " Oo Ar %s Oc" : " Ar %s",
                command->arguments[i].name);
    fputc('\n', out);
    fprintf(out, "%c%s.\n", command->summary[0] - 'a' + 'A', command->summary + 1);
    if (command->text)
        rm_mdoc_text(out, command->text);
    if (command->options)
        write_list(out, command->options);
}

/* A section that is a list of names with their descriptions. */
static void write_section(FILE *out, const char *title, const char *macro,
                          const char *const items[][2], size_t count)
{
    rm_mdoc_line(out, ".Sh %s", title);
    rm_mdoc_line(out, ".Bl -tag -width Ds");
    for (size_t i = 0; i < count; i++) {
        rm_mdoc_line(out, ".It %s %s", macro, items[i][0]);
        rm_mdoc_text(out, items[i][1]);
    }
    rm_mdoc_line(out, ".El");
}

static const char *const variables[][2] = {
    {"RINGMASTER_RUNTIME_DIR",
     "The directory that has a directory with a control socket for each experiment, instead "
     "of the places below."},
    {"XDG_RUNTIME_DIR",
     "Control sockets of users other than root are in its directory `ringmaster`."},
    {"NO_COLOR", "When set and not empty, output has no colours."},
};
static const char *const files[][2] = {
    {"/run/ringmaster/NAME/control.sock", "The control socket of an experiment of root."},
    {"$XDG_RUNTIME_DIR/ringmaster/NAME/control.sock",
     "The control socket of another user with a session."},
    {"/tmp/ringmaster-UID/NAME/control.sock",
     "The control socket of another user without a session."},
};

static void write_examples(FILE *out)
{
    static const char *const examples[][3] = {
        {"Train with another batch size, and watch:",
         "$ ringctl run treasurehunt.json \\-\\-set sample.batch=128",
         "$ ringctl top treasurehunt"},
        {"Lower the learning rate during the run, and evaluate the current policies:",
         "$ ringctl set optimizer.learning_rate=1e-4",
         "$ ringctl evaluate \\-\\-episodes 100 \\-\\-wait"},
        {"The score of a running experiment, for a script:",
         "$ ringctl status treasurehunt \\-\\-json | jq .score.last", NULL},
    };
    rm_mdoc_line(out, ".Sh EXAMPLES");
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        rm_mdoc_text(out, examples[i][0]);
        rm_mdoc_line(out, ".Bd -literal -offset indent");
        for (int line = 1; line < 3 && examples[i][line]; line++)
            rm_mdoc_line(out, "%s", examples[i][line]);
        rm_mdoc_line(out, i < 2 ? ".Ed\n.Pp" : ".Ed");
    }
}

void rm_man_ringctl(FILE *out)
{
    rm_mdoc_head(out, "ringctl", "1", "run, watch and steer reinforcement-learning experiments");
    rm_mdoc_line(out, ".Sh SYNOPSIS");
    rm_mdoc_line(out, ".Nm");
    rm_mdoc_line(out, ".Ar command");
    rm_mdoc_line(out, ".Op Ar option ...");
    rm_mdoc_line(out, ".Op Ar argument ...");
    rm_mdoc_line(out, ".Nm");
    rm_mdoc_line(out, ".Fl -help | -version");
    rm_mdoc_line(out, ".Sh DESCRIPTION");
    rm_mdoc_line(out, ".Nm");
    rm_mdoc_text(
        out, "starts experiments, and controls running ones over their control sockets. It prints "
             "tables, or JSON with `--json`, and writes messages to standard error.");
    rm_mdoc_line(out, ".Pp");
    rm_mdoc_text(
        out,
        "`NAME` is the name of a running experiment; without it a command uses the only one "
        "that is running. Every command has `--help`. The value of an option is the next word, "
        "or follows an equals sign.");
    rm_mdoc_line(out, ".Pp");
    rm_mdoc_text(
        out, "Commands that connect to a running experiment also take, `top` and `trace` without "
             "`--json`:");
    write_list(out, rm_ctl_connection_options);
    rm_mdoc_line(out, ".Pp");
    rm_mdoc_text(out, "The commands are:");
    rm_mdoc_line(out, ".Bl -tag -width Ds");
    for (const struct rm_ctl_command *c = rm_ctl_commands; c->name; c++)
        if (c->shown != RM_CTL_HIDDEN)
            write_command(out, c);
    rm_mdoc_line(out, ".El");
    write_section(out, "ENVIRONMENT", "Ev", variables, sizeof variables / sizeof variables[0]);
    write_section(out, "FILES", "Pa", files, sizeof files / sizeof files[0]);
    rm_mdoc_line(out, ".Sh EXIT STATUS");
    rm_mdoc_line(out, ".Bl -tag -width Ds");
    for (int i = 0; i < RM_CTL_EXIT_COUNT; i++) {
        rm_mdoc_line(out, ".It %d", i);
        rm_mdoc_text(out, rm_ctl_exit_docs[i]);
    }
    rm_mdoc_line(out, ".El");
    write_examples(out);
    rm_mdoc_line(out, ".Sh SEE ALSO");
    rm_mdoc_line(out, ".Xr ringmaster.json 5 ,");
    rm_mdoc_line(out, ".Xr ringmaster-metrics 7 ,");
    rm_mdoc_line(out, ".Xr ringmaster-worlds 7 ,");
    rm_mdoc_line(out, ".Xr ringmasterd 8");
}
