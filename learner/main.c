/* ringmaster-learner: trains one policy. Started by ringmasterd with the session's descriptors (see
 * shm/objects.h); exit codes are those of shm/duty.h. */
#include "actor/plan.h"
#include "learner/device.h"
#include "learner/learner.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: ringmaster-learner --policy P --run-directory DIR [--resume DIR] [--parent PID]\n"
    "\n"
    "Trains policy P of the experiment whose descriptors it inherits. ringmasterd starts it; "
    "there\n"
    "is nothing to run by hand.\n"
    "\n"
    "  --policy P           number of the policy, from 0\n"
    "  --run-directory DIR  where policies/ and checkpoints/ are written\n"
    "  --resume DIR         a checkpoint: begin with what it has of this policy\n"
    "  --parent PID         exit when this process, its parent, is gone\n"
    "  --help, --version\n"
    "\n"
    "Exit codes: 0 finished or stopped, 1 failed, 2 wrong command line, 70 device error, 125 do "
    "not\n"
    "restart.\n";

struct arguments {
    uint32_t policy;
    const char *directory, *resume;
    int parent;
};

/* A whole number from 0 to `most`, or -1. */
static long number(const char *text, long most)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    return errno || end == text || *end || value < 0 || value > most ? -1 : value;
}

/* 0 to go on, else 1 + the exit code. */
static int parse(int argc, char **argv, struct arguments *out)
{
    static const struct option options[] = {
        {"policy", required_argument, NULL, 'p'},
        {"run-directory", required_argument, NULL, 'd'},
        {"resume", required_argument, NULL, 'r'},
        {"parent", required_argument, NULL, 'P'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    long policy = -1, parent = 0;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'p':
            policy = number(optarg, RM_BOARD_POLICIES - 1);
            break;
        case 'd':
            out->directory = optarg;
            break;
        case 'r':
            out->resume = optarg;
            break;
        case 'P':
            parent = number(optarg, INT32_MAX);
            break;
        case 'h':
            fputs(usage, stdout);
            return 1 + RM_EXIT_OK;
        case 'v':
            puts("ringmaster-learner " RM_VERSION);
            return 1 + RM_EXIT_OK;
        default:
            fputs("try --help\n", stderr);
            return 1 + RM_EXIT_USAGE;
        }
    }
    if (policy < 0 || parent < 0 || !out->directory || optind != argc) {
        fputs(usage, stderr);
        return 1 + RM_EXIT_USAGE;
    }
    out->policy = (uint32_t)policy;
    out->parent = (int)parent;
    return 0;
}

/* On the board too, for those who look there. */
static int say_failed(struct rm_session *session, uint32_t policy, const struct rm_error *error)
{
    rm_duty_failed(&session->board.workers[rm_worker_learner(&session->objects, policy)], error);
    return RM_EXIT_FAILED;
}

static int train(struct rm_session *session, const struct arguments *arguments,
                 struct rm_error *error)
{
    struct rm_learner *learner;
    struct rm_duty duty;
    if (arguments->policy >= session->objects.policies) {
        rm_fail(error, -EINVAL, "--policy %u: the experiment has %u", arguments->policy,
                session->objects.policies);
        return RM_EXIT_USAGE;
    }
    struct rm_wake wake =
        rm_session_wake(session, rm_worker_learner(&session->objects, arguments->policy));
    if (rm_duty_signals(&wake, arguments->parent, error))
        return RM_EXIT_FAILED;
    const int made =
        rm_learner_create(&learner, session, arguments->policy, arguments->directory, &duty, error);
    if (made) {
        const int failed = say_failed(session, arguments->policy, error);
        if (made == RM_LEARNER_DEVICE_FAILED)
            return RM_EXIT_CUDA;
        if (rm_device_hopeless(made))
            return RM_EXIT_NEVER;
        return session->resume[0] ? RM_EXIT_NEVER : failed; /* rather than begin anew unasked */
    }
    int code = rm_duty_run(&duty, error);
    if (code == RM_EXIT_OK && rm_learner_save(learner, error))
        code = RM_EXIT_FAILED;
    if (code == RM_EXIT_FAILED && rm_learner_device_failed(learner))
        return RM_EXIT_CUDA; /* its context is lost: nothing of it can be taken down */
    rm_learner_destroy(learner);
    return code;
}

int main(int argc, char **argv)
{
    static struct rm_experiment experiment;
    static struct rm_plan plan;
    static struct rm_session session;
    struct arguments arguments = {0};
    struct rm_error error = {""};
    const int stop = parse(argc, argv, &arguments);
    if (stop)
        return stop - 1;
    int code = RM_EXIT_NEVER; /* what fails here fails the next time as well */
    if (!rm_session_read_config(&experiment, &error) && !rm_plan_make(&plan, &experiment, &error) &&
        !rm_session_attach(&session, &experiment, &plan, &error)) {
        rm_session_place(&session, arguments.directory, arguments.resume);
        code = train(&session, &arguments, &error);
        rm_session_close(&session);
    }
    if (code != RM_EXIT_OK)
        fprintf(stderr, "ringmaster-learner: %s\n", error.text);
    return code;
}
