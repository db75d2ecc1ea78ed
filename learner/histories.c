#include "learner/histories.h"

#include "config/config.h"
#include "learner/net/features.h"
#include "learner/net/history.h"
#include "learner/offline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#define NARROW_MAX 65536u
#define SLOTS_MIN  1024u

/* A row without its observation, which comes before it. */
struct tail {
    int32_t action; /* 0 if no step starts here */
    float reward;   /* on arriving here */
    uint32_t last;  /* no step starts here */
};

/* The distinct rows: (count, bytes), and a table of their numbers plus 1 by hash. */
struct distinct {
    size_t obs_bytes, bytes;
    uint8_t *row;
    uint32_t count, room;
    uint32_t *slot; /* (slots), a power of two */
    uint32_t slots;
};

struct pair {
    uint64_t row; /* where its region begins */
    uint32_t region;
};

struct part {
    struct rm_histories_count count;
    struct pair *pair;
    uint64_t room;
};

struct rm_histories {
    const struct rm_env_agent *agent;
    uint32_t region, width, query_codes;
    uint64_t first_steps, hash;
    uint32_t held_out_lanes;
    struct distinct distinct;
    uint32_t *wide;   /* (rows) numbers of distinct rows, while the histories are read */
    uint16_t *narrow; /* the same afterwards, if they fit; else NULL */
    uint64_t rows, room;
    struct part part[RM_HISTORIES_PARTS];
};

/* --- distinct rows ---------------------------------------------------------------------------- */

static struct tail *tail_of(const struct distinct *d, uint32_t number)
{
    return (struct tail *)(void *)(d->row + number * d->bytes + d->obs_bytes);
}

static uint32_t *slot_for(const struct distinct *d, const uint8_t *row)
{
    uint32_t at = (uint32_t)XXH3_64bits(row, d->bytes) & (d->slots - 1);
    while (d->slot[at] && memcmp(d->row + (d->slot[at] - 1) * d->bytes, row, d->bytes) != 0)
        at = (at + 1) & (d->slots - 1);
    return &d->slot[at];
}

/* Room for one more. */
static bool make_room(struct distinct *d)
{
    const uint32_t room = d->room ? 2 * d->room : SLOTS_MIN / 2;
    if (d->count < d->room)
        return true;
    uint8_t *rows = room > d->room ? realloc(d->row, room * d->bytes) : NULL;
    uint32_t *slots = rows ? calloc(2 * (size_t)room, sizeof *slots) : NULL;
    d->row = rows ? rows : d->row;
    if (!slots)
        return false;
    free(d->slot);
    d->slot = slots;
    d->slots = 2 * room;
    d->room = room;
    for (uint32_t i = 0; i < d->count; i++)
        *slot_for(d, d->row + i * d->bytes) = i + 1;
    return true;
}

/* The number of a row; false: no memory, or more than 2^30 of them. */
static bool number_of(struct distinct *d, const uint8_t *row, uint32_t *number)
{
    if (d->count == UINT32_C(1) << 30 || !make_room(d))
        return false;
    uint32_t *slot = slot_for(d, row);
    if (!*slot) {
        memcpy(d->row + d->count * d->bytes, row, d->bytes);
        *slot = ++d->count;
    }
    *number = *slot - 1;
    return true;
}

/* --- a lane ----------------------------------------------------------------------------------- */

/* A history on its way: rows of which those that end an episode, or were not followed by the next,
 * start no step. */
struct lane {
    uint32_t *row;
    uint64_t rows, room, steps;
    bool over;           /* it has all steps that are wanted, or rows after it were lost */
    uint64_t next;       /* the recorded row that comes next */
    uint64_t generation; /* of the row before it */
};

struct reading {
    struct rm_histories *histories;
    struct rm_recording *recording;
    const struct rm_recording_stream *stream;
    int obs, reward, flags, action, generation; /* columns */
    struct lane *lane;                          /* (lanes) */
    uint8_t *row;                               /* one, as in `distinct` */
};

static bool append(struct rm_histories *h, struct lane *l, const uint8_t *row)
{
    if (l->rows == l->room) {
        const uint64_t room = l->room ? 2 * l->room : 256;
        uint32_t *rows = realloc(l->row, room * sizeof *rows);
        if (!rows)
            return false;
        l->row = rows;
        l->room = room;
    }
    return number_of(&h->distinct, row, &l->row[l->rows++]);
}

/* No step starts in the lane's latest row after all. */
static bool cut(struct reading *r, struct lane *l)
{
    struct distinct *d = &r->histories->distinct;
    if (!l->rows || tail_of(d, l->row[l->rows - 1])->last)
        return true;
    memcpy(r->row, d->row + l->row[l->rows - 1] * d->bytes, d->bytes);
    struct tail *tail = (struct tail *)(void *)(r->row + d->obs_bytes);
    tail->action = 0;
    tail->last = 1;
    return number_of(d, r->row, &l->row[l->rows - 1]);
}

static const uint8_t *value(const struct reading *r, void *const columns[], int column,
                            uint64_t entry)
{
    return (const uint8_t *)columns[column] + entry * r->stream->column[column].bytes;
}

/* Row `i` of a chunk of a lane. */
static int take_row(struct reading *r, uint32_t number, void *const columns[],
                    const struct rm_recording_chunk *chunk, uint32_t i, struct rm_error *error)
{
    struct rm_histories *h = r->histories;
    struct lane *l = &r->lane[number];
    const uint64_t entry = (uint64_t)number * chunk->entries + i, row = chunk->first + i;
    const uint8_t flags = *value(r, columns, r->flags, entry);
    const bool last = flags & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED);
    struct tail tail = {.last = last};
    uint64_t generation;
    if (l->over)
        return 0;
    memcpy(&generation, value(r, columns, r->generation, i), sizeof generation);
    const bool follows = !l->rows || (row == l->next && generation == l->generation);
    l->over = l->rows && row != l->next;
    l->next = row + 1;
    l->generation = generation;
    bool done = true;
    if (l->over || !follows || (flags & (RM_ENV_FIRST | RM_ENV_VOID | RM_ENV_DEAD)))
        done = cut(r, l);
    if (done && !l->over && !(flags & (RM_ENV_VOID | RM_ENV_DEAD))) {
        l->steps += l->rows && !tail_of(&h->distinct, l->row[l->rows - 1])->last;
        memcpy(&tail.reward, value(r, columns, r->reward, entry), sizeof tail.reward);
        if (!last)
            memcpy(&tail.action, value(r, columns, r->action, entry), sizeof tail.action);
        if (tail.action < 0 || (uint32_t)tail.action >= h->agent->actions)
            return rm_fail(error, -EBADMSG,
                           "stream %s, lane %u, row %" PRIu64 ": action %d is none of %u",
                           r->stream->name, number, row, tail.action, h->agent->actions);
        memcpy(r->row, value(r, columns, r->obs, entry), r->stream->column[r->obs].bytes);
        memcpy(r->row + h->distinct.obs_bytes, &tail, sizeof tail);
        done = append(h, l, r->row);
        l->over = h->first_steps && l->steps == h->first_steps;
    }
    return done ? 0 : rm_fail(error, -ENOMEM, "no memory for its histories");
}

/* --- into the data set ------------------------------------------------------------------------ */

static uint32_t number_at(const struct rm_histories *h, uint64_t row)
{
    return h->narrow ? h->narrow[row] : h->wide[row];
}

static int add_pair(struct part *p, uint64_t row, uint32_t region)
{
    if (p->count.pairs == p->room) {
        const uint64_t room = p->room ? 2 * p->room : 64;
        struct pair *pairs = realloc(p->pair, room * sizeof *pairs);
        if (!pairs)
            return -ENOMEM;
        p->pair = pairs;
        p->room = room;
    }
    p->pair[p->count.pairs++] = (struct pair){row, region};
    return 0;
}

/* The whole regions of a lane. */
static int add_lane(struct rm_histories *h, struct part *p, const struct lane *l)
{
    const uint64_t steps = l->steps / h->region * h->region;
    uint64_t step = 0, row = 0;
    if (h->rows + l->rows > h->room) {
        const uint64_t room = 2 * (h->rows + l->rows);
        uint32_t *rows = realloc(h->wide, room * sizeof *rows);
        if (!rows)
            return -ENOMEM;
        h->wide = rows;
        h->room = room;
    }
    for (; step < steps; row++) {
        if (tail_of(&h->distinct, l->row[row])->last)
            continue;
        if (step % h->region == 0 && add_pair(p, h->rows + row, (uint32_t)(step / h->region)) < 0)
            return -ENOMEM;
        step++;
    }
    const uint64_t rows = steps ? row + 1 : 0; /* the last step ends in the row after it */
    if (rows)
        memcpy(h->wide + h->rows, l->row, rows * sizeof *l->row);
    h->rows += rows;
    p->count.lanes += steps > 0;
    return 0;
}

/* Numbers in 2 bytes if that is enough; what only reading needs is released. */
static void pack(struct rm_histories *h)
{
    free(h->distinct.slot);
    h->distinct.slot = NULL;
    if (h->rows && h->distinct.count <= NARROW_MAX &&
        (h->narrow = malloc(h->rows * sizeof *h->narrow))) {
        for (uint64_t i = 0; i < h->rows; i++)
            h->narrow[i] = (uint16_t)h->wide[i];
        free(h->wide);
        h->wide = NULL;
    }
}

/* --- a recording ------------------------------------------------------------------------------ */

static int column_of(const struct rm_recording_stream *stream, const char *name)
{
    int c = 0;
    while (strcmp(stream->column[c].name, name) !=
           0) /* rm_offline_recording_check(): it is there */
        c++;
    return c;
}

static int read_span(struct reading *r, const struct rm_recording_span *span,
                     struct rm_error *error)
{
    void *columns[RM_RECORDING_COLUMNS];
    int rc = rm_offline_read(r->recording, span, columns, error);
    if (rc < 0)
        return rc;
    for (uint32_t l = 0; l < r->stream->lanes; l++)
        for (uint32_t i = 0; rc == 0 && i < span->rows; i++)
            rc = take_row(r, l, columns, &r->recording->chunk[span->chunk], span->skip + i, error);
    for (uint32_t c = 0; c < r->stream->columns; c++)
        free(columns[c]);
    return rc;
}

static bool all_over(const struct reading *r)
{
    for (uint32_t l = 0; l < r->stream->lanes; l++)
        if (!r->lane[l].over)
            return false;
    return true;
}

static int read_stream(struct rm_histories *h, struct rm_recording *recording, uint32_t number,
                       struct part *part, uint32_t *lanes_left, struct rm_error *error)
{
    const struct rm_recording_stream *stream = &recording->stream[number];
    struct reading r = {
        .histories = h,
        .recording = recording,
        .stream = stream,
        .obs = column_of(stream, "obs"),
        .reward = column_of(stream, "reward"),
        .flags = column_of(stream, "flags"),
        .action = column_of(stream, "action"),
        .generation = column_of(stream, "generation"),
        .lane = calloc(stream->lanes, sizeof *r.lane),
        .row = calloc(1, h->distinct.bytes),
    };
    struct rm_recording_span *spans = NULL;
    uint64_t lost;
    const int64_t n =
        r.lane && r.row ? rm_recording_spans(recording, number, &spans, &lost) : -ENOMEM;
    int rc = n < 0 ? (int)n : 0;
    if (rc < 0)
        rm_fail(error, rc, "no memory for its histories");
    for (uint32_t l = *lanes_left; rc == 0 && l < stream->lanes; l++)
        r.lane[l].over = true;
    for (int64_t i = 0; rc == 0 && i < n && !all_over(&r); i++)
        rc = read_span(&r, &spans[i], error);
    for (uint32_t l = 0; r.lane && l < stream->lanes; l++) {
        if (rc == 0 && add_lane(h, part, &r.lane[l]) < 0)
            rc = rm_fail(error, -ENOMEM, "no memory for its histories");
        free(r.lane[l].row);
    }
    *lanes_left -= *lanes_left < stream->lanes ? *lanes_left : stream->lanes;
    free(r.lane);
    free(r.row);
    free(spans);
    return rc;
}

static int read_recording(struct rm_histories *h, struct rm_recording *r,
                          const struct rm_policy_plan *plan, enum rm_histories_part which,
                          struct rm_error *error)
{
    struct part *part = &h->part[which];
    uint32_t left =
        which == RM_HISTORIES_HELD_OUT && h->held_out_lanes ? h->held_out_lanes : UINT32_MAX;
    int rc = 0;
    h->hash = rm_offline_hash(r, h->hash);
    part->count.recordings++;
    for (uint32_t s = 0; rc == 0 && s < r->streams; s++)
        if (strcmp(r->stream[s].policy, plan->name) == 0)
            rc = read_stream(h, r, s, part, &left, error);
    return rc;
}

/* --- which are held out? ---------------------------------------------------------------------- */

static bool same(const json_t *a, const json_t *b)
{
    return json_is_number(a) && json_is_number(b) ? json_number_value(a) == json_number_value(b)
                                                  : json_equal(a, b);
}

/* Has an experiment one of the values of this key? */
static int has_value(const struct rm_experiment *e, const char *key, const json_t *values,
                     struct rm_error *error)
{
    json_t *own = rm_config_get(e, key, error);
    const json_t *one;
    size_t i;
    int has = 0;
    if (!json_is_array(values) || !own) {
        has = own ? rm_fail(error, -EINVAL, "%s should be a list of values", key) : -EINVAL;
        json_decref(own);
        return rm_fail_within(error, has, "sample.held_out");
    }
    json_array_foreach(values, i, one)
    {
        has |= same(own, one);
    }
    json_decref(own);
    return has;
}

/* 1: it is held out. `keys`: sample.held_out. */
static int is_held_out(const struct rm_recording *r, const json_t *keys, struct rm_error *error)
{
    struct rm_experiment *made;
    const char *key;
    json_t *values;
    if (json_object_size(keys) == 0)
        return 0;
    const int rc = rm_offline_experiment(r, &made, error);
    int held = rc < 0 ? rc : 1;
    json_object_foreach((json_t *)keys, key, values)
    {
        held = held == 1 ? has_value(made, key, values, error) : held;
    }
    free(made);
    return held;
}

/* --- the data set ----------------------------------------------------------------------------- */

/* Every observation is a query. */
static int check_queries(const struct rm_histories *h, struct rm_error *error)
{
    const struct distinct *d = &h->distinct;
    float *row = malloc(h->width * sizeof *row);
    int rc = row ? 0 : rm_fail(error, -ENOMEM, "no memory for an observation");
    for (uint32_t i = 0; rc == 0 && i < d->count; i++)
        if (!rm_features_query(h->agent, h->query_codes, d->row + i * d->bytes, row))
            rc = rm_fail(error, -EBADMSG,
                         "sample.from: an observation is outside of the world's "
                         "bounds or no whole number");
    free(row);
    return rc;
}

static int read_all(struct rm_histories *h, const struct rm_experiment *e,
                    const struct rm_policy_plan *plan, struct rm_error *error)
{
    json_t *keys = json_loads(e->sample.held_out, 0, NULL);
    struct rm_offline_folders found;
    int rc = rm_offline_find(&found, e->sample.from, error);
    for (size_t i = 0; rc == 0 && i < found.count; i++) {
        struct rm_recording r;
        uint32_t streams;
        const char *folder = rm_offline_folder(&found, i);
        rc = rm_offline_recording_open(&r, folder, e, error);
        const bool open = rc == 0;
        if (rc == 0)
            rc = rm_offline_recording_check(&r, e, plan, h->agent, &streams, error);
        const int held = rc == 0 ? is_held_out(&r, keys, error) : rc;
        rc = held < 0 ? held
                      : read_recording(h, &r, plan,
                                       held ? RM_HISTORIES_HELD_OUT : RM_HISTORIES_TRAINED, error);
        if (open)
            rm_recording_close(&r);
        if (rc < 0)
            rm_fail_within(error, rc, "sample.from: %s", folder);
    }
    rm_offline_forget(&found);
    json_decref(keys);
    return rc;
}

static int check_pairs(const struct rm_histories *h, const struct rm_experiment *e,
                       struct rm_error *error)
{
    static const char *const words[] = {"to learn from", "held out"};
    for (int p = 0; p < RM_HISTORIES_PARTS; p++)
        if (h->part[p].count.pairs == 0 &&
            (p == RM_HISTORIES_TRAINED || strcmp(e->sample.held_out, "{}") != 0))
            return rm_fail(error, -ENODATA,
                           "sample.from: %s: %u %s %s, none with a region of %u steps "
                           "(sample.region)",
                           e->sample.from, h->part[p].count.recordings,
                           h->part[p].count.recordings == 1 ? "recording" : "recordings", words[p],
                           h->region);
    return 0;
}

int rm_histories_open(struct rm_histories **histories, const struct rm_experiment *e,
                      const struct rm_plan *plan, uint32_t policy, const struct rm_env_agent *agent,
                      struct rm_error *error)
{
    struct rm_histories *h = calloc(1, sizeof *h);
    *histories = NULL;
    if (!h)
        return rm_fail(error, -ENOMEM, "no memory for histories");
    h->agent = agent;
    h->region = e->sample.region;
    h->first_steps = e->sample.first_steps;
    h->held_out_lanes = e->sample.held_out_lanes;
    h->width = rm_history_width(rm_features_step_count(agent));
    h->query_codes = plan->policy[policy].shape.history.query_codes;
    h->distinct.obs_bytes = (plan->policy[policy].obs_bytes + 3) / 4 * 4;
    h->distinct.bytes = h->distinct.obs_bytes + sizeof(struct tail);
    int rc = read_all(h, e, &plan->policy[policy], error);
    if (rc == 0)
        rc = check_pairs(h, e, error);
    if (rc == 0)
        rc = check_queries(h, error);
    if (rc < 0) {
        rm_histories_close(h);
        return rc;
    }
    pack(h);
    *histories = h;
    return 0;
}

void rm_histories_close(struct rm_histories *h)
{
    if (!h)
        return;
    for (int p = 0; p < RM_HISTORIES_PARTS; p++)
        free(h->part[p].pair);
    free(h->distinct.row);
    free(h->distinct.slot);
    free(h->wide);
    free(h->narrow);
    free(h);
}

struct rm_histories_count rm_histories_count(const struct rm_histories *h,
                                             enum rm_histories_part part)
{
    return h->part[part].count;
}

size_t rm_histories_bytes(const struct rm_histories *h)
{
    size_t bytes = h->rows * (h->narrow ? sizeof *h->narrow : sizeof *h->wide) +
                   h->distinct.room * h->distinct.bytes;
    for (int p = 0; p < RM_HISTORIES_PARTS; p++)
        bytes += h->part[p].room * sizeof(struct pair);
    return bytes;
}

uint64_t rm_histories_hash(const struct rm_histories *h)
{
    return h->hash;
}

/* --- pairs ------------------------------------------------------------------------------------ */

/* The next row at or after `row` in which a step starts. */
static uint64_t step_at(const struct rm_histories *h, uint64_t row)
{
    while (tail_of(&h->distinct, number_at(h, row))->last)
        row++;
    return row;
}

/* Writes the step of a row. */
static void put_step(const struct rm_histories *h, uint64_t row, float *to)
{
    const struct distinct *d = &h->distinct;
    const uint32_t from = number_at(h, row), end = number_at(h, row + 1);
    rm_history_put(to, RM_HISTORY_TRANSITION, 0, NULL, 0);
    rm_features_step(h->agent, d->row + from * d->bytes, (uint32_t)tail_of(d, from)->action,
                     tail_of(d, end)->reward, d->row + end * d->bytes, to + RM_HISTORY_FEATURES);
}

static float *put_mark(const struct rm_histories *h, enum rm_history_kind kind, float *to)
{
    rm_history_put(to, kind, 0, NULL, h->width - RM_HISTORY_FEATURES);
    return to + h->width;
}

/* Writes `steps` steps from a row on. Returns where the next row of the matrix is. */
static float *put_steps(const struct rm_histories *h, uint64_t row, uint32_t steps, float *to)
{
    for (uint32_t i = 0; i < steps; i++, row++, to += h->width)
        put_step(h, row = step_at(h, row), to);
    return to;
}

/* The query of a row's state. */
static void put_query(const struct rm_histories *h, uint64_t row, float *to)
{
    const struct distinct *d = &h->distinct;
    rm_features_query(h->agent, h->query_codes, d->row + number_at(h, row) * d->bytes, to);
}

uint32_t rm_histories_pair(const struct rm_histories *h, enum rm_histories_part part,
                           uint64_t number, float *matrix, int32_t *action)
{
    const struct pair *pair = &h->part[part].pair[number];
    const size_t context = 2 * (size_t)h->region + 2;
    float *to = put_mark(h, RM_HISTORY_BEGIN, matrix);
    if (pair->region) {
        to = put_steps(h, pair[-1].row, h->region, to);
        to = put_mark(h, RM_HISTORY_END, to);
        to = put_mark(h, RM_HISTORY_BEGIN, to);
    }
    to = put_steps(h, pair->row, h->region - 1, to);
    float *queries = matrix + context * h->width;
    memset(to, 0, (size_t)(queries - to) * sizeof *to);
    uint64_t row = pair->row;
    for (uint32_t q = 0; q < h->region; q++, row++, queries += h->width) {
        row = step_at(h, row);
        put_query(h, row, queries);
        action[q] = tail_of(&h->distinct, number_at(h, row))->action;
    }
    return pair->region;
}
