#include "daemon/probe.h"

#include "shm/session/session.h"
#include "config/utf8.h"
#include "daemon/libexec.h"
#include "shm/duty.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MAX    (64 << 20)
#define REFUSAL       "{\"error\":"
#define WAIT_MS       100
#define SHORT_WAIT_MS 10
#define REPORT_MS     4000 /* longer than a report may take (actor/worlds/watch.c) */

extern char **environ;

/* Descriptors of the process, or -1: what it prints, what it answers, its configuration. */
struct channels {
    int said, answer, config;
};

static int start(const char *program, char **arguments, const struct channels *c, pid_t *pid,
                 struct rm_error *error)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t
        manner; /* signals that the daemon blocks until its loop runs end this process */
    sigset_t none;

    sigemptyset(&none);
    int rc = posix_spawn_file_actions_init(&files);
    if (rc == 0 && (rc = posix_spawnattr_init(&manner)) != 0)
        posix_spawn_file_actions_destroy(&files);
    if (rc == 0) {
        posix_spawnattr_setsigmask(&manner, &none);
        posix_spawnattr_setflags(&manner, POSIX_SPAWN_SETSIGMASK);
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, c->said, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&files, c->said, STDERR_FILENO);
        posix_spawn_file_actions_adddup2(&files, c->answer, RM_FD_ANSWER);
        if (c->config >= 0)
            posix_spawn_file_actions_adddup2(&files, c->config, RM_FD_CONFIG);
        rc = posix_spawn(pid, program, &files, &manner, arguments, environ);
        posix_spawnattr_destroy(&manner);
        posix_spawn_file_actions_destroy(&files);
    }
    return rc ? rm_fail(error, -rc, "the world cannot be tried: %s: %s", program, strerror(rc)) : 0;
}

/* Whether the process has ended within so many milliseconds. Counted in short waits, so that a
 * moment in which both were frozen counts as one of those. `process`: its descriptor, or -1 where
 * the system gives none (an old kernel, a filter of system calls): the end is then seen only after
 * a wait, so that each is shorter. */
static bool ended(pid_t pid, int process, int milliseconds)
{
    struct pollfd one = {.fd = process, .events = POLLIN};
    const int wait_ms = process >= 0 ? WAIT_MS : SHORT_WAIT_MS;
    for (int left = milliseconds; left > 0;) {
        siginfo_t end = {0};
        const int n = poll(&one, 1, left < wait_ms ? left : wait_ms);
        if (n > 0 ||
            (waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == pid))
            return true;
        if (n == 0 || errno != EINTR)
            left -= wait_ms;
    }
    return false;
}

/* Waits for the process; if it is silent, requests its report and kills it. *hung: it was
 * silent. */
static int wait_for(pid_t pid, double patience_s, bool *hung)
{
    int status = 0, process = (int)syscall(SYS_pidfd_open, pid, 0);

    *hung = !ended(pid, process, (int)(patience_s * 1000));
    if (*hung) {
        kill(pid, RM_DUTY_REPORT);
        if (!ended(pid, process, REPORT_MS))
            kill(pid, SIGKILL);
    }
    if (process >= 0)
        close(process);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Reads the first line of its report, without the program's name. */
static void read_report(int said, char *text, size_t size)
{
    static const char program[] = "ringmaster-actor: ";
    char all[2048];
    ssize_t n = pread(said, all, sizeof all - 1, 0);

    all[n > 0 ? n : 0] = '\0';
    const char *line = strstr(all, program);
    line = line ? line + strlen(program) : all;
    snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
    rm_utf8_line(text);
}

/* Its answer, or NULL. */
static char *read_answer(int answer)
{
    struct stat st;
    if (fstat(answer, &st) < 0 || st.st_size <= 0 || st.st_size > ANSWER_MAX)
        return NULL;
    char *text = calloc(1, (size_t)st.st_size + 1);
    if (text && pread(answer, text, (size_t)st.st_size, 0) != st.st_size) {
        free(text);
        text = NULL;
    }
    return text;
}

/* The probed world: a key of the configuration and its value. */
/* A refusal with a message, or the description. */
static int read_description(const struct rm_world_source *of, int answer, char **description,
                            struct rm_error *error)
{
    char *text = read_answer(answer);
    if (!text)
        return rm_fail(error, -EPROTO,
                       "%s: \"%s\": the process that tried the world reported nothing", of->key,
                       of->value);
    if (strncmp(text, REFUSAL, sizeof REFUSAL - 1) != 0) {
        *description = text;
        return 0;
    }
    json_t *words = json_loads(text, 0, NULL);
    const json_int_t code = json_integer_value(json_object_get(words, "code"));
    const char *why = json_string_value(json_object_get(words, "error"));
    int rc = rm_fail(error, code < 0 && code > -4096 ? (int)code : -EPROTO, "%s", why ? why : "?");
    rm_utf8_line(error->text); /* the process that wrote it had loaded the world */
    json_decref(words);
    free(text);
    return rc;
}

/* The message for a process that ended with an error, with the first line of its report.
 * `patience_s`: the time limit that it exceeded; 0: it ended by itself. Returns -ETIMEDOUT or
 * -EPROTO. */
static int ended_badly(const struct rm_world_source *of, int status, double patience_s, int said,
                       struct rm_error *error)
{
    char report[1024], how[96];

    read_report(said, report, sizeof report);
    if (patience_s > 0)
        snprintf(how, sizeof how, "it did not return in %g s", patience_s);
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "it ended the process with exit code %d", WEXITSTATUS(status));
    return rm_fail(error, patience_s > 0 ? -ETIMEDOUT : -EPROTO,
                   "%s: \"%s\": the process that tried the world failed: %s%s%s", of->key,
                   of->value, how, report[0] ? ": " : "", report);
}

static int judge(const struct rm_world_source *of, int status, double patience_s,
                 const struct channels *c, char **description, struct rm_error *error)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == RM_EXIT_PROBED)
        return read_description(of, c->answer, description, error);
    return ended_badly(of, status, patience_s, c->said, error);
}

/* Opens a memory file whose number is not among those that are passed to the process. */
static int open_channel(void)
{
    const int fd = memfd_create("probe", MFD_CLOEXEC);
    if (fd < 0 || fd >= RM_FD_FIRST)
        return fd;
    const int above = fcntl(fd, F_DUPFD_CLOEXEC, RM_FD_FIRST);
    close(fd);
    return above;
}

/* `arguments`: of ringmaster-actor, the first one left for its path. `config`: a descriptor, or -1.
 */
static int probe(const struct rm_world_source *of, char **arguments, int config, double patience_s,
                 char **description, struct rm_error *error)
{
    char folder[PATH_MAX], program[PATH_MAX + 32];
    bool hung = false;
    pid_t pid = -1;

    int rc = rm_libexec_find(folder, sizeof folder, error);
    if (rc < 0)
        return rc;
    snprintf(program, sizeof program, "%s/ringmaster-actor", folder);
    arguments[0] = program;
    const struct channels c = {.said = open_channel(),
                               .answer = open_channel(),
                               .config =
                                   config >= 0 ? fcntl(config, F_DUPFD_CLOEXEC, RM_FD_FIRST) : -1};
    if (c.said < 0 || c.answer < 0 || (config >= 0 && c.config < 0)) {
        rc = rm_fail(error, -ENOMEM, "the world cannot be tried: no memory");
    } else {
        rc = start(program, arguments, &c, &pid, error);
        if (rc == 0) {
            const int status = wait_for(pid, patience_s, &hung);
            rc = judge(of, status, hung ? patience_s : 0, &c, description, error);
        }
    }
    arguments[0] = NULL;
    const int fds[] = {c.said, c.answer, c.config};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return rc;
}

int rm_probe_library(const char *library, double patience_s, char **description,
                     struct rm_error *error)
{
    const struct rm_world_source of = {"world.library", library};
    char *arguments[] = {NULL, (char *)"--describe", (char *)library, NULL};
    *description = NULL;
    return probe(&of, arguments, -1, patience_s, description, error);
}

/* A session with the experiment's text, and the world's description unless that is NULL, for the
 * process to read; freed by the caller. */
static int config_text(struct rm_session **session, const struct rm_experiment *experiment,
                       const char *description, struct rm_error *error)
{
    *session = calloc(1, sizeof **session);
    if (!*session)
        return rm_fail(error, -ENOMEM, "the world cannot be tried: no memory");
    (*session)->experiment = *experiment;
    (*session)->experiment.world.description = (char *)description;
    return rm_session_config_text(*session, error);
}

/* Probes with the experiment's configuration. `known`: the world's description, or NULL. */
static int probe_experiment(const struct rm_experiment *experiment, const char *known,
                            char **arguments, double patience_s, char **description,
                            struct rm_error *error)
{
    const struct rm_world_source of = rm_world_source(&experiment->world);
    struct rm_session *session;
    int rc = config_text(&session, experiment, known, error);
    if (rc == 0) {
        rc = probe(&of, arguments, session->config.fd, patience_s, description, error);
        rm_region_close(&session->config);
    }
    free(session);
    return rc;
}

int rm_probe_world(struct rm_experiment *experiment, double patience_s, const char *group,
                   struct rm_error *error)
{
    char *description = NULL;
    char *arguments[] = {NULL, (char *)"--probe", group ? (char *)"--group" : NULL, (char *)group,
                         NULL};

    if (!rm_experiment_is_foreign(experiment))
        return 0;
    int rc = probe_experiment(experiment, NULL, arguments, patience_s, &description, error);
    experiment->world.description = description;
    return rc;
}

int rm_probe_check(const struct rm_experiment *experiment, uint32_t steps, double patience_s,
                   char **report, struct rm_error *error)
{
    char number[16];
    char *arguments[] = {NULL, (char *)"--check", number, NULL};

    snprintf(number, sizeof number, "%u", steps);
    *report = NULL;
    return probe_experiment(experiment, experiment->world.description, arguments, patience_s,
                            report, error);
}

/* Opens a pipe, with both numbers above those that are passed to the process. */
static int open_pipe(int ends[2])
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) < 0)
        return -errno;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, RM_FD_FIRST);
        close(low[i]);
    }
    return ends[0] < 0 || ends[1] < 0 ? -EMFILE : 0;
}

static int start_player(struct rm_probe_player *player, const struct rm_session *session,
                        char **arguments, struct rm_error *error)
{
    char folder[PATH_MAX], program[PATH_MAX + 32];
    int ends[2] = {-1, -1};
    int rc = rm_libexec_find(folder, sizeof folder, error);
    if (rc < 0)
        return rc;
    snprintf(program, sizeof program, "%s/ringmaster-actor", folder);
    arguments[0] = program;
    player->said = open_channel();
    const int config = fcntl(session->config.fd, F_DUPFD_CLOEXEC, RM_FD_FIRST);
    if (open_pipe(ends) < 0 || player->said < 0 || config < 0) {
        rc = rm_fail(error, -EMFILE, "nothing can be played: no descriptors");
    } else {
        const struct channels c = {.said = player->said, .answer = ends[1], .config = config};
        rc = start(program, arguments, &c, &player->pid, error);
    }
    player->frames = ends[0];
    if (ends[1] >= 0)
        close(ends[1]);
    if (config >= 0)
        close(config);
    return rc;
}

int rm_probe_play(struct rm_probe_player *player, const struct rm_experiment *experiment,
                  uint32_t episodes, enum rm_player_purpose purpose, const char *const *files,
                  uint32_t count, struct rm_error *error)
{
    static const char *const purposes[] = {[RM_PLAYER_PICTURE] = "--picture",
                                           [RM_PLAYER_TALLY] = "--tally",
                                           [RM_PLAYER_ROWS_TOO] = "--rows",
                                           [RM_PLAYER_RANK] = "--rank"};
    struct rm_session *session;
    char number[16];
    size_t n = 1;
    *player = (struct rm_probe_player){.experiment = experiment, .frames = -1, .said = -1};
    char **arguments = calloc(2 * (size_t)count + 5, sizeof *arguments);
    int rc = config_text(&session, experiment, NULL, error);
    const bool made = rc == 0;
    snprintf(number, sizeof number, "%u", episodes);
    if (rc == 0 && arguments) {
        arguments[n++] = (char *)"--play";
        arguments[n++] = number;
        if (purposes[purpose])
            arguments[n++] = (char *)purposes[purpose];
        for (uint32_t i = 0; i < count; i++) {
            arguments[n++] = (char *)"--policy";
            arguments[n++] = (char *)files[i];
        }
        rc = start_player(player, session, arguments, error);
    }
    if (rc == 0 && !arguments)
        rc = rm_fail(error, -ENOMEM, "nothing can be played: no memory");
    if (made)
        rm_region_close(&session->config);
    free(session);
    free(arguments);
    if (rc < 0)
        rm_probe_play_end(player, false, NULL);
    return rc;
}

int rm_probe_play_end(struct rm_probe_player *player, bool over, struct rm_error *error)
{
    const struct rm_world_source of = rm_world_source(&player->experiment->world);
    int rc = 0;
    if (player->frames >= 0)
        close(player->frames);
    if (player->pid > 0) {
        bool hung = false;
        if (!over)
            kill(player->pid, SIGKILL);
        const int status = wait_for(player->pid, RM_PROBE_PATIENCE_S, &hung);
        if (over && !(WIFEXITED(status) && (WEXITSTATUS(status) == RM_EXIT_PROBED ||
                                            WEXITSTATUS(status) == RM_EXIT_FAILED)))
            rc = ended_badly(&of, status, hung ? RM_PROBE_PATIENCE_S : 0, player->said, error);
    }
    if (player->said >= 0)
        close(player->said);
    *player = (struct rm_probe_player){.experiment = player->experiment, .frames = -1, .said = -1};
    return rc;
}

void rm_probe_forget(struct rm_experiment *experiment)
{
    free(experiment->world.description);
    experiment->world.description = NULL;
}
