/* ringmaster-learner: trains one policy. Started by ringmasterd with the session's descriptors (see
 * shm/objects.h); exit codes are those of shm/duty.h. */
#include "actor/worlds/plan.h"
#include "learner/learner.h"
#include "learner/recorder.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static const char usage[] =
    "usage: ringmaster-learner --policy P --run-directory DIR [--resume DIR | --newest DIR]\n"
    "                          [--parent PID]\n"
    "       ringmaster-learner --recorder --run-directory DIR [--parent PID]\n"
    "\n"
    "Trains policy P of the experiment whose descriptors it inherits, or all of them. ringmasterd\n"
    "starts it; do not run it by hand.\n"
    "\n"
    "  --policy P           number of the policy, from 0; \"all\": every one, in turn\n"
    "  --recorder           write the rows of all actors to record.directory instead\n"
    "  --run-directory DIR  where policies/ and checkpoints/ are written\n"
    "  --resume DIR         a checkpoint: load this policy's state from it\n"
    "  --newest DIR         a checkpoint: after a death, load its optimizers\n"
    "  --parent PID         exit when this process, its parent, has ended\n"
    "  --help, --version\n"
    "\n"
    "Exit codes: 0 finished or stopped, 1 failed, 2 wrong command line, 70 device error, 125 do "
    "not\n"
    "restart.\n";

#define ALL UINT32_MAX

struct arguments {
    uint32_t policy; /* or ALL */
    bool recorder;
    const char *directory, *resume, *newest;
    int parent;
};

/* Parses a whole number from 0 to `most`; -1 if it is none. */
static long number(const char *text, long most)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    return errno || end == text || *end || value < 0 || value > most ? -1 : value;
}

/* 0 to continue, else 1 + the exit code. */
static int parse(int argc, char **argv, struct arguments *out)
{
    static const struct option options[] = {
        {"policy", required_argument, NULL, 'p'},
        {"run-directory", required_argument, NULL, 'd'},
        {"resume", required_argument, NULL, 'r'},
        {"newest", required_argument, NULL, 'n'},
        {"parent", required_argument, NULL, 'P'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {"recorder", no_argument, NULL, 'c'},
        {NULL, 0, NULL, 0},
    };
    long policy = -1, parent = 0;
    bool all = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'p':
            all = strcmp(optarg, "all") == 0;
            policy = all ? 0 : number(optarg, RM_BOARD_POLICIES - 1);
            break;
        case 'c':
            out->recorder = true;
            break;
        case 'd':
            out->directory = optarg;
            break;
        case 'r':
            out->resume = optarg;
            break;
        case 'n':
            out->newest = optarg;
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
    if ((policy < 0) != out->recorder || parent < 0 || !out->directory || optind != argc) {
        fputs(usage, stderr);
        return 1 + RM_EXIT_USAGE;
    }
    out->policy = all ? ALL : (uint32_t)policy;
    out->parent = (int)parent;
    return 0;
}

/* The learners of this process. */
struct learners {
    uint32_t first, count;
    struct rm_learner *learner[RM_BOARD_POLICIES];
    struct rm_duty duty[RM_BOARD_POLICIES];
};

/* Writes the error to the board too. */
static int cannot_make(struct rm_session *session, uint32_t policy, int rc,
                       const struct rm_error *error)
{
    rm_duty_failed(&session->board.workers[rm_worker_learner(&session->objects, policy)], error);
    return rm_learner_exit(rc, session->resume[0]);
}

static int make_learners(struct learners *l, struct rm_session *session, const char *directory,
                         int parent, struct rm_error *error)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const int rc =
            rm_learner_create(&l->learner[i], session, l->first + i, directory, &l->duty[i], error);
        if (rc)
            return cannot_make(session, l->first + i, rc, error);
        l->duty[i].lingers = parent && session->experiment.checkpoint.at_end;
    }
    return RM_EXIT_OK;
}

static int run_learners(struct learners *l, struct rm_error *error)
{
    int code = l->count == 1 ? rm_duty_run(&l->duty[0], error)
                             : rm_duty_run_in_turn(l->duty, l->count, error);
    for (uint32_t i = 0; code == RM_EXIT_OK && i < l->count; i++)
        if (rm_learner_save(l->learner[i], error))
            code = RM_EXIT_FAILED;
    for (uint32_t i = 0; code == RM_EXIT_FAILED && i < l->count; i++)
        if (rm_learner_device_failed(l->learner[i]))
            return RM_EXIT_CUDA; /* its context is lost, so nothing can be freed */
    return code;
}

/* Sets the name that ps and top show for this process and its threads. They show fifteen
 * characters, in which the names of all programs and policies begin alike. */
static void take_name(const struct learners *l)
{
    char name[32] = "rm-learners";
    if (l->count == 1)
        snprintf(name, sizeof name, "rm-learner-%u", l->first);
    prctl(PR_SET_NAME, name);
}

static int train(struct rm_session *session, const struct arguments *arguments,
                 struct rm_error *error)
{
    static struct learners l;
    l.first = arguments->policy == ALL ? 0 : arguments->policy;
    l.count = arguments->policy == ALL ? session->objects.policies : 1;
    if (l.first >= session->objects.policies) {
        rm_fail(error, -EINVAL, "--policy %u: the experiment has %u", l.first,
                session->objects.policies);
        return RM_EXIT_USAGE;
    }
    take_name(&l);
    struct rm_wake wake = rm_session_wake(session, rm_worker_learner(&session->objects, l.first));
    if (rm_duty_signals(&wake, arguments->parent, error))
        return RM_EXIT_FAILED;
    int code = make_learners(&l, session, arguments->directory, arguments->parent, error);
    if (code == RM_EXIT_OK)
        code = run_learners(&l, error);
    for (uint32_t i = 0; code != RM_EXIT_CUDA && i < l.count; i++)
        rm_learner_destroy(l.learner[i]);
    return code;
}

static int record(struct rm_session *session, int parent, struct rm_error *error)
{
    struct rm_recorder *recorder = NULL;
    struct rm_duty duty;
    if (!session->objects.recorders) {
        rm_fail(error, -EINVAL, "--recorder: the experiment has no record.directory");
        return RM_EXIT_USAGE;
    }
    prctl(PR_SET_NAME, "rm-recorder");
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is as a full disk */
    struct rm_wake wake = rm_session_wake(session, rm_worker_recorder(&session->objects));
    int rc = rm_duty_signals(&wake, parent, error);
    if (rc == 0)
        rc = rm_recorder_create(&recorder, session, &duty, error);
    if (rc < 0) {
        rm_duty_failed(&session->board.workers[rm_worker_recorder(&session->objects)], error);
        return rc == -EINVAL || rc == -EBADMSG ? RM_EXIT_NEVER : RM_EXIT_FAILED;
    }
    const int code = rm_duty_run(&duty, error);
    rm_recorder_finish(recorder);
    rm_recorder_destroy(recorder);
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
    int code = RM_EXIT_NEVER; /* a failure here would occur again after a restart */
    if (!rm_session_read_config(&experiment, &error) && !rm_plan_make(&plan, &experiment, &error) &&
        !rm_session_attach(&session, &experiment, &plan, &error)) {
        rm_session_place(&session, arguments.directory, arguments.resume);
        rm_session_place_newest(&session, arguments.newest);
        code = arguments.recorder ? record(&session, arguments.parent, &error)
                                  : train(&session, &arguments, &error);
        rm_session_close(&session);
    }
    if (code != RM_EXIT_OK)
        fprintf(stderr, "ringmaster-learner: %s\n", error.text);
    return code;
}
