/* trace: writes the phases of every duty as a time line, in the format of Chrome's trace viewer and
 * Perfetto. Reads the marks that duties write to shared memory while the trace is on. */
#include "daemon/ctl/command.h"

#include "daemon/ctl/client.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/find.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS    (RM_NS_PER_S / 200) /* between two looks: a worker may make 3 M marks/s */
#define GRACE_NS   (RM_NS_PER_S / 100) /* for marks that are on their way at the end */
#define MARKS_MOST (64u << 20)         /* of a worker: 512 MiB */
#define LOST       UINT64_MAX          /* instead of marks that were overwritten before a look */

/* The marks of one worker. */
struct track {
    uint64_t *mark; /* [count] */
    size_t count, room;
    uint64_t next;  /* the first that was not looked at yet */
    uint64_t phase; /* the mark of the phase that it is in, while none was copied */
};

struct trace {
    struct rm_board_view board;
    uint64_t from_ns, until_ns;
    uint64_t phases, lost; /* written, overwritten */
    struct track track[RM_BOARD_WORKERS];
};

/* --- reading ---------------------------------------------------------------------------------- */

static bool add(struct track *t, uint64_t mark)
{
    if (t->count == t->room) {
        const size_t room = t->room ? 2 * t->room : 4096;
        uint64_t *wider = room <= MARKS_MOST ? realloc(t->mark, room * sizeof *wider) : NULL;
        if (!wider)
            return false;
        t->mark = wider;
        t->room = room;
    }
    t->mark[t->count++] = mark;
    return true;
}

/* Copies the marks that came since. Those that were overwritten, or may have been during the copy,
 * are counted. False: no more can be kept. */
static bool look(struct trace *trace, uint32_t worker)
{
    static uint64_t copy[RM_TRACE_MARKS];
    const struct rm_board_worker *slot = &trace->board.workers[worker];
    struct track *t = &trace->track[worker];
    const uint64_t end = RM_SEE(&slot->traced);
    const uint64_t from = end - t->next > RM_TRACE_MARKS ? end - RM_TRACE_MARKS : t->next;
    if (end <= t->next) {
        if (!t->count)
            t->phase = RM_PEEK(&slot->phase);
        return true;
    }
    for (uint64_t m = from; m < end; m++)
        copy[m - from] = RM_PEEK(&slot->trace_mark[m % RM_TRACE_MARKS]);
    /* Mark number `newest`, which is being written, stands in the place of an old one. */
    const uint64_t newest = RM_SEE(&slot->traced);
    const uint64_t oldest = newest >= RM_TRACE_MARKS ? newest - RM_TRACE_MARKS + 1 : 0;
    const uint64_t whole = oldest > end ? end : oldest > from ? oldest : from;
    const uint64_t lost = whole - t->next;
    bool kept = !lost || add(t, LOST);
    for (uint64_t m = whole; kept && m < end; m++)
        kept = add(t, copy[m - from]);
    trace->lost += lost;
    t->next = end;
    return kept;
}

static bool look_at_all(struct trace *trace)
{
    bool kept = true;
    for (uint32_t w = 0; w < trace->board.run->workers; w++)
        kept = look(trace, w) && kept;
    return kept;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_name(FILE *out, const char *what, uint32_t track, const char *name)
{
    fprintf(out,
            ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":\"%s\"}}",
            track, what, name);
}

/* Times are in microseconds from the trace's beginning. */
static void write_phase(FILE *out, uint32_t track, const char *name, const char *wait,
                        uint64_t from, uint64_t to)
{
    fprintf(out,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%llu.%03u,\"dur\":%llu.%03u,\"name\":\"%"
            "s%s%s\"}",
            track, (unsigned long long)(from / 1000), (unsigned)(from % 1000),
            (unsigned long long)((to - from) / 1000), (unsigned)((to - from) % 1000), name,
            wait ? ": " : "", wait ? wait : "");
}

static const char *name_of(uint64_t mark, const char **wait)
{
    const unsigned phase = RM_TRACE_PHASE(mark), why = RM_TRACE_WAIT(mark);
    *wait = phase == RM_PHASE_WAITING && why && why < RM_WAIT_COUNT
                ? rm_wait_name((enum rm_wait)why)
                : NULL;
    return mark == LOST             ? "(marks lost)"
           : phase < RM_PHASE_COUNT ? rm_phase_name((enum rm_phase)phase)
                                    : NULL;
}

/* When an entry begins. The marks that were lost follow the one before them at once. */
static uint64_t begins(const struct trace *trace, const struct track *t, size_t i, uint64_t before)
{
    if (i == t->count)
        return trace->until_ns;
    const uint64_t ns =
        t->mark[i] == LOST ? before : RM_TRACE_NS(t->mark[i], trace->until_ns + GRACE_NS);
    return ns < before ? before : ns > trace->until_ns ? trace->until_ns : ns;
}

static void write_track(struct trace *trace, FILE *out, uint32_t worker)
{
    struct track *t = &trace->track[worker];
    const struct rm_board_worker *slot = &trace->board.workers[worker];
    char name[RM_NAME_MAX + 1];
    snprintf(name, sizeof name, "%.*s", RM_NAME_MAX, slot->name);
    write_name(out, "thread_name", worker + 1, name);
    if (!t->count && t->phase) /* the same all the time: a duty marks changes */
        (void)add(t, t->phase);
    uint64_t from = begins(trace, t, 0, trace->from_ns);
    for (size_t i = 0; i < t->count; i++) {
        const uint64_t to = begins(trace, t, i + 1, from);
        const char *wait, *phase = name_of(t->mark[i], &wait);
        if (phase && to > from) {
            write_phase(out, worker + 1, phase, wait, from - trace->from_ns, to - trace->from_ns);
            trace->phases++;
        }
        from = to;
    }
}

static int write_trace(struct trace *trace, const char *file)
{
    FILE *out = fopen(file, "we");
    if (!out)
        return rm_ctl_complain(RM_CTL_FAILED, "%s: %s", file, strerror(errno));
    fprintf(out,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"version\":\"" RM_VERSION
            "\",\"marks_lost\":%llu},\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"%.*s\"}}",
            (unsigned long long)trace->lost, RM_NAME_MAX, trace->board.run->name);
    for (uint32_t w = 0; w < trace->board.run->workers; w++)
        write_track(trace, out, w);
    fputs("\n]}\n", out);
    const bool failed = ferror(out);
    if (fclose(out) || failed)
        return rm_ctl_complain(RM_CTL_FAILED, "%s: %s", file, strerror(errno));
    const uint32_t duties = trace->board.run->workers;
    printf("%s: %llu phases of %u %s", file, (unsigned long long)trace->phases, duties,
           rm_plural(duties, "duty", "duties"));
    if (trace->lost)
        printf("; %llu %s lost, because this program had no core in time",
               (unsigned long long)trace->lost, rm_plural(trace->lost, "mark was", "marks were"));
    putchar('\n');
    return RM_CTL_OK;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int attach(struct trace *trace, struct rm_ctl_client *client, struct rm_error *error)
{
    json_t *places = NULL;
    int rc = rm_ctl_client_call(client, "counters", NULL, &places, error);
    if (rc)
        return rm_ctl_complain(rm_ctl_client_exit_code(rc), "%s", error->text);
    const char *path = json_string_value(json_object_get(places, "path"));
    const int fd = open(path ? path : "", O_RDONLY | O_CLOEXEC);
    rc = fd < 0 ? rm_ctl_complain(RM_CTL_FAILED,
                                  "%s: %s; root and the experiment's own user can trace it",
                                  path ? path : "", strerror(errno))
                : 0;
    json_decref(places);
    if (rc == 0 && rm_board_attach(&trace->board, fd, false, error) != RM_ATTACH_OK)
        rc = rm_ctl_complain(RM_CTL_FAILED, "%s", error->text);
    return rc;
}

/* Until its end, whatever becomes of the experiment. */
static void follow(struct trace *trace)
{
    const struct timespec moment = {.tv_nsec = LOOK_NS};
    while (look_at_all(trace) && rm_now_ns() < trace->until_ns + GRACE_NS)
        nanosleep(&moment, NULL);
}

static int record(struct trace *trace, struct rm_ctl_client *client, double seconds)
{
    struct rm_error error = {""};
    json_t *reply = NULL;
    int rc = attach(trace, client, &error);
    if (rc || !trace->board.run)
        return rc;
    for (uint32_t w = 0; w < trace->board.run->workers; w++)
        trace->track[w].next = RM_SEE(&trace->board.workers[w].traced);
    rc =
        rm_ctl_client_call(client, "trace", json_pack("{s:f}", "seconds", seconds), &reply, &error);
    if (rc)
        return rm_ctl_complain(rm_ctl_client_exit_code(rc), "%s", error.text);
    trace->from_ns = (uint64_t)json_integer_value(json_object_get(reply, "from_ns"));
    trace->until_ns = (uint64_t)json_integer_value(json_object_get(reply, "until_ns"));
    json_decref(reply);
    follow(trace);
    setpriority(PRIO_PROCESS, 0, 19); /* the run's processes come before the writing of the file */
    return 0;
}

int rm_ctl_trace(const struct rm_ctl_arguments *given)
{
    const char *file = rm_ctl_value(given, "output");
    double seconds = 1;
    struct rm_ctl_client client;
    if (rm_ctl_number(given, "seconds", 0.001, 60, &seconds))
        return RM_CTL_USAGE;
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory for a trace");
    trace->board.region.fd = -1;
    int rc = rm_find_open(&client, given);
    if (rc == 0) {
        rc = record(trace, &client, seconds);
        rm_ctl_client_close(&client);
    }
    if (rc == 0)
        rc = write_trace(trace, file ? file : "trace.json");
    for (uint32_t w = 0; w < RM_BOARD_WORKERS; w++)
        free(trace->track[w].mark);
    if (trace->board.run)
        rm_board_close(&trace->board);
    free(trace);
    return rc;
}
