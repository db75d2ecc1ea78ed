/* The live line: what it says, that it fits; and that it is redrawn in place on a terminal only. */
#include "daemon/console.h"
#include "daemon/running.h"

#include "shm/atomic.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

static struct rm_session *session;
static struct rm_progress progress;
static struct rm_supervisor supervisor;
static struct rm_world_facts world;

static int setup(void **state)
{
    (void)state;
    session = calloc(1, sizeof *session);
    struct rm_board_view *board = &session->board;
    if (!session || rm_board_create(board, 2, 2, 5, NULL) < 0)
        return -1;
    session->objects = (struct rm_objects){.policies = 2, .actors = 2, .workers = 5};
    session->plan.agents = 2;
    progress = (struct rm_progress){.session = session, .life = RM_LIFE_TRAINING};
    memset(&supervisor, 0, sizeof supervisor);
    world = (struct rm_world_facts){0};
    RM_POKE(&board->run->state, RM_RUN_RUNNING);
    RM_POKE(&board->run->env_steps_budget, 1000);
    for (int w = 0; w < 5; w++)
        snprintf(board->workers[w].name, RM_NAME_MAX, "worker-%d", w);
    for (int a = 0; a < 2; a++) {
        snprintf(board->agents[a].name, RM_NAME_MAX, "agent_%d", a);
        snprintf(board->policies[a].name, RM_NAME_MAX, "agent_%d", a);
        RM_POKE(&board->agents[a].policy, (uint32_t)a);
        rm_scores_add(&board->agents[a].scores, 10.0 * (a + 1));
        RM_POKE(&board->policies[a].env_steps, 400);
        RM_POKE(&board->policies[a].samples, 1000);
        RM_POKE(&board->policies[a].replay_rows, 50);
        RM_POKE(&board->policies[a].replay_capacity, 200);
        RM_POKE(&board->policies[a].lag_sum, 30);
        RM_POKE(&board->policies[a].lag_count, 20);
    }
    RM_POKE(&board->workers[0].steps, 150);
    RM_POKE(&board->workers[1].steps, 250);
    rm_rate_add(&progress.steps_rate, 1000000000ull, 0);
    rm_rate_add(&progress.steps_rate, 3000000000ull, 800);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rm_board_close(&session->board);
    free(session);
    return 0;
}

static void the_line_says_what_counts(void **state)
{
    (void)state;
    char line[512];
    rm_console_line(line, sizeof line, &progress, 500);
    /* 400 agent steps a second are 200 of each of two agents; 600 are left: 3 seconds. */
    assert_string_equal(line, "400 steps/s  [######----------]  40% 0:03 left  reward 10.00 20.00  "
                              "replay 25%  ratio 2.50  lag 1.50");
    RM_POKE(&session->board.run->state, RM_RUN_PAUSED);
    rm_console_line(line, sizeof line, &progress, 500);
    assert_int_equal(strncmp(line, "paused  ", 8), 0);
}

/* A rate of 0 and 100 % for a minute would look as if it hung. */
static void after_the_last_step_the_line_says_what_goes_on(void **state)
{
    (void)state;
    char line[512];
    session->experiment.evaluation.final_episodes = 50;
    progress.trained_ns = 1;
    rm_console_line(line, sizeof line, &progress, 500);
    assert_string_equal(line, "writing the last checkpoint  reward 10.00 20.00  replay 25%  "
                              "ratio 2.50  lag 1.50");
    progress.life = RM_LIFE_EVALUATING;
    rm_console_line(line, sizeof line, &progress, 500);
    assert_string_equal(line, "evaluating: 50 episodes of the last weights  reward 10.00 20.00  "
                              "replay 25%  ratio 2.50  lag 1.50");
    rm_console_line(line, sizeof line, &progress, 75);
    assert_string_equal(line, "evaluating: 50 episodes  reward 10 20  replay 25%  ratio 2.50  "
                              "lag 1.50");
    session->experiment.evaluation.final_episodes = 1;
    RM_POKE(&session->board.run->state, RM_RUN_PAUSED);
    rm_console_line(line, sizeof line, &progress, 500);
    assert_int_equal(strncmp(line, "paused  evaluating: 1 episode of", 32), 0);
    progress.life = RM_LIFE_STOPPING; /* it may have been stopped before its end */
    RM_POKE(&session->board.run->state, RM_RUN_STOPPING);
    rm_console_line(line, sizeof line, &progress, 500);
    assert_int_equal(strncmp(line, "stopping  400 steps/s  ", 23), 0);
}

static void rollouts_are_shown_where_there_is_no_replay(void **state)
{
    (void)state;
    struct rm_board_policy *policies = session->board.policies;
    char line[512];
    for (int p = 0; p < 2; p++)
        RM_POKE(&policies[p].replay_capacity, 0);
    RM_POKE(&policies[0].rollouts, 3);
    RM_POKE(&policies[0].entropy, 0.5);
    RM_POKE(&policies[0].kl, 0.01);
    rm_console_line(line, sizeof line, &progress, 500);
    assert_non_null(strstr(line, "  entropy 0.50  kl 0.0100  ratio")); /* the other is frozen */
    RM_POKE(&policies[1].rollouts, 3);
    RM_POKE(&policies[1].entropy, 0.25);
    rm_console_line(line, sizeof line, &progress, 500);
    assert_non_null(strstr(line, "  entropy 0.38  kl 0.0050  ratio"));
}

static void without_a_budget_steps_are_counted(void **state)
{
    (void)state;
    char line[512];
    RM_POKE(&session->board.run->env_steps_budget, 0);
    RM_POKE(&session->board.workers[0].steps, 2345678);
    rm_console_line(line, sizeof line, &progress, 500);
    assert_non_null(strstr(line, "2.35M steps"));
    assert_null(strchr(line, '['));
}

static void a_narrow_line_says_it_shorter(void **state)
{
    (void)state;
    char line[512];
    rm_console_line(line, sizeof line, &progress, 90);
    assert_string_equal(line, "400 steps/s  [###-----]  40% 0:03 left  reward 10 20  replay 25%  "
                              "ratio 2.50  lag 1.50");
    rm_console_line(line, sizeof line, &progress, 75);
    assert_string_equal(line, "400/s [##---]  40% 0:03  reward 10 20  replay 25%  ratio 2.50  "
                              "lag 1.50");
}

static void the_line_fits_any_width(void **state)
{
    (void)state;
    char line[512];
    for (unsigned width = 0; width < 300; width++) {
        size_t n = rm_console_line(line, sizeof line, &progress, width);
        assert_int_equal(n, strlen(line));
        assert_true(n <= width);
    }
    assert_true(rm_console_line(line, 10, &progress, 200) < 10);
}

/* Everything written to the terminal so far. The kernel passes it on when it likes, in pieces: what
 * was written is there when a mark written after it is. */
static const char *screen(int master, int terminal)
{
    static char text[65536];
    static const char mark = '\1';
    size_t used = 0;
    struct pollfd ready = {.fd = master, .events = POLLIN};
    assert_int_equal(write(terminal, &mark, 1), 1);
    while (used == 0 || text[used - 1] != mark) {
        assert_int_equal(poll(&ready, 1, 10000), 1);
        ssize_t n = read(master, text + used, sizeof text - 1 - used);
        assert_true(n > 0);
        used += (size_t)n;
    }
    text[used - 1] = '\0';
    return text;
}

static void a_terminal_is_redrawn_in_place(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        skip();
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    struct winsize size = {.ws_row = 24, .ws_col = 40};
    assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
    FILE *out = fdopen(terminal, "w");
    struct rm_console console;
    rm_console_open(&console, out);
    assert_true(console.terminal);
    console.last_ns = 0;
    rm_console_live(&console, &progress, 10000000000ull);
    const char *text = screen(master, terminal);
    assert_int_equal(text[0], '\r');
    assert_null(strchr(text, '\n'));
    assert_true(strlen(text) <= 1 + 39 + 3); /* return, line, clearing the rest */
    /* Too early for another one. */
    rm_console_live(&console, &progress, 10500000000ull);
    assert_string_equal(screen(master, terminal), "");
    rm_console_live(&console, &progress, 11000000000ull);
    assert_int_equal(screen(master, terminal)[0], '\r');
    /* Anything else wipes it first. */
    rm_console_say(&console, "hello");
    assert_string_equal(screen(master, terminal), "\r\033[Khello\r\n");
    fclose(out);
    close(master);
}

/* No line of the tables is longer than the terminal is wide. */
static void the_tables_fit_a_narrow_terminal(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        skip();
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    struct winsize size = {.ws_row = 24, .ws_col = 60};
    assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        RM_POKE(&session->board.workers[3].phase_ns[p], (uint64_t)(10 + p));
    FILE *out = fdopen(terminal, "w");
    struct rm_console console;
    rm_console_open(&console, out);
    rm_console_summary(&console, &progress, &supervisor, &world, "/runs/here");
    const char *text = screen(master, terminal);
    assert_non_null(strstr(text, "\nagent "));
    assert_non_null(strstr(text, "last 100"));
    assert_non_null(strstr(text, "greedy\r\n"));
    assert_null(strstr(text, "versions")); /* the first that gives way */
    assert_non_null(strstr(text, "\ntime in percent "));
    /* That in which most was spent stays. */
    assert_non_null(strstr(text, rm_phase_name((enum rm_phase)(RM_PHASE_COUNT - 1))));
    assert_null(strstr(text, rm_phase_name((enum rm_phase)0)));
    for (const char *end; (end = strstr(text, "\r\n")); text = end + 2)
        if (end - text > 60)
            fail_msg("%.*s", (int)(end - text), text);
    fclose(out);
    close(master);
}

static void a_file_gets_plain_lines_and_the_tables(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = tmpfile();
    assert_non_null(out);
    struct rm_console console;
    rm_console_open(&console, out);
    assert_false(console.terminal);
    console.last_ns = 0;
    rm_console_live(&console, &progress, 10000000000ull);
    rm_console_live(&console, &progress, 11000000000ull); /* too early */
    rm_console_live(&console, &progress, 16000000000ull);
    struct rm_board_run *run = session->board.run;
    RM_POKE(&run->evaluations, 1);
    RM_POKE(&run->eval_score_mean, 512.34);
    RM_POKE(&run->eval_score_stderr, 6.05);
    RM_POKE(&run->eval_episodes, 100);
    RM_POKE(&session->board.agents[0].eval_mean, 0.96);
    RM_POKE(&session->board.agents[1].eval_mean, 77.25);
    RM_POKE(&session->board.agents[1].env_steps, 150);
    RM_POKE(&session->board.workers[3].phase_ns[RM_PHASE_FORWARD], 750);
    RM_POKE(&session->board.workers[3].phase_ns[RM_PHASE_WAITING], 250);
    world = (struct rm_world_facts){257.7, NAN, NAN, NAN};
    supervisor.count = 5;
    supervisor.workers[2].deaths = 3;
    snprintf(supervisor.workers[2].reason, 64, "exited with 4");
    snprintf(supervisor.workers[2].failure, 64, "died 3 times within 9 s");
    rm_console_summary(&console, &progress, &supervisor, &world, "/runs/here");
    rewind(out);
    assert_true(getdelim(&text, &bytes, '\0', out) > 0);
    assert_null(strchr(text, '\r'));
    assert_null(strchr(text, '\033'));
    size_t lines = 0;
    for (const char *at = text; (at = strstr(at, "40% 0:03 left")); at++)
        lines++;
    assert_int_equal(lines, 2);
    static const char *const there[] = {
        "greedy score 512.3 +- 6.05 over 100 episodes; a random policy scores 257.7\n",
        "agent     first 100  last 100  env steps ",
        "\nagent_1       20.00     20.00        150 ", /* its own steps, not its policy's */
        "  0.9600\n",                                  /* not 1.0 */
        "   77.25\n",
        "\nworker-3            25.0     75.0\n",
        "worker-2 died 3 times, the last time: exited with 4\n",
        "run directory: /runs/here\n",
    };
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++) {
        if (!strstr(text, there[i]))
            print_error("no \"%s\" in:\n%s\n", there[i], text);
        assert_non_null(strstr(text, there[i]));
    }
    assert_null(strstr(text, "worker-4")); /* booked no time */
    free(text);
    fclose(out);
}

/* The tables alone look like those of a run that is done. */
static void the_summary_says_that_a_run_was_stopped(void **state)
{
    (void)state;
    static const struct {
        enum rm_run_state state;
        uint64_t budget;
        bool checkpoint;
        const char *said;
    } rows[] = {{RM_RUN_DONE, 1000, true, NULL},
                {RM_RUN_STOPPED, 1000, true,
                 "\nstopped at 40.0 % of run.steps; the same command resumes it\n"},
                {RM_RUN_STOPPED, 1000, false, "\nstopped at 40.0 % of run.steps\n"},
                {RM_RUN_STOPPED, 0, true, "\nstopped; the same command resumes it\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = NULL, directory[] = "/tmp/rm-console-XXXXXX", folder[64], number[80];
        size_t bytes = 0;
        FILE *out = open_memstream(&text, &bytes);
        struct rm_console console;
        assert_non_null(mkdtemp(directory));
        snprintf(folder, sizeof folder, "%s/checkpoints", directory);
        snprintf(number, sizeof number, "%s/000001", folder);
        assert_false(mkdir(folder, 0700) || (rows[i].checkpoint && mkdir(number, 0700)));
        RM_POKE(&session->board.run->state, rows[i].state);
        RM_POKE(&session->board.run->env_steps_budget, rows[i].budget);
        rm_console_open(&console, out);
        rm_console_summary(&console, &progress, &supervisor, &world, directory);
        fclose(out);
        if (rows[i].said)
            assert_non_null(strstr(text, rows[i].said));
        else
            assert_null(strstr(text, "stopped"));
        free(text);
        rmdir(number);
        rmdir(folder);
        rmdir(directory);
    }
}

static void access_goes_by_user_and_group(void **state)
{
    (void)state;
    assert_int_equal(rm_access_of(0, 0, 500, 500), RM_ACCESS_ADMINISTER);
    assert_int_equal(rm_access_of(500, 9, 500, 500), RM_ACCESS_ADMINISTER);
    assert_int_equal(rm_access_of(501, 500, 500, 500), RM_ACCESS_OPERATE);
    assert_int_equal(rm_access_of(501, 501, 500, 500), RM_ACCESS_SEE);
    assert_int_equal(rm_access_of(501, 501, 0, 0), RM_ACCESS_SEE);
}

static void commands_need_their_level(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum rm_access least;
    } rows[] = {
        {"{\"execute\":\"status\"}", RM_ACCESS_SEE},
        {"{\"execute\":\"get\"}", RM_ACCESS_SEE},
        {"{\"execute\":\"pause\"}", RM_ACCESS_OPERATE},
        {"{\"execute\":\"stop\"}", RM_ACCESS_OPERATE},
        {"{\"execute\":\"set\",\"arguments\":{\"key\":\"k\",\"value\":1}}", RM_ACCESS_ADMINISTER}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int level = 0; level < RM_ACCESS_COUNT; level++) {
            struct rm_request request;
            struct rm_error error = {.text = ""};
            const struct rm_command *command;
            assert_int_equal(rm_request_parse(&request, rows[i].line, strlen(rows[i].line), &error),
                             0);
            enum rm_refusal refusal = rm_command_check(rm_commands, rm_command_count, &request,
                                                       (enum rm_access)level, &command, &error);
            assert_int_equal(refusal, level >= (int)rows[i].least ? RM_REFUSED_NOT
                                                                  : RM_REFUSED_ACCESS_DENIED);
            rm_request_free(&request);
        }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_line_says_what_counts),
        T(after_the_last_step_the_line_says_what_goes_on),
        T(rollouts_are_shown_where_there_is_no_replay),
        T(without_a_budget_steps_are_counted),
        T(a_narrow_line_says_it_shorter),
        T(the_line_fits_any_width),
        T(a_terminal_is_redrawn_in_place),
        T(the_tables_fit_a_narrow_terminal),
        T(a_file_gets_plain_lines_and_the_tables),
        T(the_summary_says_that_a_run_was_stopped),
        cmocka_unit_test(access_goes_by_user_and_group),
        cmocka_unit_test(commands_need_their_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
