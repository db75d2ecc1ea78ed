#include "daemon/ctl/rows.h"

#include "actor/stepping.h"
#include "actor/worlds/described.h"
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "daemon/probe.h"
#include "learner/recorded_rows.h"
#include "learner/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES    (1u << 20) /* of rows in a chunk, about */
#define CHUNK_ROWS_MAX 4096u

/* The rows of a policy that are not written yet. */
struct part {
    struct rm_ring ring; /* gives the layout of a row */
    uint8_t *rows;       /* (most, row_bytes) */
    size_t bytes;        /* that are there */
    uint32_t most;
    uint64_t first; /* row */
    uint8_t *column[RM_RECORDING_COLUMNS];
};

struct rm_evaluation_rows {
    struct rm_experiment *experiment;
    const char *folder;
    struct rm_plan plan;
    struct rm_world_spec world;
    struct rm_recording_stream stream[RM_BOARD_POLICIES];
    struct part part[RM_BOARD_POLICIES];
    struct rm_recording_writer *writer; /* NULL: there are no rows yet */
};

static void describe(struct rm_evaluation_rows *r, uint32_t p, uint32_t worlds)
{
    struct rm_recording_stream *stream = &r->stream[p];
    const struct rm_policy_plan *plan = &r->plan.policy[p];
    const struct rm_env_agent *agent = &r->world.spec->agent[plan->agent[0]];
    char name[sizeof plan->name]; /* not of `r`: gcc at -O1 takes the two texts for one */
    memcpy(name, plan->name, sizeof name);
    snprintf(stream->name, sizeof stream->name, "evaluation.%.40s", name);
    snprintf(stream->policy, sizeof stream->policy, "%.47s", name);
    stream->agents = plan->agents;
    stream->worlds = worlds;
    stream->lanes = plan->agents * worlds;
    stream->actions = agent->actions;
    rm_recorded_columns(stream, plan, agent);
}

static int make_part(struct part *part, const struct rm_recording_stream *stream,
                     struct rm_error *error)
{
    const size_t most = CHUNK_BYTES / part->ring.row_bytes;
    part->most = most < 1 ? 1 : most > CHUNK_ROWS_MAX ? CHUNK_ROWS_MAX : (uint32_t)most;
    part->rows = malloc(part->most * part->ring.row_bytes);
    bool made = part->rows != NULL;
    for (uint32_t c = 0; made && c < stream->columns; c++) {
        const struct rm_recording_column *column = &stream->column[c];
        const size_t lanes = column->per_lane ? stream->lanes : 1;
        part->column[c] = malloc(lanes * part->most * column->bytes);
        made = part->column[c] != NULL;
    }
    return made ? 0 : rm_fail(error, -ENOMEM, "no memory for rows of an evaluation");
}

static int check_folder(const struct rm_evaluation_rows *r, struct rm_error *error)
{
    char path[RM_PATH_TEXT_MAX];
    snprintf(path, sizeof path, "%s/recording.json", r->folder);
    return access(path, F_OK) == 0
               ? rm_fail(error, -EEXIST, "%s: there is a recording already", r->folder)
               : 0;
}

static int open_writer(struct rm_evaluation_rows *r, struct rm_error *error)
{
    if (check_folder(r, error) < 0) /* another evaluation may have begun one */
        return -EEXIST;
    json_t *experiment = rm_config_to_json(r->experiment);
    if (!experiment)
        return rm_fail(error, -ENOMEM, "no memory for the experiment");
    const int rc = rm_recording_writer_open(&r->writer, r->folder, "evaluation", RM_RECORD_STEP,
                                            experiment, r->stream, r->plan.policies, error);
    json_decref(experiment);
    return rc;
}

static int create(struct rm_evaluation_rows *r, uint32_t worlds, struct rm_error *error)
{
    struct rm_ring *rings[RM_BOARD_POLICIES], own[RM_BOARD_POLICIES] = {0};
    int rc = check_folder(r, error);
    if (rc == 0)
        rc = rm_probe_world(r->experiment, RM_PROBE_PATIENCE_S, NULL, error);
    if (rc == 0)
        rc = rm_world_spec_open(&r->world, &r->experiment->world, r->experiment->seed, error);
    if (rc == 0)
        rc = rm_plan_make(&r->plan, r->experiment, error);
    for (uint32_t p = 0; p < RM_BOARD_POLICIES; p++)
        own[p].region.fd = -1;
    if (rc == 0)
        rc = rm_stepping_own_rings(r->experiment, &r->plan, worlds, own, rings, error);
    for (uint32_t p = 0; p < RM_BOARD_POLICIES; p++)
        r->part[p].ring = own[p];
    for (uint32_t p = 0; rc == 0 && p < r->plan.policies; p++) {
        describe(r, p, worlds);
        rc = make_part(&r->part[p], &r->stream[p], error);
    }
    return rc;
}

int rm_evaluation_rows_create(struct rm_evaluation_rows **rows, struct rm_experiment *experiment,
                              uint32_t worlds, const char *folder, struct rm_error *error)
{
    struct rm_evaluation_rows *r = *rows = calloc(1, sizeof *r);
    if (!r)
        return rm_fail(error, -ENOMEM, "no memory to record");
    r->experiment = experiment;
    r->folder = folder;
    for (uint32_t p = 0; p < RM_BOARD_POLICIES; p++)
        r->part[p].ring.region.fd = -1;
    const int rc = create(r, worlds, error);
    if (rc < 0) {
        rm_evaluation_rows_end(r, false, NULL);
        *rows = NULL;
    }
    return rc;
}

static int write_part(struct rm_evaluation_rows *r, uint32_t p, struct rm_error *error)
{
    struct part *part = &r->part[p];
    const struct rm_recording_stream *stream = &r->stream[p];
    const uint32_t rows = (uint32_t)(part->bytes / part->ring.row_bytes);
    if (rows == 0)
        return 0;
    for (uint32_t c = 0; c < stream->columns; c++)
        rm_recorded_gather(&part->ring, &stream->column[c], stream->lanes, part->rows, rows,
                           part->column[c]);
    const int rc = rm_recording_write(r->writer, p, part->first, rows, rows,
                                      (const void *const *)part->column, error);
    part->first += rows;
    part->bytes %= part->ring.row_bytes;
    return rc;
}

int rm_evaluation_rows_add(struct rm_evaluation_rows *r, uint32_t policy, const void *bytes,
                           size_t count, struct rm_error *error)
{
    struct part *part = r && policy < r->plan.policies ? &r->part[policy] : NULL;
    const size_t room = part ? part->most * part->ring.row_bytes - part->bytes : 0;
    if (!part || count > room)
        return rm_fail(error, -EPROTO, "%zu bytes of a row of policy %u", count, policy);
    const int rc = r->writer ? 0 : open_writer(r, error);
    if (rc < 0)
        return rc;
    memcpy(part->rows + part->bytes, bytes, count);
    part->bytes += count;
    return count == room ? write_part(r, policy, error) : 0;
}

int rm_evaluation_rows_end(struct rm_evaluation_rows *r, bool whole, struct rm_error *error)
{
    int rc = 0;
    if (!r)
        return 0;
    for (uint32_t p = 0; p < r->plan.policies; p++) {
        struct part *part = &r->part[p];
        if (rc == 0 && r->writer)
            rc = write_part(r, p, error);
        if (rc == 0 && part->bytes > 0)
            rc = rm_fail(error, -EPROTO, "%zu bytes of a row of policy %u", part->bytes, p);
        rm_ring_close(&part->ring);
        free(part->rows);
        for (uint32_t c = 0; c < RM_RECORDING_COLUMNS; c++)
            free(part->column[c]);
    }
    if (r->writer) {
        const int closed = rm_recording_writer_close(r->writer);
        if (rc == 0 && closed < 0)
            rc = rm_fail(error, closed, "%s", strerror(-closed));
        if (!whole)
            rc = rm_fail(error, -EIO, "the recording in %s is incomplete", r->folder);
        else if (rc < 0)
            rm_fail_within(error, rc, "the recording in %s is incomplete", r->folder);
    }
    rm_world_spec_close(&r->world);
    rm_probe_forget(r->experiment);
    free(r);
    return rc;
}
