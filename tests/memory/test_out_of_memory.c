/* Memory that runs out, at every allocation there is: for n = 1, 2, .. the n-th one fails, until
 * none does, in reading and writing configurations, in requests and replies, in commands as a
 * client gives them, in making a session and in starting a daemon. Each time what was asked for is
 * done whole or refused with words, nothing stays allocated or open, and the next attempt succeeds.
 */
#include "tests/support/config_text.h"
#include "tests/support/daemon.h"
#include "tests/memory/failing.h"
#include "tests/support/unit.h"

#include "actor/worlds/plan.h"
#include "config/config.h"
#include "config/json_memory.h"
#include "daemon/daemon.h"
#include "daemon/running.h"
#include "daemon/loop_memory.h"
#include "shm/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ATTEMPTS_MAX 100000

static const char text[] =
    "{\"name\":\"x\",\"seed\":5,\"mode\":\"lockstep\",\"run\":{\"steps\":100},"
    "\"world\":{\"name\":\"count\",\"options\":{\"agents\":2}},\"actor\":{\"count\":2,\"worlds\":2}"
    ","
    "\"algorithm\":{\"name\":\"dqn\"},\"ring\":{\"capacity\":64},"
    "\"sample\":{\"batch\":4,\"min_fill\":8},\"priority\":{\"kind\":\"proportional\"},"
    "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":4},{\"type\":\"relu\"}]}}";

static struct rm_experiment experiment;
static struct rm_plan plan;
static struct rm_test_daemon home;

/* In front of the C library's. Thousands of files are made here, and none has to outlive a power
 * failure: with the disk's own the test waits for it nearly all of its time. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}
static char file[128];

/* One thing to do. 0 with what came of it in *result (to be freed, NULL where nothing has to come
 * of it), or negative with words in *error. */
struct attempt {
    const char *name;
    int (*run)(char **result, struct rm_error *error);
    void (*before)(void); /* each time, with memory; may be NULL */
};

static unsigned open_files(void)
{
    unsigned n = 0;
    DIR *fds = opendir("/proc/self/fd");
    while (fds && readdir(fds))
        n++;
    if (fds)
        closedir(fds);
    return n;
}

/* --- configuration --------------------------------------------------------------------------- */

static int parse(char **result, struct rm_error *error)
{
    static struct rm_experiment got;
    const struct rm_override overrides[] = {{"sample.batch=8"}, {"network.layers[0].units=5"}};
    const int rc = rm_config_parse(&got, "text", text, sizeof text - 1, overrides, 2, error);
    *result = NULL;
    if (rc == 0 && (got.sample.batch != 8 || got.seed != 5 || got.actor.worlds != 2))
        fail_msg("read as something else");
    return rc;
}

static int load(char **result, struct rm_error *error)
{
    static struct rm_experiment got;
    *result = NULL;
    return rm_config_load(&got, file, NULL, 0, error);
}

static int print(char **result, struct rm_error *error)
{
    *result = rm_test_config_text(&experiment);
    return *result ? 0 : rm_fail(error, -ENOMEM, "NULL says so");
}

static int schema(char **result, struct rm_error *error)
{
    json_t *root = rm_config_schema();
    *result = rm_json_dump(root, JSON_SORT_KEYS);
    json_decref(root);
    return *result ? 0 : rm_fail(error, -ENOMEM, "NULL says so");
}

static void note(void *user, const char *path, const char *before, const char *after, bool hot)
{
    char *at = user;
    snprintf(at + strlen(at), 500 - strlen(at), "%s %s %s %d;", path, before, after, hot);
}

static int diff(char **result, struct rm_error *error)
{
    static struct rm_experiment other;
    char differences[500] = "";
    other = experiment;
    other.sample.batch += 1;
    other.seed += 1;
    const int rc = rm_config_diff(&experiment, &other, note, differences);
    if (rc < 0)
        return rm_fail(error, rc, "the number says so");
    rm_test_allocation_failed();
    *result = strdup(differences);
    return 0;
}

static int get(char **result, struct rm_error *error)
{
    json_t *value = rm_config_get(&experiment, "network", error);
    *result = rm_json_dump(value, JSON_SORT_KEYS);
    if (value && !*result)
        rm_fail(error, -ENOMEM, "NULL says so");
    json_decref(value);
    return *result ? 0 : -1;
}

static int set(char **result, struct rm_error *error)
{
    static struct rm_experiment changed;
    changed = experiment;
    json_t *value = json_integer(7);
    const int rc = value ? rm_config_set(&changed, "sample.batch", value, error)
                         : rm_fail(error, -ENOMEM, "no value");
    json_decref(value);
    *result = NULL;
    assert_int_equal(changed.sample.batch, rc ? experiment.sample.batch : 7);
    return rc;
}

/* --- protocol -------------------------------------------------------------------------------- */

static int request(char **result, struct rm_error *error)
{
    static const char line[] = "{\"execute\":\"set\",\"id\":[1,\"a\"],"
                               "\"arguments\":{\"key\":\"sample.batch\",\"value\":{\"a\":[1.5]}}}";
    struct rm_request r;
    size_t bytes;
    *result = NULL;
    int rc = rm_request_parse(&r, line, sizeof line - 1, error) == RM_REFUSED_NOT ? 0 : -1;
    if (rc == 0) {
        *result = rm_reply_line(json_incref(r.arguments), r.id, &bytes);
        if (!*result)
            rc = rm_fail(error, -ENOMEM, "NULL says so");
    }
    rm_request_free(&r);
    return rc;
}

static int refusal(char **result, struct rm_error *error)
{
    size_t bytes;
    *result = rm_refusal_line(RM_REFUSED_NOT_NOW, "later", NULL, &bytes);
    return *result ? 0 : rm_fail(error, -ENOMEM, "NULL says so");
}

static int greeting(char **result, struct rm_error *error)
{
    size_t bytes;
    *result = rm_greeting_line(&bytes);
    return *result ? 0 : rm_fail(error, -ENOMEM, "NULL says so");
}

static int event(char **result, struct rm_error *error)
{
    size_t bytes;
    *result = rm_event_line("state", 1.5, NULL, 3, &bytes);
    return *result ? 0 : rm_fail(error, -ENOMEM, "NULL says so");
}

/* --- session and start-up -------------------------------------------------------------------- */

static int make_plan(char **result, struct rm_error *error)
{
    static struct rm_plan got;
    const int rc = rm_plan_make(&got, &experiment, error);
    *result = NULL;
    if (rc == 0)
        assert_memory_equal(&got, &plan, sizeof plan);
    return rc;
}

static int session(char **result, struct rm_error *error)
{
    static struct rm_session s;
    const int rc = rm_session_create(&s, &experiment, &plan, error);
    *result = NULL;
    if (rc == 0)
        rm_session_close(&s);
    return rc;
}

static struct rm_daemon_options options(void)
{
    static char runs[128], socket_path[128];
    snprintf(runs, sizeof runs, "%s/runs", home.home);
    snprintf(socket_path, sizeof socket_path, "%s/place/x.sock", home.home);
    return (struct rm_daemon_options){.file = file, .run_directory = runs, .socket = socket_path};
}

static int check(char **result, struct rm_error *error)
{
    const struct rm_daemon_options o = options();
    *result = NULL;
    return -rm_daemon_check(&o, error);
}

static void forget_runs(void)
{
    rm_file_remove_all(options().run_directory);
}

/* Up to where workers would be started, which the environment keeps it from. */
static int start(char **result, struct rm_error *error)
{
    static const char reason[] = "RINGMASTER_LIBEXEC is too long";
    const struct rm_daemon_options o = options();
    const int code = rm_daemon_run(&o, error);
    *result = NULL;
    assert_int_equal(access(o.socket, F_OK), -1);
    if (code == RM_DAEMON_RESOURCES && strcmp(error->text, reason) == 0)
        return 0;
    assert_true(code == RM_DAEMON_RESOURCES || code == RM_DAEMON_USAGE);
    return -code;
}

/* --- commands, as a client gives them --------------------------------------------------------- */

static struct rm_daemon served;
static int client_fd, listen_fd;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static const char *asked;

static void listen_anew(void)
{
    unlink(address.sun_path);
    listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listen_fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listen_fd, 4), 0);
    client_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client_fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_true(write(client_fd, asked, strlen(asked)) > 0);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* This daemon has no run, so nothing is due by the clock, however long a conversation takes. */
static void stop_timers(void)
{
    uv_timer_stop(&served.tick);
    uv_timer_stop(&served.due);
    uv_timer_stop(&served.sample);
    uv_timer_stop(&served.checkpoint.timer);
}

/* A daemon's control socket with a client, until it has its answer or is closed. */
static int converse(char **result, struct rm_error *error)
{
    static char got[1 << 18];
    ssize_t n, used = 0;
    bool answered = false;
    *result = NULL;
    int rc = rm_control_open(&served.control, &served.loop, listen_fd, &rm_daemon_control_ops,
                             &served, error);
    for (int turn = 0; rc == 0 && turn < 50; turn++) {
        stop_timers();
        uv_run(&served.loop, UV_RUN_NOWAIT);
        rm_writer_flush(&served.files); /* what waits for the disk need not wait long */
        n = read(client_fd, got + used, sizeof got - 1 - (size_t)used);
        if (n > 0)
            used += n;
        else if (n == 0 || answered) /* and nothing comes behind the answer */
            break;
        got[used] = '\0';
        answered = strstr(got, "\"return\"") || strstr(got, "\"error\"");
    }
    got[used] = '\0';
    if (rc == 0 && strstr(got, "\"error\""))
        rc = rm_fail(error, -1, "%.200s", strstr(got, "\"error\""));
    else if (rc == 0 && !strstr(got, "\"return\""))
        rc = rm_fail(error, -1, "closed without an answer");
    rm_test_allocation_failed();
    rm_writer_close(&served.files);
    rm_control_close(served.control);
    served.control = NULL;
    close(client_fd);
    uv_walk(&served.loop, close_handle, NULL);
    uv_run(&served.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&served.loop), 0);
    return rc;
}

static void serve_anew(void)
{
    struct rm_error error;
    assert_int_equal(uv_loop_init(&served.loop), 0);
    uv_timer_init(&served.loop, &served.tick);
    uv_timer_init(&served.loop, &served.due);
    uv_timer_init(&served.loop, &served.sample);
    uv_timer_init(&served.loop, &served.checkpoint.timer);
    assert_int_equal(rm_writer_open(&served.files, &served.loop, 1 << 16, NULL, NULL, &error), 0);
    served.tick.data = served.due.data = served.sample.data = &served;
    listen_anew();
}

/* --- the loop over n ---------------------------------------------------------------------------
 */

static void every_allocation(const struct attempt *a)
{
    const char *given = getenv("RM_TEST_STRIDE"); /* not every one: for where all is slow */
    const uint64_t stride = given ? strtoull(given, NULL, 10) : 1;
    uint64_t refused = 0, n = 1;
    char *whole = NULL, *result = NULL;
    struct rm_error error = {.text = ""};
    /* Once with memory: what it comes to, and what libraries keep for ever. */
    for (int warm = 0; warm < 2; warm++) {
        free(whole);
        if (a->before)
            a->before();
        error.text[0] = '\0';
        if (a->run(&whole, &error))
            fail_msg("%s: %s", a->name, error.text);
    }
    for (bool hit = true; hit; n += stride) {
        if (a->before)
            a->before();
        error.text[0] = '\0';
        const int64_t held = rm_test_memory_held();
        const unsigned files = a->before == serve_anew ? 0 : open_files();
        rm_test_fail_allocation(n);
        int rc = a->run(&result, &error);
        hit = rm_test_allocation_failed() || rc;
        if (rc) {
            refused++;
            if (!error.text[0])
                fail_msg("%s: allocation %llu: refused without words", a->name,
                         (unsigned long long)n);
        } else if (whole && strcmp(whole, result) != 0) {
            fail_msg("%s: allocation %llu: not all of it came back: %s", a->name,
                     (unsigned long long)n, result);
        }
        if (rc == 0)
            free(result);
        if (a->before != serve_anew) {
            if (rm_test_memory_held() != held)
                fail_msg("%s: allocation %llu: %lld pieces stay", a->name, (unsigned long long)n,
                         (long long)(rm_test_memory_held() - held));
            assert_int_equal(open_files(), files);
        }
        assert_true(n < ATTEMPTS_MAX);
    }
    free(whole);
    printf("  %s: %llu allocations, %llu refused with words\n", a->name,
           (unsigned long long)(n - stride - 1), (unsigned long long)refused);
    assert_true(refused > 0);
}

static void configurations(void **state)
{
    (void)state;
    static const struct attempt attempts[] = {
        {"parse", parse, NULL},   {"load", load, NULL}, {"print", print, NULL},
        {"schema", schema, NULL}, {"diff", diff, NULL}, {"get", get, NULL},
        {"set", set, NULL},
    };
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        every_allocation(&attempts[i]);
}

static void protocol(void **state)
{
    (void)state;
    static const struct attempt attempts[] = {
        {"request and reply", request, NULL},
        {"refusal", refusal, NULL},
        {"greeting", greeting, NULL},
        {"event", event, NULL},
    };
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        every_allocation(&attempts[i]);
}

static void sessions(void **state)
{
    (void)state;
    static const struct attempt attempts[] = {{"plan", make_plan, NULL},
                                              {"session", session, NULL}};
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        every_allocation(&attempts[i]);
}

static void starting(void **state)
{
    (void)state;
    static char long_path[2 * RM_PATH_TEXT_MAX];
    memset(long_path, 'x', sizeof long_path - 1);
    setenv("RINGMASTER_LIBEXEC", long_path, 1);
    static const struct attempt attempts[] = {{"check", check, NULL},
                                              {"start", start, forget_runs}};
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        every_allocation(&attempts[i]);
    unsetenv("RINGMASTER_LIBEXEC");
}

static void commands(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"execute\":\"status\",\"id\":1}\n",
        "{\"execute\":\"metrics\",\"arguments\":{\"describe\":true}}\n",
        "{\"execute\":\"get\",\"arguments\":{\"key\":\"sample\"}}\n",
        "{\"execute\":\"set\",\"arguments\":{\"key\":\"publish.interval\",\"value\":7}}\n",
        "{\"execute\":\"set\",\"arguments\":{\"key\":\"publish.interval\",\"value\":9,"
        "\"keep\":true}}\n",
        "{\"execute\":\"set\",\"arguments\":{\"key\":\"publish.interval\",\"value\":"
        "\"default\"}}\n",
        "{\"execute\":\"query-schema\"}\n",
        "{\"execute\":\"events\"}\n",
    };
    struct rm_error error = {.text = ""};
    const struct rm_supervisor_limits limits = rm_supervisor_limits_of(&experiment);
    served.place.lock_fd = served.place.listen_fd = -1;
    served.metrics.csv_fd = served.metrics.board.fd = -1;
    served.log = (struct rm_log){.fd = -1, .echo_fd = -1};
    const struct rm_settings_spec settings = {.session = &served.session,
                                              .progress = &served.progress,
                                              .log = &served.log,
                                              .files = &served.files,
                                              .loop = &served.loop,
                                              .file = file,
                                              .ops = &rm_daemon_settings_ops,
                                              .user = &served};
    rm_settings_init(&served.settings, &settings);
    served.progress.session = &served.session;
    assert_int_equal(rm_session_create(&served.session, &experiment, &plan, &error), 0);
    assert_int_equal(rm_supervisor_init(&served.supervisor, served.session.objects.workers, &limits,
                                        &rm_daemon_supervisor_ops, &served, &error),
                     0);
    served.inspector.spec = (struct rm_inspector_spec){.session = &served.session,
                                                       .supervisor = &served.supervisor,
                                                       .log = &served.log,
                                                       .loop = &served.loop,
                                                       .stall = &served.stall,
                                                       .run_directory = home.home};
    rm_loop_memory_reserve();
    uv_loop_init(&served.loop); /* what libuv keeps from its first loop on */
    uv_loop_close(&served.loop);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/s", home.home);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const struct attempt attempt = {lines[i], converse, serve_anew};
        const int64_t held = rm_test_memory_held();
        const unsigned files = open_files();
        asked = lines[i];
        assert_int_equal(rm_kept_open(&served.settings.kept, home.home, &error), 0);
        every_allocation(&attempt);
        rm_settings_close(&served.settings);
        assert_int_equal(rm_test_memory_held(), held);
        assert_int_equal(open_files(), files);
    }
    rm_session_close(&served.session);
}

static int setup(void **state)
{
    (void)state;
    struct rm_error error;
    setenv("UV_THREADPOOL_SIZE", "1", 1); /* each start tries whether all of them can be made */
    if (rm_test_daemon_home(&home, "memory", text) < 0)
        return -1;
    snprintf(file, sizeof file, "%s/config.json", home.home);
    if (rm_config_load(&experiment, file, NULL, 0, &error) < 0 ||
        rm_plan_make(&plan, &experiment, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rm_test_daemon_end(&home);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations), cmocka_unit_test(protocol), cmocka_unit_test(sessions),
        cmocka_unit_test(starting),       cmocka_unit_test(commands),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
