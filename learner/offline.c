#include "learner/offline.h"

#include "actor/worlds/described.h"
#include "config/config.h"
#include "config/print.h"
#include "learner/net/reals.h"
#include "learner/recorded_rows.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#define ROWS_MAX (UINT64_C(1) << 30) /* of a ring */

/* --- which recordings? ------------------------------------------------------------------------ */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int rm_offline_find(struct rm_offline_folders *found, const char *from, struct rm_error *error)
{
    memset(found, 0, sizeof *found);
    if (access(from, F_OK) == 0 || !strpbrk(from, "*?[")) {
        found->count = 1;
        found->only = from;
        return 0;
    }
    const int rc = glob(from, GLOB_NOSORT, NULL, &found->paths);
    if (rc != 0)
        return rc == GLOB_NOMATCH
                   ? rm_fail(error, -ENOENT, "sample.from: no folder matches %s", from)
                   : rm_fail(error, -EIO, "sample.from: %s cannot be searched", from);
    found->count = found->paths.gl_pathc;
    qsort(found->paths.gl_pathv, found->count, sizeof *found->paths.gl_pathv, by_bytes);
    return 0;
}

const char *rm_offline_folder(const struct rm_offline_folders *found, size_t number)
{
    return found->only ? found->only : found->paths.gl_pathv[number];
}

void rm_offline_forget(struct rm_offline_folders *found)
{
    globfree(&found->paths);
}

/* --- does it fit? ----------------------------------------------------------------------------- */

struct words {
    char s[96];
};

/* "<f4 (2, 3)" */
static struct words type_and_shape(const struct rm_recording_column *column)
{
    struct words w;
    size_t used = (size_t)snprintf(w.s, sizeof w.s, "%s (", rm_recording_type_name(column->type));
    for (uint32_t d = 0; d < column->dims && used < sizeof w.s; d++)
        used += (size_t)snprintf(w.s + used, sizeof w.s - used, "%s%u", d ? ", " : "",
                                 column->shape[d]);
    if (used < sizeof w.s)
        snprintf(w.s + used, sizeof w.s - used, ")");
    return w;
}

static const struct rm_recording_column *find(const struct rm_recording_stream *stream,
                                              const char *name)
{
    for (uint32_t c = 0; c < stream->columns; c++)
        if (strcmp(stream->column[c].name, name) == 0)
            return &stream->column[c];
    return NULL;
}

static bool alike(const struct rm_recording_column *a, const struct rm_recording_column *b)
{
    return a->type == b->type && a->per_lane == b->per_lane && a->dims == b->dims &&
           memcmp(a->shape, b->shape, a->dims * sizeof *a->shape) == 0;
}

/* Every column of these rows, and no other. */
static int check_columns(const struct rm_recording_stream *stream,
                         const struct rm_recording_stream *want, struct rm_error *error)
{
    for (uint32_t c = 0; c < want->columns; c++) {
        const struct rm_recording_column *own = &want->column[c], *there = find(stream, own->name);
        if (!there)
            return rm_fail(error, -EINVAL, "stream %s has no column %s, which this world has",
                           stream->name, own->name);
        if (!alike(own, there))
            return rm_fail(error, -EINVAL, "stream %s: column %s is %s; this world has %s",
                           stream->name, own->name, type_and_shape(there).s, type_and_shape(own).s);
    }
    for (uint32_t c = 0; c < stream->columns; c++)
        if (!find(want, stream->column[c].name))
            return rm_fail(error, -EINVAL,
                           "stream %s has a column %s, which this world does not have",
                           stream->name, stream->column[c].name);
    return 0;
}

int rm_offline_experiment(const struct rm_recording *r, struct rm_experiment **experiment,
                          struct rm_error *error)
{
    struct rm_experiment *made = *experiment = malloc(sizeof *made);
    char *text = rm_json_text(json_object_get(r->about, "experiment"), false);
    const int rc = made && text
                       ? rm_config_parse(made, "its experiment", text, strlen(text), NULL, 0, error)
                       : rm_fail(error, -ENOMEM, "no memory for its experiment");
    free(text);
    return rc;
}

/* Recorded real actions are draws before they were bounded. */
static int check_bound(const struct rm_recording *r, const struct rm_experiment *e,
                       struct rm_error *error)
{
    struct rm_experiment *made;
    int rc = rm_offline_experiment(r, &made, error);
    if (rc == 0 && rm_bounds_by_tanh(made) != rm_bounds_by_tanh(e))
        rc =
            rm_fail(error, -EINVAL, "its actions were bounded by %s; set algorithm.bound to \"%s\"",
                    rm_bounds_by_tanh(made) ? "tanh" : "clipping",
                    rm_bounds_by_tanh(made) ? "tanh" : "clip");
    free(made);
    return rc;
}

static int check_stream(const struct rm_recording *r, const struct rm_recording_stream *stream,
                        const struct rm_experiment *e, const struct rm_policy_plan *plan,
                        const struct rm_env_agent *agent, struct rm_error *error)
{
    struct rm_recording_stream want = {.columns = 0};
    if (stream->agents != plan->agents)
        return rm_fail(error, -EINVAL,
                       "stream %s: %u agents of a world have policy %s; this experiment has %u",
                       stream->name, stream->agents, plan->name, plan->agents);
    if (stream->lanes != stream->agents * stream->worlds)
        return rm_fail(error, -EBADMSG, "stream %s: %u lanes are not %u agents in %u worlds",
                       stream->name, stream->lanes, stream->agents, stream->worlds);
    if (stream->actions != agent->actions)
        return rm_fail(error, -EINVAL,
                       "stream %s: agents chose among %u actions; this experiment has %u",
                       stream->name, stream->actions, agent->actions);
    rm_recorded_columns(&want, plan, agent);
    const int rc = check_columns(stream, &want, error);
    return rc == 0 && plan->reals ? check_bound(r, e, error) : rc;
}

static int no_stream(const struct rm_recording *r, const char *policy, struct rm_error *error)
{
    char all[512] = "";
    size_t used = 0;
    for (uint32_t s = 0; s < r->streams && used < sizeof all; s++)
        if (s == 0 || strcmp(r->stream[s].policy, r->stream[s - 1].policy) != 0)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", s ? ", " : "",
                                     r->stream[s].policy);
    return rm_fail(error, -EINVAL, "it has no rows of policy %s; its policies are: %s", policy,
                   all);
}

int rm_offline_recording_open(struct rm_recording *r, const char *folder,
                              const struct rm_experiment *e, struct rm_error *error)
{
    int rc = rm_recording_open(r, folder, error);
    if (rc < 0)
        return rc;
    if (strcmp(r->world, e->world.name) != 0)
        rc = rm_fail(error, -EINVAL,
                     "it is a recording of world \"%s\"; this experiment's is \"%s\"", r->world,
                     e->world.name);
    else if (r->every != RM_RECORD_STEP)
        rc = rm_fail(error, -EINVAL,
                     "it has only episodes (record.every \"episode\"); learning needs all steps");
    if (rc < 0)
        rm_recording_close(r);
    return rc;
}

int rm_offline_recording_check(const struct rm_recording *r, const struct rm_experiment *e,
                               const struct rm_policy_plan *plan, const struct rm_env_agent *agent,
                               uint32_t *count, struct rm_error *error)
{
    int rc = 0;
    *count = 0;
    for (uint32_t s = 0; rc == 0 && s < r->streams; s++)
        if (strcmp(r->stream[s].policy, plan->name) == 0) {
            rc = check_stream(r, &r->stream[s], e, plan, agent, error);
            ++*count;
        }
    return rc == 0 && *count == 0 ? no_stream(r, plan->name, error) : rc;
}

static int check_recording(const struct rm_experiment *e, const struct rm_plan *plan,
                           const struct rm_env_spec *spec, const char *folder,
                           struct rm_error *error)
{
    struct rm_recording r;
    uint32_t count;
    int rc = rm_offline_recording_open(&r, folder, e, error);
    const bool open = rc == 0;
    for (uint32_t p = 0; rc == 0 && p < plan->policies; p++)
        rc = rm_offline_recording_check(&r, e, &plan->policy[p],
                                        &spec->agent[plan->policy[p].agent[0]], &count, error);
    if (open)
        rm_recording_close(&r);
    return rc < 0 ? rm_fail_within(error, rc, "sample.from: %s", folder) : 0;
}

int rm_offline_check(const struct rm_experiment *e, const struct rm_plan *plan,
                     struct rm_error *error)
{
    struct rm_world_spec world;
    struct rm_offline_folders found;
    if (!rm_experiment_is_offline(e))
        return 0;
    int rc = rm_world_spec_open(&world, &e->world, e->seed, error);
    if (rc < 0)
        return rc;
    rc = rm_offline_find(&found, e->sample.from, error);
    for (size_t i = 0; rc == 0 && i < found.count; i++)
        rc = check_recording(e, plan, world.spec, rm_offline_folder(&found, i), error);
    rm_offline_forget(&found);
    rm_world_spec_close(&world);
    return rc;
}

/* --- its rows --------------------------------------------------------------------------------- */

/* A stream on its way into a ring. */
struct loading {
    struct rm_recording *recording;
    const struct rm_recording_stream *stream;
    struct rm_ring *ring;
    uint64_t piece;      /* the generation in the ring */
    uint64_t generation; /* the recorded one, of the row before */
    uint64_t next;       /* the row after it */
};

static void put_row(struct loading *l, void *const columns[],
                    const struct rm_recording_chunk *chunk, uint32_t i)
{
    struct rm_row row;
    (void)rm_ring_reserve(l->ring, &row); /* it overwrites if there is no room: there is */
    uint8_t *at = l->ring->data + (row.index & l->ring->mask) * l->ring->row_bytes;
    for (uint32_t c = 0; c < l->stream->columns; c++)
        rm_recorded_scatter(l->ring, &l->stream->column[c], l->stream->lanes, columns[c], i,
                            chunk->entries, at);
    const uint64_t number = chunk->first + i;
    if (number != l->next || *row.generation != l->generation)
        l->piece++;
    l->next = number + 1;
    l->generation = *row.generation;
    *row.generation = l->piece;
    rm_ring_commit(l->ring);
}

int rm_offline_read(struct rm_recording *r, const struct rm_recording_span *span,
                    void *columns[RM_RECORDING_COLUMNS], struct rm_error *error)
{
    char place[RM_PATH_TEXT_MAX + 64];
    const int rc = rm_recording_read(r, span->chunk, columns, error);
    const struct rm_recording_chunk *chunk = &r->chunk[span->chunk];
    if (rc < 0 || chunk->entries == chunk->rows)
        return rc;
    for (uint32_t c = 0; c < r->stream[chunk->stream].columns; c++)
        free(columns[c]);
    rm_fail(error, -EBADMSG, "%s is damaged: %u entries of %u rows",
            rm_recording_place(r, span->chunk, place, sizeof place), chunk->entries, chunk->rows);
    return -EBADMSG;
}

static int load_span(struct loading *l, const struct rm_recording_span *span,
                     struct rm_error *error)
{
    void *columns[RM_RECORDING_COLUMNS];
    const int rc = rm_offline_read(l->recording, span, columns, error);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < span->rows; i++)
        put_row(l, columns, &l->recording->chunk[span->chunk], span->skip + i);
    for (uint32_t c = 0; c < l->stream->columns; c++)
        free(columns[c]);
    return 0;
}

static int make_ring(struct rm_ring *ring, const struct rm_recording_stream *stream,
                     const struct rm_policy_plan *plan, uint32_t policy, uint64_t rows,
                     struct rm_error *error)
{
    uint64_t room = 4;
    while (room < rows)
        room *= 2;
    if (room > ROWS_MAX)
        return rm_fail(error, -EFBIG, "stream %s: %" PRIu64 " rows; a ring has at most %" PRIu64,
                       stream->name, rows, ROWS_MAX);
    const struct rm_ring_spec spec = {
        .mode = RM_RING_REPLAY,
        .rows = (uint32_t)room,
        .lanes = stream->lanes,
        .obs_bytes = plan->obs_bytes,
        .mask_bytes = plan->mask_bytes,
        .action_words = plan->action_words,
        .columns = plan->mask_bytes ? RM_COLUMN_MASK : 0,
        .actor = stream->actor,
        .policy = policy,
    };
    const int rc = rm_ring_create(ring, &spec, error);
    if (rc == 0)
        rm_ring_writer_open(ring);
    return rc;
}

static int load_stream(struct rm_offline *o, struct rm_recording *r, uint32_t number,
                       const struct rm_policy_plan *plan, uint32_t policy, struct rm_error *error)
{
    const struct rm_recording_stream *stream = &r->stream[number];
    struct rm_sampler_source *source = &o->source[o->count];
    struct rm_recording_span *spans;
    uint64_t lost, rows = 0;
    const int64_t n = rm_recording_spans(r, number, &spans, &lost);
    for (int64_t i = 0; i < n; i++)
        rows += spans[i].rows;
    struct loading l = {
        .recording = r, .stream = stream, .ring = &o->ring[o->count], .next = UINT64_MAX};
    int rc = n < 0 ? rm_fail(error, (int)n, "no memory for its spans")
                   : make_ring(l.ring, stream, plan, policy, rows, error);
    for (int64_t i = 0; rc == 0 && i < n; i++)
        rc = load_span(&l, &spans[i], error);
    free(spans);
    *source = (struct rm_sampler_source){.first_world = o->lanes / plan->agents,
                                         .worlds = stream->worlds};
    o->count++;
    o->lanes += stream->lanes;
    o->rows = rows > o->rows ? rows : o->rows;
    return rc;
}

uint64_t rm_offline_hash(const struct rm_recording *r, uint64_t hash)
{
    for (uint64_t c = 0; c < r->chunks; c++)
        hash = XXH3_64bits_withSeed(&r->chunk[c].hash, sizeof hash, hash);
    return hash;
}

/* Room for the streams of one more recording. */
static int make_room(struct rm_offline *o, uint32_t count, struct rm_error *error)
{
    struct rm_ring *rings = realloc(o->ring, (o->count + count) * sizeof *rings);
    o->ring = rings ? rings : o->ring;
    struct rm_sampler_source *sources = realloc(o->source, (o->count + count) * sizeof *sources);
    o->source = sources ? sources : o->source;
    if (!rings || !sources)
        return rm_fail(error, -ENOMEM, "no memory for %u streams", count);
    for (uint32_t i = o->count; i < o->count + count; i++) {
        memset(&o->ring[i], 0, sizeof *o->ring);
        o->ring[i].region.fd = -1;
    }
    return 0;
}

static int load(struct rm_offline *o, struct rm_recording *r, const struct rm_experiment *e,
                const struct rm_policy_plan *plan, uint32_t policy,
                const struct rm_env_agent *agent, struct rm_error *error)
{
    uint32_t count = 0;
    int rc = rm_offline_recording_check(r, e, plan, agent, &count, error);
    if (rc == 0)
        rc = make_room(o, count, error);
    o->hash = rm_offline_hash(r, o->hash);
    for (uint32_t s = 0; rc == 0 && s < r->streams; s++)
        if (strcmp(r->stream[s].policy, plan->name) == 0)
            rc = load_stream(o, r, s, plan, policy, error);
    return rc;
}

int rm_offline_open(struct rm_offline *o, const struct rm_experiment *e, const struct rm_plan *plan,
                    uint32_t policy, const struct rm_env_agent *agent, struct rm_error *error)
{
    struct rm_offline_folders found;
    struct rm_recording r;
    memset(o, 0, sizeof *o);
    int rc = rm_offline_find(&found, e->sample.from, error);
    for (size_t i = 0; rc == 0 && i < found.count; i++) {
        const char *folder = rm_offline_folder(&found, i);
        rc = rm_offline_recording_open(&r, folder, e, error);
        if (rc == 0) {
            rc = load(o, &r, e, &plan->policy[policy], policy, agent, error);
            rm_recording_close(&r);
        }
        if (rc < 0)
            rm_fail_within(error, rc, "sample.from: %s", folder);
    }
    rm_offline_forget(&found);
    for (uint32_t i = 0; i < o->count; i++) /* they moved as room was made */
        o->source[i].ring = &o->ring[i];
    if (rc < 0)
        rm_offline_close(o);
    return rc;
}

void rm_offline_close(struct rm_offline *o)
{
    for (uint32_t i = 0; o->ring && i < o->count; i++)
        rm_ring_close(&o->ring[i]);
    free(o->ring);
    free(o->source);
    memset(o, 0, sizeof *o);
}
