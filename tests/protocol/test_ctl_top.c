/* `ringctl top` on a terminal of its own: what appears on it, which keys do what, how it ends. */
#include "tests/support/fake_experiment.h"
#include "tests/support/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <jansson.h>

#include <cmocka.h>

#define PATIENCE_MS 240000 /* for what must come */

struct terminal {
    int fd;
    pid_t pid;
    size_t used;
    char seen[1 << 20]; /* all that was written, escape sequences included */
};

static struct terminal terminal;

/* `rollout` of the first policy, or NULL. */
static char *status_rule_of(json_t *rollout)
{
    json_t *status = json_load_file("tests/support/status_reply.json", 0, NULL);
    assert_non_null(status);
    if (rollout)
        json_object_set_new(json_array_get(json_object_get(status, "policies"), 0), "rollout",
                            rollout);
    char *text = json_dumps(status, JSON_COMPACT), *line = NULL;
    assert_true(asprintf(&line, "{\"return\":%s,\"id\":$id}\n", text) > 0);
    free(text);
    json_decref(status);
    return line;
}

static char *status_rule(void)
{
    return status_rule_of(NULL);
}

static void start_wide(const char *type, unsigned short columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    char path[1024];
    rm_program_path(path, sizeof path, "ringctl");
    memset(&terminal, 0, sizeof terminal);
    terminal.pid = forkpty(&terminal.fd, NULL, NULL, &size);
    assert_true(terminal.pid >= 0);
    if (terminal.pid == 0) {
        setenv("TERM", type, 1);
        execl(path, "ringctl", "top", (char *)NULL);
        _exit(127);
    }
}

static void start(const char *type)
{
    start_wide(type, 110);
}

/* Reads until `text` has been written since the last call that found something. */
static void await(const char *text)
{
    for (;;) {
        char *found = strstr(terminal.seen, text);
        if (found) {
            size_t taken = (size_t)(found - terminal.seen) + strlen(text);
            terminal.used -= taken;
            memmove(terminal.seen, terminal.seen + taken, terminal.used + 1);
            return;
        }
        struct pollfd p = {.fd = terminal.fd, .events = POLLIN};
        ssize_t n = -1;
        if (poll(&p, 1, PATIENCE_MS) > 0)
            n = read(terminal.fd, terminal.seen + terminal.used,
                     sizeof terminal.seen - 1 - terminal.used);
        if (n <= 0) {
            kill(terminal.pid, SIGKILL);
            waitpid(terminal.pid, NULL, 0);
            fail_msg("\"%s\" did not appear; this did:\n%s", text, terminal.seen);
        }
        for (ssize_t i = 0; i < n; i++) /* a NUL would hide what follows it */
            if (terminal.seen[terminal.used + (size_t)i] == '\0')
                terminal.seen[terminal.used + (size_t)i] = ' ';
        terminal.used += (size_t)n;
        terminal.seen[terminal.used] = '\0';
    }
}

static void type(const char *keys)
{
    assert_int_equal(write(terminal.fd, keys, strlen(keys)), strlen(keys));
}

/* Waits for the program's end, reading on so that it cannot block; returns its exit code. */
static int finish(void)
{
    char rest[4096];
    int status = 0;
    while (read(terminal.fd, rest, sizeof rest) > 0)
        ;
    assert_int_equal(waitpid(terminal.pid, &status, 0), terminal.pid);
    close(terminal.fd);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* What does not fit is left out whole: neither half a number nor a title of none. */
static void on_80_columns_every_number_is_whole(void **state)
{
    char *line = status_rule();
    const struct rm_fake_rule rules[] = {{"status", line, false}, {NULL, NULL, false}};
    struct rm_fake fake;
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "hunt", NULL, rules), 0);
    start_wide("vt100", 80);
    await("greedy 505.5 +- 11.25");
    await("      LOSS");
    await("   10.7k");
    await("   0.0421");
    type("q");
    assert_int_equal(finish(), 0);
    assert_null(strstr(terminal.seen, "random play"));
    rm_fake_stop(&fake);
    free(line);
}

static void it_shows_and_obeys(void **state)
{
    char *line = status_rule();
    const struct rm_fake_rule rules[] = {
        {"status", line, false},
        {"pause", "{\"return\":{\"state\":\"paused\"},\"id\":$id}\n", false},
        {"evaluate",
         "{\"error\":{\"class\":\"not-now\",\"desc\":\"the run is ending\"},\"id\":$id}\n", false},
        {NULL, NULL, false}};
    struct rm_fake fake;
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "hunt", NULL, rules), 0);
    start("vt100");
    await("treasurehunt");
    await("running");
    await("43.2%");
    await("agent_1");
    await("actor-0");
    await("eeii"); /* a bar: environment, then inference */
    await("exit code 1: no such file");
    await("inference");
    type("s");
    await("work");
    type("p");
    await("paused");
    type("e");
    await("not-now: the run is ending");
    type("?");
    await("transitions sampled per transition inserted");
    type("?q");
    assert_int_equal(finish(), 0);
    rm_fake_stop(&fake);
    free(line);
}

static void it_shows_rollouts_where_there_is_no_replay(void **state)
{
    char *line =
        status_rule_of(json_pack("{s:i,s:f,s:f}", "count", 7, "entropy", 0.625, "kl", 0.0075));
    const struct rm_fake_rule rules[] = {{"status", line, false}, {NULL, NULL, false}};
    struct rm_fake fake;
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "hunt", NULL, rules), 0);
    start("vt100");
    await("ENTROPY");
    await("KL");
    await("0.6250");
    await("0.0075");
    type("q");
    assert_int_equal(finish(), 0);
    rm_fake_stop(&fake);
    free(line);
}

static void any_size_will_do(void **state)
{
    static const struct winsize sizes[] = {{.ws_row = 1, .ws_col = 1},
                                           {.ws_row = 3, .ws_col = 200},
                                           {.ws_row = 60, .ws_col = 8},
                                           {.ws_row = 10, .ws_col = 40},
                                           {.ws_row = 24, .ws_col = 110}};
    char *line = status_rule();
    const struct rm_fake_rule rules[] = {{"status", line, false}, {NULL, NULL, false}};
    struct rm_fake fake;
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "hunt", NULL, rules), 0);
    start("xterm-256color");
    await("treasurehunt");
    assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &(struct winsize){.ws_row = 10, .ws_col = 80}),
                     0);
    await("and 1 more: a taller terminal shows them");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &sizes[i]), 0);
        type("?j?k");
    }
    type("?");
    await("transitions sampled per transition inserted");
    type("q");
    assert_int_equal(finish(), 0);
    rm_fake_stop(&fake);
    free(line);
}

static void it_outlives_the_experiment(void **state)
{
    char *line = status_rule();
    const struct rm_fake_rule rules[] = {
        {"status", line, false}, {"pause", NULL, true}, {NULL, NULL, false}};
    struct rm_fake fake;
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "hunt", NULL, rules), 0);
    start("vt100");
    await("treasurehunt");
    type("p"); /* it hangs up */
    await("the experiment has ended; q quits");
    type("q");
    assert_int_equal(finish(), 0);
    rm_fake_stop(&fake);
    free(line);
}

static void an_unknown_terminal_is_reported(void **state)
{
    struct rm_fake fake;
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "hunt", NULL, NULL), 0);
    start("no-such-terminal");
    await("\"no-such-terminal\" is not known");
    assert_int_equal(finish(), 7);
    rm_fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_shows_and_obeys),
        cmocka_unit_test(on_80_columns_every_number_is_whole),
        cmocka_unit_test(it_shows_rollouts_where_there_is_no_replay),
        cmocka_unit_test(any_size_will_do),
        cmocka_unit_test(it_outlives_the_experiment),
        cmocka_unit_test(an_unknown_terminal_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
