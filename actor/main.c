/* ringmaster-actor: a worker process that steps worlds, for learners or to evaluate. Started by
 * ringmasterd, which passes the shared objects as descriptors (shm/objects.h). */
#include "actor/actor.h"
#include "actor/worlds/bridges/python.h"
#include "actor/worlds/described.h"
#include "actor/evaluator.h"
#include "actor/worlds/plan.h"
#include "actor/player.h"
#include "actor/worlds/sandbox.h"
#include "actor/worlds/rule_check.h"
#include "actor/worlds/watch.h"
#include "shm/session/session.h"
#include "config/traits.h"
#include "shm/duty.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct options {
    bool evaluator, actor, probe, check, play;
    enum rm_player_purpose purpose;
    uint32_t index; /* or how many steps, or episodes */
    const char *policy[RM_BOARD_POLICIES];
    uint32_t policies;
    int parent;
    const char *directory, *resume, *describe, *group;
};

static const char usage[] =
    "usage: ringmaster-actor --actor I [--run-directory DIR] [--resume DIR] [--parent PID]\n"
    "       ringmaster-actor --evaluator [--run-directory DIR] [--parent PID]\n"
    "       ringmaster-actor --probe [--group FILE] | --describe LIBRARY | --check STEPS\n"
    "       ringmaster-actor --play EPISODES [--picture | --tally | --rows | --rank]\n"
    "                        --policy FILE...\n"
    "\n"
    "Steps worlds for the learners of a run, or evaluates their policies. Started by ringmasterd,\n"
    "which passes the shared memory of the run as open descriptors.\n"
    "\n"
    "  --actor I      run actor I, from 0\n"
    "  --evaluator    run the evaluator\n"
    "  --probe        only create the world and write its description to descriptor 3\n"
    "  --describe LIBRARY\n"
    "                 the same, without a configuration, for a shared object\n"
    "  --check STEPS  play the world of the configuration for STEPS (0: as many as its episodes\n"
    "                 take), and write to descriptor 3 which rules it keeps\n"
    "  --play EPISODES\n"
    "                 play the world of the configuration and write frames to descriptor 3\n"
    "  --picture      frames are pictures, not text\n"
    "  --tally        write only the results of the episodes\n"
    "  --rows         the same, and before that all rows of the episodes\n"
    "  --rank         play candidates of EPISODES queries (0: all), and write only their ranks\n"
    "  --policy FILE  play with this policy; give one for each policy\n"
    "  --group FILE   first, enter the control group whose members FILE lists\n"
    "  --run-directory DIR\n"
    "                 where checkpoints/ is, and an evaluator's policies/best/\n"
    "  --resume DIR   a checkpoint: load this actor's state from it\n"
    "  --parent PID   exit when this process, its parent, has ended\n"
    "  --help         show this text\n"
    "  --version      show the version\n"
    "\n"
    "Exit status: 0 finished or stopped as asked, 1 failed, 2 wrong command line, 10 world probed\n"
    "or played, 125 failed in a way that a restart cannot repair.\n";

static int parse_number(const char *text, uint32_t *value)
{
    char *end;

    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || n > INT_MAX)
        return -EINVAL;
    *value = (uint32_t)n;
    return 0;
}

/* Returns -1 to go on, or an exit status. */
static int parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"actor", required_argument, NULL, 'a'},
        {"evaluator", no_argument, NULL, 'e'},
        {"probe", no_argument, NULL, 't'},
        {"describe", required_argument, NULL, 'l'},
        {"check", required_argument, NULL, 'c'},
        {"group", required_argument, NULL, 'g'},
        {"play", required_argument, NULL, 'y'},
        {"picture", no_argument, NULL, 'i'},
        {"tally", no_argument, NULL, 'm'},
        {"rows", no_argument, NULL, 'w'},
        {"rank", no_argument, NULL, 'k'},
        {"policy", required_argument, NULL, 'f'},
        {"run-directory", required_argument, NULL, 'd'},
        {"resume", required_argument, NULL, 'r'},
        {"parent", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    uint32_t parent = 0;
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) >= 0) {
        if (c == 'h') {
            fputs(usage, stdout);
            return RM_EXIT_OK;
        }
        if (c == 'v') {
            puts("ringmaster-actor " RM_VERSION);
            return RM_EXIT_OK;
        }
        if (c == '?')
            return RM_EXIT_USAGE;
        if (c == 'l') {
            options->describe = optarg;
            options->probe = true;
            continue;
        }
        if (c == 'f') {
            if (options->policies == RM_BOARD_POLICIES)
                return RM_EXIT_USAGE;
            options->policy[options->policies++] = optarg;
            continue;
        }
        if (c == 'd' || c == 'r' || c == 'g') {
            *(c == 'd'   ? &options->directory
              : c == 'r' ? &options->resume
                         : &options->group) = optarg;
            continue;
        }
        if (c == 'i' || c == 'm' || c == 'w' || c == 'k') {
            options->purpose = c == 'i'   ? RM_PLAYER_PICTURE
                               : c == 'm' ? RM_PLAYER_TALLY
                               : c == 'w' ? RM_PLAYER_ROWS_TOO
                                          : RM_PLAYER_RANK;
            continue;
        }
        uint32_t *number = c == 'p' ? &parent : &options->index;
        if (c != 'e' && c != 't' && parse_number(optarg, number) < 0) {
            fprintf(stderr, "ringmaster-actor: \"%s\" is not a number from 0 to %d\n", optarg,
                    INT_MAX);
            return RM_EXIT_USAGE;
        }
        options->actor |= c == 'a';
        options->evaluator |= c == 'e';
        options->check |= c == 'c';
        options->play |= c == 'y';
        options->probe |= c == 't' || c == 'c' || c == 'y';
    }
    options->parent = (int)parent;
    if (options->actor + options->evaluator + options->probe != 1 || optind < argc) {
        fputs(usage, stderr);
        return RM_EXIT_USAGE;
    }
    return -1;
}

/* Worker n gets the n-th of the processors that this process may use, round and round. */
static void pin(uint32_t worker)
{
    cpu_set_t allowed, one;

    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return;
    int count = CPU_COUNT(&allowed), wanted = (int)(worker % (uint32_t)count);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || wanted-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

/* What the configuration and the inherited objects cannot give now they cannot give later. */
static int failed(struct rm_board_worker *slot, int code, const struct rm_error *error)
{
    fprintf(stderr, "ringmaster-actor: %s\n", error->text);
    if (slot)
        rm_duty_failed(slot, error);
    return code == -EINVAL || code == -EPROTO || code == RM_DUTY_NEVER ? RM_EXIT_NEVER
                                                                       : RM_EXIT_FAILED;
}

static int run(struct rm_session *session, const struct options *options, uint32_t worker,
               struct rm_error *error)
{
    struct rm_board_worker *slot = &session->board.workers[worker];
    struct rm_wake wake = rm_session_wake(session, worker);
    struct rm_evaluator *evaluator = NULL;
    struct rm_actor *actor = NULL;
    struct rm_duty duty;

    int rc = rm_duty_signals(&wake, options->parent, error);
    if (rc == 0)
        rc = options->evaluator ? rm_evaluator_create(&evaluator, session, &duty, error)
                                : rm_actor_create(&actor, session, options->index, &duty, error);
    if (rc < 0) /* an actor that cannot resume must not start from scratch */
        return failed(slot, session->resume[0] ? -EINVAL : rc, error);
    duty.lingers = options->actor && options->parent && session->experiment.checkpoint.at_end;
    int status = rm_duty_run(&duty, error);
    if (status != RM_EXIT_OK)
        fprintf(stderr, "ringmaster-actor: %s\n", error->text);
    rm_actor_destroy(actor);
    rm_evaluator_destroy(evaluator);
    return status;
}

/* --- trying a world -------------------------------------------------------------------------- */

static int answer(char *text)
{
    const char *at = text;
    size_t left = text ? strlen(text) : 0;

    while (left > 0) {
        ssize_t n = write(RM_FD_ANSWER, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        at += n;
        left -= (size_t)n;
    }
    free(text);
    return left == 0 && text ? RM_EXIT_PROBED : RM_EXIT_FAILED;
}

static char *refusal(int code, const struct rm_error *error)
{
    json_t *words = json_pack("{s:s, s:i}", "error", error->text, "code", code);
    char *text = words ? json_dumps(words, JSON_COMPACT) : NULL;

    json_decref(words);
    return text;
}

static int configure(struct rm_experiment *experiment, const struct options *options,
                     struct rm_error *error)
{
    const char *library = options->describe;

    if (!library)
        return rm_session_read_config(experiment, error);
    if (strlen(library) >= sizeof experiment->world.library)
        return rm_fail(error, -ENAMETOOLONG, "the path of the library is too long");
    snprintf(experiment->world.library, sizeof experiment->world.library, "%s", library);
    experiment->actor.sandbox = RM_SANDBOX_AUTO;
    return 0;
}

/* The control group whose file of members `path` is (NULL: stay). */
static int enter_group(const char *path, struct rm_error *error)
{
    FILE *file = path ? fopen(path, "we") : NULL;
    if (!path)
        return 0;
    bool entered = file && fputs("0", file) >= 0;
    if (file && fclose(file) != 0)
        entered = false;
    return entered ? 0 : rm_fail(error, -errno, "%s: %s", path, strerror(errno));
}

/* Plays the world. A shared object's is whatever it calls itself. */
static char *check(struct rm_experiment *experiment, uint32_t steps, struct rm_error *error)
{
    static struct rm_rule_check check;
    struct rm_world world;
    struct rm_env *env = NULL;
    char *text = NULL;

    if (rm_experiment_loads(experiment))
        experiment->world.name[0] = '\0';
    int rc = rm_world_open_configured(&world, &experiment->world, error);
    if (rc < 0)
        return refusal(rc, error);
    rc = rm_world_create(&world, &experiment->world, experiment->seed, 0, 1, &env, error);
    /* So that no batch looks for figures, which it might find by chance. */
    if (rc == 0 && !experiment->world.description)
        experiment->world.description = rm_described_write(&world, world.ops->describe(env));
    if (rc == 0)
        rc = rm_rule_check_run(&check, &world, &experiment->world, experiment->seed, steps, error);
    if (rc == 0)
        text = rm_rule_check_write(&check, &world, world.ops->describe(env));
    if (env)
        world.ops->close(env);
    rm_world_close(&world);
    return rc < 0 ? refusal(rc, error) : text;
}

/* What the world says of itself, or why not. */
static int probe(struct rm_experiment *experiment, const struct options *options)
{
    struct rm_error error = {""};
    struct rm_world_spec world;
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the daemon may be killed before this process answers */
    if ((rc = rm_watch_install("ringmaster-actor", &error)) < 0 ||
        (rc = configure(experiment, options, &error)) < 0 ||
        (rc = enter_group(options->group, &error)) < 0 ||
        (rc = rm_sandbox_enter(experiment, NULL, &error)) < 0)
        return answer(refusal(rc, &error));
    rm_python_place(experiment, NULL);
    if (options->check)
        return answer(check(experiment, options->index, &error));
    if (options->play) {
        if (options->purpose == RM_PLAYER_SHOW || options->purpose == RM_PLAYER_PICTURE)
            rm_python_show(options->purpose == RM_PLAYER_PICTURE);
        const struct rm_player_options player = {.episodes = options->index,
                                                 .purpose = options->purpose,
                                                 .files = options->policy,
                                                 .file_count = options->policies,
                                                 .fd = RM_FD_ANSWER};
        return rm_player_run(experiment, &player, &error) < 0 ? RM_EXIT_FAILED : RM_EXIT_PROBED;
    }
    if ((rc = rm_world_spec_open(&world, &experiment->world, experiment->seed, &error)) < 0)
        return answer(refusal(rc, &error));
    rc = options->describe ? 0 : rm_world_check_evaluation(experiment, world.spec, &error);
    char *text = rc < 0 ? refusal(rc, &error) : rm_described_write(&world.world, world.spec);
    rm_world_spec_close(&world);
    return answer(text);
}

/* Checkpoints are all that it writes, into folders that the daemon makes. */
static const char *written_below(const struct options *options)
{
    static char path[PATH_MAX];
    const char *directory = options->directory;
    if (!directory || snprintf(path, sizeof path, "%s/checkpoints", directory) >= (int)sizeof path)
        return NULL;
    return access(path, F_OK) == 0 ? path : NULL;
}

int main(int argc, char **argv)
{
    static struct rm_experiment experiment;
    static struct rm_plan plan;
    static struct rm_session session;
    struct options options = {0};
    struct rm_error error = {""};
    char name[16];
    int rc = parse(argc, argv, &options);

    if (rc >= 0)
        return rc;
    if (options.probe)
        return probe(&experiment, &options);
    if ((rc = rm_watch_install("ringmaster-actor", &error)) < 0 ||
        (rc = rm_session_read_config(&experiment, &error)) < 0 ||
        (rc = rm_sandbox_enter(&experiment, written_below(&options), &error)) < 0 ||
        (rc = rm_plan_make(&plan, &experiment, &error)) < 0)
        return failed(NULL, rc, &error);
    rm_python_place(&experiment, options.directory);
    if (options.actor)
        rm_python_lengthen(&experiment);
    if (options.actor && options.index >= experiment.actor.count) {
        rm_fail(&error, -EINVAL, "--actor %u: must be 0..%u", options.index,
                experiment.actor.count - 1);
        failed(NULL, -EINVAL, &error);
        return RM_EXIT_USAGE;
    }
    const struct rm_objects objects = {.policies = plan.policies,
                                       .actors = rm_actor_processes(&experiment)};
    const uint32_t worker = options.evaluator ? rm_worker_evaluator(&objects)
                                              : rm_worker_actor(&objects, options.index);
    if ((rc = rm_session_attach_as(&session, &experiment, &plan,
                                   options.evaluator ? RM_ROLE_EVALUATOR : RM_ROLE_ACTOR, worker,
                                   &error)) < 0)
        return failed(NULL, rc, &error);
    rm_session_place(&session, options.directory, options.resume);
    rm_watch_set_slot(&session.board.workers[worker], session.wake_fds[session.objects.workers]);
    snprintf(name, sizeof name, "rm-%.12s", session.board.workers[worker].name);
    prctl(PR_SET_NAME, name);
    if (experiment.actor.pin && options.actor)
        pin(worker);
    rc = run(&session, &options, worker, &error);
    rm_watch_set_slot(NULL, -1);
    rm_session_close(&session);
    return rc;
}
