#include "actor/worlds/watch.h"

#include "shm/atomic.h"
#include "shm/duty.h"
#include "shm/base/clock.h"
#include "shm/base/severity.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define FRAMES_MAX 64
#define STACK_SIZE (128 * 1024)
#define DEBUGGER_S 10
#define PATIENCE_S 3 /* for the stack: a world may have died inside of malloc() */

struct rm_watch_place rm_watch_place;

static struct {
    const char *program;
    struct rm_board_worker *slot;
    int bell_fd;
    const char *(*call_name)(unsigned architecture, int number);
    int refused; /* system call, -1: none */
    unsigned architecture;
    uintptr_t address;
    bool has_address;
} report = {.program = "ringmaster-actor", .refused = -1};

static atomic_flag reporting = ATOMIC_FLAG_INIT;

static const struct {
    int number;
    const char *name;
    bool address; /* the address of the fault is known */
} signals[] = {{SIGSEGV, "SIGSEGV", true}, {SIGBUS, "SIGBUS", true},    {SIGFPE, "SIGFPE", true},
               {SIGILL, "SIGILL", true},   {SIGABRT, "SIGABRT", false}, {SIGSYS, "SIGSYS", false},
               {RM_DUTY_REPORT, "", false}};
#define SIGNALS (sizeof signals / sizeof *signals)

static const char *const calls[] = {
    "outside of worlds", "loading", "create()", "reset()", "step()", "state", "close()", "showing"};
_Static_assert(sizeof calls / sizeof *calls == RM_WATCH_COUNT, "a name per call");

/* --- text without stdio, which the signal may have interrupted ------------------------------- */

struct text {
    char *at;
    size_t used, size; /* NUL not counted, counted */
};

static void put(struct text *t, const char *words)
{
    while (*words && t->used + 1 < t->size)
        t->at[t->used++] = *words++;
    t->at[t->used] = '\0';
}

static void put_number(struct text *t, uint64_t value, unsigned base)
{
    char digits[24];
    size_t n = sizeof digits;

    digits[--n] = '\0';
    do
        digits[--n] = "0123456789abcdef"[value % base];
    while (value /= base);
    put(t, digits + n);
}

static void put_u64(struct text *t, const char *before, uint64_t value)
{
    put(t, before);
    put_number(t, value, 10);
}

/* --- the report ------------------------------------------------------------------------------ */

static void put_signal(struct text *t, int number)
{
    size_t i = 0;

    while (i + 1 < SIGNALS && signals[i].number != number)
        i++;
    if (number == RM_DUTY_REPORT) {
        put(t, "silent");
        return;
    }
    if (signals[i].number == number)
        put(t, signals[i].name);
    else
        put_u64(t, "signal ", (uint64_t)number);
    if (number == SIGSYS && report.refused >= 0) {
        const char *name =
            report.call_name ? report.call_name(report.architecture, report.refused) : NULL;
        put_u64(t, " (system call ", (uint64_t)report.refused);
        if (name) {
            put(t, ", ");
            put(t, name);
        }
        put(t, ", is not allowed)");
    } else if (report.has_address) {
        put(t, " (address 0x");
        put_number(t, report.address, 16);
        put(t, ")");
    }
}

/* Each world's episode and step, as many as fit. */
static void put_episodes(struct text *t, const struct rm_watch *watch, uint64_t step)
{
    const struct rm_arrivals *a = watch->arrivals;

    for (uint32_t w = 0; w < watch->worlds; w++) {
        if (t->used + 96 > t->size && w > 0) {
            put_u64(t, "; and ", watch->worlds - w);
            put(t, " more");
            return;
        }
        put_u64(t, "; world ", watch->first_world + w);
        put_u64(t, ": episode ", a->episodes[w]);
        put_u64(t, ", step ", a->live && a->live[w] ? step - a->began[w] : 0);
    }
}

void rm_watch_describe(int number, char *text, size_t size)
{
    struct text t = {.at = text, .size = size};
    const struct rm_watch *watch =
        atomic_load_explicit(&rm_watch_place.watch, memory_order_relaxed);
    uint32_t call = atomic_load_explicit(&rm_watch_place.call, memory_order_relaxed);

    if (size == 0)
        return;
    text[0] = '\0';
    put_signal(&t, number);
    if (call == RM_WATCH_NONE || call >= RM_WATCH_COUNT || !watch) {
        put(&t, " outside of worlds");
        return;
    }
    put(&t, " in ");
    put(&t, calls[call]);
    put(&t, " of ");
    put(&t, watch->world);
    if (call == RM_WATCH_LOAD)
        return;
    put_u64(&t, watch->worlds > 1 ? ", worlds " : ", world ", watch->first_world);
    if (watch->worlds > 1)
        put_u64(&t, "..", watch->first_world + watch->worlds - 1);
    put_u64(&t, ", seed ", watch->seed);
    if (!watch->steps)
        return;
    put_u64(&t, ", vector step ", *watch->steps);
    if (watch->arrivals && watch->arrivals->episodes && watch->arrivals->began)
        put_episodes(&t, watch, *watch->steps);
}

static void write_all(const char *words)
{
    size_t n = strlen(words);

    while (n > 0) {
        ssize_t done = write(STDERR_FILENO, words, n);
        if (done <= 0 && errno != EINTR)
            return;
        if (done > 0) {
            words += done;
            n -= (size_t)done;
        }
    }
}

/* Waits for a debugger, which sees more than this process can report. */
static void wait_for_debugger(void)
{
    const uint64_t one = 1;
    const struct timespec moment = {.tv_nsec = 20 * 1000 * 1000};

    if (!report.slot || RM_PEEK(&report.slot->inspect) != RM_INSPECT_OFFERED)
        return;
    alarm(DEBUGGER_S);
    RM_RAISE(&report.slot->inspect, RM_INSPECT_WANTED);
    if (write(report.bell_fd, &one, sizeof one) < 0)
        return;
    while (RM_SEE(&report.slot->inspect) != RM_INSPECT_DONE)
        nanosleep(&moment, NULL);
}

static void die_of(int number)
{
    signal(number, SIG_DFL);
    raise(number); /* blocked until the handler returns, then ends the process */
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    char line[2048], brief[sizeof report.slot->error];
    void *frame[FRAMES_MAX];

    (void)context;
    if (atomic_flag_test_and_set(&reporting)) {
        for (;;) /* another thread writes the report, and ends the process */
            pause();
    }
    /* If a lock or a second fault blocks the report, the alarm ends the process. */
    signal(SIGALRM, SIG_DFL);
    alarm(PATIENCE_S);
    if (number == SIGSYS) {
        report.refused = info->si_syscall;
        report.architecture = info->si_arch;
    }
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i].number == number && signals[i].address && info->si_code > 0) {
            report.has_address = true;
            report.address = (uintptr_t)info->si_addr;
        }
    rm_watch_describe(number, brief, sizeof brief);
    if (report.slot)
        memcpy(report.slot->error, brief, sizeof brief);
    rm_watch_describe(number, line, sizeof line - 1);
    size_t used = strlen(line);
    line[used] = '\n';
    line[used + 1] = '\0';
    if (report.slot) /* the journal has it too */
        write_all(RM_SEVERITY_ERROR);
    write_all(report.program);
    write_all(": ");
    write_all(line);
    int frames = backtrace(frame, FRAMES_MAX);
    if (frames > 0)
        backtrace_symbols_fd(frame, frames, STDERR_FILENO);
    wait_for_debugger();
    die_of(number);
}

/* --- installing the handlers ----------------------------------------------------------------- */

void rm_watch_set_slot(struct rm_board_worker *slot, int bell_fd)
{
    report.slot = slot;
    report.bell_fd = bell_fd;
}

void rm_watch_beat(void)
{
    if (report.slot)
        RM_POKE(&report.slot->heartbeat_ns, rm_now_ns());
}

void rm_watch_add_world_cpu(uint64_t ns)
{
    if (report.slot)
        RM_ADD_OWN(&report.slot->world_cpu_ns, ns);
}

void rm_watch_name_calls(const char *(*name)(unsigned architecture, int number))
{
    report.call_name = name;
}

int rm_watch_install(const char *program, struct rm_error *error)
{
    static _Alignas(16) char stack[STACK_SIZE];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *frame[2];

    report.program = program;
    prctl(PR_SET_PTRACER, getppid(), 0, 0,
          0); /* if only parents may trace: the parent's children may too */
    /* The first call loads the unwinder, which must not happen in a handler. */
    (void)backtrace(frame, 2);
    if (sigaltstack(&own, NULL) < 0)
        return rm_fail(error, -errno, "sigaltstack: %s", strerror(errno));
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, RM_DUTY_REPORT); /* no second report */
    for (size_t i = 0; i < SIGNALS; i++)
        if (sigaction(signals[i].number, &action, NULL) < 0)
            return rm_fail(error, -errno, "sigaction: %s", strerror(errno));
    return 0;
}
