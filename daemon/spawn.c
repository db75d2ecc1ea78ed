/* Starts, kills and reaps worker processes. A start is always fork and exec (child.h), never a bare
 * fork. Shared objects are passed as descriptors with the numbers of shm/objects.h. */
#include "daemon/child.h"
#include "daemon/running.h"

#include "config/utf8.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/duty.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The program of each role, and the argument with its index. */
static const struct {
    const char *program;
    const char *flag;  /* "--actor": takes the index; NULL: none */
    const char *plain; /* a flag without value, NULL: none */
    bool run_directory;
} roles[] = {
    [RM_ROLE_ACTOR] = {"ringmaster-actor", "--actor", NULL, true},
    [RM_ROLE_LEARNER] = {"ringmaster-learner", "--policy", NULL, true},
    [RM_ROLE_EVALUATOR] = {"ringmaster-actor", NULL, "--evaluator", true},
    [RM_ROLE_RECORDER] = {"ringmaster-learner", NULL, "--recorder", true},
    [RM_ROLE_SOLO] = {"ringmaster-solo", NULL, NULL, true},
};
_Static_assert(sizeof roles / sizeof roles[0] == RM_ROLE_COUNT, "a program per role");

#define ARGUMENTS_MAX 12

struct process {
    struct rm_child child;
    struct rm_printed printed;
    int open; /* open handles: of the process and of its pipe */
    struct rm_daemon *daemon;
    struct rm_worker_group group;
    uint32_t index;
};

static void count_closed(struct process *process)
{
    if (--process->open == 0)
        free(process);
}

static void on_process_closed(struct rm_child *child)
{
    count_closed(child->user);
}

static void on_printed_closed(struct rm_printed *printed)
{
    count_closed(printed->user);
}

/* All duties of the process ended with it. Clears the slots of the others. */
static void clear_duties(struct rm_daemon *daemon, uint32_t process)
{
    for (uint32_t i = 0; i < daemon->session.objects.workers; i++) {
        struct rm_board_worker *slot = &daemon->session.board.workers[i];
        if (rm_session_process(&daemon->session, i) != process)
            continue;
        rm_board_end_phase(slot);
        if (i != process && RM_PEEK(&slot->state) != RM_WORKER_DONE)
            RM_RAISE(&slot->state, RM_WORKER_NONE);
    }
}

static void count_fault(struct rm_daemon *daemon, uint32_t index)
{
    char uuid[RM_DEVICE_NAME_MAX];
    const struct rm_board_worker *slot = &daemon->session.board.workers[index];
    uint32_t faults;
    memcpy(uuid, slot->device, sizeof uuid); /* no process writes it any more */
    uuid[sizeof uuid - 1] = '\0';
    if (!rm_quarantine_fault(&daemon->quarantine, daemon->session.board.run, uuid,
                             daemon->session.experiment.learner.device_faults, &faults))
        return;
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    fields.worker = slot->name;
    rm_log_message(&daemon->log, RM_LOG_WARNING, RM_MESSAGE_DEVICE, &fields,
                   "%s failed %u %s (learner.device_faults) and is no longer used", uuid, faults,
                   rm_plural(faults, "time", "times"));
}

/* Counts the device's fault, which ended its learner: any learner of the process, so all of them
 * that have devices. */
static void count_faults(struct rm_daemon *daemon, uint32_t process)
{
    const struct rm_board_worker *slots = daemon->session.board.workers;
    for (uint32_t i = 0; i < daemon->session.objects.workers; i++) {
        bool counted = rm_session_process(&daemon->session, i) != process;
        for (uint32_t j = 0; j < i && !counted; j++)
            counted = rm_session_process(&daemon->session, j) == process &&
                      strcmp(slots[i].device, slots[j].device) == 0;
        if (!counted)
            count_fault(daemon, i);
    }
}

static void on_process_exit(struct rm_child *child, int64_t status, int signal, int exec_errno)
{
    struct process *process = child->user;
    struct rm_daemon *daemon = process->daemon;
    uint32_t index = process->index;
    struct rm_board_worker *slot = &daemon->session.board.workers[index];
    struct rm_exit_report report = {.status = status, .signal = signal};
    char words[sizeof slot->error];

    rm_stall_interrupted(&daemon->stall); /* by SIGCHLD */
    rm_printed_end(&process->printed);    /* its last output */
    /* The slot has no process now. */
    report.done = RM_PEEK(&slot->state) == RM_WORKER_DONE;
    memcpy(words, slot->error, sizeof words);
    words[sizeof words - 1] = '\0';
    rm_utf8_line(words);
    rm_groups_leave(&daemon->groups, &daemon->session.experiment, &process->group, signal, words,
                    sizeof words);
    if (exec_errno) {
        snprintf(words, sizeof words, "cannot be executed: %s", strerror(exec_errno));
        if (exec_errno == ENOENT || exec_errno == EACCES || exec_errno == ENOEXEC)
            report.status = RM_EXIT_NEVER;
    }
    RM_POKE(&slot->pid, 0);
    if (!report.done)
        RM_RAISE(&slot->state, RM_WORKER_NONE);
    clear_duties(daemon, index);
    if (signal == 0 && status == RM_EXIT_CUDA)
        count_faults(daemon, index);
    rm_supervisor_exited(&daemon->supervisor, index, &report, words, rm_now_ns());
}

/* Pins process `pid` to the index-th core that this process may use. */
static void pin(int pid, uint32_t index)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0 || CPU_COUNT(&allowed) < 2)
        return;
    int nth = (int)(index % (uint32_t)CPU_COUNT(&allowed));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && nth-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(pid, sizeof one, &one);
            return;
        }
}

static void prepare_slot(struct rm_board_worker *slot, uint64_t generation, bool debugger)
{
    RM_POKE(&slot->state, RM_WORKER_NONE);
    RM_POKE(&slot->generation, generation);
    RM_POKE(&slot->started_ns, rm_now_ns());
    RM_POKE(&slot->heartbeat_ns, 0);
    /* The new process holds no checkpoint; its predecessor's part was not written. */
    RM_POKE(&slot->checkpoint_held, RM_PEEK(&slot->checkpoint_written));
    RM_POKE(&slot->inspect, debugger ? RM_INSPECT_OFFERED : RM_INSPECT_NONE);
    RM_POKE(&slot->wake.sleeping, 0); /* if its predecessor died asleep */
    memset(slot->error, 0, sizeof slot->error);
}

/* Gives a worker that steps worlds a control group of its own, if the host allows it. */
static void make_group(struct rm_daemon *daemon, struct process *process)
{
    const struct rm_board_worker *slot = &daemon->session.board.workers[process->index];
    const enum rm_role role = RM_PEEK(&slot->role);
    struct rm_error error = {""};
    if (role != RM_ROLE_ACTOR && role != RM_ROLE_EVALUATOR)
        return;
    if (rm_groups_make(&daemon->groups, &daemon->session.experiment, slot->name, &process->group,
                       &error) < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "%s has no group of its own: %s", slot->name,
               error.text);
    process->child.group = process->group.procs[0] ? process->group.procs : NULL;
}

static int run_program(struct rm_daemon *daemon, struct process *process, const char *program,
                       char **arguments, int out, struct rm_error *error)
{
    const int count = rm_fd_end(&daemon->session.objects);
    int *fds = calloc((size_t)count, sizeof *fds);
    if (!fds)
        return rm_fail(error, -ENOMEM, "%s: out of memory", program);
    make_group(daemon, process);
    fds[0] = -1; /* nothing to read */
    for (int i = 1; i < RM_FD_BOARD; i++)
        fds[i] = out;
    rm_session_fds(&daemon->session, fds + RM_FD_BOARD, (uint32_t)(count - RM_FD_BOARD));
    const int rc =
        rm_child_start(&process->child, &daemon->loop, program, arguments, fds, count, error);
    free(fds);
    return rc;
}

static bool newest_checkpoint(const struct rm_daemon *daemon, char *folder)
{
    const uint64_t number = daemon->checkpoint.last;
    return number &&
           rm_session_checkpoint_folder(daemon->directory.path, number, false, folder, NULL) == 0;
}

int rm_daemon_spawn(void *user, uint32_t index, uint64_t generation, struct rm_error *error)
{
    struct rm_daemon *daemon = user;
    struct rm_board_worker *slot = &daemon->session.board.workers[index];
    enum rm_role role = RM_PEEK(&slot->role);
    char program[RM_PATH_TEXT_MAX + 32], which[16], parent[16], newest[RM_SESSION_PATH_MAX];
    char *arguments[ARGUMENTS_MAX];
    size_t n = 0;

    snprintf(program, sizeof program, "%s/%s", daemon->libexec, roles[role].program);
    if (role == RM_ROLE_LEARNER && daemon->session.experiment.learner.processes == RM_LEARNERS_ONE)
        snprintf(which, sizeof which, "all");
    else
        snprintf(which, sizeof which, "%u", RM_PEEK(&slot->index));
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    arguments[n++] = program;
    if (roles[role].flag) {
        arguments[n++] = (char *)roles[role].flag;
        arguments[n++] = which;
    }
    if (roles[role].plain)
        arguments[n++] = (char *)roles[role].plain;
    /* The evaluator of a foreign world writes no files. */
    if (roles[role].run_directory &&
        !(role == RM_ROLE_EVALUATOR && rm_experiment_confines(&daemon->session.experiment))) {
        arguments[n++] = (char *)"--run-directory";
        arguments[n++] = daemon->directory.path;
        /* A restarted worker continues from shared memory, which is newer. */
        if (daemon->resumed.from[0] && generation == 1 && rm_role_has_state(role)) {
            arguments[n++] = (char *)"--resume";
            arguments[n++] = daemon->resumed.from;
        } else if ((role == RM_ROLE_LEARNER || role == RM_ROLE_SOLO) &&
                   newest_checkpoint(daemon, newest)) {
            arguments[n++] = (char *)"--newest";
            arguments[n++] = newest;
        }
    }
    arguments[n++] = (char *)"--parent";
    arguments[n++] = parent;
    arguments[n] = NULL;

    struct process *process = calloc(1, sizeof *process);
    if (!process)
        return rm_fail(error, -ENOMEM, "out of memory");
    process->daemon = daemon;
    process->index = index;
    process->child.user = process;
    process->child.on_exit = on_process_exit;
    process->child.on_closed = on_process_closed;
    process->child.holds_stop = true;
    process->printed.user = process;
    process->printed.on_closed = on_printed_closed;
    prepare_slot(slot, generation, daemon->inspector.debugger[0] != '\0');
    const int out = rm_printed_open(&process->printed, &daemon->printer, index, error);
    if (out < 0) {
        free(process);
        return out;
    }
    int rc = run_program(daemon, process, program, arguments, out, error);
    close(out);
    process->open = rc < 0 ? 1 : 2;
    if (rc < 0) {
        rm_printed_end(&process->printed);
        return rc;
    }
    RM_POKE(&slot->pid, (uint32_t)process->child.pid);
    if (daemon->session.experiment.actor.pin && role == RM_ROLE_ACTOR)
        pin(process->child.pid, RM_PEEK(&slot->index));
    return process->child.pid;
}

void rm_daemon_signal(void *user, uint32_t index, int pid, int number)
{
    struct rm_daemon *daemon = user;
    (void)index;
    if (pid > 0 && uv_kill(pid, number) < 0)
        rm_log(&daemon->log, RM_LOG_WARNING, "cannot send signal %d to process %d", number, pid);
}
