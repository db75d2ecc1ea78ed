#include "learner/recorded_rows.h"

#include "shm/layout.h"

#include <string.h>

static enum rm_recording_type type_of(uint32_t dtype)
{
    static const enum rm_recording_type types[] = {
        [RM_ENV_U8] = RM_RECORDED_U8,   [RM_ENV_I8] = RM_RECORDED_I8,
        [RM_ENV_I16] = RM_RECORDED_I16, [RM_ENV_I32] = RM_RECORDED_I32,
        [RM_ENV_F32] = RM_RECORDED_F32, [RM_ENV_CODE8] = RM_RECORDED_U8,
    };
    return types[dtype];
}

void rm_recorded_columns(struct rm_recording_stream *stream, const struct rm_policy_plan *plan,
                         const struct rm_env_agent *agent)
{
    const uint32_t words = plan->action_words;
    if (agent->observations)
        rm_recording_add_column(stream, "obs", RM_RECORDED_U8, true, 1, &plan->obs_bytes);
    else
        rm_recording_add_column(stream, "obs", type_of(agent->dtype), true, agent->dims,
                                agent->shape);
    if (plan->mask_bytes)
        rm_recording_add_column(stream, "mask", RM_RECORDED_U8, true, 1, &plan->mask_bytes);
    rm_recording_add_column(stream, "reward", RM_RECORDED_F32, true, 0, NULL);
    rm_recording_add_column(stream, "flags", RM_RECORDED_U8, true, 0, NULL);
    rm_recording_add_column(stream, "action", plan->choices ? RM_RECORDED_I32 : RM_RECORDED_F32,
                            true, words > 1, &words);
    rm_recording_add_column(stream, "version", RM_RECORDED_U64, false, 0, NULL);
    rm_recording_add_column(stream, "generation", RM_RECORDED_U64, false, 0, NULL);
}

/* Where a column of a row begins in it. */
static size_t column_at(const struct rm_ring *ring, const char *name)
{
    const struct {
        const char *name;
        size_t at;
    } places[] = {{"obs", ring->obs_at},
                  {"mask", ring->mask_at},
                  {"reward", ring->reward_at},
                  {"flags", ring->flags_at},
                  {"action", ring->action_at},
                  {"version", offsetof(struct rm_row_head, policy_version)},
                  {"generation", offsetof(struct rm_row_head, generation)}};
    uint32_t i = 0;
    while (strcmp(places[i].name, name) != 0)
        i++;
    return places[i].at;
}

void rm_recorded_gather(const struct rm_ring *ring, const struct rm_recording_column *column,
                        uint32_t lanes, const uint8_t *rows, uint32_t count, uint8_t *to)
{
    const size_t at = column_at(ring, column->name), bytes = column->bytes;
    for (uint32_t lane = 0; lane < (column->per_lane ? lanes : 1); lane++)
        for (uint32_t i = 0; i < count; i++, to += bytes)
            memcpy(to, rows + i * ring->row_bytes + at + lane * bytes, bytes);
}

void rm_recorded_scatter(const struct rm_ring *ring, const struct rm_recording_column *column,
                         uint32_t lanes, const uint8_t *from, uint32_t i, uint32_t count,
                         uint8_t *row)
{
    const size_t at = column_at(ring, column->name), bytes = column->bytes;
    for (uint32_t lane = 0; lane < (column->per_lane ? lanes : 1); lane++)
        memcpy(row + at + lane * bytes, from + ((size_t)lane * count + i) * bytes, bytes);
}
