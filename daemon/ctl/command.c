#include "daemon/ctl/command.h"

#include <string.h>

const struct rm_ctl_option rm_ctl_common_options[] = {
    {"help", NULL, "Prints help and exits.", RM_COMPLETE_NOTHING, false},
    {NULL, NULL, NULL, RM_COMPLETE_NOTHING, false},
};

const struct rm_ctl_option rm_ctl_connection_options[] = {
    {"socket", "PATH", "Speaks to the experiment that listens there, whatever its name.",
     RM_COMPLETE_FILE, false},
    {"timeout", "SECONDS", "Waits that long for an answer (default 10); 0 waits for ever.",
     RM_COMPLETE_NOTHING, false},
    {"json", NULL, "Prints the reply as JSON, for programs.", RM_COMPLETE_NOTHING, false},
    {NULL, NULL, NULL, RM_COMPLETE_NOTHING, false},
};

#define SET_OPTION                                                                                 \
    {                                                                                              \
        "set", "KEY=VALUE", "Overrides a key of the file; may be given again.",                    \
            RM_COMPLETE_SETTING, true                                                              \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, NULL, RM_COMPLETE_NOTHING, false                                               \
    }

static const struct rm_ctl_option run_options[] = {
    SET_OPTION,
    {"name", "NAME", "Runs under another name than the file's.", RM_COMPLETE_NOTHING, false},
    {"run-directory", "DIR", "Makes the run's directory there.", RM_COMPLETE_DIRECTORY, false},
    {"socket", "PATH", "Listens there instead of in the default place.", RM_COMPLETE_FILE, false},
    {"seeds", "N", "Makes N runs, of the seeds from the file's on.", RM_COMPLETE_NOTHING, false},
    {"jobs", "N", "Makes so many of many runs at a time (default: one a core).",
     RM_COMPLETE_NOTHING, false},
    {"tune", "[SECONDS]",
     "Tries, in 120 s or SECONDS, settings that change only speed; writes FILE.tuned.json.",
     RM_COMPLETE_NOTHING, false},
    {"resume", NULL, "Goes on from the latest run's newest checkpoint, or fails.",
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
    {"steps", "N", "Plays that many steps in every try, not as many as episodes take.",
     RM_COMPLETE_NOTHING, false},
    {"timeout", "SECONDS", "Ends a try that takes longer (default 600).", RM_COMPLETE_NOTHING,
     false},
    {"json", NULL, "Prints JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

#define FPS_OPTION                                                                                 \
    {                                                                                              \
        "fps", "N",                                                                                \
            "Shows so many states a second (default 8); 0, as outside of a terminal: as fast "     \
            "as they come.",                                                                       \
            RM_COMPLETE_NOTHING, false                                                             \
    }

static const struct rm_ctl_option play_options[] = {
    SET_OPTION,
    {"policy", "PATH",
     "Plays this policy, a file of a run's policies/, or all those of a folder; may be given "
     "again. "
     "Without it, those of the latest run.",
     RM_COMPLETE_FILE, true},
    {"episodes", "N", "Plays that many episodes (default 1).", RM_COMPLETE_NOTHING, false},
    FPS_OPTION,
    {"record", "FILE", "Writes a film, FILE.gif or FILE.mp4, instead of showing text.",
     RM_COMPLETE_FILE, false},
    END,
};

static const struct rm_ctl_option watch_options[] = {
    {"episodes", "N", "Ends after that many episodes.", RM_COMPLETE_NOTHING, false},
    FPS_OPTION,
    END,
};

static const struct rm_ctl_option list_options[] = {
    {"timeout", "SECONDS", "Waits that long for each experiment (default 2).", RM_COMPLETE_NOTHING,
     false},
    {"json", NULL, "Prints JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option set_options[] = {
    {"keep", NULL, "Keeps it when the run goes on after a restart.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option evaluate_options[] = {
    {"episodes", "N", "Plays that many episodes instead of evaluation.episodes.",
     RM_COMPLETE_NOTHING, false},
    {"wait", NULL, "Waits for the result and prints it.", RM_COMPLETE_NOTHING, false},
    {"policy", "PATH",
     "Evaluates this policy without a run, in the experiment of a FILE: a file of a run's "
     "policies/, or all those of a folder; may be given again.",
     RM_COMPLETE_FILE, true},
    {"set", "KEY=VALUE", "With --policy: overrides a key; may be given again.", RM_COMPLETE_SETTING,
     true},
    {"record", "DIR", "With --policy: records every row to a new folder.", RM_COMPLETE_FILE, false},
    END,
};

static const struct rm_ctl_option rank_options[] = {
    SET_OPTION,
    {"policy", "PATH",
     "Ranks by this policy, a file of a run's policies/, or those of a folder. Without it, by the "
     "latest run's.",
     RM_COMPLETE_FILE, true},
    {"corruptions", "K", "Takes so many corruptions of the head and of the tail, by default 100.",
     RM_COMPLETE_NOTHING, false},
    {"queries", "N", "Ranks only the first so many queries of the split.", RM_COMPLETE_NOTHING,
     false},
    {"json", NULL, "Prints JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option record_options[] = {
    {"to", "PATH",
     "Exports into this folder, a file of NumPy for each column; or into a file that ends with "
     ".npz, .parquet or .h5, for which python3 needs the ringmaster package.",
     RM_COMPLETE_FILE, false},
    {"json", NULL, "Lists as JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option explain_options[] = {
    {"set", "KEY=VALUE",
     "Only predicts the rate with this setting, or with several together; may be given again.",
     RM_COMPLETE_SETTING, true},
    {"verify", "SECONDS",
     "With --set: tries the change twice for so many seconds and prints the measured rates, too: "
     "on the running experiment if it can change there, or in short runs from its newest "
     "checkpoint.",
     RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option stop_options[] = {
    {"wait", NULL, "Waits until the experiment is gone.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option logs_options[] = {
    {"follow", NULL, "Prints what comes as well, until the run ends (-f).", RM_COMPLETE_NOTHING,
     false},
    {"lines", "N", "Begins with the last N lines instead of the first.", RM_COMPLETE_NOTHING,
     false},
    {"worker", "WORKER",
     "Prints only what a worker said or what happened to it, such as actor-0; a role, such as "
     "actor, "
     "means all workers of it.",
     RM_COMPLETE_NOTHING, false},
    {"socket", "PATH", "Reads the log of the experiment that listens there, whatever its name.",
     RM_COMPLETE_FILE, false},
    {"timeout", "SECONDS", "Waits that long for an answer (default 10); 0 waits for ever.",
     RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option trace_options[] = {
    {"seconds", "N", "Traces for so long, at most 60 (default 1).", RM_COMPLETE_NOTHING, false},
    {"output", "FILE", "Writes it there (-o; default trace.json).", RM_COMPLETE_FILE, false},
    END,
};

static const struct rm_ctl_option compare_options[] = {
    {"json", NULL, "Prints JSON, for programs.", RM_COMPLETE_NOTHING, false},
    END,
};

static const struct rm_ctl_option report_options[] = {
    {"output", "FILE", "Writes the page there (-o; default report.html).", RM_COMPLETE_FILE, false},
    {"plots", "DIR",
     "Writes each plot there as well, as SVG, and as PNG if rsvg-convert, inkscape or "
     "ImageMagick is installed.",
     RM_COMPLETE_DIRECTORY, false},
    END,
};

#define NAME_ARGUMENT                                                                              \
    {                                                                                              \
        "NAME", true, RM_COMPLETE_NAME                                                             \
    }

const struct rm_ctl_command rm_ctl_commands[] = {
    {.name = "run",
     .summary = "run an experiment in the foreground",
     .text =
         "Becomes the ringmasterd found beside it, which trains until the budget of steps is "
         "spent or until it is interrupted, and leaves report.html in the run's directory; the "
         "exit code is that of ringmasterd(8). Where the latest run of that name left a "
         "checkpoint and is not over, it goes on there. With a sweep or --seeds, makes many runs "
         "instead, prints a table, writes one report, and exits with 7 while a run is missing.",
     .arguments = {{"FILE", false, RM_COMPLETE_FILE}},
     .options = run_options,
     .run = rm_ctl_run},
    {.name = "validate",
     .summary = "check an experiment without running it",
     .text =
         "Reads the file, opens its world and compiles its networks, so that everything that "
         "would keep the experiment from starting shows. Prints the agents, the policies with "
         "their networks' sizes, and the memory that rings and weights will take; and names keys "
         "that are set and that the chosen algorithm does not look at. Reads every run of a sweep "
         "and prints their number.",
     .arguments = {{"FILE", false, RM_COMPLETE_FILE}},
     .options = validate_options,
     .run = rm_ctl_validate},
    {.name = "schema",
     .summary = "print the schema of configuration files",
     .text = "Prints a JSON Schema, by which editors check and complete configuration files.",
     .options = schema_options,
     .run = rm_ctl_schema},
    {.name = "envs",
     .summary = "list the built-in worlds, or show one",
     .text = "With a name, shows that world: its agents, what they observe and can do, and its "
             "options with their ranges.",
     .arguments = {{"NAME", true, RM_COMPLETE_WORLD}},
     .options = envs_options,
     .run = rm_ctl_envs},
    {.name = "check-world",
     .summary = "look whether a world keeps the rules",
     .text =
         "WORLD is the path of a shared object or of a Prolog file (.pl), the name of a built-in "
         "world, a Python world as world.python has it, or an experiment's file. Plays batches of "
         "it with random legal "
         "actions, in processes of its own that are confined as an actor "
         "is, and prints the rules of docs/worlds.md, which of them were tried, and where the "
         "first row is that breaks one: order and flags of rows, values and masks, what is not "
         "written, draws that do not come from the seed, batches that are cut otherwise, saved "
         "states. Exits with 4 when a rule is broken.",
     .arguments = {{"WORLD", false, RM_COMPLETE_WORLD}},
     .options = check_world_options,
     .run = rm_ctl_check_world},
    {.name = "play",
     .summary = "show how policies play",
     .text = "Plays the experiment's world with policies of files, in the world of its evaluations "
             "and with their answers, in a process that is confined as an evaluator is, and shows "
             "every state: as text, or as a film, which ffmpeg writes, or python3 with imageio.",
     .arguments = {{"FILE", false, RM_COMPLETE_FILE}},
     .options = play_options,
     .run = rm_ctl_play},
    {.name = "rank",
     .summary = "rank true queries among corrupted ones by a policy",
     .text = "For worlds that ask queries, as the prover does. Plays each query of the split "
             "(evaluation.options.split) and corruptions of its head and of its tail greedily. A "
             "candidate's score is the sum of the log-probabilities of the chosen actions, less "
             "100 if it was not proved. Prints the mean reciprocal rank and Hits@1, 3 and 10 of "
             "the true query, for each side and averaged; and how many candidates were proved.",
     .arguments = {{"FILE", false, RM_COMPLETE_FILE}},
     .options = rank_options,
     .run = rm_ctl_rank},
    {.name = "record",
     .summary = "list, verify or export a recording",
     .text = "ACTION is ls, verify or export; RECORDING is a folder that record.directory names, "
             "also of a run that goes on. ls prints its streams, the rows of each and how many "
             "were lost. verify reads every chunk and names those that are damaged, with their "
             "positions; it exits with 7 if there are any. export writes the rows, in their "
             "order, for NumPy or as a table. docs/histories.md has the format of the files.",
     .arguments = {{"ACTION", false, RM_COMPLETE_NOTHING},
                   {"RECORDING", false, RM_COMPLETE_DIRECTORY}},
     .options = record_options,
     .run = rm_ctl_record},
    {.name = "list",
     .summary = "list the running experiments",
     .text = "Looks for control sockets where this user's experiments and those of the host have "
             "them. Sockets without a daemon are left out. An experiment whose "
             "control.socket is another path is reached with --socket.",
     .options = list_options,
     .run = rm_ctl_list},
    {.name = "status",
     .summary = "show how an experiment is doing",
     .text = "Prints its state and progress, a table of the agents, one of the policies and one of "
             "the workers.",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_status},
    {.name = "explain",
     .summary = "say what limits the speed of a run, and what would move it",
     .text =
         "NAME is a running experiment or the directory of a run. From counters alone: which "
         "station limits it (stepping worlds, acting, sampling, the update, publishing, "
         "checkpoints, the evaluator, other processes of the host), where every duty's time went, "
         "at most three settings that would move it, each with the predicted rate, and settings "
         "that would not. The window is the latest minute of training, without the beginning of "
         "the run. docs/explain.md has the model and how well it predicts.",
     .arguments = {NAME_ARGUMENT},
     .options = explain_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_explain},
    {.name = "trace",
     .summary = "write what every duty does, phase by phase, on a time line",
     .text = "FILE has the format of Chrome's trace viewer, which Perfetto opens: a track for each "
             "duty, with its phases and what it waits for. Duties write marks into shared memory "
             "meanwhile, which costs them little, and nothing at other times. Only root and the "
             "experiment's own user can read these. Marks that were overwritten because this "
             "program had no core in time are counted, and their place is marked.",
     .arguments = {NAME_ARGUMENT},
     .options = trace_options,
     .group = rm_ctl_connection_options,
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
     .summary = "change a key while the experiment runs",
     .text = "Only keys that ringmaster.json(5) marks as hot can be changed; the value is checked "
             "as it would be in the file. VALUE is JSON; what is not JSON is taken as a string. "
             "KEY=default takes it back: the value of the configuration, and not kept any more. "
             "After a restart everything is as the configuration has it, but for what was set "
             "with --keep.",
     .arguments = {NAME_ARGUMENT, {"KEY=VALUE", false, RM_COMPLETE_HOT_SETTING}},
     .options = set_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_set},
    {.name = "pause",
     .summary = "put all workers to sleep",
     .text = "A paused experiment keeps its memory and uses no processor time.",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_pause},
    {.name = "resume",
     .summary = "go on after a pause",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_resume},
    {.name = "checkpoint",
     .summary = "write a checkpoint now",
     .text =
         "All that is needed to go on from here, replay included, under checkpoints/ of the run "
         "directory. Waits until it is there; training goes on meanwhile.",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_checkpoint},
    {.name = "evaluate",
     .summary = "play greedy episodes with the latest weights, or with policies of files",
     .text =
         "Training goes on meanwhile. Waiting takes as long as the evaluation does, unless "
         "--timeout is given. With --policy no run is needed: NAME is an experiment's file. "
         "Without --episodes there are evaluation.final_episodes, the same ones as at the end of "
         "a run, in a confined process. Returns, lengths and the world's figures are printed with "
         "their standard errors; of policies that act in context also the score in each "
         "tenth of the episodes.",
     .arguments = {NAME_ARGUMENT},
     .options = evaluate_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_evaluate},
    {.name = "watch",
     .summary = "show how the newest policies play",
     .text = "Plays one episode after another with the weights of now, in a process of its own, "
             "until it is interrupted or the experiment ends. Nothing of the experiment waits for "
             "it. The weights are in the run directory, in policies/newest/.",
     .arguments = {NAME_ARGUMENT},
     .options = watch_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_watch},
    {.name = "stop",
     .summary = "end an experiment in good order",
     .text = "Workers finish what they are at and policies are written.",
     .arguments = {NAME_ARGUMENT},
     .options = stop_options,
     .group = rm_ctl_connection_options,
     .run = rm_ctl_stop},
    {.name = "events",
     .summary = "print what happens, as it happens",
     .text = "Runs until it is interrupted or the experiment ends. A client that reads too slowly "
             "loses events; the next one says how many.",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_events},
    {.name = "report",
     .summary = "write a page about runs that opens anywhere",
     .text = "A RUN is a run's directory, an experiment's file (its latest run; all runs of its "
             "sweep), or the name of a running experiment. The page needs neither network nor "
             "scripts: learning curves, "
             "where the time went, settings, what happened, and how to run it again. Runs that "
             "differ in their seeds alone count as one experiment: their interquartile mean is "
             "drawn with its interval of 95 % by bootstrap over seeds.",
     .arguments = {{"RUN...", false, RM_COMPLETE_DIRECTORY}},
     .options = report_options,
     .run = rm_ctl_report},
    {.name = "compare",
     .summary = "say how runs differ, and what that did to speed and score",
     .text = "A RUN is a run's directory, an experiment's file (its latest run), or the name of a "
             "running experiment; two or more, and the first is what the others are compared "
             "with. Prints the settings, versions and hosts that differ; the rates as `explain` "
             "measures them, their ratios and, on one host, the ratio that its model predicts "
             "from the first run alone; the score at the last step that all runs have "
             "reached; and the last evaluations.",
     .arguments = {{"RUN...", false, RM_COMPLETE_DIRECTORY}},
     .options = compare_options,
     .run = rm_ctl_compare},
    {.name = "logs",
     .summary = "print the log of a run",
     .text = "Prints log.txt of the run's directory: the journal of the run, and what its workers "
             "print. A run that has ended is meant by its experiment's file, or by its directory.",
     .arguments = {NAME_ARGUMENT},
     .options = logs_options,
     .run = rm_ctl_logs},
    {.name = "top",
     .summary = "full-screen live view",
     .text =
         "Shows progress, what limits the speed and the best change (as `explain` does, every 10 "
         "s), agents and where each worker's time goes. Keys: q quits, p pauses and resumes, s "
         "changes the order of the workers, e evaluates, n shows the next experiment, ? "
         "explains.",
     .arguments = {NAME_ARGUMENT},
     .group = rm_ctl_connection_options,
     .run = rm_ctl_top},
    {.name = "query-schema",
     .summary = "print the commands an experiment understands",
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
     .hidden = true},
    {.name = "man",
     .summary = "print the source of a generated man page",
     .arguments = {{"PAGE", false, RM_COMPLETE_NOTHING}},
     .run = rm_ctl_man,
     .hidden = true},
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
