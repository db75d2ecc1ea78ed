#include "daemon/supervisor.h"

#include "shm/base/clock.h"
#include "shm/duty.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define REPORT_NS (4 * RM_NS_PER_S) /* longer than a report may take (actor/worlds/watch.c) */

/* The action of a transition, besides the change of state. */
enum action {
    ACT_NOTHING = 0,
    ACT_SPAWN,   /* make a process; a failure is the next event */
    ACT_SETTLE,  /* it works: the start limit ends */
    ACT_FINISH,  /* the process has ended as requested */
    ACT_MOURN,   /* tally the death; give up when there were too many */
    ACT_GIVE_UP, /* no restart */
    ACT_TERM,    /* SIGTERM, and a time for SIGKILL */
    ACT_KILL,    /* SIGKILL; the exit will be reported */
    ACT_ASK,     /* silent: request a report and its end, and set a time for SIGKILL */
    ACT_LATE,    /* took too long to start: as ACT_ASK, or as ACT_KILL after that */
    ACT_INSIST,  /* as ACT_KILL after ACT_ASK, else as ACT_FORGET */
    ACT_FORGET,  /* clear the timer */
};

struct transition {
    unsigned char next;
    unsigned char action;
};

enum {
    DOWN = RM_SUPERVISED_DOWN,
    STARTING = RM_SUPERVISED_STARTING,
    UP = RM_SUPERVISED_UP,
    STOPPING = RM_SUPERVISED_STOPPING,
    BACKING = RM_SUPERVISED_BACKING_OFF,
    FAILED = RM_SUPERVISED_FAILED
};

/* Two lines for each state. Columns: start, ready, finished, died; died for good, hung, stop,
 * timer. */
/* clang-format off */
static const struct transition table[][RM_EVENT_COUNT] = {
    [DOWN]     = {{STARTING, ACT_SPAWN},   {DOWN, ACT_NOTHING},     {DOWN, ACT_NOTHING},     {DOWN, ACT_NOTHING},
                  {DOWN, ACT_NOTHING},     {DOWN, ACT_NOTHING},     {DOWN, ACT_NOTHING},     {DOWN, ACT_FORGET}},
    [STARTING] = {{STARTING, ACT_NOTHING}, {UP, ACT_SETTLE},        {DOWN, ACT_FINISH},      {BACKING, ACT_MOURN},
                  {FAILED, ACT_GIVE_UP},   {STARTING, ACT_ASK},     {STOPPING, ACT_TERM},    {STARTING, ACT_LATE}},
    [UP]       = {{UP, ACT_NOTHING},       {UP, ACT_NOTHING},       {DOWN, ACT_FINISH},      {BACKING, ACT_MOURN},
                  {FAILED, ACT_GIVE_UP},   {UP, ACT_ASK},           {STOPPING, ACT_TERM},    {UP, ACT_INSIST}},
    [STOPPING] = {{STOPPING, ACT_NOTHING}, {STOPPING, ACT_NOTHING}, {DOWN, ACT_FINISH},      {DOWN, ACT_FINISH},
                  {DOWN, ACT_FINISH},      {STOPPING, ACT_NOTHING}, {STOPPING, ACT_NOTHING}, {STOPPING, ACT_KILL}},
    [BACKING]  = {{BACKING, ACT_NOTHING},  {BACKING, ACT_NOTHING},  {BACKING, ACT_NOTHING},  {BACKING, ACT_NOTHING},
                  {BACKING, ACT_NOTHING},  {BACKING, ACT_NOTHING},  {DOWN, ACT_FORGET},      {STARTING, ACT_SPAWN}},
    [FAILED]   = {{FAILED, ACT_NOTHING},   {FAILED, ACT_NOTHING},   {FAILED, ACT_NOTHING},   {FAILED, ACT_NOTHING},
                  {FAILED, ACT_NOTHING},   {FAILED, ACT_NOTHING},   {FAILED, ACT_NOTHING},   {FAILED, ACT_FORGET}},
};
/* clang-format on */
_Static_assert(sizeof table / sizeof table[0] == RM_SUPERVISED_COUNT, "a row per state");
_Static_assert(sizeof table[0] / sizeof table[0][0] == 8 && RM_EVENT_COUNT == 8,
               "a column per event; adding one means filling it in every row");

static const char *const state_names[] = {"down",     "starting",    "up",
                                          "stopping", "backing off", "failed"};
_Static_assert(sizeof state_names / sizeof state_names[0] == RM_SUPERVISED_COUNT, "names");

const char *rm_supervised_name(enum rm_supervised state)
{
    return (unsigned)state < RM_SUPERVISED_COUNT ? state_names[state] : "?";
}

static uint64_t from_seconds(double seconds)
{
    return (uint64_t)(seconds * (double)RM_NS_PER_S);
}

struct rm_supervisor_limits rm_supervisor_limits_of(const struct rm_experiment *experiment)
{
    struct rm_supervisor_limits limits = {
        .heartbeat_ns = from_seconds(experiment->supervisor.heartbeat_s),
        .respawn_floor_ns = from_seconds(experiment->supervisor.respawn_floor_s),
        .backoff_max_ns = from_seconds(experiment->supervisor.backoff_max_s),
        .deaths_window_ns = from_seconds(experiment->supervisor.deaths_window_s),
        .stop_grace_ns = from_seconds(experiment->supervisor.stop_grace_s),
        .deaths_max = experiment->supervisor.deaths_max,
    };
    /* Building a world and a network may take long, without heartbeats. */
    limits.report_ns = REPORT_NS;
    limits.start_ns = 10 * limits.heartbeat_ns;
    if (limits.start_ns < 60 * RM_NS_PER_S)
        limits.start_ns = 60 * RM_NS_PER_S;
    if (limits.deaths_max > RM_DEATHS_REMEMBERED)
        limits.deaths_max = RM_DEATHS_REMEMBERED;
    return limits;
}

int rm_supervisor_init(struct rm_supervisor *supervisor, uint32_t count,
                       const struct rm_supervisor_limits *limits,
                       const struct rm_supervisor_ops *ops, void *user, struct rm_error *error)
{
    if (count > RM_BOARD_WORKERS)
        return rm_fail(error, -EINVAL, "%u workers: at most %d can be supervised", count,
                       RM_BOARD_WORKERS);
    memset(supervisor, 0, sizeof *supervisor);
    supervisor->limits = *limits;
    supervisor->ops = ops;
    supervisor->user = user;
    supervisor->count = count;
    return 0;
}

/* Number of deaths within the window. */
static uint32_t recent_deaths(const struct rm_supervisor_limits *limits,
                              const struct rm_supervised_worker *worker, uint64_t now_ns)
{
    uint64_t kept = worker->deaths < RM_DEATHS_REMEMBERED ? worker->deaths : RM_DEATHS_REMEMBERED;
    uint32_t recent = 0;
    for (uint64_t i = 0; i < kept; i++)
        if (now_ns - worker->died_ns[i] <= limits->deaths_window_ns)
            recent++;
    return recent;
}

uint64_t rm_supervisor_backoff(const struct rm_supervisor_limits *limits,
                               const struct rm_supervised_worker *worker, uint64_t now_ns)
{
    uint32_t recent = recent_deaths(limits, worker, now_ns);
    uint64_t since_start = now_ns - worker->started_ns;
    uint64_t floor =
        since_start < limits->respawn_floor_ns ? limits->respawn_floor_ns - since_start : 0;
    if (recent <= 1)
        return floor;
    /* floor * 2^(recent - 1), without overflow */
    uint64_t delay = limits->respawn_floor_ns;
    for (uint32_t i = 1; i < recent && delay < limits->backoff_max_ns; i++)
        delay *= 2;
    if (delay > limits->backoff_max_ns)
        delay = limits->backoff_max_ns;
    return delay > floor ? delay : floor;
}

static void handle(struct rm_supervisor *s, uint32_t index, enum rm_supervisor_event event,
                   uint64_t now_ns);

static void spawn(struct rm_supervisor *s, uint32_t index, uint64_t now_ns)
{
    struct rm_supervised_worker *w = &s->workers[index];
    struct rm_error error = {.text = ""};
    w->generation++;
    w->finished = false;
    w->hung = false;
    w->started_ns = now_ns;
    w->due_ns = now_ns + s->limits.start_ns;
    int pid = s->ops->spawn(s->user, index, w->generation, &error);
    if (pid > 0) {
        w->pid = pid;
        return;
    }
    snprintf(w->reason, sizeof w->reason, "could not be started: %.280s", error.text);
    /* A later attempt would not find a missing program either. A program that existed before may be
     * being replaced. */
    bool hopeless = w->generation == 1 && (pid == -ENOENT || pid == -EACCES || pid == -ENOEXEC);
    handle(s, index, hopeless ? RM_EVENT_DIED_FOR_GOOD : RM_EVENT_DIED, now_ns);
}

/* Returns the new state: backing off, or failed after too many deaths. (Inlined under
 * AddressSanitizer, gcc 12 takes the worker's two texts for one: -Wrestrict.) */
__attribute__((noinline)) static enum rm_supervised
mourn(struct rm_supervisor *s, struct rm_supervised_worker *w, uint64_t now_ns)
{
    w->pid = 0;
    w->died_ns[w->deaths % RM_DEATHS_REMEMBERED] = now_ns;
    w->deaths++;
    uint32_t recent = recent_deaths(&s->limits, w, now_ns);
    if (recent >= s->limits.deaths_max) {
        char last[sizeof w->reason]; /* gcc with sanitizers takes the two for one place */
        memcpy(last, w->reason, sizeof last);
        snprintf(w->failure, sizeof w->failure,
                 "died %u %s within %.0f s (supervisor.deaths_max); the last time: %s", recent,
                 rm_plural(recent, "time", "times"), (double)s->limits.deaths_window_ns / 1e9,
                 last);
        w->due_ns = 0;
        return RM_SUPERVISED_FAILED;
    }
    w->due_ns = now_ns + rm_supervisor_backoff(&s->limits, w, now_ns);
    if (w->due_ns == 0)
        w->due_ns = 1; /* 0 means never */
    return RM_SUPERVISED_BACKING_OFF;
}

/* A silent worker is asked once for its report; if it does not answer, it is killed. */
static void ask_or_kill(struct rm_supervisor *s, struct rm_supervised_worker *w, uint32_t index,
                        bool silent, uint64_t now_ns)
{
    bool asked = w->hung;

    w->hung |= silent;
    w->due_ns = silent && !asked ? now_ns + s->limits.report_ns : 0;
    if (w->hung)
        s->ops->kill(s->user, index, w->pid, asked ? SIGKILL : RM_DUTY_REPORT);
}

static void handle(struct rm_supervisor *s, uint32_t index, enum rm_supervisor_event event,
                   uint64_t now_ns)
{
    struct rm_supervised_worker *w = &s->workers[index];
    enum rm_supervised before = w->state;
    struct transition t = table[before][event];
    enum rm_supervised next = t.next;

    switch ((enum action)t.action) {
    case ACT_NOTHING:
    case ACT_SPAWN: /* below, because it may raise an event */
        break;
    case ACT_SETTLE:
    case ACT_FORGET:
        w->due_ns = 0;
        break;
    case ACT_FINISH:
        w->pid = 0;
        w->due_ns = 0;
        w->finished = event == RM_EVENT_FINISHED;
        break;
    case ACT_MOURN:
        next = mourn(s, w, now_ns);
        break;
    case ACT_GIVE_UP:
        w->pid = 0;
        w->due_ns = 0;
        w->deaths++;
        memcpy(w->failure, w->reason, sizeof w->reason);
        break;
    case ACT_TERM:
        w->due_ns = now_ns + s->limits.stop_grace_ns;
        s->ops->kill(s->user, index, w->pid, SIGTERM);
        break;
    case ACT_LATE:
    case ACT_ASK:
    case ACT_INSIST:
        ask_or_kill(s, w, index, t.action != ACT_INSIST, now_ns);
        break;
    case ACT_KILL:
        w->hung = false;
        w->due_ns = 0;
        s->ops->kill(s->user, index, w->pid, SIGKILL);
        break;
    }
    w->state = next;
    if (t.action == ACT_SPAWN)
        spawn(s, index, now_ns);
    /* A failed spawn has already reported its change. */
    if (w->state == next && before != next && s->ops->changed)
        s->ops->changed(s->user, index, before, w);
}

void rm_supervisor_start(struct rm_supervisor *supervisor, uint32_t index, uint64_t now_ns)
{
    handle(supervisor, index, RM_EVENT_START, now_ns);
}

void rm_supervisor_stop(struct rm_supervisor *supervisor, uint32_t index, uint64_t now_ns)
{
    handle(supervisor, index, RM_EVENT_STOP, now_ns);
}

void rm_supervisor_stop_all(struct rm_supervisor *supervisor, uint64_t now_ns)
{
    for (uint32_t i = 0; i < supervisor->count; i++)
        handle(supervisor, i, RM_EVENT_STOP, now_ns);
}

void rm_supervisor_kill_all(struct rm_supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->count; i++)
        if (supervisor->workers[i].pid > 0)
            supervisor->ops->kill(supervisor->user, i, supervisor->workers[i].pid, SIGKILL);
}

void rm_supervisor_exited(struct rm_supervisor *supervisor, uint32_t index,
                          const struct rm_exit_report *report, const char *words, uint64_t now_ns)
{
    struct rm_supervised_worker *w = &supervisor->workers[index];
    if (report->signal == 0 && report->status == RM_EXIT_OK && report->done) {
        handle(supervisor, index, RM_EVENT_FINISHED, now_ns);
        return;
    }
    /* Stopped on request: the reason of its last death stays. */
    if (w->state == RM_SUPERVISED_STOPPING && report->signal == 0 && report->status == RM_EXIT_OK) {
        handle(supervisor, index, RM_EVENT_DIED, now_ns);
        return;
    }
    char how[64];
    if (w->hung)
        snprintf(how, sizeof how, "killed after more than %.1f s without a heartbeat",
                 (double)(w->state == RM_SUPERVISED_STARTING ? supervisor->limits.start_ns
                                                             : supervisor->limits.heartbeat_ns) /
                     1e9);
    else if (report->signal != 0)
        snprintf(how, sizeof how, "ended by signal %d (%s)", report->signal,
                 strsignal(report->signal));
    else
        snprintf(how, sizeof how, "exited with %d", (int)report->status);
    snprintf(w->reason, sizeof w->reason, "%s%s%.240s", how, words[0] ? ": " : "", words);
    bool never = report->signal == 0 && report->status == RM_EXIT_NEVER;
    handle(supervisor, index, never ? RM_EVENT_DIED_FOR_GOOD : RM_EVENT_DIED, now_ns);
}

void rm_supervisor_observe(struct rm_supervisor *supervisor, uint32_t index,
                           enum rm_worker_state state, uint64_t heartbeat_ns, uint64_t now_ns)
{
    struct rm_supervised_worker *w = &supervisor->workers[index];
    bool at_work = state == RM_WORKER_BUSY || state == RM_WORKER_WAITING || state == RM_WORKER_DONE;
    if (w->state == RM_SUPERVISED_STARTING && at_work && !w->hung)
        handle(supervisor, index, RM_EVENT_READY, now_ns);
    if (w->state != RM_SUPERVISED_UP || state != RM_WORKER_BUSY || w->hung)
        return;
    /* The heartbeat may be its predecessor's, or a little in the future of `now`. */
    uint64_t since = heartbeat_ns > w->started_ns ? heartbeat_ns : w->started_ns;
    if (since < w->graced_ns)
        since = w->graced_ns;
    if (now_ns > since && now_ns - since > supervisor->limits.heartbeat_ns)
        handle(supervisor, index, RM_EVENT_HUNG, now_ns);
}

bool rm_supervisor_away(struct rm_supervisor *supervisor, uint64_t away_ns, uint64_t now_ns)
{
    const bool graced = away_ns >= supervisor->limits.heartbeat_ns / RM_SUPERVISOR_LOOKS;
    for (uint32_t i = 0; i < supervisor->count; i++) {
        struct rm_supervised_worker *w = &supervisor->workers[i];
        if (w->due_ns)
            w->due_ns += away_ns;
        if (graced)
            w->graced_ns = now_ns;
    }
    return graced;
}

uint64_t rm_supervisor_due(const struct rm_supervisor *supervisor)
{
    uint64_t due = 0;
    for (uint32_t i = 0; i < supervisor->count; i++) {
        uint64_t d = supervisor->workers[i].due_ns;
        if (d != 0 && (due == 0 || d < due))
            due = d;
    }
    return due;
}

uint64_t rm_supervisor_tick(struct rm_supervisor *supervisor, uint64_t now_ns)
{
    for (uint32_t i = 0; i < supervisor->count; i++) {
        uint64_t due = supervisor->workers[i].due_ns;
        if (due != 0 && due <= now_ns)
            handle(supervisor, i, RM_EVENT_TIMER, now_ns);
    }
    return rm_supervisor_due(supervisor);
}

uint32_t rm_supervisor_alive(const struct rm_supervisor *supervisor)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < supervisor->count; i++) {
        enum rm_supervised state = supervisor->workers[i].state;
        alive += state != RM_SUPERVISED_DOWN && state != RM_SUPERVISED_FAILED;
    }
    return alive;
}
