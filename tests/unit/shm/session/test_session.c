/* A session has the shape its experiment implies, and a second process sees the same. */
#include "shm/layout.h"
#include "tests/support/session.h"

#include "actor/worlds/plan.h"
#include "config/config.h"
#include "learner/net/net.h"
#include "shm/duty.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const hunt[] = {"actor.count=2", "actor.worlds=5", NULL};

static void worlds_are_split_without_gap(void **state)
{
    struct rm_experiment e;
    (void)state;

    memset(&e, 0, sizeof e);
    for (e.actor.count = 1; e.actor.count <= 7; e.actor.count++)
        for (e.actor.worlds = e.actor.count; e.actor.worlds < 20; e.actor.worlds++) {
            uint64_t next = 0;
            for (uint32_t a = 0; a < e.actor.count; a++) {
                uint64_t first;
                uint32_t count;
                rm_session_worlds(&e, a, &first, &count);
                assert_int_equal(first, next);
                assert_true(count >= 1);
                next += count;
            }
            assert_int_equal(next, e.actor.worlds);
        }
}

/* Nobody who is given the configuration can change it: not by a write, not by a mapping. */
static void the_configuration_is_decided(void **state)
{
    static struct rm_session s;
    char path[32];
    (void)state;

    assert_int_equal(rm_test_session_file(&s, "config/treasurehunt.json", hunt), 0);
    const int fd = s.config.fd;
    assert_true(rm_region_frozen(fd));
    assert_int_equal(pwrite(fd, "x", 1, 200), -1);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int again = open(path, O_RDWR);
    assert_int_equal(pwrite(again, "x", 1, 200), -1);
    assert_int_equal(mprotect(s.config.base, 4096, PROT_READ | PROT_WRITE), -1);
    close(again);
    rm_session_close(&s);
}

/* A worker that was given a text that somebody can still write. */
static void a_text_that_is_not_sealed_is_refused(void **state)
{
    static struct rm_session s;
    static struct rm_experiment experiment;
    struct rm_error error = {""};
    int status;
    (void)state;
    assert_int_equal(rm_test_session_file(&s, "config/treasurehunt.json", hunt), 0);
    const pid_t child = fork();
    if (child == 0) {
        const int copy = memfd_create("config", MFD_ALLOW_SEALING);
        if (copy < 0 || ftruncate(copy, (off_t)s.config.bytes) < 0 ||
            pwrite(copy, s.config.base, s.config.bytes, 0) != (ssize_t)s.config.bytes ||
            fcntl(copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0 ||
            dup2(copy, RM_FD_CONFIG) < 0)
            _exit(2);
        const int rc = rm_session_read_config(&experiment, &error);
        _exit(rc == -EPROTO && strstr(error.text, "is not sealed against writing") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rm_session_close(&s);
}

static void shape_follows_experiment(void **state)
{
    static struct rm_session s;
    (void)state;

    assert_int_equal(rm_test_session_file(&s, "config/treasurehunt.json", hunt), 0);
    assert_int_equal(s.objects.policies, 5);
    assert_int_equal(s.objects.workers, 2 + 5 + 1);
    assert_int_equal(s.plan.phases, 5);
    assert_int_equal(s.plan.policy[3].inputs, 625);
    assert_int_equal(s.plan.policy[3].param_count, 300760);
    assert_int_equal(s.plan.policy[3].act_count, 236755);
    assert_int_equal(rm_session_ring(&s, 0, 4)->spec.lanes, 3);
    assert_int_equal(rm_session_ring(&s, 1, 4)->spec.lanes, 2);
    assert_string_equal(s.board.workers[0].name, "actor-0");
    assert_string_equal(s.board.workers[2].name, "learner-agent_0");
    assert_string_equal(s.board.workers[7].name, "evaluator");
    assert_int_equal(s.board.run->settings_version, 1);
    assert_null(s.priorities);
    rm_session_close(&s);
    static const char *const set[] = {"priority.kind=proportional", "actor.worlds=5", NULL};
    assert_int_equal(rm_test_session_file(&s, "config/cartpole-dqn.json", set), 0);
    assert_int_equal(s.objects.priorities, 1);
    assert_int_equal(s.priorities[0].spec.slots, 10000);
    assert_int_equal(s.priorities[0].spec.lanes, 5);
    rm_session_close(&s);
}

/* Moves the session's descriptors to where a worker finds them, and attaches there. */
static int attach_as_worker(struct rm_session *creator)
{
    static struct rm_experiment experiment;
    static struct rm_plan plan;
    static struct rm_session worker;
    struct rm_error error = {""};
    int fds[64], high[64];
    uint32_t n = rm_session_fds(creator, fds, 64);

    for (uint32_t i = 0; i < n; i++)
        high[i] = fcntl(fds[i], F_DUPFD, 300);
    for (uint32_t i = 0; i < n; i++)
        dup2(high[i], RM_FD_BOARD + (int)i);
    int r = rm_session_read_config(&experiment, &error);
    if (r == 0)
        r = rm_plan_make(&plan, &experiment, &error);
    if (r == 0)
        r = rm_session_attach(&worker, &experiment, &plan, &error);
    if (r < 0) {
        fprintf(stderr, "worker: %s\n", error.text);
        return 10;
    }
    if (experiment.actor.worlds != 5)
        return 11;
    if (worker.objects.policies == 5 && worker.rings[9].spec.lanes != 2)
        return 12;
    if (worker.priorities && worker.priorities[0].level[0][17] != 0.5)
        return 13;
    worker.board.workers[0].turns = 4711;
    struct rm_wake wake = rm_session_wake(&worker, worker.objects.workers > 3 ? 3 : 0);
    rm_wake_force(&wake);
    rm_session_close(&worker);
    return 0;
}

static void another_process_attaches(void **state)
{
    static struct rm_session s;
    int status;
    (void)state;

    assert_int_equal(rm_test_session_file(&s, "config/treasurehunt.json", hunt), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(attach_as_worker(&s));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(s.board.workers[0].turns, 4711);
    struct rm_wake wake = rm_session_wake(&s, 3);
    rm_wake_prepare(&wake);
    assert_int_equal(rm_wake_wait(&wake, 1000000000ull), 1);
    rm_session_close(&s);
}

/* A stop may come while a worker leaves: nothing that has gone is touched. */
static void a_stop_after_the_end_wakes_nobody(void **state)
{
    static struct rm_session s;
    struct rm_error error = {""};
    int status = 0;
    (void)state;
    assert_int_equal(rm_test_session_file(&s, "config/treasurehunt.json", hunt), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct rm_wake wake = rm_session_wake(&s, 3);
        int bad = rm_duty_signals(&wake, 0, &error) < 0;
        memset(&wake, 0, sizeof wake);
        bad |= raise(SIGTERM);
        rm_session_close(&s);
        bad |= raise(SIGTERM);
        _exit(bad);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rm_session_close(&s);
}

static bool writable(void *word)
{
    const int fd = open("/dev/zero", O_RDONLY);
    char kept[8];
    memcpy(kept, word, sizeof kept);
    /* The kernel says so instead of a signal. */
    const bool can = read(fd, word, sizeof kept) == (ssize_t)sizeof kept;
    if (can)
        memcpy(word, kept, sizeof kept);
    close(fd);
    return can;
}

/* Which words of a session a process has writable in its role, and that it can make none so. */
static int look_as(struct rm_session *creator, enum rm_role role, uint32_t index)
{
    static struct rm_experiment experiment;
    static struct rm_plan plan;
    static struct rm_session s;
    struct rm_error error = {""};
    int fds[64], high[64];
    const uint32_t n = rm_session_fds(creator, fds, 64);
    for (uint32_t i = 0; i < n; i++)
        high[i] = fcntl(fds[i], F_DUPFD, 300);
    for (uint32_t i = 0; i < n; i++)
        dup2(high[i], RM_FD_BOARD + (int)i);
    closefrom(300);
    if (rm_session_read_config(&experiment, &error) < 0 ||
        rm_plan_make(&plan, &experiment, &error) < 0 ||
        rm_session_attach_as(&s, &experiment, &plan, role, index, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 9;
    }
    const bool acts = role == RM_ROLE_ACTOR, solo = role == RM_ROLE_SOLO;
    const struct rm_board_view *b = &s.board;
    const uint32_t other = index ? 0 : 1;
    const struct {
        void *word;
        bool may;
    } words[] = {
        {b->region.base, false},
        {&b->run->policies, false},
        {&b->run->stop, false},
        {&b->run->settings[3], false},
        {&b->run->checkpoint_released, false},
        {&b->run->quarantined, false},
        {&b->run->evaluations, !acts},
        {&b->run->scores.episodes, role != RM_ROLE_EVALUATOR},
        {&b->round->participants, false},
        {&b->round->current, role != RM_ROLE_EVALUATOR},
        {b->policies[2].name, false},
        {&b->policies[2].limiter.sampled, solo},
        {&b->policies[2].limiter.max_error, solo},
        {&b->policies[2].limiter.inserted, role != RM_ROLE_EVALUATOR},
        {&b->policies[2].epsilon, role != RM_ROLE_EVALUATOR},
        {&b->policies[2].updates, solo},
        {&b->policies[2].reward_scale, solo},
        {&b->policies[2].eval_version, !acts},
        {b->agents[1].name, false},
        {&b->agents[1].scores.last[99], role != RM_ROLE_EVALUATOR},
        {&b->agents[1].eval_stderr, !acts},
        {&b->workers[index].pid, false},
        {b->workers[index].name, false},
        {&b->workers[index].state, true},
        {b->workers[index].error, true},
        {&b->workers[index].wake.sleeping, true},
        {&b->workers[other].role, false},
        {&b->workers[other].heartbeat_ns, solo},
        {&b->workers[other].wake.sleeping, role != RM_ROLE_EVALUATOR},
        {s.weights[1].region.base, solo},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (writable(words[i].word) != words[i].may)
            return 10 + (int)i;
        uint8_t *word = words[i].word, *page = word - (uintptr_t)word % 4096;
        if (!words[i].may && mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0)
            return 50 + (int)i;
    }
    for (uint32_t a = 0; a < 2; a++) {
        void *ring = rm_session_ring(&s, a, 3)->region.base;
        if ((ring != NULL) != (solo || (acts && a == index)) || (ring && !writable(ring)))
            return 90 + (int)a;
    }
    /* No way back by a descriptor. */
    for (int fd = RM_FD_BOARD; fd < 300; fd++)
        if (fcntl(fd, F_GET_SEALS) >= 0)
            return 100;
    return 0;
}

static void whoever_runs_a_world_writes_its_own_alone(void **state)
{
    static const struct {
        enum rm_role role;
        uint32_t index;
    } cases[] = {{RM_ROLE_ACTOR, 0}, {RM_ROLE_ACTOR, 1}, {RM_ROLE_EVALUATOR, 7}, {RM_ROLE_SOLO, 0}};
    static struct rm_session s;
    (void)state;
    assert_int_equal(rm_test_session_file(&s, "config/treasurehunt.json", hunt), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status;
        const pid_t child = fork();
        if (child == 0)
            _exit(look_as(&s, cases[i].role, cases[i].index));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    rm_session_close(&s);
}

/* As large as it was made, and with a head that its actor has spoiled. */
static void a_damaged_ring_names_its_actor(void **state)
{
    static struct rm_session s;
    static struct rm_ring_shared whole;
    (void)state;
    assert_int_equal(rm_test_session_file(&s, "config/treasurehunt.json", hunt), 0);
    struct rm_ring_shared *ring = s.rings[7].shared;
    memcpy(&whole, ring, sizeof whole);
    for (int spoiled = 0; spoiled < 5; spoiled++) {
        char words[1024] = "";
        int status, ends[2];
        memcpy(ring, &whole, sizeof whole);
        if (spoiled == 0)
            ring->spec.mode = RM_RING_ROLLOUT;
        else if (spoiled == 1)
            memset(&ring->header.version, 0, sizeof ring->header.version);
        else if (spoiled == 2)
            memset(&ring->header, 0, sizeof ring->header);
        else if (spoiled == 3)
            ring->header.bytes++;
        else
            ring->spec.lanes = 0;
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDERR_FILENO);
            _exit(attach_as_worker(&s));
        }
        close(ends[1]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(read(ends[0], words, sizeof words - 1) >= 0);
        close(ends[0]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 10);
        if (!strstr(words, "the ring for policy ") || !strstr(words, " was damaged by actor-1: "))
            fail_msg("spoiled %d: %s", spoiled, words);
    }
    rm_session_close(&s);
}

static void another_process_finds_the_priorities(void **state)
{
    static const char *const set[] = {"priority.kind=proportional", "actor.worlds=5", NULL};
    static struct rm_session s;
    int status;
    (void)state;

    assert_int_equal(rm_test_session_file(&s, "config/cartpole-dqn.json", set), 0);
    s.priorities[0].level[0][17] = 0.5;
    pid_t child = fork();
    if (child == 0)
        _exit(attach_as_worker(&s));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    rm_session_close(&s);
}

static void plan_refuses_wrong_maps(void **state)
{
    static struct rm_experiment e;
    static struct rm_plan plan;
    struct rm_error error = {""};
    struct rm_override map = {"policy.map=[0,1,2]"};
    (void)state;

    int r = rm_config_load(&e, "config/treasurehunt.json", &map, 1, &error);
    if (r == 0)
        r = rm_plan_make(&plan, &e, &error);
    assert_true(r < 0);
    assert_non_null(strstr(error.text, "policy.map"));
    map.text = "policy.map=[0,0,0,2,2]";
    r = rm_config_load(&e, "config/treasurehunt.json", &map, 1, &error);
    if (r == 0)
        r = rm_plan_make(&plan, &e, &error);
    assert_true(r < 0);
    assert_non_null(strstr(error.text, "policy.map"));
    map.text = "policy.map=shared";
    assert_int_equal(rm_config_load(&e, "config/treasurehunt.json", &map, 1, &error), 0);
    assert_int_equal(rm_plan_make(&plan, &e, &error), 0);
    assert_int_equal(plan.policies, 1);
    assert_int_equal(plan.policy[0].agents, 5);
    assert_string_equal(plan.policy[0].name, "shared");
}

/* The networks of shipped experiments are those that their reference workloads name. */
static void plan_counts_parameters(void **state)
{
    static struct rm_experiment e;
    static struct rm_plan plan;
    static const struct {
        const char *file;
        uint64_t count;
    } rows[] = {
        {"config/prover-ppo.json", 1287937},     {"config/prover-ppo-small.json", 260033},
        {"config/platformer-c0.json", 26759},    {"config/platformer-c1.json", 26759},
        {"config/platformer-c2.json", 26759},    {"config/platformer-c3.json", 26759},
        {"config/platformer-sg-c0.json", 40743}, {"config/goodhart-ppo.json", 4027241},
    };
    struct rm_error error = {""};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(rm_config_load(&e, rows[i].file, NULL, 0, &error), 0);
        assert_int_equal(rm_plan_make(&plan, &e, &error), 0);
        assert_int_equal(plan.policy[0].param_count, rows[i].count);
    }
}

/* The platformer's attention: what reads the graph, with its last layer, and all before the heads.
 */
static void graph_reader_has_its_parameters(void **state)
{
    static struct rm_experiment e;
    static struct rm_plan plan;
    const struct rm_net_tensor *tensors;
    struct rm_error error = {""};
    struct rm_net *net;
    size_t graph = 0, all = 0;
    (void)state;
    assert_int_equal(rm_config_load(&e, "config/platformer-gat.json", NULL, 0, &error), 0);
    assert_int_equal(rm_plan_make(&plan, &e, &error), 0);
    assert_int_equal(rm_net_compile(&net, &e.network, &plan.policy[0].shape, &error), 0);
    for (size_t i = rm_net_tensors(net, &tensors); i-- > 0;) {
        size_t floats = 1;
        for (uint32_t d = 0; d < tensors[i].dims; d++)
            floats *= tensors[i].shape[d];
        if (strstr(tensors[i].name, "head."))
            continue;
        graph += strncmp(tensors[i].name, "inputs.graph.", strlen("inputs.graph.")) ? 0 : floats;
        all += floats;
    }
    rm_net_destroy(net);
    assert_int_equal(graph, 239232 + 256 * 256 + 256);
    assert_int_equal(all, 1320064);
}

/* Several choices a step need a policy that draws each; what learns values takes one. */
static void plan_refuses_choices_of_values(void **state)
{
    static struct rm_experiment e;
    static struct rm_plan plan;
    struct rm_error error = {""};
    const struct rm_override dqn[] = {{"world.options.choices=3"}}, one[] = {{"name=small"}},
                             ppo[] = {{"world.options.choices=3"}, {"algorithm.name=ppo"}};
    (void)state;

    assert_int_equal(rm_config_load(&e, "config/small.json", dqn, 1, &error), 0);
    assert_true(rm_plan_make(&plan, &e, &error) < 0);
    assert_non_null(strstr(error.text, "3 choices a step"));
    assert_int_equal(rm_config_load(&e, "config/small.json", one, 1, &error), 0);
    assert_int_equal(rm_plan_make(&plan, &e, &error), 0);
    assert_int_equal(plan.policy[0].action_words, 1);
    assert_int_equal(rm_config_load(&e, "config/small.json", ppo, 2, &error), 0);
    assert_int_equal(rm_plan_make(&plan, &e, &error), 0);
    assert_int_equal(plan.policy[0].action_words, 3);
}

/* Only the world knows how many agents share a policy, so the rows that they make together are
 * checked with the world's description. */
static void plan_refuses_what_learners_would_wait_for_in_vain(void **state)
{
    static struct rm_experiment e;
    static struct rm_plan plan;
    static const struct {
        const char *set[6], *words; /* NULL: sound */
    } cases[] = {
        {{"ring.capacity=48", "sample.n_step=8", "actor.worlds=4", "sample.min_fill=48",
          "sample.batch=8"},
         "ring.capacity: policy shared: 48 transitions are 1 row of 4 worlds (actor.worlds) of 8 "
         "agents"},
        {{"sample.n_step=20", "actor.worlds=8", "sample.min_fill=1000"},
         "at least 1281"}, /* one more than 20 rows of 64 lanes */
        {{"sample.n_step=20", "actor.worlds=8", "sample.min_fill=1281"}, NULL},
        {{"sample.n_step=20", "actor.worlds=8", "sample.min_fill=1000", "mode=lockstep"}, NULL},
        {{"sample.n_step=20", "actor.worlds=8", "limiter.slack_updates=336",
          "limiter.updates_per_step=0.25"},
         NULL}, /* as far as actors may be ahead: 20 rows and one more */
        {{"sample.n_step=20", "actor.worlds=8", "limiter.slack_updates=335",
          "limiter.updates_per_step=0.25"},
         "after 20 rows"},
        {{"run.steps=100", "sample.min_fill=801"}, "(run.steps) of 8 agents: nothing"},
        {{"run.steps=100", "sample.min_fill=800"}, NULL},
        {{"algorithm.name=ppo", "rollout.steps=2", "actor.worlds=4", "algorithm.minibatches=65"},
         "algorithm.minibatches: policy shared: 65 parts of a rollout of 64 rows"},
        {{"algorithm.name=ppo", "rollout.steps=2", "actor.worlds=4", "algorithm.minibatches=64"},
         NULL},
        {{"algorithm.name=r2d2", "actor.worlds=4", "sample.sequence=20", "sample.n_step=1",
          "sample.min_fill=640"},
         "sample.min_fill: policy shared: deadlock: actors would stop"},
        {{"algorithm.name=r2d2", "actor.worlds=4", "sample.sequence=20", "sample.n_step=1",
          "sample.min_fill=641"},
         NULL},
        {{"algorithm.name=r2d2", "actor.worlds=4", "sample.sequence=20", "sample.n_step=1",
          "sample.min_fill=672", "ring.capacity=1951"},
         "at least 1952"}, /* 20 + 1 + 40 rows of 32 lanes */
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rm_override set[9] = {
            {"world.options.agents=8"}, {"policy.map=shared"}, {"mode=free"}};
        struct rm_error error = {""};
        size_t n = 3;
        for (size_t k = 0; k < 6 && cases[i].set[k]; k++)
            set[n++].text = cases[i].set[k];
        int r = rm_config_load(&e, "config/small.json", set, n, &error);
        if (r == 0)
            r = rm_plan_make(&plan, &e, &error);
        if (cases[i].words ? r == 0 || !strstr(error.text, cases[i].words) : r < 0)
            fail_msg("case %zu: %d, %s", i, r, error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worlds_are_split_without_gap),
        cmocka_unit_test(the_configuration_is_decided),
        cmocka_unit_test(a_text_that_is_not_sealed_is_refused),
        cmocka_unit_test(whoever_runs_a_world_writes_its_own_alone),
        cmocka_unit_test(a_damaged_ring_names_its_actor),
        cmocka_unit_test(shape_follows_experiment),
        cmocka_unit_test(another_process_attaches),
        cmocka_unit_test(a_stop_after_the_end_wakes_nobody),
        cmocka_unit_test(another_process_finds_the_priorities),
        cmocka_unit_test(plan_refuses_wrong_maps),
        cmocka_unit_test(plan_counts_parameters),
        cmocka_unit_test(graph_reader_has_its_parameters),
        cmocka_unit_test(plan_refuses_choices_of_values),
        cmocka_unit_test(plan_refuses_what_learners_would_wait_for_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
