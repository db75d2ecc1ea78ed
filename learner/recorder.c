#include "learner/recorder.h"

#include "actor/worlds/described.h"
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "learner/recorded_rows.h"
#include "learner/recording.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/severity.h"
#include "shm/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES    (1u << 20) /* of a ring's rows in a chunk, about */
#define CHUNK_ROWS_MAX 4096u
#define CHUNK_AGE_NS   (5 * RM_NS_PER_S) /* an older one is written although it is not full */
#define TURN_BYTES     (1u << 18)        /* copied in a turn, of every ring */
#define STOP_LOOK_US   10000

/* The latest episode of a lane, as far as it was seen. */
struct episode {
    uint64_t row; /* its first; UINT64_MAX: that was not seen */
    uint32_t steps;
    double sum;
};

/* A ring, and the chunk that is being filled with its rows. Rows are counted from the ring's first
 * index. */
struct part {
    struct rm_ring *ring;
    uint32_t number;      /* of its stream */
    uint64_t next;        /* row that is copied next */
    uint64_t first;       /* of the chunk */
    uint32_t held, most;  /* its rows, and how many it takes */
    uint32_t ended, room; /* its episodes, and how many there is room for */
    uint64_t since_ns;    /* when its first row was copied */
    uint8_t *rows;        /* (most, row_bytes) */
    uint8_t *column[RM_RECORDING_COLUMNS];
    struct episode *episode; /* (lanes), with "episode" */
};

struct rm_recorder {
    struct rm_session *session;
    struct rm_board_worker *slot;
    struct rm_phase_clock clock;
    struct rm_wake wake;
    struct rm_world_spec world;
    bool episodes, waits;
    bool failing; /* the latest chunk could not be written */
    uint32_t parts;
    struct part *part;
    struct rm_recording_stream *stream;
    struct rm_recording_writer *writer;
};

/* --- what a stream has ------------------------------------------------------------------------ */

enum { LANE, ROW, STEPS, RETURN, FLAGS, VERSION, EPISODE_COLUMNS };

static void add_episode_columns(struct rm_recording_stream *stream)
{
    static const struct {
        const char *name;
        enum rm_recording_type type;
    } columns[EPISODE_COLUMNS] = {
        [LANE] = {"lane", RM_RECORDED_U32},   [ROW] = {"row", RM_RECORDED_U64},
        [STEPS] = {"steps", RM_RECORDED_U32}, [RETURN] = {"return", RM_RECORDED_F64},
        [FLAGS] = {"flags", RM_RECORDED_U8},  [VERSION] = {"version", RM_RECORDED_U64},
    };
    for (int c = 0; c < EPISODE_COLUMNS; c++)
        rm_recording_add_column(stream, columns[c].name, columns[c].type, false, 0, NULL);
}

static void describe(const struct rm_recorder *r, uint32_t number)
{
    const struct rm_session *s = r->session;
    const uint32_t actor = number / s->objects.policies, p = number % s->objects.policies;
    const struct rm_policy_plan *plan = &s->plan.policy[p];
    const struct rm_env_agent *agent = &r->world.spec->agent[plan->agent[0]];
    struct rm_recording_stream *stream = &r->stream[number];
    snprintf(stream->name, sizeof stream->name, "actor-%u.%.40s", actor, plan->name);
    snprintf(stream->policy, sizeof stream->policy, "%.47s", plan->name);
    stream->actor = actor;
    stream->agents = plan->agents;
    rm_session_worlds(&s->experiment, actor, &stream->first_world, &stream->worlds);
    stream->lanes = stream->agents * stream->worlds;
    stream->actions = agent->actions;
    if (r->episodes)
        add_episode_columns(stream);
    else
        rm_recorded_columns(stream, plan, agent);
}

/* --- chunks ----------------------------------------------------------------------------------- */

/* From rows to columns. */
static void gather(const struct rm_recorder *r, struct part *part)
{
    const struct rm_recording_stream *stream = &r->stream[part->number];
    for (uint32_t c = 0; c < stream->columns; c++)
        rm_recorded_gather(part->ring, &stream->column[c], stream->lanes, part->rows, part->held,
                           part->column[c]);
}

static void count_written(struct rm_recorder *r, const struct part *part)
{
    RM_ADD_OWN(&r->slot->recorded_rows, (uint64_t)part->held * r->stream[part->number].lanes);
    RM_POKE(&r->slot->recorded_bytes, rm_recording_writer_bytes(r->writer));
}

static void count_lost(struct rm_recorder *r, const struct part *part, uint64_t rows)
{
    RM_ADD_OWN(&r->slot->lost_rows, rows * r->stream[part->number].lanes);
}

/* Rows that may be overwritten now. */
static void give_back(struct rm_recorder *r, const struct part *part, uint64_t row)
{
    rm_ring_record(part->ring, part->ring->spec.first_index + row);
    if (r->waits)
        rm_session_wake_actors(r->session);
}

static void write_chunk(struct rm_recorder *r, struct part *part)
{
    struct rm_error error = {""};
    if (part->held == 0)
        return;
    const enum rm_phase before = rm_phase_enter(&r->clock, RM_PHASE_PUBLISH);
    if (!r->episodes)
        gather(r, part);
    const int rc = rm_recording_write(r->writer, part->number, part->first, part->held,
                                      r->episodes ? part->ended : part->held,
                                      (const void *const *)part->column, &error);
    if (rc == 0)
        count_written(r, part);
    else
        count_lost(r, part, part->held);
    if (rc < 0 && !r->failing)
        fprintf(stderr, RM_SEVERITY_WARNING "rows cannot be recorded and are lost: %s\n",
                error.text);
    else if (rc == 0 && r->failing)
        fprintf(stderr, RM_SEVERITY_NOTICE "rows are recorded again\n");
    r->failing = rc < 0;
    part->first += part->held;
    part->held = part->ended = 0;
    if (r->waits)
        give_back(r, part, part->first);
    rm_phase_enter(&r->clock, before);
}

static void forget_episodes(const struct rm_recorder *r, struct part *part)
{
    for (uint32_t lane = 0; part->episode && lane < r->stream[part->number].lanes; lane++)
        part->episode[lane].row = UINT64_MAX;
}

/* Rows before `row` are gone. The chunk ends before them. */
static void lose(struct rm_recorder *r, struct part *part, uint64_t row)
{
    write_chunk(r, part);
    count_lost(r, part, row - part->next);
    forget_episodes(r, part);
    part->next = part->first = row;
}

static void end_episode(struct part *part, uint32_t lane, uint8_t flags, uint64_t version)
{
    const struct episode *e = &part->episode[lane];
    const bool whole = e->row != UINT64_MAX;
    const double sum = whole ? e->sum : (double)NAN;
    const uint32_t i = part->ended++, steps = whole ? e->steps : 0;
    memcpy(part->column[LANE] + i * sizeof lane, &lane, sizeof lane);
    memcpy(part->column[ROW] + i * sizeof e->row, &e->row, sizeof e->row);
    memcpy(part->column[STEPS] + i * sizeof steps, &steps, sizeof steps);
    memcpy(part->column[RETURN] + i * sizeof sum, &sum, sizeof sum);
    part->column[FLAGS][i] = flags;
    memcpy(part->column[VERSION] + i * sizeof version, &version, sizeof version);
}

/* Follows the episodes of all lanes through one more row. */
static void follow(const struct rm_recorder *r, struct part *part, uint64_t number)
{
    const uint8_t *row = part->rows, *flags = row + part->ring->flags_at;
    const float *reward = (const float *)(const void *)(row + part->ring->reward_at);
    const struct rm_row_head *head = (const struct rm_row_head *)(const void *)row;
    for (uint32_t lane = 0; lane < r->stream[part->number].lanes; lane++) {
        struct episode *e = &part->episode[lane];
        if (flags[lane] & RM_FLAG_FIRST)
            *e = (struct episode){.row = number};
        else if (!(flags[lane] & RM_FLAG_DEAD)) {
            e->sum += (double)reward[lane];
            e->steps++;
        }
        if (!(flags[lane] & RM_FLAG_LAST) || (flags[lane] & RM_FLAG_DEAD))
            continue;
        end_episode(part, lane, flags[lane], head->policy_version);
        e->row = UINT64_MAX;
    }
}

/* --- copying ---------------------------------------------------------------------------------- */

/* Copies rows as far as there are any and the chunk has room. Returns how many. */
static uint32_t copy(struct rm_recorder *r, struct part *part)
{
    const struct rm_ring *ring = part->ring;
    const uint64_t origin = ring->spec.first_index;
    uint64_t first, end;
    rm_ring_window(ring, &first, &end);
    if ((int64_t)(first - origin - part->next) > 0)
        lose(r, part, first - origin);
    uint64_t there = end - origin - part->next;
    if ((int64_t)there <= 0)
        return 0;
    uint64_t n = part->most - part->held, turn = 1 + TURN_BYTES / ring->row_bytes;
    n = n < there ? n : there;
    n = n < turn ? n : turn;
    if (r->episodes)
        n = 1;
    if (part->held == 0)
        part->since_ns = rm_now_ns();
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *row =
            ring->data + ((origin + part->next + i) & ring->mask) * ring->row_bytes;
        rm_ring_copy_out(part->rows + (r->episodes ? 0 : part->held + i) * ring->row_bytes, row,
                         ring->row_bytes);
    }
    if (!rm_ring_intact(ring, origin + part->next))
        return 1; /* some were overwritten: the next turn sees which */
    if (r->episodes)
        follow(r, part, part->next);
    part->held += (uint32_t)n;
    part->next += n;
    if (!r->waits)
        give_back(r, part, part->next);
    return (uint32_t)n;
}

static bool is_due(const struct rm_recorder *r, const struct part *part)
{
    if (part->held == part->most)
        return true;
    if (r->episodes && part->ended + r->stream[part->number].lanes > part->room)
        return true;
    return part->held && rm_now_ns() - part->since_ns > CHUNK_AGE_NS;
}

static bool turn(struct rm_recorder *r)
{
    bool worked = false;
    for (uint32_t i = 0; i < r->parts; i++) {
        struct part *part = &r->part[i];
        worked |= copy(r, part) > 0;
        if (is_due(r, part)) {
            write_chunk(r, part);
            worked = true;
        }
    }
    return worked;
}

/* Wakes this duty when a quarter of the smallest ring, or of a chunk, may be there. */
static void set_next(struct rm_recorder *r)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < r->parts; i++) {
        const struct part *part = &r->part[i];
        const uint64_t rows =
            part->ring->spec.rows < part->most ? part->ring->spec.rows : part->most;
        const uint64_t steps = (rows / 4 ? rows / 4 : 1) * r->stream[i].worlds;
        least = steps < least ? steps : least;
    }
    rm_atomic_await_count(&r->wake.word->threshold, rm_session_steps(r->session) + least);
}

static int do_work(void *self, struct rm_error *error)
{
    struct rm_recorder *r = self;
    (void)error;
    set_next(r);
    r->clock.waits = RM_WAIT_ROWS;
    return turn(r);
}

void rm_recorder_finish(struct rm_recorder *r)
{
    const struct rm_session *s = r->session;
    const uint64_t until =
        rm_now_ns() + (uint64_t)(s->experiment.supervisor.stop_grace_s / 2 * (double)RM_NS_PER_S);
    for (uint32_t a = 0; a < s->objects.actors;) {
        const uint32_t state = RM_SEE(&s->board.workers[rm_worker_actor(&s->objects, a)].state);
        const bool ended =
            state == RM_WORKER_NONE || state == RM_WORKER_DONE || state == RM_WORKER_FAILED;
        if (ended || !rm_session_has_process(s, rm_worker_actor(&s->objects, a))) {
            a++;
        } else if (rm_now_ns() > until) {
            break;
        } else {
            (void)turn(r);
            usleep(STOP_LOOK_US);
        }
    }
    while (turn(r))
        ;
    for (uint32_t i = 0; i < r->parts; i++)
        write_chunk(r, &r->part[i]);
    const uint64_t lost = RM_PEEK(&r->slot->lost_rows);
    fprintf(stderr, "%srecorded %" PRIu64 " rows in %" PRIu64 " bytes; %" PRIu64 " were lost\n",
            lost ? RM_SEVERITY_WARNING : "", RM_PEEK(&r->slot->recorded_rows),
            RM_PEEK(&r->slot->recorded_bytes), lost);
}

/* --- making ----------------------------------------------------------------------------------- */

/* What is on disk already: counts, and where each stream goes on. */
static int go_on(struct rm_recorder *r, const char *folder, struct rm_error *error)
{
    struct rm_recording there;
    uint64_t rows = 0, lost = 0;
    int rc = rm_recording_open(&there, folder, error);
    for (uint32_t i = 0; rc == 0 && i < r->parts; i++) {
        struct rm_recording_span *spans;
        uint64_t gaps;
        const int64_t n = rm_recording_spans(&there, i, &spans, &gaps);
        for (int64_t k = 0; k < n; k++)
            rows += (uint64_t)spans[k].rows * r->stream[i].lanes;
        lost += gaps * r->stream[i].lanes;
        free(spans);
        if (n < 0)
            rc = rm_fail(error, (int)n, "%s: no memory", folder);
    }
    if (rc < 0)
        return rc;
    rm_recording_close(&there);
    for (uint32_t i = 0; i < r->parts; i++) {
        struct part *part = &r->part[i];
        const uint64_t end = rm_recording_writer_end(r->writer, i);
        const uint64_t made = rm_ring_recorded(part->ring) - part->ring->spec.first_index;
        part->next = part->first = end < made ? end : made;
        give_back(r, part, part->next);
    }
    RM_POKE(&r->slot->recorded_rows, rows);
    RM_POKE(&r->slot->lost_rows, lost);
    RM_POKE(&r->slot->recorded_bytes, rm_recording_writer_bytes(r->writer));
    return 0;
}

static int make_part(struct rm_recorder *r, uint32_t number, struct rm_error *error)
{
    struct part *part = &r->part[number];
    const struct rm_recording_stream *stream = &r->stream[number];
    part->number = number;
    part->ring = &r->session->rings[number];
    const size_t row = part->ring->row_bytes;
    uint64_t most = CHUNK_BYTES / row;
    if (r->waits && most > part->ring->spec.rows / 4)
        most = part->ring->spec.rows / 4;
    most = most < 1 ? 1 : most > CHUNK_ROWS_MAX ? CHUNK_ROWS_MAX : most;
    part->most = (uint32_t)most;
    part->room = r->episodes ? 2 * stream->lanes + CHUNK_ROWS_MAX : part->most;
    part->rows = malloc((r->episodes ? 1 : most) * row);
    bool made = part->rows != NULL;
    for (uint32_t c = 0; made && c < stream->columns; c++) {
        const struct rm_recording_column *column = &stream->column[c];
        const size_t lanes = column->per_lane ? stream->lanes : 1;
        part->column[c] = malloc(lanes * part->room * column->bytes);
        made = part->column[c] != NULL;
    }
    if (made && r->episodes) {
        part->episode = calloc(stream->lanes, sizeof *part->episode);
        made = part->episode != NULL;
    }
    if (!made)
        return rm_fail(error, -ENOMEM, "no memory for %" PRIu64 " rows of %zu bytes", most, row);
    forget_episodes(r, part);
    return 0;
}

static int open_recording(struct rm_recorder *r, struct rm_error *error)
{
    const struct rm_session *s = r->session;
    const char *directory = s->experiment.record.directory;
    char folder[RM_PATH_TEXT_MAX];
    const int n = directory[0] == '/'
                      ? snprintf(folder, sizeof folder, "%s", directory)
                      : snprintf(folder, sizeof folder, "%s/%s", s->directory, directory);
    if (n < 0 || (size_t)n >= sizeof folder)
        return rm_fail(error, -ENAMETOOLONG, "record.directory: the path is too long");
    const char *run = strrchr(s->directory, '/');
    json_t *experiment = rm_config_to_json(&s->experiment);
    if (!experiment)
        return rm_fail(error, -ENOMEM, "no memory for the experiment");
    int rc = rm_recording_writer_open(&r->writer, folder, run ? run + 1 : s->directory,
                                      s->experiment.record.every, experiment, r->stream, r->parts,
                                      error);
    json_decref(experiment);
    return rc == 0 ? go_on(r, folder, error) : rc;
}

static int create(struct rm_recorder *r, struct rm_error *error)
{
    const struct rm_session *s = r->session;
    r->parts = s->objects.actors * s->objects.policies;
    r->episodes = s->experiment.record.every == RM_RECORD_EPISODE;
    r->waits = s->experiment.record.wait;
    r->part = calloc(r->parts, sizeof *r->part);
    r->stream = calloc(r->parts, sizeof *r->stream);
    if (!r->part || !r->stream)
        return rm_fail(error, -ENOMEM, "no memory for %u rings", r->parts);
    int rc = rm_world_spec_open(&r->world, &s->experiment.world, s->experiment.seed, error);
    for (uint32_t i = 0; rc == 0 && i < r->parts; i++) {
        describe(r, i);
        rc = make_part(r, i, error);
    }
    return rc == 0 ? open_recording(r, error) : rc;
}

int rm_recorder_create(struct rm_recorder **recorder, struct rm_session *session,
                       struct rm_duty *duty, struct rm_error *error)
{
    struct rm_recorder *r = calloc(1, sizeof *r);
    const uint32_t worker = rm_worker_recorder(&session->objects);
    *recorder = NULL;
    if (!r)
        return rm_fail(error, -ENOMEM, "recorder: no memory");
    r->session = session;
    r->slot = &session->board.workers[worker];
    r->wake = rm_session_wake(session, worker);
    rm_phase_start(&r->clock, r->slot);
    int rc = create(r, error);
    if (rc < 0) {
        rm_recorder_destroy(r);
        return rm_fail_within(error, rc, "recorder");
    }
    *duty = (struct rm_duty){
        .self = r,
        .do_work = do_work,
        .run = session->board.run,
        .slot = r->slot,
        .wake = r->wake,
        .look_ns = rm_experiment_loads(&session->experiment) ? RM_DUTY_LOOK_NS : 0,
        .clock = &r->clock,
    };
    *recorder = r;
    return 0;
}

void rm_recorder_destroy(struct rm_recorder *r)
{
    if (!r)
        return;
    rm_recording_writer_close(r->writer);
    for (uint32_t i = 0; r->part && i < r->parts; i++) {
        free(r->part[i].rows);
        free(r->part[i].episode);
        for (uint32_t c = 0; c < RM_RECORDING_COLUMNS; c++)
            free(r->part[i].column[c]);
    }
    if (r->world.spec)
        rm_world_spec_close(&r->world);
    free(r->part);
    free(r->stream);
    free(r);
}
