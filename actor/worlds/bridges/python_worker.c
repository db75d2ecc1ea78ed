#include "actor/worlds/bridges/python_worker.h"

#include "actor/worlds/watch.h"
#include "config/utf8.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPIN_NS        30000       /* less than a wake-up takes; longer only heats */
#define VAIN           15          /* waits without a spin after a spin without an answer */
#define LOOKS_TIMES    4           /* after so many durations of a request the answer is to wake */
#define LOOK_NS        RM_NS_PER_S /* between signs of life of who waits */
#define REPORT_BYTES   65536       /* what comes behind them is lost */
#define STACKS_MS      1500        /* for a worker's own report */
#define LOOK_STACKS_MS 150         /* two looks apart, a report that is under way has grown */
#define STACKS         (SIGRTMAX - 3) /* what channel.py has faulthandler wait for */

_Static_assert(offsetof(struct rm_python_head, request) == 8 &&
                   offsetof(struct rm_python_head, starter_sleeps) == 12 &&
                   offsetof(struct rm_python_head, asked) == 16 &&
                   sizeof(struct rm_python_request) == 16 &&
                   offsetof(struct rm_python_head, reply) == 128 &&
                   offsetof(struct rm_python_head, text_bytes) == 148 &&
                   offsetof(struct rm_python_head, answered_ns) == 152 &&
                   offsetof(struct rm_python_head, took_ns) == 168 &&
                   offsetof(struct rm_python_head, core) == 184 &&
                   sizeof(struct rm_python_head) <= RM_PYTHON_HEAD_BYTES,
               "python/ringmaster/channel.py has these offsets");

/* --- starting -------------------------------------------------------------------------------- */

/* Descriptors of the worker, from 3. */
enum { FD_MEMORY = 3, FD_ASK, FD_ANSWER, FD_REPORT, FD_SAID, FD_END };
#define FD_ABOVE 64 /* where they are on the way there */

/* Why a child could not become the interpreter; of a keeper also which process it is. */
struct mishap {
    int code;
    pid_t pid; /* not 0: the interpreter's, and nothing has happened */
    char what[24];
};

static _Noreturn void give_up(int to, const char *what, int code)
{
    struct mishap mishap = {.code = code};
    snprintf(mishap.what, sizeof mishap.what, "%s", what);
    if (write(to, &mishap, sizeof mishap) < 0)
        _exit(126);
    _exit(127);
}

/* Of the child, which has the memory of a process with threads: system calls alone. */
static _Noreturn void become(const struct rm_python_worker *w, const struct rm_python_launch *l,
                             pid_t parent, int mishaps)
{
    const int from[] = {w->memory, w->ask, w->answer, w->report, STDERR_FILENO};
    int above[FD_END - FD_MEMORY], null;
    const struct rlimit limit = {l->memory_limit, l->memory_limit};
    struct rm_error error;
    sigset_t none;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(126);
    setpgid(0, 0);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if ((mishaps = fcntl(mishaps, F_DUPFD_CLOEXEC, FD_ABOVE)) < 0)
        _exit(126);
    for (int i = 0; i < FD_END - FD_MEMORY; i++)
        if ((above[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_ABOVE)) < 0)
            give_up(mishaps, "fcntl", errno);
    if ((null = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        give_up(mishaps, "/dev/null", errno);
    if (l->memory_limit && setrlimit(RLIMIT_DATA, &limit) < 0)
        give_up(mishaps, "RLIMIT_DATA", errno);
    error.text[0] = '\0';
    if (l->sandbox && rm_sandbox_program_enter(l->sandbox, &error) < 0)
        give_up(mishaps, "sandbox", errno);
    dup2(null, STDIN_FILENO);
    dup2(above[FD_REPORT - FD_MEMORY], STDOUT_FILENO);
    dup2(above[FD_REPORT - FD_MEMORY], STDERR_FILENO);
    for (int i = 0; i < FD_END - FD_MEMORY; i++)
        if (dup2(above[i], FD_MEMORY + i) < 0)
            give_up(mishaps, "dup2", errno);
    /* Those of its starter are nothing to it, whatever their flags are. */
    if (dup2(mishaps, FD_END) < 0 || fcntl(FD_END, F_SETFD, FD_CLOEXEC) < 0 ||
        close_range(FD_END + 1, ~0u, 0) < 0)
        give_up(mishaps, "close_range", errno);
    execve(l->arguments[0], l->arguments, l->environment);
    give_up(FD_END, "execve", errno);
}

/* --- keeping --------------------------------------------------------------------------------- */

/* Kills all children, and theirs, which become its own as their parents die. Returns what waitpid()
 * said of `pid`, or `status`. */
static int kill_all(pid_t pid, int status)
{
    char path[48], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (;;) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
        int of;
        if (fd >= 0)
            close(fd);
        text[n > 0 ? n : 0] = '\0';
        kill(-pid, SIGKILL);
        for (char *end, *at = text;; at = end) {
            const long child = strtol(at, &end, 10);
            if (end == at || child <= 0)
                break;
            kill((pid_t)child, SIGKILL);
        }
        const pid_t ended = waitpid(-1, &of, 0);
        if (ended < 0 && errno == ECHILD)
            return status;
        if (ended == pid)
            status = of;
    }
}

/* The parent of a worker that is not confined: such a world may start programs, which outlive the
 * worker and its group if they like. When the worker or the process that started it ends, whatever
 * is left below is killed; then this one ends as the worker did. */
static _Noreturn void keep(const struct rm_python_worker *w, const struct rm_python_launch *l,
                           pid_t parent, int mishaps)
{
    sigset_t all, awaited;
    int status = 0;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
        _exit(126);
    setpgid(0, 0);
    prctl(PR_SET_NAME, "python-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become(w, l, self, mishaps);
    if (pid < 0)
        give_up(mishaps, "fork", errno);
    const struct mishap which = {.pid = pid};
    if (write(mishaps, &which, sizeof which) < 0)
        _exit(126);
    close_range(0, ~0u, 0);
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    for (bool over = false; !over;) {
        if (sigwaitinfo(&awaited, NULL) == SIGTERM)
            break;
        for (pid_t ended; !over && (ended = waitpid(-1, &status, WNOHANG)) > 0;)
            over = ended == pid;
    }
    status = kill_all(pid, status);
    if (WIFSIGNALED(status)) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        sigdelset(&all, WTERMSIG(status));
        signal(WTERMSIG(status), SIG_DFL);
        kill(self, WTERMSIG(status));
        sigprocmask(SIG_SETMASK, &all, NULL);
    }
    _exit(WEXITSTATUS(status));
}

static int map(struct rm_python_worker *w, size_t bytes, struct rm_error *error)
{
    if (w->base)
        munmap(w->base, w->bytes);
    w->bytes = bytes;
    w->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w->memory, 0);
    if (w->base != MAP_FAILED)
        return 0;
    w->base = NULL;
    return rm_fail(error, -errno, "a Python worker's memory of %zu bytes: %s", bytes,
                   strerror(errno));
}

static int resize(const struct rm_python_worker *w, size_t bytes, int seals, struct rm_error *error)
{
    int rc = posix_fallocate(w->memory, 0, (off_t)bytes);
    if (rc == 0 && fcntl(w->memory, F_ADD_SEALS, seals) < 0)
        rc = errno;
    return rc ? rm_fail(error, -rc, "a Python worker's memory of %zu bytes: %s", bytes,
                        strerror(rc))
              : 0;
}

static int open_channel(struct rm_python_worker *w, struct rm_error *error)
{
    w->memory = memfd_create("ringmaster-python", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    w->report = memfd_create("ringmaster-python-report", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    w->ask = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->answer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->memory < 0 || w->report < 0 || w->ask < 0 || w->answer < 0 ||
        ftruncate(w->report, REPORT_BYTES) < 0 ||
        fcntl(w->report, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return rm_fail(error, -errno, "a Python worker: no descriptors: %s%s", strerror(errno),
                       errno == EMFILE ? " (raise ulimit -n)" : "");
    int rc = resize(w, RM_PYTHON_COLUMNS_AT, F_SEAL_SHRINK, error);
    if (rc == 0)
        rc = map(w, RM_PYTHON_COLUMNS_AT, error);
    if (rc == 0) {
        struct rm_python_head *head = rm_python_head(w);
        head->magic = RM_PYTHON_MAGIC;
        head->version = RM_PYTHON_VERSION;
    }
    return rc;
}

/* The child is the interpreter, or says why not. */
static int await_exec(struct rm_python_worker *w, const struct rm_python_launch *l, int mishaps,
                      struct rm_error *error)
{
    struct mishap mishap;
    ssize_t n;
    do {
        n = read(mishaps, &mishap, sizeof mishap);
        if (n == sizeof mishap && mishap.pid)
            w->interpreter = mishap.pid;
    } while ((n < 0 && errno == EINTR) || (n == sizeof mishap && mishap.pid));
    if (n != sizeof mishap)
        return 0;
    mishap.what[sizeof mishap.what - 1] = '\0';
    if (strcmp(mishap.what, "execve") == 0)
        return rm_fail(error, -EINVAL, "world.interpreter: %s: %s", l->arguments[0],
                       strerror(mishap.code));
    return rm_fail(error, -mishap.code, "a Python worker cannot be started: %s: %s", mishap.what,
                   strerror(mishap.code));
}

int rm_python_worker_start(struct rm_python_worker *w, const struct rm_python_launch *launch,
                           const char *text, struct rm_error *error)
{
    int mishaps[2] = {-1, -1};

    *w = RM_PYTHON_NO_WORKER;
    int rc = open_channel(w, error);
    if (rc == 0 && pipe2(mishaps, O_CLOEXEC) < 0)
        rc = rm_fail(error, -errno, "a Python worker: no descriptors: %s", strerror(errno));
    if (rc == 0) {
        const pid_t parent = getpid();
        rm_python_worker_ask(w, (struct rm_python_request){.command = RM_PYTHON_START}, text);
        w->pid = fork();
        if (w->pid == 0 && !launch->sandbox)
            keep(w, launch, parent, mishaps[1]);
        if (w->pid == 0)
            become(w, launch, parent, mishaps[1]);
        if (w->pid < 0) {
            w->pid = 0;
            rc = rm_fail(error, -errno, "a Python worker cannot be started: fork: %s",
                         strerror(errno));
        }
    }
    if (mishaps[1] >= 0)
        close(mishaps[1]);
    if (rc == 0) {
        w->interpreter = w->pid;
        w->process = (int)syscall(SYS_pidfd_open, w->pid, 0);
        rc = await_exec(w, launch, mishaps[0], error);
    }
    if (mishaps[0] >= 0)
        close(mishaps[0]);
    if (rc < 0)
        rm_python_worker_end(w);
    return rc;
}

int rm_python_worker_grow(struct rm_python_worker *w, size_t bytes, struct rm_error *error)
{
    int rc = resize(w, RM_PYTHON_COLUMNS_AT + bytes, F_SEAL_GROW, error);
    return rc ? rc : map(w, RM_PYTHON_COLUMNS_AT + bytes, error);
}

/* --- asking ---------------------------------------------------------------------------------- */

void rm_python_worker_ask(struct rm_python_worker *w, struct rm_python_request request,
                          const char *text)
{
    struct rm_python_head *head = rm_python_head(w);
    if (text)
        snprintf((char *)w->base + RM_PYTHON_HEAD_BYTES, RM_PYTHON_TEXT_BYTES, "%s", text);
    head->asked[++w->asked % 2] = request;
    RM_RAISE(&head->request, w->asked);
    if (rm_atomic_sleeper(&head->worker_sleeps))
        rm_wake_ring(w->ask);
}

bool rm_python_worker_answered(const struct rm_python_worker *w, uint32_t request)
{
    return (int32_t)(RM_SEE(&rm_python_head(w)->reply) - request) >= 0;
}

static bool any_answered(struct rm_python_worker *const *workers, const uint32_t *requests,
                         uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (rm_python_worker_answered(workers[i], requests[i]))
            return true;
    return false;
}

/* When to look whether a worker that has another request has answered this one, in time to give it
 * the next one before it is done: after the shorter of its two latest durations, then at intervals.
 * 0: the worker has no other request, or takes unusually long: its answer has to wake the starter.
 * `acted_ns`: what the starter needed since its latest wait. */
static uint64_t look_at(const struct rm_python_worker *w, uint32_t request, uint64_t acted_ns,
                        uint64_t now)
{
    const struct rm_python_head *head = rm_python_head(w);
    if (w->asked == request || request < RM_PYTHON_STEP + 2) /* the first ones are no steps */
        return 0;
    const uint64_t begun = RM_PEEK(&head->answered_ns[(request - 1) % 2]);
    const uint64_t one = RM_PEEK(&head->took_ns[0]), other = RM_PEEK(&head->took_ns[1]);
    const uint64_t took = one < other ? one : other;
    if (acted_ns >= took || took > LOOK_NS || begun > now || now - begun > LOOKS_TIMES * took)
        return 0;
    const uint64_t spare = took - acted_ns, first = begun + took + spare / 4;
    return now < first ? first : now + spare / 2;
}

/* Those who wait longer than a spin takes do without it for a while. */
static void spin(struct rm_python_worker *const *workers, const uint32_t *requests, uint32_t n)
{
    if (workers[0]->vain) {
        workers[0]->vain--;
        return;
    }
    const uint64_t until = rm_now_ns() + SPIN_NS;
    do
        for (int i = 0; i < 64; i++) {
            if (any_answered(workers, requests, n))
                return;
            __builtin_ia32_pause();
        }
    while (rm_now_ns() < until);
    workers[0]->vain = VAIN;
}

static bool has_ended(const struct rm_python_worker *w, const struct pollfd *process)
{
    if (w->process >= 0)
        return process->revents != 0;
    siginfo_t info = {.si_pid = 0}; /* no pidfd here: look at it now and then */
    return waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* Until a bell, a worker's end, or so many nanoseconds. true: one has ended. */
static bool sleep_on(struct rm_python_worker *const *workers, const uint32_t *requests, uint32_t n,
                     uint64_t left_ns)
{
    struct pollfd fds[2 * RM_PYTHON_WORKERS];
    const struct timespec left = {(time_t)(left_ns / RM_NS_PER_S), (long)(left_ns % RM_NS_PER_S)};
    bool ended = false;

    for (uint32_t i = 0; i < n; i++) {
        fds[2 * i] = (struct pollfd){.fd = workers[i]->answer, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){.fd = workers[i]->process, .events = POLLIN};
        rm_atomic_sleep(&rm_python_head(workers[i])->starter_sleeps, 1);
    }
    if (!any_answered(workers, requests, n))
        ppoll(fds, 2 * n, &left, NULL);
    for (uint32_t i = 0; i < n; i++) {
        RM_POKE(&rm_python_head(workers[i])->starter_sleeps, 0);
        if (fds[2 * i].revents)
            rm_wake_drain(workers[i]->answer);
        ended |= has_ended(workers[i], &fds[2 * i + 1]);
    }
    return ended;
}

/* Leaves the worker's core, if there are others. A timer wakes its thread where that went to sleep,
 * and interrupts the worker there, while another core may be idle. */
static void leave_core(const struct rm_python_worker *w)
{
    const uint32_t core = RM_PEEK(&rm_python_head(w)->core);
    cpu_set_t all, others;
    if (core >= CPU_SETSIZE || (int)core != sched_getcpu() ||
        sched_getaffinity(0, sizeof all, &all) < 0)
        return;
    others = all;
    CPU_CLR(core, &others);
    if (CPU_COUNT(&others) && sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof all, &all);
}

/* Until this time or the worker's end, not for its answer. true: it has ended. */
static bool sleep_until(const struct rm_python_worker *w, uint64_t now, uint64_t until_ns)
{
    const uint64_t ns = until_ns - now < LOOK_NS ? until_ns - now : LOOK_NS;
    const struct timespec left = {(time_t)(ns / RM_NS_PER_S), (long)(ns % RM_NS_PER_S)};
    struct pollfd process = {.fd = w->process, .events = POLLIN};
    leave_core(w);
    ppoll(&process, 1, &left, NULL);
    return has_ended(w, &process);
}

/* 0: one has answered; -ECHILD: one has ended; -ETIMEDOUT. */
static int wait_for(struct rm_python_worker *const *workers, const uint32_t *requests, uint32_t n,
                    uint64_t until_ns)
{
    const uint64_t start = rm_now_ns(), acted = start - workers[0]->heard_ns;
    bool spun = false, ended = false;

    for (uint64_t now = start; !any_answered(workers, requests, n); now = rm_now_ns()) {
        const uint64_t left = until_ns > now ? until_ns - now : 0;
        const uint64_t look = n == 1 ? look_at(workers[0], requests[0], acted, now) : 0;
        if (ended)
            return -ECHILD;
        if (left && look > now + SPIN_NS) {
            ended = sleep_until(workers[0], now, look < until_ns ? look : until_ns);
        } else if (left && !spun) {
            spun = true;
            spin(workers, requests, n);
        } else {
            ended = sleep_on(workers, requests, n, left < LOOK_NS ? left : LOOK_NS);
            if (left == 0 && !ended && !any_answered(workers, requests, n))
                return -ETIMEDOUT;
        }
        rm_watch_beat();
    }
    workers[0]->heard_ns = rm_now_ns();
    return 0;
}

int rm_python_worker_await(struct rm_python_worker *w, uint32_t request, uint64_t until_ns)
{
    const int rc = wait_for(&w, &request, 1, until_ns);
    if (rc < 0)
        return rc;
    return rm_python_head(w)->status[request % 2] ? -EREMOTEIO : 0;
}

int rm_python_workers_wait(struct rm_python_worker *const *workers, const uint32_t *requests,
                           uint32_t n, uint64_t until_ns)
{
    return wait_for(workers, requests, n, until_ns);
}

/* --- what it says ---------------------------------------------------------------------------- */

void rm_python_worker_text(const struct rm_python_worker *w, char *text, size_t size)
{
    size_t bytes = rm_python_head(w)->text_bytes;
    if (bytes > RM_PYTHON_TEXT_BYTES)
        bytes = RM_PYTHON_TEXT_BYTES;
    if (bytes > size - 1)
        bytes = size - 1;
    memcpy(text, w->base + RM_PYTHON_HEAD_BYTES, bytes);
    text[bytes] = '\0';
    rm_utf8_repair(text);
}

void rm_python_worker_report(const struct rm_python_worker *w, char *text, size_t size)
{
    const ssize_t n = w->report >= 0 ? pread(w->report, text, size - 1, 0) : 0;
    text[n > 0 ? n : 0] = '\0';
    rm_utf8_repair(text);
}

void rm_python_worker_look(struct rm_python_worker *w)
{
    static char text[REPORT_BYTES];
    struct pollfd end = {.fd = w->process, .events = POLLIN};
    size_t before = 0, now = 0;
    if (w->pid <= 0)
        return;
    kill(w->interpreter, STACKS);
    for (int left = STACKS_MS; left > 0 && (now == 0 || now != before); left -= LOOK_STACKS_MS) {
        if (poll(&end, w->process >= 0, LOOK_STACKS_MS) > 0)
            return;
        before = now;
        rm_python_worker_report(w, text, sizeof text);
        now = strlen(text);
    }
}

uint64_t rm_python_worker_resident(const struct rm_python_worker *w)
{
    char path[48], text[64];
    unsigned long long all, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)w->interpreter);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%llu %llu", &all, &resident) != 2)
        return 0;
    return resident * (unsigned long long)sysconf(_SC_PAGESIZE);
}

uint64_t rm_python_worker_cpu_ns(const struct rm_python_worker *w)
{
    clockid_t clock;
    return clock_getcpuclockid(w->interpreter, &clock) ? 0 : rm_clock_ns(clock);
}

int rm_python_worker_kill(struct rm_python_worker *w)
{
    int status = 0;
    if (w->pid <= 0)
        return 0;
    if (w->interpreter != w->pid) { /* its keeper does it */
        kill(w->pid, SIGTERM);
    } else {
        kill(-w->pid, SIGKILL);
        kill(w->pid, SIGKILL); /* it may not have made its own group yet */
    }
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    w->pid = 0;
    return status;
}

void rm_python_worker_end(struct rm_python_worker *w)
{
    (void)rm_python_worker_kill(w);
    if (w->base)
        munmap(w->base, w->bytes);
    const int fds[] = {w->process, w->memory, w->ask, w->answer, w->report};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    *w = RM_PYTHON_NO_WORKER;
}
