/* ringmaster-solo: sequential mode. All actors, learners, the evaluator and the recorder of an
 * experiment, run in turn in one thread. It is the baseline for the speed of separate processes,
 * and easy to debug. ringmasterd starts it like any worker. */
#include "actor/actor.h"
#include "actor/worlds/bridges/python.h"
#include "actor/evaluator.h"
#include "actor/worlds/plan.h"
#include "actor/worlds/sandbox.h"
#include "actor/worlds/watch.h"
#include "learner/learner.h"
#include "learner/recorder.h"
#include "shm/atomic.h"
#include "shm/duty.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct solo {
    struct rm_session session;
    struct rm_actor **actors;
    struct rm_learner **learners;
    struct rm_evaluator *evaluator;
    struct rm_recorder *recorder;
    struct rm_duty *duties;
    size_t duty_count;
    struct rm_wake wake;
};

static int create_duties(struct solo *solo, const char *run_directory, struct rm_error *error)
{
    const struct rm_objects *o = &solo->session.objects;
    int r = 0;

    solo->actors = calloc(o->actors, sizeof(struct rm_actor *));
    solo->learners = calloc(o->policies, sizeof(struct rm_learner *));
    solo->duties = calloc(rm_worker_solo(o), sizeof *solo->duties);
    if (!solo->actors || !solo->learners || !solo->duties)
        return rm_fail(error, -ENOMEM, "no memory for %u duties", rm_worker_solo(o));
    for (uint32_t i = 0; r == 0 && i < o->policies; i++)
        r = rm_learner_create(&solo->learners[i], &solo->session, i, run_directory,
                              &solo->duties[solo->duty_count++], error);
    for (uint32_t i = 0; r == 0 && i < o->actors; i++)
        r = rm_actor_create(&solo->actors[i], &solo->session, i, &solo->duties[solo->duty_count++],
                            error);
    if (r == 0)
        r = rm_evaluator_create(&solo->evaluator, &solo->session, &solo->duties[solo->duty_count++],
                                error);
    if (r == 0 && o->recorders)
        r = rm_recorder_create(&solo->recorder, &solo->session, &solo->duties[solo->duty_count++],
                               error);
    return r;
}

static void destroy(struct solo *solo)
{
    for (uint32_t i = 0; solo->actors && i < solo->session.objects.actors; i++)
        rm_actor_destroy(solo->actors[i]);
    for (uint32_t i = 0; solo->learners && i < solo->session.objects.policies; i++)
        rm_learner_destroy(solo->learners[i]);
    rm_evaluator_destroy(solo->evaluator);
    rm_recorder_destroy(solo->recorder);
    free(solo->actors);
    free(solo->learners);
    free(solo->duties);
    rm_session_close(&solo->session);
}

static int run(const char *run_directory, const char *resume, const char *newest, int parent,
               struct rm_error *error)
{
    static struct solo solo;
    static struct rm_experiment experiment;
    static struct rm_plan plan;
    int r = rm_watch_install("ringmaster-solo", error);

    if (r == 0)
        r = rm_session_read_config(&experiment, error);
    if (r == 0) /* with what it writes itself: policies and checkpoints */
        r = rm_sandbox_enter(&experiment, run_directory[0] ? run_directory : NULL, error);
    rm_python_place(&experiment, run_directory[0] ? run_directory : NULL);
    rm_python_lengthen(&experiment);
    if (r == 0)
        r = rm_plan_make(&plan, &experiment, error);
    if (r == 0)
        r = rm_session_attach_as(&solo.session, &experiment, &plan, RM_ROLE_SOLO, 0, error);
    if (r < 0)
        return RM_EXIT_NEVER;
    uint32_t self = rm_worker_solo(&solo.session.objects);
    if (self >= solo.session.objects.workers) {
        rm_fail(error, -EINVAL, "mode must be \"sequential\" for ringmaster-solo");
        destroy(&solo);
        return RM_EXIT_NEVER;
    }
    rm_watch_set_slot(&solo.session.board.workers[self],
                      solo.session.wake_fds[solo.session.objects.workers]);
    rm_session_place(&solo.session, run_directory, resume);
    rm_session_place_newest(&solo.session, newest);
    solo.wake = rm_session_wake(&solo.session, self);
    r = rm_duty_signals(&solo.wake, parent, error);
    if (r == 0)
        r = create_duties(&solo, run_directory, error);
    struct rm_board_worker *slot = &solo.session.board.workers[self];
    if (r == 0) {
        RM_RAISE(&slot->state, RM_WORKER_WAITING); /* the duties' own slots tell what goes on */
        for (size_t i = 0; i < solo.duty_count; i++)
            solo.duties[i].lingers = parent && experiment.checkpoint.at_end;
        r = rm_duty_run_in_turn(solo.duties, solo.duty_count, error);
        if (solo.recorder)
            rm_recorder_finish(solo.recorder);
        /* Stopped before their end, they have not written what they learned. */
        for (uint32_t i = 0; r == RM_EXIT_OK && i < solo.session.objects.policies; i++)
            if (rm_learner_save(solo.learners[i], error) < 0)
                r = RM_EXIT_FAILED;
        for (uint32_t i = 0; r == RM_EXIT_FAILED && i < solo.session.objects.policies; i++)
            if (rm_learner_device_failed(solo.learners[i]))
                return RM_EXIT_CUDA; /* its context is lost: nothing of it can be taken down */
    } else {
        r = rm_learner_exit(r, resume);
    }
    if (r != RM_EXIT_OK)
        rm_duty_failed(slot, error);
    else
        RM_RAISE(&slot->state, RM_WORKER_DONE);
    rm_watch_set_slot(NULL, -1);
    destroy(&solo);
    return r;
}

static void usage(FILE *out)
{
    fputs(
        "usage: ringmaster-solo --run-directory DIR [--resume DIR | --newest DIR] [--parent PID]\n"
        "\n"
        "Runs all duties of an experiment in turn in one process (mode \"sequential\").\n"
        "Started by ringmasterd, which passes the shared objects as descriptors.\n"
        "\n"
        "  --run-directory DIR  where policies/ and checkpoints/ are written\n"
        "  --resume DIR         a checkpoint: load the state of all duties from it\n"
        "  --newest DIR         a checkpoint: after a death, load its optimizers\n"
        "  --parent PID         exit when this process, its parent, has ended\n"
        "  --help, --version\n",
        out);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"run-directory", required_argument, NULL, 'r'},
        {"resume", required_argument, NULL, 'R'},
        {"newest", required_argument, NULL, 'n'},
        {"parent", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    const char *run_directory = "", *resume = NULL, *newest = NULL;
    struct rm_error error = {""};
    int parent = 0, c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'r')
            run_directory = optarg;
        else if (c == 'R')
            resume = optarg;
        else if (c == 'n')
            newest = optarg;
        else if (c == 'p')
            parent = atoi(optarg);
        else if (c == 'h')
            return usage(stdout), RM_EXIT_OK;
        else if (c == 'v')
            return puts("ringmaster-solo " RM_VERSION), RM_EXIT_OK;
        else
            return usage(stderr), RM_EXIT_USAGE;
    }
    int r = run(run_directory, resume, newest, parent, &error);
    if (r != RM_EXIT_OK)
        fprintf(stderr, "ringmaster-solo: %s\n", error.text);
    return r;
}
