#include "daemon/daemon.h"
#include "daemon/heap.h"
#include "daemon/reader.h"
#include "daemon/sweeper.h"
#include "shm/base/file.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage_text[] =
    "usage: ringmasterd [options] FILE\n"
    "\n"
    "Runs the experiment of FILE: starts its workers, keeps them alive, answers ringctl.\n"
    "\n"
    "  --foreground           show progress on standard output, not log lines on standard error\n"
    "  --name NAME            instead of the configuration's name\n"
    "  --run-directory DIR    parent of the run directory, instead of run.directory\n"
    "  --socket PATH          control socket, instead of control.socket and the default place\n"
    "  --set KEY=VALUE        override a key of the configuration; may be repeated\n"
    "  --resume               resume the latest run from its newest checkpoint, or fail (default:\n"
    "                         resume if it has a checkpoint and is not finished)\n"
    "  --fresh                start a new run\n"
    "  --check                load and check FILE, start nothing\n"
    "  --help, --version\n"
    "\n"
    "Exit codes: 0 finished or stopped as asked; 1 the run failed; 2 wrong command line or\n"
    "configuration; 3 the experiment or the run runs already; 4 no memory, directory or socket.\n"
    "ringmasterd(8) has the others, signals and environment variables.\n";

enum {
    OPT_FOREGROUND = 256,
    OPT_NAME,
    OPT_DIRECTORY,
    OPT_SOCKET,
    OPT_SET,
    OPT_CHECK,
    OPT_RESUME,
    OPT_FRESH,
    OPT_SWEEP,  /* for the daemon's own use: see sweeper.h */
    OPT_READER, /* the same: reader.h */
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"foreground", no_argument, NULL, OPT_FOREGROUND},
    {"name", required_argument, NULL, OPT_NAME},
    {"run-directory", required_argument, NULL, OPT_DIRECTORY},
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"set", required_argument, NULL, OPT_SET},
    {"check", no_argument, NULL, OPT_CHECK},
    {"resume", no_argument, NULL, OPT_RESUME},
    {"fresh", no_argument, NULL, OPT_FRESH},
    {"sweep", required_argument, NULL, OPT_SWEEP},
    {"reader", required_argument, NULL, OPT_READER},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int wrong(const char *what)
{
    fprintf(stderr, "ringmasterd: %s\nTry 'ringmasterd --help'.\n", what);
    return RM_DAEMON_USAGE;
}

/* What is in the buffer of standard output is written now, or there are words. */
static int shown(int code)
{
    if (code != RM_DAEMON_OK || (!fflush(stdout) && !ferror(stdout)))
        return code;
    fputs("ringmasterd: standard output could not be written\n", stderr);
    return RM_DAEMON_UNSHOWN;
}

int main(int argc, char **argv)
{
    struct rm_daemon_options options = {.resume = RM_RESUME_MAY};
    bool check = false, resume = false, fresh = false;
    int option;
    rm_daemon_hold_signals(true); /* until the loop takes them */
    rm_file_hold_standard();
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        switch (option) {
        case OPT_FOREGROUND:
            options.foreground = true;
            break;
        case OPT_NAME:
            options.name = optarg;
            break;
        case OPT_DIRECTORY:
            options.run_directory = optarg;
            break;
        case OPT_SOCKET:
            options.socket = optarg;
            break;
        case OPT_SET:
            if (options.override_count == RM_OVERRIDES_MAX)
                return wrong("--set: at most 256 are allowed");
            options.overrides[options.override_count++].text = optarg;
            break;
        case OPT_CHECK:
            check = true;
            break;
        case OPT_RESUME:
            resume = true;
            options.resume = RM_RESUME_MUST;
            break;
        case OPT_FRESH:
            fresh = true;
            options.resume = RM_RESUME_NEVER;
            break;
        case OPT_SWEEP:
            return rm_sweeper_main(optarg);
        case OPT_READER:
            rm_daemon_hold_signals(false);
            return rm_reader_main(argv + optind - 1);
        case OPT_HELP:
            fputs(usage_text, stdout);
            return shown(RM_DAEMON_OK);
        case OPT_VERSION:
            puts("ringmasterd " RM_VERSION);
            return shown(RM_DAEMON_OK);
        default:
            return wrong("unknown or incomplete option");
        }
    if (resume && fresh)
        return wrong("give either --resume or --fresh, not both");
    if (optind != argc - 1)
        return wrong(optind == argc ? "no configuration file given" : "more than one file given");
    options.file = argv[optind];

    if (check) /* nothing is started, so there is nothing to end in good order */
        rm_daemon_hold_signals(false);
    (void)rm_heap_share(); /* without, it only keeps more */
    struct rm_error error = {.text = ""};
    int code = check ? rm_daemon_check(&options, &error) : rm_daemon_run(&options, &error);
    if (code != RM_DAEMON_OK)
        fprintf(stderr, "ringmasterd: %s\n", error.text);
    else if (check)
        printf("%s: fine\n", options.file);
    return shown(code);
}
