/* ringctl and ringmasterd with each other: that the one asks and reads as the other answers. */
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/snapshot.h"
#include "tests/support/daemon.h"
#include "tests/support/fake_worker.h"
#include "tests/support/program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct rm_test_daemon d;
static struct rm_program program;
static int fd = -1;

static const char config[] =
    "{\"name\":\"both\",\"seed\":7,\"mode\":\"free\",\"run\":{\"steps\":0},"
    "\"world\":{\"name\":\"count\"},\"actor\":{\"count\":2,\"worlds\":4},"
    "\"ring\":{\"capacity\":4096},\"sample\":{\"batch\":16,\"min_fill\":64},"
    "\"algorithm\":{\"name\":\"dqn\"},"
    "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":16},{\"type\":\"relu\"}]},"
    "\"metrics\":{\"interval_s\":0.1},\"supervisor\":{\"stop_grace_s\":1}}";

static int start(void **state)
{
    (void)state;
    if (rm_test_daemon_home(&d, "both", config) < 0 || rm_test_daemon_start(&d, NULL, true, 0) < 0)
        return -1;
    fd = rm_test_connect(&d);
    return fd >= 0 && rm_test_until_text(fd, "state", "running") ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    close(fd);
    rm_test_daemon_end(&d);
    return 0;
}

/* Runs a subcommand on that daemon; returns its exit code. */
static int ctl(const char *command, const char *a, const char *b)
{
    const char *argv[] = {"ringctl", command, "--socket", d.socket, a, b, NULL};
    if (!a)
        argv[4] = NULL;
    assert_int_equal(rm_program_run(&program, argv), 0);
    return program.code;
}

static json_t *printed(void)
{
    json_t *value = json_loads(program.out, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    return value;
}

/* A renamed member would leave a column of dashes that nobody misses. */
static void every_number_of_a_status_is_found(void **state)
{
    struct rm_snapshot *s = malloc(sizeof *s);
    (void)state;
    assert_non_null(s);
    assert_true(rm_test_until_at_least(fd, "score.episodes", 1));
    assert_int_equal(ctl("status", "--json", NULL), 0);
    json_t *reply = printed();
    rm_snapshot_read(s, reply);
    assert_string_equal(s->name, "both");
    assert_string_equal(s->state, "running");
    assert_string_equal(s->mode, "free");
    assert_int_not_equal(s->directory[0], '\0');
    const double run[] = {s->pid,         s->uptime_s,      s->steps,    s->steps_budget,
                          s->steps_per_s, s->updates_per_s, s->episodes, s->score_first,
                          s->score_last,  s->evaluations};
    for (size_t i = 0; i < sizeof run / sizeof run[0]; i++)
        assert_false(isnan(run[i]));
    assert_int_equal(s->agents, 1);
    assert_string_equal(s->agent[0].policy, s->policy[0].name);
    assert_false(isnan(s->agent[0].episodes) || isnan(s->agent[0].last));
    assert_int_equal(s->policies, 1);
    const struct rm_snapshot_policy *p = &s->policy[0];
    assert_false(isnan(p->env_steps) || isnan(p->updates) || isnan(p->updates_skipped) ||
                 isnan(p->published) || isnan(p->replay_fill) || isnan(p->replay_ratio) ||
                 isnan(p->lag_max) || isnan(p->learning_rate) || isnan(p->epsilon));
    assert_int_equal(s->workers, 4);
    for (unsigned i = 0; i < s->workers; i++) {
        const struct rm_snapshot_worker *w = &s->worker[i];
        assert_true(w->role[0] && w->state[0] && w->supervised[0]);
        assert_false(isnan(w->pid) || isnan(w->generation) || isnan(w->deaths) ||
                     isnan(w->rss_bytes) || isnan(w->booked_s));
        for (int phase = 0; phase < RM_PHASE_COUNT; phase++)
            assert_false(isnan(w->phase[phase]));
    }
    json_decref(reply);
    free(s);
}

static char page[65536];

/* Member names of a reply, at all levels, are on the page. */
static void check_members(json_t *value)
{
    const char *key;
    json_t *member;
    size_t index;
    json_object_foreach(value, key, member)
    {
        char name[128];
        snprintf(name, sizeof name, "`%s`", key);
        if (!strstr(page, name))
            fail_msg("docs/control.md does not have %s", name);
        /* Members of these are phases' names, and what the world has named. */
        if (strcmp(key, "phases") != 0 && strcmp(key, "figures") != 0)
            check_members(member);
    }
    json_array_foreach(value, index, member)
    {
        check_members(member);
    }
}

static void a_status_is_as_documented(void **state)
{
    (void)state;
    FILE *in = fopen("docs/control.md", "r");
    assert_non_null(in);
    page[fread(page, 1, sizeof page - 1, in)] = '\0';
    fclose(in);
    assert_int_equal(ctl("status", "--json", NULL), 0);
    json_t *reply = printed();
    check_members(reply);
    json_decref(reply);
}

static void pages_for_people_are_not_empty(void **state)
{
    static const char *const expected[][2] = {
        {"status", "WORKER"}, {"metrics", "env_steps"}, {"query-schema", "query-schema"}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_int_equal(ctl(expected[i][0], NULL, NULL), 0);
        assert_non_null(strstr(program.out, expected[i][1]));
    }
}

static void keys_are_read_and_set(void **state)
{
    (void)state;
    assert_int_equal(ctl("set", "optimizer.learning_rate=0.002", NULL), 0);
    assert_non_null(strstr(program.out, "-> 0.002"));
    assert_int_equal(ctl("get", "optimizer.learning_rate", NULL), 0);
    assert_string_equal(program.out, "0.002\n");
    assert_int_equal(ctl("get", "optimizer", NULL), 0);
    json_t *group = printed();
    assert_true(json_number_value(json_object_get(group, "learning_rate")) == 0.002);
    json_decref(group);
    assert_int_equal(ctl("set", "sample.batch=32", NULL), RM_CTL_REFUSED);
    assert_non_null(strstr(program.err, "sample.batch"));
    assert_int_equal(ctl("set", "optimizer.learning_rate=-1", NULL), RM_CTL_REFUSED);
    assert_int_equal(ctl("get", "optimiser", NULL), RM_CTL_REFUSED);
    assert_non_null(strstr(program.err, "optimizer"));
    assert_int_equal(ctl("evaluate", "--episodes", "10000000"), RM_CTL_REFUSED);
}

static void it_pauses_resumes_and_stops(void **state)
{
    (void)state;
    assert_int_equal(ctl("pause", NULL, NULL), 0);
    assert_string_equal(program.out, "paused\n");
    assert_int_equal(ctl("resume", NULL, NULL), 0);
    assert_string_equal(program.out, "running\n");
    assert_int_equal(ctl("checkpoint", NULL, NULL), 0);
    assert_int_equal(ctl("stop", "--wait", NULL), 0);
    assert_int_equal(rm_test_daemon_wait(&d, 0), 0); /* gone already */
    assert_int_equal(ctl("status", NULL, NULL), RM_CTL_NO_EXPERIMENT);
}

int main(int argc, char **argv)
{
    int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_a_status_is_found),
        cmocka_unit_test(a_status_is_as_documented),
        cmocka_unit_test(pages_for_people_are_not_empty),
        cmocka_unit_test(keys_are_read_and_set),
        cmocka_unit_test(it_pauses_resumes_and_stops),
    };
    return cmocka_run_group_tests(tests, start, end);
}
