#include "shm/duty.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/severity.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_signal;
static struct rm_wake signal_wake;
static volatile sig_atomic_t wakes; /* signal_wake is valid */
static int heeded;                  /* only SIGTERM from this process stops the duty; 0: from any
                                     * process */

/* A batch scheduler sends SIGTERM to all processes of a job; the supervisor decides what to do. */
static void on_stop(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    (void)context;
    if (heeded && info->si_pid != heeded)
        return;
    stop_signal = number;
    if (wakes)
        rm_wake_force(&signal_wake);
    errno = saved;
}

void rm_duty_signals_end(void)
{
    wakes = 0;
}

int rm_duty_signals(const struct rm_wake *wake, int parent, struct rm_error *error)
{
    struct sigaction action = {.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO};

    if (wake)
        signal_wake = *wake;
    wakes = wake != NULL;
    heeded = parent;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGTERM, &action, NULL) < 0 || (!parent && sigaction(SIGINT, &action, NULL) < 0))
        return rm_fail(error, -errno, "sigaction: %s", strerror(errno));
    /* Blocked since the daemon started this process: a SIGTERM that arrived before is delivered
     * now. */
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    /* Ctrl-C goes to the whole foreground process group, SIGUSR1 may too: both are for the
     * supervisor. */
    if (parent)
        signal(SIGINT, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (parent) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
            return rm_fail(error, -errno, "PR_SET_PDEATHSIG: %s", strerror(errno));
        /* The parent may have died before the line above. */
        if (getppid() != parent)
            return rm_fail(error, -ESRCH, "the supervisor (process %d) has ended", parent);
    }
    return 0;
}

void rm_phase_start(struct rm_phase_clock *clock, struct rm_board_worker *slot)
{
    clock->slot = slot;
    clock->since_ns = rm_now_ns();
    clock->current = RM_PHASE_OTHER;
    clock->longer = 0;
    clock->traced = false;
    RM_RAISE(&slot->phase, RM_TRACE_MARK(clock->since_ns, 0, RM_PHASE_OTHER));
}

void rm_phase_lengthen(struct rm_phase_clock *clock, uint32_t phases, double by)
{
    clock->longer = by > 0 ? phases : 0;
    clock->longer_by = by;
}

static uint64_t spin_until(uint64_t end_ns)
{
    uint64_t now;
    while ((now = rm_now_ns()) < end_ns)
        ;
    return now;
}

/* The count is stored last, for a reader that copies marks. */
static void write_mark(struct rm_board_worker *slot, uint64_t mark)
{
    const uint64_t n = RM_PEEK(&slot->traced);

    RM_POKE(&slot->trace_mark[n % RM_TRACE_MARKS], mark);
    RM_RAISE(&slot->traced, n + 1);
}

/* From now on the duty is in this phase. A trace begins with the phase before it. */
static void show_phase(struct rm_phase_clock *clock, uint64_t before, unsigned wait, unsigned phase)
{
    struct rm_board_worker *slot = clock->slot;
    const uint64_t mark = RM_TRACE_MARK(clock->since_ns, wait, phase);
    const bool traced = clock->since_ns < RM_PEEK(&slot->trace_until_ns);

    if (traced && !clock->traced)
        write_mark(slot, before);
    if (traced)
        write_mark(slot, mark);
    clock->traced = traced;
    RM_RAISE(&slot->phase, mark);
}

enum rm_phase rm_phase_enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    struct rm_board_worker *slot = clock->slot;
    enum rm_phase old = clock->current;
    uint64_t now = rm_now_ns();

    if (clock->longer >> old & 1)
        now = spin_until(now + (uint64_t)(clock->longer_by * (double)(now - clock->since_ns)));
    const uint64_t before = RM_PEEK(&slot->phase);
    rm_board_spend(slot, old, clock->waits, now - clock->since_ns);
    RM_POKE(&slot->heartbeat_ns, now); /* a turn may be long */
    clock->since_ns = now;
    clock->current = phase;
    show_phase(clock, before, clock->waits, phase);
    return old;
}

/* Once a second: writes the resident memory to the board. Reads /proc without allocating. */
static void note_memory(struct rm_board_worker *slot)
{
    char text[64];
    unsigned long long pages_total, pages_resident;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return;
    text[n] = 0;
    if (sscanf(text, "%llu %llu", &pages_total, &pages_resident) == 2)
        RM_POKE(&slot->rss_bytes, pages_resident * (unsigned long long)sysconf(_SC_PAGESIZE));
}

/* How often the processor time is read, which takes a few microseconds. */
#define PROCESSOR_NS (RM_NS_PER_S / 50)

/* What this process has used, and when that is read again. */
struct used {
    uint64_t memory_due_ns, processor_due_ns;
    uint64_t cpu_ns, delay_ns; /* those that the board has */
};

static uint64_t process_cpu_ns(void)
{
    return rm_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* How long this thread could run and had no core; 0 where the kernel doesn't count it. */
static uint64_t thread_delay_ns(void)
{
    char text[96];
    unsigned long long ran, delayed;
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    return sscanf(text, "%llu %llu", &ran, &delayed) == 2 ? delayed : 0;
}

static struct used used_so_far(void)
{
    return (struct used){.cpu_ns = process_cpu_ns(), .delay_ns = thread_delay_ns()};
}

/* The board's counters add up over restarts; those of the kernel begin with the process. */
static void note_processor(struct used *used, struct rm_board_worker *slot)
{
    const uint64_t cpu = process_cpu_ns(), delay = thread_delay_ns();

    RM_ADD_OWN(&slot->cpu_ns, cpu - used->cpu_ns);
    used->cpu_ns = cpu;
    if (delay > used->delay_ns) {
        RM_ADD_OWN(&slot->run_delay_ns, delay - used->delay_ns);
        used->delay_ns = delay;
    }
}

/* Writes the heartbeat, every PROCESSOR_NS the processor time and once a second the memory.
 * `first`: the slot that has the processor time of the process. */
static void beat(struct rm_duty *duty, struct used *used, struct rm_board_worker *first)
{
    uint64_t now = rm_now_ns();

    RM_POKE(&duty->slot->heartbeat_ns, now);
    if (now >= used->processor_due_ns) {
        note_processor(used, first);
        used->processor_due_ns = now + PROCESSOR_NS;
    }
    if (now >= used->memory_due_ns) {
        note_memory(duty->slot);
        used->memory_due_ns = now + RM_NS_PER_S;
    }
}

static bool asked_to_stop(const struct rm_duty *duty)
{
    return stop_signal || RM_PEEK(&duty->run->stop);
}

#define LOST_MOST 10 /* in a row: a single one may be on its way when the time is over */

/* After a check without a wake-up: counts lost wake-ups, which are turns with work that no one
 * signalled. */
static void count_lost(bool looked, bool worked)
{
    static uint32_t lost;
    if (!looked)
        lost = 0;
    else if (worked && ++lost == LOST_MOST)
        fprintf(stderr,
                RM_SEVERITY_WARNING
                "wake-ups are lost: this worker found work without a wake-up %d times in a row; a "
                "process that runs the world damaged the board or reads the wake's descriptor\n",
                LOST_MOST);
}

/* Sleeps until there may be work. Returns true when it woke by its own timer. */
static bool sleep_on(struct rm_duty *duty)
{
    enum rm_phase before = RM_PHASE_OTHER;
    bool looks = false;

    if (duty->clock)
        before = rm_phase_enter(duty->clock, RM_PHASE_WAITING);
    RM_RAISE(&duty->slot->state, RM_WORKER_WAITING);
    RM_ADD_OWN(&duty->slot->sleeps, 1);
    if (duty->poll_us && !RM_PEEK(&duty->run->pause)) {
        rm_wake_cancel(&duty->wake);
        usleep(duty->poll_us);
    } else {
        /* Also while paused: resume sends a wake-up. */
        looks = rm_wake_wait(&duty->wake, duty->look_ns) == 0;
    }
    RM_POKE(&duty->slot->heartbeat_ns, rm_now_ns());
    RM_RAISE(&duty->slot->state, RM_WORKER_BUSY);
    if (duty->clock)
        rm_phase_enter(duty->clock, before);
    return looks;
}

void rm_duty_hold_all(struct rm_board_run *run, uint64_t number)
{
    RM_RAISE(&run->checkpoint_request, number);
}

void rm_duty_release_all(struct rm_board_run *run)
{
    RM_RAISE(&run->checkpoint_released, RM_PEEK(&run->checkpoint_request));
}

enum hold { FREE, HELD, SOON };

/* The duty's state in the requested checkpoint. SOON: the duty needs another turn first. */
static enum hold hold(struct rm_duty *duty)
{
    const uint64_t asked = RM_SEE(&duty->run->checkpoint_request);
    if (!duty->checkpoint || RM_SEE(&duty->run->checkpoint_released) >= asked)
        return FREE;
    if (duty->held != asked && !duty->checkpoint(duty->self, asked))
        return SOON;
    if (duty->held != asked || RM_PEEK(&duty->slot->checkpoint_held) != asked)
        RM_RAISE(&duty->slot->checkpoint_held, asked);
    duty->held = asked;
    return HELD;
}

/* One turn, unless paused or held. */
static int turn(struct rm_duty *duty, struct rm_error *error)
{
    const enum hold held = hold(duty);

    if (held == HELD || (held == FREE && RM_PEEK(&duty->run->pause))) {
        if (duty->clock)
            duty->clock->waits = held == HELD ? RM_WAIT_CHECKPOINT : RM_WAIT_PAUSE;
        return 0;
    }
    int n = duty->do_work(duty->self, error);
    if (n > 0)
        RM_ADD_OWN(&duty->slot->turns, 1);
    return n;
}

void rm_duty_failed(struct rm_board_worker *slot, const struct rm_error *error)
{
    snprintf(slot->error, sizeof slot->error, "%.255s", error->text);
    RM_RAISE(&slot->state, RM_WORKER_FAILED);
}

/* The stopwatch stands still. */
static void end_turn(struct rm_duty *duty)
{
    if (!duty->clock)
        return;
    rm_phase_enter(duty->clock, RM_PHASE_OTHER);
    show_phase(duty->clock, RM_PEEK(&duty->slot->phase), 0, RM_TRACE_AWAY);
}

static int finish(struct rm_duty *duty, struct used *used, struct rm_board_worker *first,
                  int result, const struct rm_error *error)
{
    note_processor(used, first);
    end_turn(duty);
    RM_POKE(&duty->slot->heartbeat_ns, rm_now_ns());
    if (result >= 0 || result == RM_DUTY_DONE) {
        RM_RAISE(&duty->slot->state, result == RM_DUTY_DONE ? RM_WORKER_DONE : RM_WORKER_NONE);
        return RM_EXIT_OK;
    }
    rm_duty_failed(duty->slot, error);
    return result == RM_DUTY_NEVER ? RM_EXIT_NEVER : RM_EXIT_FAILED;
}

/* Finished duties that linger hold for a checkpoint. False when none lingers, or when one cannot
 * hold: it has no turns any more. */
static bool hold_lingering(struct rm_duty *duties, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!duties[i].lingers || !duties[i].checkpoint)
            continue;
        any = true;
        if (hold(&duties[i]) == SOON)
            return false;
    }
    return any;
}

/* Runs finished duties that linger: they only answer checkpoint requests and sleep on the first
 * duty's wake. */
static void linger(struct rm_duty *duties, size_t n)
{
    while (hold_lingering(duties, n) && !asked_to_stop(duties)) {
        rm_wake_prepare(&duties->wake);
        (void)hold_lingering(duties, n);
        if (asked_to_stop(duties))
            rm_wake_cancel(&duties->wake);
        else
            rm_wake_wait(&duties->wake, duties->look_ns);
    }
}

int rm_duty_run(struct rm_duty *duty, struct rm_error *error)
{
    struct used used = used_so_far();
    bool looked = false;

    RM_RAISE(&duty->slot->state, RM_WORKER_BUSY);
    for (;;) {
        beat(duty, &used, duty->slot);
        if (asked_to_stop(duty))
            return finish(duty, &used, duty->slot, 0, error);
        int n = rm_wake_closed() ? rm_fail(error, -EBADF,
                                           "the descriptors of wake-ups were closed, probably by "
                                           "the world: this worker cannot wake others")
                                 : turn(duty, error);
        if (duty->look_ns) {
            count_lost(looked, n > 0);
            looked = false;
        }
        if (n == 0) {
            /* Announce the sleep, then check once more, so that no work in between is missed. */
            rm_wake_prepare(&duty->wake);
            n = asked_to_stop(duty) ? 1 : turn(duty, error);
            if (n == 0)
                looked = sleep_on(duty);
            else
                rm_wake_cancel(&duty->wake);
        }
        if (n < 0) {
            const int code = finish(duty, &used, duty->slot, n, error);
            if (n == RM_DUTY_DONE)
                linger(duty, 1);
            return code;
        }
    }
}

/* The stopwatch goes on. */
static void begin_turn(struct rm_duty *duty)
{
    if (!duty->clock)
        return;
    duty->clock->since_ns = rm_now_ns();
    show_phase(duty->clock, RM_PEEK(&duty->slot->phase), 0, duty->clock->current);
}

/* No duty sleeps while another has work. During the turn of one duty the stopwatches of the others
 * stand still. */
int rm_duty_run_in_turn(struct rm_duty *duties, size_t n, struct rm_error *error)
{
    bool done[RM_ROUND_MAX] = {false};
    bool prepared = false; /* the sleep is announced on the wake */
    size_t left = n;
    struct used used = used_so_far();

    if (n == 0 || n > RM_ROUND_MAX)
        return rm_fail(error, -EINVAL, "duties: %zu in turn; must be 1 to %d", n, RM_ROUND_MAX);
    for (size_t i = 0; i < n; i++) {
        RM_RAISE(&duties[i].slot->state, RM_WORKER_BUSY);
        end_turn(&duties[i]);
    }
    while (left > 0) {
        bool worked = false;

        for (size_t i = 0; i < n; i++) {
            struct rm_duty *duty = &duties[i];
            if (asked_to_stop(duty)) {
                note_processor(&used, duties->slot);
                return RM_EXIT_OK;
            }
            if (done[i]) {
                if (duty->lingers)
                    (void)hold(duty);
                continue;
            }
            begin_turn(duty);
            int r = turn(duty, error);
            end_turn(duty);
            beat(duty, &used, duties->slot);
            if (r < 0) {
                int code = finish(duty, &used, duties->slot, r, error);
                if (code != RM_EXIT_OK)
                    return code;
                done[i] = true;
                left--;
            }
            worked |= r != 0;
        }
        if (worked) {
            if (prepared)
                rm_wake_cancel(&duties[0].wake);
            prepared = false;
        } else if (left > 0 && !prepared) {
            /* Announce the sleep, then check all duties once more. */
            rm_wake_prepare(&duties[0].wake);
            prepared = true;
        } else if (left > 0) {
            /* Only the daemon can make work now: a request, a resume, a stop. A duty that is not
             * done sleeps for all, so that the state of finished duties does not change. */
            size_t awake = 0;
            while (done[awake])
                awake++;
            struct rm_duty sleeper = duties[awake];
            sleeper.wake = duties[0].wake;
            begin_turn(&sleeper);
            sleep_on(&sleeper);
            end_turn(&sleeper);
            prepared = false;
        }
    }
    linger(duties, n);
    return RM_EXIT_OK;
}
