#include "shm/base/file.h"
#include "tests/support/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* BUILD/bin of the BUILD/tests/... that this program is in. */
static void find_bin(char *bin, size_t size)
{
    char self[512] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *tests = n > 0 ? strstr(self, "/tests/") : NULL;
    char *last = tests;
    while (tests && (tests = strstr(tests + 1, "/tests/")))
        last = tests;
    if (last)
        *last = '\0';
    snprintf(bin, size, "%.400s/bin", self);
}

int rm_test_daemon_home(struct rm_test_daemon *d, const char *name, const char *config)
{
    char path[160];
    memset(d, 0, sizeof *d);
    snprintf(d->home, sizeof d->home, "/tmp/rm-test-XXXXXX");
    snprintf(d->name, sizeof d->name, "%.31s", name);
    if (!mkdtemp(d->home))
        return -1;
    snprintf(d->socket, sizeof d->socket, "%s/sockets/%s/control.sock", d->home, name);
    snprintf(path, sizeof path, "%s/config.json", d->home);
    FILE *file = fopen(path, "w");
    if (!file || fputs(config, file) < 0 || fclose(file) != 0)
        return -1;
    return 0;
}

/* A directory in which this program goes by the workers' names. */
static void make_fakes(const char *home, char *libexec, size_t size)
{
    static const char *const names[] = {"ringmaster-actor", "ringmaster-learner",
                                        "ringmaster-solo"};
    char self[512] = "", link[600];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return;
    snprintf(libexec, size, "%s/libexec", home);
    mkdir(libexec, 0755);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(link, sizeof link, "%s/%s", libexec, names[i]);
        if (symlink(self, link) < 0 && errno != EEXIST)
            perror(link);
    }
}

static const char *slurp(const char *path)
{
    static char text[2 << 20]; /* more than a writer holds back */
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = '\0';
    if (file)
        fclose(file);
    return text;
}

/* Limits that a host under load, or a sanitizer, would reach in tests that are not about them. */
static size_t add_patience(const char **argv, size_t n, const char *file,
                           const char *const *arguments)
{
    static const char *const settings[][2] = {{"heartbeat_s", "supervisor.heartbeat_s=240"},
                                              {"stop_grace_s", "supervisor.stop_grace_s=240"}};
    const char *config = slurp(file);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        bool given = strstr(config, settings[i][0]) != NULL;
        for (size_t k = 0; arguments && arguments[k]; k++)
            given = given || strstr(arguments[k], settings[i][0]);
        if (given)
            continue;
        argv[n++] = "--set";
        argv[n++] = settings[i][1];
    }
    return n;
}

static void child(const struct rm_test_daemon *d, const char *const *arguments, bool fake,
                  unsigned long file_limit, pid_t parent)
{
    char bin[512], program[560], file[160], sockets[160], runs[160], out[160], libexec[256];
    const char *argv[40];
    size_t n = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    find_bin(bin, sizeof bin);
    snprintf(program, sizeof program, "%s/ringmasterd", bin);
    snprintf(file, sizeof file, "%s/config.json", d->home);
    snprintf(sockets, sizeof sockets, "%s/sockets", d->home);
    snprintf(runs, sizeof runs, "%s/runs", d->home);
    snprintf(out, sizeof out, "%s/out.txt", d->home);
    setenv("RINGMASTER_RUNTIME_DIR", sockets, 1);
    if (fake) {
        make_fakes(d->home, libexec, sizeof libexec);
        setenv("RINGMASTER_LIBEXEC", libexec, 1);
    }
    int fd = open(out, O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(fd, 1);
    dup2(fd, 2);
    close(fd);
    if (file_limit) {
        struct rlimit limit = {file_limit, file_limit};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);
    }
    argv[n++] = program;
    argv[n++] = "--name";
    argv[n++] = d->name;
    argv[n++] = "--run-directory";
    argv[n++] = runs;
    n = add_patience(argv, n, file, arguments);
    for (size_t i = 0; arguments && arguments[i] && n < 38; i++)
        argv[n++] = arguments[i];
    argv[n++] = file;
    argv[n] = NULL;
    execv(program, (char **)argv);
    perror(program);
    _exit(127);
}

int rm_test_daemon_start(struct rm_test_daemon *d, const char *const *arguments, bool fake,
                         unsigned long file_limit)
{
    pid_t parent = getpid();
    d->pid = fork();
    if (d->pid == 0)
        child(d, arguments, fake, file_limit, parent);
    return d->pid > 0 ? 0 : -1;
}

int rm_test_daemon_wait(struct rm_test_daemon *d, double seconds)
{
    double end = now_s() + seconds;
    int status;
    do {
        pid_t pid = waitpid(d->pid, &status, WNOHANG);
        if (pid == d->pid) {
            d->pid = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        usleep(5000);
    } while (now_s() < end);
    return -1;
}

void rm_test_daemon_end(struct rm_test_daemon *d)
{
    if (d->pid > 0) {
        kill(d->pid, SIGKILL);
        waitpid(d->pid, NULL, 0);
        d->pid = 0;
    }
    if (d->home[0] && !getenv("RM_TEST_KEEP"))
        rm_file_remove_all(d->home);
}

const char *rm_test_daemon_output(struct rm_test_daemon *d)
{
    char path[160];
    snprintf(path, sizeof path, "%s/out.txt", d->home);
    return slurp(path);
}

const char *rm_test_daemon_file(struct rm_test_daemon *d, const char *file)
{
    char path[256];
    snprintf(path, sizeof path, "%s/runs/%s/latest/%s", d->home, d->name, file);
    return slurp(path);
}

bool rm_test_until_file(struct rm_test_daemon *d, const char *file, const char *text)
{
    for (double end = now_s() + RM_TEST_PATIENCE_S; now_s() < end; usleep(5000))
        if (strstr(rm_test_daemon_file(d, file), text))
            return true;
    return false;
}

int rm_test_connect(struct rm_test_daemon *d)
{
    double end = now_s() + RM_TEST_PATIENCE_S;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", d->socket);
    do {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
            json_t *greeting = rm_test_read(fd);
            bool fine = json_object_get(greeting, "ringmaster") != NULL;
            json_decref(greeting);
            if (fine)
                return fd;
        }
        close(fd);
        usleep(5000);
    } while (now_s() < end && (!d->pid || rm_test_process_there(d->pid)));
    return -1;
}

int rm_test_send(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);
        if (n <= 0)
            return -1;
        text += n;
        bytes -= (size_t)n;
    }
    return 0;
}

json_t *rm_test_read(int fd)
{
    size_t used = 0, room = 4096;
    char *line = malloc(room);
    json_t *value = NULL;
    while (line) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        /* A byte at a time: nothing of the next line is taken. Slow, and simple. */
        if (poll(&ready, 1, (int)(RM_TEST_PATIENCE_S * 1000)) <= 0 || read(fd, line + used, 1) != 1)
            break;
        if (line[used] == '\n') {
            value = json_loadb(line, used, 0, NULL);
            break;
        }
        if (++used == room) {
            char *wider = realloc(line, room *= 2);
            if (!wider)
                break;
            line = wider;
        }
    }
    free(line);
    return value;
}

json_t *rm_test_ask(int fd, const char *command, const char *arguments)
{
    char line[4096];
    int n = snprintf(line, sizeof line, "{\"execute\":\"%s\",\"arguments\":%s}\n", command,
                     arguments ? arguments : "{}");
    if (rm_test_send(fd, line, (size_t)n) < 0)
        return NULL;
    for (;;) {
        json_t *reply = rm_test_read(fd);
        if (!reply || !json_object_get(reply, "event"))
            return reply;
        json_decref(reply);
    }
}

const char *rm_test_error(const json_t *reply)
{
    const char *class =
        json_string_value(json_object_get(json_object_get(reply, "error"), "class"));
    return class ? class : "";
}

json_t *rm_test_path(json_t *value, const char *path)
{
    char copy[128], *save = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *part = strtok_r(copy, ".", &save); part && value; part = strtok_r(NULL, ".", &save))
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(part))
                                     : json_object_get(value, part);
    return value;
}

static bool until(int fd, const char *path, const char *text, double least)
{
    double end = now_s() + RM_TEST_PATIENCE_S;
    while (now_s() < end) {
        json_t *status = rm_test_ask(fd, "status", NULL);
        if (!status)
            return false;
        json_t *value = rm_test_path(json_object_get(status, "return"), path);
        bool there = text ? json_is_string(value) && !strcmp(json_string_value(value), text)
                          : json_is_number(value) && json_number_value(value) >= least;
        json_decref(status);
        if (there)
            return true;
        usleep(10000);
    }
    return false;
}

bool rm_test_until_text(int fd, const char *path, const char *text)
{
    return until(fd, path, text, 0);
}

bool rm_test_until_at_least(int fd, const char *path, double value)
{
    return until(fd, path, NULL, value);
}

bool rm_test_process_there(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] != 'Z';
}
