#include "daemon/daemon.h"

#include "daemon/running.h"
#include "config/traits.h"
#include "daemon/probe.h"

#include "actor/worlds/plan.h"
#include "daemon/libexec.h"
#include "daemon/loop_memory.h"
#include "daemon/loop_threads.h"
#include "learner/offline.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void clear_console(void *user)
{
    rm_console_clear(user);
}

/* A pipe that is read here may never have data: until then a stop ends the program. */
static int load_file(struct rm_experiment *experiment, const struct rm_daemon_options *o,
                     struct rm_error *error)
{
    struct stat about;
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    if (stat(o->file, &about) == 0 && !S_ISREG(about.st_mode))
        pthread_sigmask(SIG_UNBLOCK, &stops, NULL);
    const int rc = rm_config_load(experiment, o->file, o->overrides, o->override_count, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static int load(struct rm_experiment *experiment, const struct rm_daemon_options *o,
                struct rm_error *error)
{
    int rc = load_file(experiment, o, error);
    if (rc < 0)
        return rc;
    const struct {
        const char *value;
        char *to;
        size_t room;
        const char *option;
    } texts[] = {
        {o->name, experiment->name, sizeof experiment->name, "--name"},
        {o->run_directory, experiment->run.directory, sizeof experiment->run.directory,
         "--run-directory"},
        {o->socket, experiment->control.socket, sizeof experiment->control.socket, "--socket"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *value = texts[i].value;
        if (value && snprintf(texts[i].to, texts[i].room, "%s", value) >= (int)texts[i].room)
            return rm_fail(error, -ENAMETOOLONG, "%s: longer than %zu bytes", texts[i].option,
                           texts[i].room - 1);
        for (; value && *value; value++) /* as in the file */
            if (iscntrl((unsigned char)*value))
                return rm_fail(error, -EINVAL, "%s: has a control character (byte 0x%02x)",
                               texts[i].option, (unsigned char)*value);
    }
    if (!rm_name_valid(experiment->name))
        return rm_fail(
            error, -EINVAL,
            "name: \"%s\" cannot be a name: letters, digits, '.', '_' and '-', beginning "
            "with a letter or a digit",
            experiment->name);
    return 0;
}

/* Probes a world, limited like its actors. */
static int probe_world(const struct rm_daemon *daemon, struct rm_experiment *experiment,
                       struct rm_error *error)
{
    struct rm_worker_group group;
    char limits[256] = "";
    int rc = rm_groups_make(&daemon->groups, experiment, "probe", &group, error);
    if (rc < 0)
        return rc;
    rc = rm_probe_world(experiment, RM_PROBE_PATIENCE_S, group.name[0] ? group.procs : NULL, error);
    rm_groups_leave(&daemon->groups, experiment, &group, rc < 0 ? SIGKILL : 0, limits,
                    sizeof limits);
    if (rc < 0 && limits[0]) {
        const size_t n = strlen(error->text);
        snprintf(error->text + n, sizeof error->text - n, ": %s", limits);
    }
    return rc;
}

/* The common part of rm_daemon_check() and rm_daemon_run(). */
static int prepare(struct rm_daemon *daemon, struct rm_experiment *experiment, struct rm_plan *plan,
                   bool runs, struct rm_error *error)
{
    int rc = load(experiment, daemon->options, error);
    if (rc < 0)
        return rc;
    if (runs)
        rm_groups_open(&daemon->groups, experiment);
    rc = rm_reader_check(experiment, error);
    if (rc == 0)
        rc = probe_world(daemon, experiment, error);
    if (rc == 0)
        rc = rm_plan_make(plan, experiment, error);
    if (rc == 0)
        rc = rm_world_facts_read(&daemon->world, experiment, error);
    return rc < 0 ? rm_fail_within(error, rc, "%s", daemon->options->file) : 0;
}

/* The files of policy.from, and the recording of sample.from. */
static int check_policies(const struct rm_daemon *daemon, const struct rm_experiment *experiment,
                          const struct rm_plan *plan, struct rm_error *error)
{
    int rc = rm_plan_check_from(plan, experiment, error);
    if (rc == 0)
        rc = rm_offline_check(experiment, plan, error);
    return rc < 0 ? rm_fail_within(error, rc, "%s", daemon->options->file) : 0;
}

/* Grows the table of open files before there are threads. With threads the kernel waits for all
 * processors at each growth, so the loop would wait for tens of milliseconds when many clients
 * connect. The table never shrinks. */
static void make_room(uint64_t descriptors)
{
    const int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)descriptors - 1);
    if (last >= 0)
        close(last);
}

/* Raises the limit of descriptors: each ring, weights and worker needs one, so many actors and
 * policies need more than usual. */
static int allow_descriptors(const struct rm_plan *plan, const struct rm_experiment *experiment,
                             struct rm_error *error)
{
    uint64_t wanted = (uint64_t)plan->policies * (rm_actor_processes(experiment) + 4) +
                      rm_actor_processes(experiment) * 3 + RM_CONTROL_CLIENTS_MAX + 128;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    if (limit.rlim_cur < wanted && limit.rlim_max < wanted)
        return rm_fail(error, -EMFILE,
                       "%llu open files are needed, but only %llu are allowed; raise ulimit -n, or "
                       "use fewer actors",
                       (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            return rm_fail(error, -errno, "cannot raise the number of open files: %s",
                           strerror(errno));
    }
    make_room(wanted);
    return 0;
}

#define PLACE_TURNS 400 /* 10 s: the kernel may need time to free a replay's memory */

static void pause_a_moment(void *unused)
{
    (void)unused;
    usleep(25000);
}

static int take_place(struct rm_daemon *daemon, const struct rm_experiment *experiment,
                      struct rm_error *error)
{
    static const struct rm_place_patience patience = {PLACE_TURNS, pause_a_moment, NULL};
    char path[RM_SOCKET_PATH_MAX];
    if (experiment->control.socket[0])
        return rm_place_await(&daemon->place, experiment->control.socket, &patience, error);
    int rc = rm_socket_path(path, experiment->name, error);
    return rc < 0 ? rc : rm_place_await(&daemon->place, path, &patience, error);
}

/* A kill loses at most this: lines, and some rows of metrics. */
#define QUEUED_LINES 262144
#define QUEUED_ROWS  4
#define COLUMN_BYTES 128 /* of a row, for TensorBoard and for metrics.csv together */
#define QUEUED_ECHO  131072
#define WRITERS      2

static void no_column(void *user, const struct rm_metrics_column *column)
{
    (void)user, (void)column;
}

/* Opens the threads that write files and standard error from now on. */
static int open_writers(struct rm_daemon *daemon, struct rm_error *error)
{
    const struct rm_metrics_row none = {.time_s = 0};
    const size_t columns = rm_metrics_columns(&daemon->session.board, &none, no_column, NULL);
    int rc = rm_writer_open(&daemon->files, &daemon->loop,
                            QUEUED_LINES + QUEUED_ROWS * COLUMN_BYTES * columns, rm_unwritten_log,
                            &daemon->unwritten, error);
    if (rc == 0)
        rc = rm_writer_open(&daemon->echoes, &daemon->loop, QUEUED_ECHO, rm_unwritten_log,
                            &daemon->unwritten, error);
    daemon->log.files = daemon->metrics.files = &daemon->files;
    daemon->metrics.reader = &daemon->reader;
    daemon->log.echoes = &daemon->echoes;
    return rc;
}

static int open_files(struct rm_daemon *daemon, struct rm_error *error)
{
    const struct rm_experiment *e = &daemon->session.experiment;
    int rc = daemon->directory.path[0] /* the directory of the resumed run */
                 ? rm_run_lock_await(&daemon->run_lock, daemon->directory.path, error)
                 : rm_run_directory_create(&daemon->directory, e->run.directory, e->name,
                                           &daemon->run_lock, error);
    if (rc < 0)
        return rc;
    daemon->log.fd = rm_run_directory_open(&daemon->directory, "log.txt", error);
    if (daemon->log.fd < 0)
        return daemon->log.fd;
    json_t *config = rm_config_to_json(e);
    rc = rm_run_directory_json(&daemon->directory, "config.json", config, error);
    json_decref(config);
    if (rc < 0)
        return rc;
    rc = rm_metrics_open(&daemon->metrics, &daemon->directory, &daemon->session.board, e, error);
    return rc < 0 ? rc : open_writers(daemon, error);
}

static void on_bell(uv_poll_t *bell, int status, int events)
{
    struct rm_daemon *daemon = bell->data;
    (void)events;
    if (status < 0) /* the next tick sees it too */
        return;
    rm_wake_drain(daemon->session.wake_fds[daemon->session.objects.workers]);
    rm_daemon_rung(daemon);
}

static int open_loop(struct rm_daemon *daemon, struct rm_error *error)
{
    rm_stall_watch(&daemon->stall, &daemon->loop);
    rm_presence_open(&daemon->presence, &daemon->loop, rm_daemon_away, daemon);
    uv_timer_init(&daemon->loop, &daemon->tick);
    uv_timer_init(&daemon->loop, &daemon->due);
    uv_timer_init(&daemon->loop, &daemon->sample);
    daemon->tick.data = daemon->due.data = daemon->sample.data = daemon;
    signal(SIGPIPE, SIG_IGN);
    int rc = rm_daemon_take_signals(daemon, error);
    if (rc < 0)
        return rc;
    rc = uv_poll_init(&daemon->loop, &daemon->bell,
                      daemon->session.wake_fds[daemon->session.objects.workers]);
    daemon->bell.data = daemon;
    if (rc == 0)
        rc = uv_poll_start(&daemon->bell, UV_READABLE, on_bell);
    return rc < 0 ? rm_fail(error, rc,
                            "cannot make the descriptor by which workers wake the daemon: %s",
                            uv_strerror(rc))
                  : 0;
}

static int serve(struct rm_daemon *daemon, struct rm_error *error)
{
    struct rm_supervisor_limits limits = rm_supervisor_limits_of(&daemon->session.experiment);
    const struct rm_inspector_spec inspects = {.session = &daemon->session,
                                               .supervisor = &daemon->supervisor,
                                               .log = &daemon->log,
                                               .loop = &daemon->loop,
                                               .stall = &daemon->stall,
                                               .run_directory = daemon->directory.path};
    rm_groups_log(&daemon->groups, &daemon->session.experiment, &daemon->log);
    rm_inspector_open(&daemon->inspector, &inspects);
    if (daemon->inspector.debugger[0]) /* the inspector reads a silent worker before it is killed */
        limits.report_ns += RM_INSPECT_S * RM_NS_PER_S;
    int rc = rm_supervisor_init(&daemon->supervisor, daemon->session.objects.workers, &limits,
                                &rm_daemon_supervisor_ops, daemon, error);
    if (rc == 0)
        rc = rm_libexec_find(daemon->libexec, sizeof daemon->libexec, error);
    if (rc == 0)
        rc = rm_place_listen(&daemon->place, error);
    if (rc < 0)
        return rc;
    int fd = daemon->place.listen_fd;
    daemon->place.listen_fd = -1;
    rc =
        rm_control_open(&daemon->control, &daemon->loop, fd, &rm_daemon_control_ops, daemon, error);
    if (rc == 0) {
        int swept = rm_sweeper_start(&daemon->sweeper, &daemon->loop, daemon->place.socket);
        if (swept < 0)
            rm_log(&daemon->log, RM_LOG_WARNING,
                   "cannot start the sweeper (%s): if this process is killed, its socket remains "
                   "until "
                   "the next start of this experiment",
                   uv_strerror(swept));
    }
    return rc;
}

static void close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Closes objects with names in the file system first. */
static void close_all(struct rm_daemon *daemon)
{
    rm_daemon_hold_signals(true);    /* the loop no longer handles them */
    rm_writer_flush(&daemon->files); /* clients that wait for the disk get their answers */
    rm_sweeper_dismiss(&daemon->sweeper);
    rm_place_leave(&daemon->place);
    rm_control_close(daemon->control);
    daemon->control = NULL;
    uv_run(&daemon->loop, UV_RUN_NOWAIT);
    rm_reader_end(&daemon->reader, &daemon->loop,
                  (uint64_t)(daemon->session.experiment.supervisor.stop_grace_s * 1e9));
    rm_writer_close(&daemon->files);
    rm_writer_close(&daemon->echoes);
    uv_walk(&daemon->loop, close_handle, NULL);
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    uv_loop_close(&daemon->loop);
    rm_metrics_close(&daemon->metrics);
    rm_settings_close(&daemon->settings);
    rm_session_close(&daemon->session);
    if (daemon->log.fd >= 0)
        close(daemon->log.fd);
    daemon->log.fd = -1;
}

static void write_summary(struct rm_daemon *daemon)
{
    struct rm_error error = {.text = ""};
    rm_daemon_write_row(daemon, false);
    json_t *summary = rm_daemon_status(daemon);
    json_object_set_new(summary, "finished", json_boolean(daemon->finished));
    int rc = rm_run_directory_json(&daemon->directory, "summary.json", summary, &error);
    json_decref(summary);
    if (rc < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "%s", error.text);
}

static void tell_unused(void *user, const char *path, const char *words)
{
    struct rm_daemon *daemon = user;
    rm_log(&daemon->log, RM_LOG_NOTICE, "%s %s", path, words);
}

static int run(struct rm_daemon *daemon, struct rm_error *error)
{
    const struct rm_experiment *e = &daemon->session.experiment;
    const uint32_t workers = daemon->session.objects.workers, actors = rm_actor_processes(e);
    const uint32_t agents = daemon->session.plan.agents, policies = daemon->session.plan.policies;
    daemon->log.run = e->name;
    rm_log_message(&daemon->log, RM_LOG_INFO, RM_MESSAGE_RUN_BEGAN, &RM_LOG_NO_FIELDS,
                   "%s %s: %s, %u %s, run directory %s", e->name, RM_VERSION, daemon->options->file,
                   workers, rm_plural(workers, "worker", "workers"), daemon->directory.path);
    rm_console_open(&daemon->console, daemon->options->foreground ? stdout : NULL);
    daemon->console.echoes = &daemon->echoes;
    rm_console_say(&daemon->console, "%s: %u %s, %u %s, %u %s; %s", e->name, agents,
                   rm_plural(agents, "agent", "agents"), policies,
                   rm_plural(policies, "policy", "policies"), actors,
                   rm_plural(actors, "actor", "actors"), daemon->directory.path);
    rm_config_unused(e, tell_unused, daemon);
    rm_daemon_keep_session(daemon);
    rm_settings_restore(&daemon->settings, daemon->directory.path, daemon->adoption.done);
    rm_daemon_open_checkpoints(daemon);
    struct rm_error why = {""};
    if (rm_reader_start(&daemon->reader, e, daemon->directory.path, &daemon->printer, &why) < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "%s", why.text);
    rm_daemon_start_workers(daemon);
    rm_daemon_arm(daemon);
    rm_daemon_hold_signals(false); /* now they are handled again */
    while (daemon->progress.life != RM_LIFE_OVER)
        uv_run(&daemon->loop, UV_RUN_DEFAULT);
    rm_inspector_end(&daemon->inspector);
    rm_fdstore_forget(rm_session_kept(&daemon->session, NULL, 0));
    rm_checkpointer_close(&daemon->checkpoint,
                          daemon->finished && e->evaluation.final_episodes > 0);
    if (!daemon->lost)
        write_summary(daemon);
    rm_writer_flush(&daemon->files);
    rm_writer_flush(&daemon->echoes);
    daemon->console.echoes = NULL;
    rm_console_summary(&daemon->console, &daemon->progress, &daemon->supervisor, &daemon->world,
                       daemon->directory.path);
    if (daemon->failed)
        return rm_fail(error, RM_DAEMON_FAILED, "%s (journal: %s/log.txt)", daemon->failure,
                       daemon->directory.path);
    return rm_daemon_interrupted(daemon, error);
}

/* What the parts of a daemon need of each other. */
static void connect_parts(struct rm_daemon *daemon)
{
    const struct rm_settings_spec settings = {.session = &daemon->session,
                                              .progress = &daemon->progress,
                                              .log = &daemon->log,
                                              .files = &daemon->files,
                                              .loop = &daemon->loop,
                                              .file = daemon->options->file,
                                              .overrides = daemon->options->overrides,
                                              .override_count = daemon->options->override_count,
                                              .ops = &rm_daemon_settings_ops,
                                              .user = daemon};
    rm_settings_init(&daemon->settings, &settings);
    daemon->policies = (struct rm_policies){.loop = &daemon->loop,
                                            .session = &daemon->session,
                                            .directory = &daemon->directory,
                                            .answer = rm_daemon_answer,
                                            .user = daemon};
    daemon->progress.session = daemon->printer.session = &daemon->session;
    daemon->printer.log = daemon->unwritten.log = &daemon->log;
    daemon->printer.loop = &daemon->loop;
    daemon->unwritten.metrics = &daemon->metrics;
    daemon->unwritten.kept = &daemon->settings.kept;
    daemon->resumed.when = daemon->options->resume;
    daemon->resumed.directory = &daemon->directory;
    daemon->resumed.lock = &daemon->run_lock;
}

/* Writes report.html by `ringctl report`, which reads the run directory as it has been left. A run
 * is not failed by it. Ctrl-C ends it alone. */
static void write_report(const struct rm_daemon *daemon)
{
    char program[RM_PATH_TEXT_MAX + 32], page[sizeof daemon->directory.path + 16];
    char *arguments[] = {(char *)"ringctl",
                         (char *)"report",
                         (char *)daemon->directory.path,
                         (char *)"--output",
                         page,
                         NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, pipe;
    pid_t pid = -1;
    int code = -1;
    snprintf(page, sizeof page, "%s/report.html", daemon->directory.path);
    rm_program_beside(program, sizeof program, "ringctl");
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &pipe);
    if (posix_spawnp(&pid, program, &files, &how, arguments, environ) == 0)
        while (waitpid(pid, &code, 0) < 0 && errno == EINTR)
            ;
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    rm_console_report(&daemon->console, code == 0 ? page : NULL);
}

static struct rm_daemon *create(const struct rm_daemon_options *options, struct rm_error *error)
{
    struct rm_daemon *daemon = calloc(1, sizeof *daemon);
    if (!daemon) {
        rm_fail(error, -ENOMEM, "out of memory");
        return NULL;
    }
    daemon->options = options;
    connect_parts(daemon);
    daemon->place.lock_fd = daemon->place.listen_fd = daemon->run_lock.fd = -1;
    daemon->metrics.csv_fd = daemon->metrics.board.fd = -1;
    daemon->log = (struct rm_log){.fd = -1,
                                  .echo_fd = STDERR_FILENO,
                                  .echo = options->foreground ? RM_LOG_NOTICE : RM_LOG_INFO,
                                  .prefix = !options->foreground && getenv("JOURNAL_STREAM"),
                                  .journal = !options->foreground && rm_log_stderr_is_journal(),
                                  .before_echo = clear_console,
                                  .user = &daemon->console};
    return daemon;
}

static int start(struct rm_daemon *daemon, struct rm_experiment *experiment, struct rm_plan *plan,
                 struct rm_error *error)
{
    if (prepare(daemon, experiment, plan, true, error) < 0)
        return RM_DAEMON_USAGE;
    int rc = take_place(daemon, experiment, error);
    if (rc < 0)
        return rc == -EEXIST || rc == -EAGAIN ? RM_DAEMON_RUNNING : RM_DAEMON_RESOURCES;
    rm_config_hot_values(experiment, daemon->settings.file_hot);
    rc = rm_resume_find(&daemon->resumed, experiment, error);
    if (rc == 0 && !daemon->resumed.from[0] && !rm_fdstore_has_some())
        rc = check_policies(daemon, experiment, plan, error);
    if (rc < 0) {
        rm_place_leave(&daemon->place);
        return rc == -ENOMEM                    ? RM_DAEMON_RESOURCES
               : rc == -EEXIST || rc == -EAGAIN ? RM_DAEMON_RUNNING
                                                : RM_DAEMON_USAGE;
    }
    rc = allow_descriptors(plan, experiment, error);
    if (rc == 0)
        rc = rm_daemon_open_session(daemon, experiment, plan, error);
    if (rc < 0) {
        rm_place_leave(&daemon->place);
        return rc == -EBADMSG || rc == -EINVAL ? RM_DAEMON_USAGE : RM_DAEMON_RESOURCES;
    }
    rm_loop_memory_reserve();
    rc = uv_loop_init(&daemon->loop);
    if (rc < 0) {
        rm_fail(error, rc, "cannot make an event loop: %s", uv_strerror(rc));
        rm_session_close(&daemon->session);
        rm_place_leave(&daemon->place);
        return RM_DAEMON_RESOURCES;
    }
    int code = RM_DAEMON_RESOURCES;
    if (open_loop(daemon, error) == 0 &&
        rm_loop_threads_start(&daemon->loop, WRITERS, error) == 0 &&
        open_files(daemon, error) == 0 && serve(daemon, error) == 0)
        code = run(daemon, error);
    close_all(daemon);
    if (daemon->console.out && experiment->report && !daemon->lost)
        write_report(daemon);
    return code;
}

static int check(struct rm_daemon *daemon, struct rm_experiment *experiment, struct rm_plan *plan,
                 struct rm_error *error)
{
    return prepare(daemon, experiment, plan, false, error) < 0 ||
                   check_policies(daemon, experiment, plan, error) < 0
               ? RM_DAEMON_USAGE
               : RM_DAEMON_OK;
}

/* Calls `act` with a new daemon and room for its experiment and plan. */
static int with_daemon(const struct rm_daemon_options *options, __typeof__(start) *act,
                       struct rm_error *error)
{
    struct rm_daemon *daemon = create(options, error);
    struct rm_experiment *experiment = calloc(1, sizeof *experiment);
    struct rm_plan *plan = calloc(1, sizeof *plan);
    int code = RM_DAEMON_RESOURCES;
    if (!daemon || !experiment || !plan)
        rm_fail(error, -ENOMEM, "out of memory");
    else
        code = act(daemon, experiment, plan, error);
    if (daemon) /* no worker writes there any more */
        rm_run_lock_leave(&daemon->run_lock);
    if (experiment)
        rm_probe_forget(experiment);
    free(plan);
    free(experiment);
    free(daemon);
    return code;
}

int rm_daemon_check(const struct rm_daemon_options *options, struct rm_error *error)
{
    return with_daemon(options, check, error);
}

int rm_daemon_run(const struct rm_daemon_options *options, struct rm_error *error)
{
    return with_daemon(options, start, error);
}
