#include "daemon/ctl/command.h"

#include <string.h>

const struct rm_ctl_option rm_ctl_common_options[] = {
    {"help", NULL, "Prints help and exits.", RM_COMPLETE_NOTHING, false},
    {NULL, NULL, NULL, RM_COMPLETE_NOTHING, false},
};

#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, NULL, RM_COMPLETE_NOTHING, false                                               \
    }
#define SOCKET_OPTION                                                                              \
    {                                                                                              \
        "socket", "PATH",                                                                          \
            "Connects to the experiment that listens at this path, whatever its name.",            \
            RM_COMPLETE_FILE, false                                                                \
    }
#define TIMEOUT_OPTION                                                                             \
    {                                                                                              \
        "timeout", "SECONDS", "Waits so long for a reply (default 10; 0: no limit).",              \
            RM_COMPLETE_NOTHING, false                                                             \
    }
#define SET_OPTION                                                                                 \
    {                                                                                              \
        "set", "KEY=VALUE", "Overrides a key of the file; may be given again.",                    \
            RM_COMPLETE_SETTING, true                                                              \
    }

const struct rm_ctl_option rm_ctl_connection_options[] = {
    SOCKET_OPTION,
    TIMEOUT_OPTION,
    {"json", NULL, "Prints the reply as JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

/* Of commands that print no reply. */
static const struct rm_ctl_option silent_options[] = {SOCKET_OPTION, TIMEOUT_OPTION, END};

static const struct rm_ctl_option run_options[] = {
    SET_OPTION,
    {"name", "NAME", "Runs under this name instead of the file's.", RM_COMPLETE_NOTHING, false},
    {"run-directory", "DIR", "Makes the run's directory below this one.", RM_COMPLETE_DIRECTORY,
     false},
    {"socket", "PATH", "Listens at this path instead of the default one.", RM_COMPLETE_FILE, false},
    {"seeds", "N", "Makes N runs with consecutive seeds, beginning with the file's.",
     RM_COMPLETE_NOTHING, false},
    {"jobs", "N", "Makes N runs at a time (default: one for each core).", RM_COMPLETE_NOTHING,
     false},
    {"tune", "[SECONDS]",
     "Tries, in 120 s or SECONDS, settings that change only speed; writes FILE.tuned.json.",
     RM_COMPLETE_NOTHING, false},
    {"resume", NULL, "Resumes the latest run from its newest checkpoint, or fails.",
     RM_COMPLETE_NOTHING, false},
    {"fresh", NULL, "Starts a new run, even if a run could be resumed.", RM_COMPLETE_NOTHING,
     false},
    END,
};

static const struct rm_ctl_option validate_options[] = {
    SET_OPTION,
    {"json", NULL, "Prints the resolved configuration as JSON.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option schema_options[] = {
    {"markdown", NULL, "Prints the reference page instead, in Markdown.", RM_COMPLETE_NOTHING,
     false},
    END,
};

static const struct rm_ctl_option envs_options[] = {
    {"library", "PATH", "Shows the world in this shared object.", RM_COMPLETE_FILE, false},
    {"json", NULL, "Prints JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option check_world_options[] = {
    {"set", "KEY=VALUE",
     "Sets a key as in an experiment's file, such as world.options.turns=5 or seed=7; may be given "
     "again.",
     RM_COMPLETE_SETTING, true},
    {"steps", "N", "Plays N steps in every trial (default: as many as its episodes take).",
     RM_COMPLETE_NOTHING, false},
    {"timeout", "SECONDS", "Ends a trial that takes longer (default 600).", RM_COMPLETE_NOTHING,
     false},
    {"json", NULL, "Prints JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

#define FPS_OPTION                                                                                 \
    {                                                                                              \
        "fps", "N",                                                                                \
            "Shows N states a second (default 8); 0: as fast as they are made, as when the "       \
            "output is not a terminal.",                                                           \
            RM_COMPLETE_NOTHING, false                                                             \
    }

static const struct rm_ctl_option play_options[] = {
    SET_OPTION,
    {"policy", "PATH",
     "Plays this policy, a file of a run's policies/, or all policies of a folder; may be "
     "given again. Without it, plays the policies of the latest run.",
     RM_COMPLETE_FILE, true},
    {"episodes", "N", "Plays N episodes (default 1).", RM_COMPLETE_NOTHING, false},
    FPS_OPTION,
    {"record", "FILE", "Writes a film, FILE.gif or FILE.mp4, instead of showing text.",
     RM_COMPLETE_FILE, false},
    END,
};

static const struct rm_ctl_option watch_options[] = {
    {"episodes", "N", "Ends after N episodes.", RM_COMPLETE_NOTHING, false},
    FPS_OPTION,
    END,
};

static const struct rm_ctl_option list_options[] = {
    {"timeout", "SECONDS", "Waits at most so long for each experiment (default 2).",
     RM_COMPLETE_NOTHING, false},
    {"json", NULL, "Prints JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option set_options[] = {
    {"keep", NULL, "Keeps the value when the run is resumed.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option evaluate_options[] = {
    {"episodes", "N", "Plays N episodes instead of evaluation.episodes.", RM_COMPLETE_NOTHING,
     false},
    {"wait", NULL, "Waits for the result and prints it.", RM_COMPLETE_NOTHING, false},
    {"policy", "PATH",
     "Evaluates this policy without a run, in the experiment of a file: NAME is that file. "
     "PATH is a file of a run's policies/, or a folder with all policies; may be given "
     "again.",
     RM_COMPLETE_FILE, true},
    {"set", "KEY=VALUE", "With --policy: overrides a key; may be given again.", RM_COMPLETE_SETTING,
     true},
    {"record", "DIR", "With --policy: records every row to a new folder.", RM_COMPLETE_FILE, false},
    END,
};

static const struct rm_ctl_option rank_options[] = {
    SET_OPTION,
    {"policy", "PATH",
     "Ranks by this policy, a file of a run's policies/, or by the policies of a folder. "
     "Without it, ranks by those of the latest run.",
     RM_COMPLETE_FILE, true},
    {"corruptions", "K", "Makes K corruptions of the head and K of the tail (default 100).",
     RM_COMPLETE_NOTHING, false},
    {"queries", "N", "Ranks only the first N queries of the split.", RM_COMPLETE_NOTHING, false},
    {"json", NULL, "Prints JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option record_options[] = {
    {"to", "PATH",
     "Exports into this folder, with a NumPy file for each column, or into a file whose "
     "name ends with .npz, .parquet or .h5; such a file needs python3 with the ringmaster "
     "package.",
     RM_COMPLETE_FILE, false},
    {"json", NULL, "Prints the list as JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option explain_options[] = {
    {"set", "KEY=VALUE",
     "Only predicts the rate with this setting, or with several together; may be given again.",
     RM_COMPLETE_SETTING, true},
    {"verify", "SECONDS",
     "With --set: tries the change twice, for so many seconds each, and also prints the "
     "measured rates. The change is tried on the running experiment if its keys may change "
     "there, otherwise in short runs from the newest checkpoint.",
     RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option stop_options[] = {
    {"wait", NULL, "Waits until the experiment has ended.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option logs_options[] = {
    {"follow", NULL, "Also prints new lines, until the run ends (-f).", RM_COMPLETE_NOTHING, false},
    {"lines", "N", "Begins with the last N lines instead of the first line.", RM_COMPLETE_NOTHING,
     false},
    {"worker", "WORKER",
     "Prints only the output and the events of this worker, such as actor-0, or of all "
     "workers of a role, such as actor.",
     RM_COMPLETE_NOTHING, false},
    {"socket", "PATH", "Reads the log of the experiment that listens there, whatever its name.",
     RM_COMPLETE_FILE, false},
    TIMEOUT_OPTION,
    END,
};

static const struct rm_ctl_option trace_options[] = {
    {"seconds", "N", "Traces for N seconds, at most 60 (default 1).", RM_COMPLETE_NOTHING, false},
    {"output", "FILE", "Writes the trace to FILE (-o; default trace.json).", RM_COMPLETE_FILE,
     false},
    END,
};

static const struct rm_ctl_option compare_options[] = {
    {"json", NULL, "Prints JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option report_options[] = {
    {"output", "FILE", "Writes the page to FILE (-o; default report.html).", RM_COMPLETE_FILE,
     false},
    {"plots", "DIR",
     "Also writes each plot into this folder as SVG, and as PNG if rsvg-convert, inkscape "
     "or ImageMagick is installed.",
     RM_COMPLETE_DIRECTORY, false},
    END,
};

#define NAME_ARGUMENT                                                                              \
    {                                                                                              \
        "NAME", true, RM_COMPLETE_NAME                                                             \
    }

const struct rm_ctl_command rm_ctl_commands[] = {
    {.name = "run",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "run an experiment in the foreground",
     .text =
         "Executes the ringmasterd that is installed beside ringctl. It trains until the budget "
         "of steps is spent or it is interrupted, and writes report.html into the run's "
         "directory. The exit code is that of ringmasterd(8). If the latest run of that name "
         "has a checkpoint and is not finished, it is resumed. With a sweep or --seeds, ringctl "
         "makes several runs instead, prints a table, writes one report, and exits with 7 if a "
         "run is missing.",
     .arguments = {{"FILE", false, RM_COMPLETE_FILE}},
     .options = run_options,
     .run = rm_ctl_run},
    {.name = "validate",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "check an experiment without running it",
     .text = "Reads the file, opens its world and compiles its networks, and so finds everything "
             "that would prevent a start. Prints the agents, the policies with the sizes of their "
             "networks, and the memory that rings and weights will take. Also prints keys that are "
             "set but not used by the chosen algorithm. Of a sweep, reads every run and prints the "
             "number of runs.",
     .arguments = {{"FILE", false, RM_COMPLETE_FILE}},
     .options = validate_options,
     .run = rm_ctl_validate},
    {.name = "schema",
     .summary = "print the schema of configuration files",
     .text = "Prints a JSON Schema, with which editors check and complete configuration files.",
     .options = schema_options,
     .run = rm_ctl_schema},
    {.name = "envs",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "list the built-in worlds, or show one",
     .text = "With a name, shows that world: its agents, what they observe and can do, and its "
             "options with their ranges.",
     .arguments = {{"NAME", true, RM_COMPLETE_WORLD}},
     .options = envs_options,
     .run = rm_ctl_envs},
    {.name = "check-world",
     .summary = "check whether a world keeps the rules",
     .text =
         "WORLD is the path of a shared object or of a Prolog file (.pl), the name of a "
         "built-in world, a Python world as in world.python, or an experiment's file. Plays "
         "batches of the world with random legal actions, in separate processes that are "
         "confined as an actor is. Prints the rules of docs/worlds.md, which of them were "
         "checked, and the first row that breaks one. The rules concern the order and flags of "
         "rows, values and masks, columns that are not written, draws that do not come from the "
         "seed, results that depend on how worlds are divided into batches, and saved states. "
         "Exits with 4 if a rule is broken.",
     .arguments = {{"WORLD", false, RM_COMPLETE_WORLD}},
     .options = check_world_options,
     .run = rm_ctl_check_world},
    {.name = "play",
     .summary = "show how policies play",
     .text =
         "Plays the world of the experiment's evaluations with policies from files, and chooses "
         "actions as evaluations do. The process is confined as an evaluator is. Shows every "
         "state as text, or writes a film with ffmpeg or with python3 and imageio.",
     .arguments = {{"FILE", false, RM_COMPLETE_FILE}},
     .options = play_options,
     .run = rm_ctl_play},
    {.name = "rank",
     .summary = "rank true queries among corrupted ones by a policy",
     .text =
         "For worlds that ask queries, such as the prover. Greedily plays each query of the "
         "split (evaluation.options.split) and corruptions of its head and of its tail. A "
         "candidate's score is the sum of the log-probabilities of the chosen actions, less 100 "
         "if it was not proved. Prints the mean reciprocal rank and Hits@1, 3 and 10 of the "
         "true query, for each side and averaged, and the number of candidates that were proved.",
     .arguments = {{"FILE", false, RM_COMPLETE_FILE}},
     .options = rank_options,
     .run = rm_ctl_rank},
    {.name = "record",
     .summary = "list, verify or export a recording",
     .text =
         "ACTION is ls, verify or export. RECORDING is the folder that record.directory names; "
         "its run may still be running. ls prints the streams, with the number of rows and of "
         "lost rows of each. verify reads every chunk and prints the positions of damaged ones; "
         "it exits with 7 if there are any. export writes the rows, in their order, for NumPy "
         "or as a table. docs/histories.md has the format of the files.",
     .arguments = {{"ACTION", false, RM_COMPLETE_NOTHING},
                   {"RECORDING", false, RM_COMPLETE_DIRECTORY}},
     .options = record_options,
     .run = rm_ctl_record},
    {.name = "list",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "list the running experiments",
     .text = "Searches the default places for control sockets of this user and of the host. Leaves "
             "out sockets without a daemon. An experiment with another path as control.socket is "
             "not listed; other commands reach it with --socket.",
     .options = list_options,
     .run = rm_ctl_list},
    {.name = "status",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "show how an experiment is doing",
     .text = "Prints the run's state and progress, and tables of agents, policies and workers.",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_status},
    {.name = "explain",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "show what limits the speed of a run, and what would change it",
     .text = "NAME is a running experiment or the directory of a run. Reads counters only. Prints "
             "the station that limits the run (stepping worlds, acting, sampling, the update, "
             "publishing, checkpoints, the evaluator, other processes of the host), how every duty "
             "spent its time, at most three settings that would change the rate, each with the "
             "predicted rate, and settings that would not change it. The window is the latest "
             "minute of training, without the beginning of the run. docs/explain.md has the model "
             "and how well it predicts.",
     .arguments = {NAME_ARGUMENT},
     .options = explain_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_explain},
    {.name = "trace",
     .summary = "write what every duty does, phase by phase, on a time line",
     .text = "FILE has the format of Chrome's trace viewer, which Perfetto opens. Each duty has a "
             "track with its phases and what it waits for. During a trace, duties write marks into "
             "shared memory, which costs little; at other times they write none. Only root and the "
             "experiment's own user can read the marks. If ringctl gets no core in time and marks "
             "are overwritten, it counts them and marks the gap.",
     .arguments = {NAME_ARGUMENT},
     .options = trace_options,
     .group = silent_options,
     .run = rm_ctl_trace},
    {.name = "metrics",
     .summary = "print all counters and gauges",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_metrics},
    {.name = "get",
     .summary = "print a key of the running configuration",
     .text = "Prints the value as JSON. A key that is a group (optimizer) prints the group.",
     .arguments = {NAME_ARGUMENT, {"KEY", false, RM_COMPLETE_KEY}},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_get},
    {.name = "set",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "change a key while the experiment runs",
     .text = "Only keys that ringmaster.json(5) marks as hot can be changed. The value is checked "
             "as in a file. VALUE is JSON; text that is not JSON is a string. KEY=default undoes "
             "the change: the key has the configuration's value again, and no value is kept. When "
             "the run is resumed, keys have the configuration's values, except those set with "
             "--keep.",
     .arguments = {NAME_ARGUMENT, {"KEY=VALUE", false, RM_COMPLETE_HOT_SETTING}},
     .options = set_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_set},
    {.name = "pause",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "put all workers to sleep",
     .text = "A paused experiment keeps its memory and uses no processor time.",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_pause},
    {.name = "resume",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "continue a paused experiment",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_resume},
    {.name = "checkpoint",
     .summary = "write a checkpoint now",
     .text =
         "The checkpoint has all that is needed to resume the run, replay included, and is "
         "written below checkpoints/ of the run directory. Waits until it is complete; training "
         "continues meanwhile.",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_checkpoint},
    {.name = "evaluate",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "play greedy episodes with the latest weights or other policies",
     .text =
         "Training continues meanwhile. With --wait there is no time limit, unless --timeout is "
         "given. With --policy no run is needed: NAME is an experiment's file, and a confined "
         "process plays, without --episodes, evaluation.final_episodes episodes, the same ones "
         "as at the end of a run. It prints returns, lengths and the world's figures with their "
         "standard errors, and for policies that act in context also the score in each tenth of "
         "the episodes.",
     .arguments = {NAME_ARGUMENT},
     .options = evaluate_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_evaluate},
    {.name = "watch",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "show how the newest policies play",
     .text = "Plays one episode after another with the current weights, in a separate process, "
             "until it is interrupted or the experiment ends. The experiment does not wait for it. "
             "The weights are in policies/newest/ of the run directory.",
     .arguments = {NAME_ARGUMENT},
     .options = watch_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_watch},
    {.name = "stop",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "write a checkpoint and end an experiment",
     .text = "Workers finish their current turn, and the policies are written. The next start "
             "resumes the run.",
     .arguments = {NAME_ARGUMENT},
     .options = stop_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_stop},
    {.name = "events",
     .summary = "print what happens, as it happens",
     .text = "Runs until it is interrupted or the experiment ends. A client that reads too slowly "
             "loses events; the next event has the number of lost ones.",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_events},
    {.name = "report",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "write a page about runs, in one file",
     .text =
         "A RUN is a run's directory, an experiment's file (its latest run, or all runs of its "
         "sweep), or the name of a running experiment. The page has learning curves, how "
         "workers spent their time, settings, events, and the command to run it again; it needs "
         "neither network nor scripts. Runs that differ only in their seeds count as one "
         "experiment: their interquartile mean is drawn with its interval of 95 % by bootstrap "
         "over seeds.",
     .arguments = {{"RUN...", false, RM_COMPLETE_DIRECTORY}},
     .options = report_options,
     .run = rm_ctl_report},
    {.name = "compare",
     .summary = "show how runs differ, and the effects on speed and score",
     .text = "A RUN is a run's directory, an experiment's file (its latest run), or the name of a "
             "running experiment. Compares the first of two or more runs with the others. Prints "
             "the settings, versions and hosts that differ; the rates as `explain` measures them, "
             "their ratios and, on one host, the ratio that its model predicts from the first run "
             "alone; the score at the last step that all runs have reached; and the last "
             "evaluations.",
     .arguments = {{"RUN...", false, RM_COMPLETE_DIRECTORY}},
     .options = compare_options,
     .run = rm_ctl_compare},
    {.name = "logs",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "print the log of a run",
     .text = "Prints log.txt of the run's directory: the journal of the run and the output of its "
             "workers. For a run that has ended, give its experiment's file or its directory as "
             "NAME. If one experiment is running, NAME can also be one of its workers (--worker).",
     .arguments = {NAME_ARGUMENT},
     .options = logs_options,
     .run = rm_ctl_logs},
    {.name = "top",
     .shown = RM_CTL_SHOWN_FIRST,
     .summary = "full-screen live view",
     .text = "Shows progress, what limits the speed and the best change (as `explain` does, every "
             "10 s), the agents, and how each worker spends its time. Keys: q quits, p pauses and "
             "resumes, s changes the order of the workers, up and down scroll them, e evaluates, n "
             "shows the next experiment, ? shows help.",
     .arguments = {NAME_ARGUMENT},
     .group = silent_options,
     .run = rm_ctl_top},
    {.name = "query-schema",
     .summary = "print the commands of the control protocol",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_query_schema},
    {.name = "completion",
     .summary = "print a completion script for a shell",
     .text = "The only SHELL known is bash.",
     .arguments = {{"SHELL", false, RM_COMPLETE_SHELL}},
     .run = rm_ctl_completion},
    {.name = "help",
     .summary = "explain a command",
     .arguments = {{"COMMAND", true, RM_COMPLETE_COMMAND}},
     .run = rm_ctl_help_command},
    {.name = "complete",
     .summary = "print words for a completion script",
     .arguments = {{"KIND", false, RM_COMPLETE_NOTHING}},
     .run = rm_ctl_complete,
     .shown = RM_CTL_HIDDEN},
    {.name = "man",
     .summary = "print the source of a generated man page",
     .arguments = {{"PAGE", false, RM_COMPLETE_NOTHING}},
     .run = rm_ctl_man,
     .shown = RM_CTL_HIDDEN},
    {.name = NULL},
};

const struct rm_ctl_command *rm_ctl_command_find(const char *name)
{
    for (const struct rm_ctl_command *c = rm_ctl_commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

static void each_of(const struct rm_ctl_option *options, rm_ctl_option_fn each, void *user)
{
    for (; options && options->name; options++)
        each(user, options);
}

void rm_ctl_each_option(const struct rm_ctl_command *command, rm_ctl_option_fn each, void *user)
{
    each_of(command->options, each, user);
    each_of(command->group, each, user);
    each_of(rm_ctl_common_options, each, user);
}
