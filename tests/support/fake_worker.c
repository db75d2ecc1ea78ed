#include "tests/support/fake_worker.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/duty.h"
#include "shm/objects.h"
#include "shm/wake.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS_A_TURN 5

static struct rm_board_view board;
static struct rm_objects objects;
static const char *role_name;
static uint32_t me;

static bool asked(const char *behaviour)
{
    const char *list = getenv("RM_FAKE");
    char wanted[64], once[64];
    if (!list)
        return false;
    snprintf(wanted, sizeof wanted, "%s:%s", role_name, behaviour);
    snprintf(once, sizeof once, "%s:once", role_name);
    if (strstr(list, once) && RM_PEEK(&board.workers[me].generation) > 1)
        return false;
    return strstr(list, wanted) != NULL;
}

static int exit_asked(void)
{
    const char *list = getenv("RM_FAKE");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s:exit=", role_name);
    const char *at = list && asked("exit=") ? strstr(list, wanted) : NULL;
    return at ? atoi(at + strlen(wanted)) : -1;
}

static bool all_actors_done(void)
{
    for (uint32_t a = 0; a < objects.actors; a++)
        if (RM_SEE(&board.workers[a].state) != RM_WORKER_DONE)
            return false;
    return true;
}

/* For a checkpoint: it has nothing to write. */
static bool held(struct rm_board_worker *slot)
{
    uint64_t number = RM_SEE(&board.run->checkpoint_request);
    if (number <= RM_SEE(&board.run->checkpoint_released))
        return false;
    RM_RAISE(&slot->checkpoint_written, number);
    RM_RAISE(&slot->checkpoint_held, number);
    return true;
}

/* One turn; true when the share of the run is done. */
static bool act(void)
{
    struct rm_board_worker *slot = &board.workers[me];
    uint64_t budget = RM_PEEK(&board.run->env_steps_budget);
    RM_ADD_OWN(&slot->steps, STEPS_A_TURN);
    for (uint32_t p = 0; p < objects.policies; p++)
        RM_ADD(&board.policies[p].env_steps, STEPS_A_TURN);
    for (uint32_t a = 0; a < board.run->agents; a++)
        rm_scores_add(&board.agents[a].scores, 1.0 + a);
    rm_scores_add(&board.run->scores, 3.0);
    return budget && RM_PEEK(&slot->steps) * objects.actors >= budget;
}

static bool learn(void)
{
    struct rm_board_policy *policy = &board.policies[me - objects.actors];
    if (all_actors_done())
        return true;
    RM_ADD_OWN(&policy->updates, 1);
    RM_ADD_OWN(&policy->published, 1);
    RM_ADD_OWN(&policy->samples, 16);
    return false;
}

static bool evaluate(uint64_t *done)
{
    uint64_t wanted = RM_PEEK(&board.run->evaluate_request);
    if (wanted == *done)
        return false;
    *done = wanted;
    RM_POKE(&board.run->eval_score_mean, 42.0);
    RM_POKE(&board.run->eval_score_stderr, 0.5);
    bool is_short = asked("short") && RM_PEEK(&board.run->evaluations) == 0;
    RM_POKE(&board.run->eval_episodes, is_short ? 1 : RM_PEEK(&board.run->evaluate_episodes));
    for (uint32_t a = 0; a < board.run->agents; a++)
        RM_POKE(&board.agents[a].eval_mean, 21.0);
    for (uint32_t p = 0; p < objects.policies; p++)
        RM_POKE(&board.policies[p].eval_version, RM_PEEK(&board.policies[p].published));
    RM_POKE(&board.run->eval_request, wanted);
    RM_RAISE(&board.run->evaluations, RM_PEEK(&board.run->evaluations) + 1);
    rm_wake_ring(rm_fd_bell(&objects));
    return false;
}

static void rest(bool paused)
{
    struct rm_board_worker *slot = &board.workers[me];
    struct pollfd wake = {.fd = rm_fd_wake(&objects, me), .events = POLLIN};
    uint64_t count;
    bool long_rest = paused || !strcmp(role_name, "evaluator");
    RM_RAISE(&slot->state, RM_WORKER_WAITING);
    if (poll(&wake, 1, long_rest ? -1 : 1) > 0 && read(wake.fd, &count, sizeof count) < 0)
        _exit(9);
    RM_RAISE(&slot->state, RM_WORKER_BUSY);
}

static int work(void)
{
    struct rm_board_worker *slot = &board.workers[me];
    uint64_t evaluated = 0;
    bool deaf = asked("deaf");
    if (deaf)
        signal(SIGTERM, SIG_IGN);
    for (;;) {
        RM_POKE(&slot->heartbeat_ns, rm_now_ns());
        RM_RAISE(&slot->state, RM_WORKER_BUSY);
        while (asked("hang"))
            usleep(10000);
        if (RM_PEEK(&board.run->stop) && !deaf)
            return RM_EXIT_OK;
        bool paused = RM_PEEK(&board.run->pause) || held(slot);
        bool done = false;
        if (paused)
            done = false;
        else if (!strcmp(role_name, "actor"))
            done = act();
        else if (!strcmp(role_name, "learner"))
            done = learn();
        else
            evaluate(&evaluated);
        if (done) {
            RM_RAISE(&slot->state, RM_WORKER_DONE);
            return RM_EXIT_OK;
        }
        rest(paused);
    }
}

int rm_test_fake_worker(int argc, char **argv)
{
    const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    struct rm_error error = {.text = ""};
    int parent = 0;
    uint32_t index = 0;
    if (strncmp(program, "ringmaster-", 11) != 0)
        return -1;
    role_name = "evaluator";
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "0";
        if (!strcmp(argv[i], "--parent"))
            parent = atoi(value);
        if (!strcmp(argv[i], "--actor") || !strcmp(argv[i], "--policy")) {
            role_name = argv[i][2] == 'a' ? "actor" : "learner";
            index = (uint32_t)atoi(value);
        }
    }
    /* One that was held until now ends this process, as those do that come later. */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (rm_duty_signals(NULL, parent, &error) < 0)
        return RM_EXIT_FAILED;
    signal(SIGTERM, SIG_DFL);
    if (rm_board_attach(&board, RM_FD_BOARD, true, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return RM_EXIT_FAILED;
    }
    objects.policies = board.run->policies;
    objects.workers = board.run->workers;
    objects.actors = objects.workers - objects.policies - 1;
    me = !strcmp(role_name, "actor")     ? rm_worker_actor(&objects, index)
         : !strcmp(role_name, "learner") ? rm_worker_learner(&objects, index)
                                         : rm_worker_evaluator(&objects);
    RM_RAISE(&board.workers[me].state, RM_WORKER_STARTING);
    if (asked("never")) {
        snprintf(board.workers[me].error, sizeof board.workers[me].error, "made to give up");
        return RM_EXIT_NEVER;
    }
    int code = exit_asked();
    return code >= 0 ? code : work();
}
