/* command: the table of ringctl's subcommands. The parser of command lines, --help, the bash
 * completion and ringctl(1) use this one table. */
#ifndef RM_DAEMON_CTL_COMMAND_H
#define RM_DAEMON_CTL_COMMAND_H

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What a shell may offer for an argument or an option's value. */
enum rm_ctl_completion {
    RM_COMPLETE_NOTHING = 0,
    RM_COMPLETE_FILE,
    RM_COMPLETE_DIRECTORY,
    RM_COMPLETE_NAME,        /* running experiments */
    RM_COMPLETE_KEY,         /* configuration keys */
    RM_COMPLETE_HOT_SETTING, /* KEY= of keys that can be set while running */
    RM_COMPLETE_SETTING,     /* KEY= of any key */
    RM_COMPLETE_WORLD,
    RM_COMPLETE_COMMAND,
    RM_COMPLETE_SHELL,
    RM_COMPLETE_COUNT
};

struct rm_ctl_option {
    const char *name;  /* "set", given as --set; the table of options ends with name NULL */
    const char *value; /* the option's value: "KEY=VALUE"; "[SECONDS]" for a number that may be left
                          out; NULL: the option has no value */
    const char *doc;   /* a sentence */
    enum rm_ctl_completion completion;
    bool repeated;
};

#define RM_CTL_ARGUMENTS_MAX 2
#define RM_CTL_REST_MAX      64
#define RM_CTL_GIVEN_MAX     256

struct rm_ctl_argument {
    const char *name; /* "NAME"; "RUN...": may be repeated, and is the command's only argument */
    bool optional;
    enum rm_ctl_completion completion;
};

struct rm_ctl_arguments;

/* Where ringctl --help has a command. */
enum rm_ctl_shown {
    RM_CTL_SHOWN = 0,   /* its name, below the others */
    RM_CTL_SHOWN_FIRST, /* with its summary */
    RM_CTL_HIDDEN,      /* nowhere: for scripts */
};

struct rm_ctl_command {
    const char *name;
    const char *summary; /* no full stop; lists of commands */
    const char *text;    /* paragraphs, separated by a blank line; may be NULL */
    struct rm_ctl_argument arguments[RM_CTL_ARGUMENTS_MAX]; /* optional ones before or after */
    const struct rm_ctl_option *options; /* the command's own options; may be NULL */
    const struct rm_ctl_option *group;   /* options shared with other commands; may be NULL */
    int (*run)(const struct rm_ctl_arguments *given); /* returns an enum rm_ctl_exit value */
    enum rm_ctl_shown shown;
};

extern const struct rm_ctl_command rm_ctl_commands[]; /* ends with name NULL */
extern const struct rm_ctl_option rm_ctl_connection_options[];
extern const struct rm_ctl_option rm_ctl_common_options[]; /* of every command: --help */

const struct rm_ctl_command *rm_ctl_command_find(const char *name);

/* A parsed command line. Strings belong to argv. */
struct rm_ctl_arguments {
    const struct rm_ctl_command *command;
    const char *argument[RM_CTL_ARGUMENTS_MAX]; /* by the table's order; NULL when left out */
    const char *rest[RM_CTL_REST_MAX];          /* a repeated argument's values after the first */
    size_t rest_count;
    struct {
        const struct rm_ctl_option *option;
        const char *value;
    } given[RM_CTL_GIVEN_MAX];
    size_t given_count;
    bool help;
};

/* Parses argv[0..argc) after the command's name. -EINVAL with a message that says what is wrong. */
int rm_ctl_parse(struct rm_ctl_arguments *arguments, const struct rm_ctl_command *command, int argc,
                 char **argv, struct rm_error *error);

/* The last value given for an option, or NULL; a flag's value is "". */
const char *rm_ctl_value(const struct rm_ctl_arguments *arguments, const char *option);
bool rm_ctl_flag(const struct rm_ctl_arguments *arguments, const char *option);

/* Reads an option's number, from `low` to `most`; rm_ctl_whole() a whole one. Without the option
 * *number is unchanged. Returns 0, or RM_CTL_USAGE after a message. */
int rm_ctl_number(const struct rm_ctl_arguments *arguments, const char *option, double low,
                  double most, double *number);
int rm_ctl_whole(const struct rm_ctl_arguments *arguments, const char *option, uint32_t low,
                 uint32_t most, uint32_t *number);

/* Writes the values of --set to overrides[RM_CTL_GIVEN_MAX]. Returns their number. */
size_t rm_ctl_overrides(const struct rm_ctl_arguments *arguments, struct rm_override *overrides);

/* Loads the experiment in FILE, the first argument, with the values of --set and `more` (another
 * KEY=VALUE, or NULL). Returns 0; or prints the error and returns an enum rm_ctl_exit value. */
int rm_ctl_load(const struct rm_ctl_arguments *arguments, const char *more,
                struct rm_experiment *experiment);

/* Calls `each` for the options of a command: its own, the shared ones, the common ones. */
typedef void (*rm_ctl_option_fn)(void *user, const struct rm_ctl_option *option);
void rm_ctl_each_option(const struct rm_ctl_command *command, rm_ctl_option_fn each, void *user);

/* The whole program, with the arguments of main(). Returns an enum rm_ctl_exit value. */
int rm_ctl_main(int argc, char **argv);

/* --- handlers, one file each; they print their own errors on stderr --------------------------- */
int rm_ctl_run(const struct rm_ctl_arguments *given);
/* `run` for an experiment with a sweep: makes all runs of the sweep. */
struct rm_experiment;
int rm_ctl_sweep(const struct rm_ctl_arguments *given, const struct rm_experiment *experiment);
/* Checks all runs of a sweep without making them. Returns 0 and their number; or prints the error
 * and returns an enum rm_ctl_exit value. */
int rm_ctl_sweep_check(const struct rm_ctl_arguments *given, const struct rm_experiment *experiment,
                       size_t *runs);
/* `run --tune`: makes short runs to find the experiment's fastest settings. */
int rm_ctl_tune(const struct rm_ctl_arguments *given, const struct rm_experiment *experiment);
int rm_ctl_validate(const struct rm_ctl_arguments *given);
int rm_ctl_schema(const struct rm_ctl_arguments *given);
int rm_ctl_envs(const struct rm_ctl_arguments *given);
int rm_ctl_check_world(const struct rm_ctl_arguments *given);
int rm_ctl_play(const struct rm_ctl_arguments *given);
int rm_ctl_watch(const struct rm_ctl_arguments *given);
int rm_ctl_list(const struct rm_ctl_arguments *given);
int rm_ctl_report(const struct rm_ctl_arguments *given);
int rm_ctl_compare(const struct rm_ctl_arguments *given);
/* Writes a page about at most RM_CTL_REST_MAX runs to `file`. `names`: run directories, experiment
 * files or names of experiments. `plots`: a folder that gets the plots as pictures, too; NULL:
 * none. */
int rm_ctl_report_runs(const struct rm_ctl_arguments *given, const char *file, const char *plots,
                       const char *const *names, size_t count);
int rm_ctl_logs(const struct rm_ctl_arguments *given);
int rm_ctl_trace(const struct rm_ctl_arguments *given);
int rm_ctl_top(const struct rm_ctl_arguments *given);
int rm_ctl_explain(const struct rm_ctl_arguments *given);
int rm_ctl_status(const struct rm_ctl_arguments *given);
int rm_ctl_metrics(const struct rm_ctl_arguments *given);
int rm_ctl_get(const struct rm_ctl_arguments *given);
int rm_ctl_set(const struct rm_ctl_arguments *given);
int rm_ctl_pause(const struct rm_ctl_arguments *given);
int rm_ctl_resume(const struct rm_ctl_arguments *given);
int rm_ctl_checkpoint(const struct rm_ctl_arguments *given);
int rm_ctl_evaluate(const struct rm_ctl_arguments *given);
int rm_ctl_evaluate_files(const struct rm_ctl_arguments *given); /* with --policy */
int rm_ctl_rank(const struct rm_ctl_arguments *given);
int rm_ctl_record(const struct rm_ctl_arguments *given);
int rm_ctl_stop(const struct rm_ctl_arguments *given);
int rm_ctl_events(const struct rm_ctl_arguments *given);
int rm_ctl_query_schema(const struct rm_ctl_arguments *given);
int rm_ctl_completion(const struct rm_ctl_arguments *given);
int rm_ctl_complete(const struct rm_ctl_arguments *given);
int rm_ctl_man(const struct rm_ctl_arguments *given);
int rm_ctl_help_command(const struct rm_ctl_arguments *given);

/* Prints "ringctl: message" on stderr and returns `code`. */
int rm_ctl_complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
