#include "tests/support/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct rm_env_agent rm_test_rows_agent(bool masks)
{
    return (struct rm_env_agent){
        .name = "agent_0",
        .dtype = RM_ENV_I32,
        .dims = 1,
        .shape = {RM_TEST_FEATURES},
        .high = 1e9,
        .actions = RM_TEST_ACTIONS,
        .has_mask = masks,
    };
}

void rm_test_rows_fill(struct rm_test_rows *rows, uint32_t worlds, uint32_t count,
                       const uint32_t *length, const uint8_t *end)
{
    memset(rows, 0, sizeof *rows);
    rows->worlds = worlds;
    rows->rows = count;
    for (uint32_t w = 0; w < worlds; w++) {
        int32_t episode = 0, step = 0;
        for (uint32_t i = 0; i < count; i++) {
            struct rm_test_cell *c = &rows->cell[w][i];
            const bool last = step == (int32_t)length[w];
            c->flags = step == 0 ? RM_FLAG_FIRST : last ? end[w] : 0;
            c->reward = step == 0 ? 77.0f : (float)(w + 1) + (float)(i % 16) * 0.25f;
            c->action = (int32_t)((i + w) % RM_TEST_ACTIONS);
            c->episode = episode;
            c->step = step;
            c->generation = 1;
            episode += last;
            step = last ? 0 : step + 1;
        }
    }
}

int rm_test_rows_ring(struct rm_ring *ring, uint32_t ring_rows, uint32_t worlds, bool masks)
{
    struct rm_error error = {""};
    const struct rm_ring_spec spec = {
        .mode = RM_RING_REPLAY,
        .rows = ring_rows,
        .lanes = worlds,
        .obs_bytes = RM_TEST_FEATURES * sizeof(int32_t),
        .mask_bytes = masks ? RM_TEST_ACTIONS : 0,
        .action_words = 1,
        .columns = masks ? RM_COLUMN_MASK : 0,
        .first_index = UINT64_MAX - 20,
    };
    const int rc = rm_ring_create(ring, &spec, &error);
    if (rc)
        fprintf(stderr, "%s\n", error.text);
    else
        rm_ring_writer_open(ring);
    return rc;
}

void rm_test_rows_write(const struct rm_test_rows *rows, struct rm_ring *ring, uint32_t first,
                        uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        struct rm_row row;
        rm_ring_reserve(ring, &row);
        for (uint32_t lane = 0; lane < ring->spec.lanes; lane++) {
            const uint32_t w = first + lane;
            const struct rm_test_cell *c = &rows->cell[w][i];
            const int32_t obs[RM_TEST_FEATURES] = {(int32_t)w, (int32_t)i, c->episode, c->step};
            memcpy(row.obs + lane * sizeof obs, obs, sizeof obs);
            row.flags[lane] = c->flags;
            row.reward[lane] = c->reward;
            row.action[lane] = c->action;
            *row.generation = c->generation;
            for (uint32_t k = 0; row.state && k < ring->spec.state_floats; k++)
                row.state[lane * ring->spec.state_floats + k] = rm_test_rows_state(w, i, k);
            for (uint32_t a = 0; row.mask && a < RM_TEST_ACTIONS; a++) {
                const uint32_t shift = (a + 2 * RM_TEST_ACTIONS - (i + w) % RM_TEST_ACTIONS);
                row.mask[lane * RM_TEST_ACTIONS + a] = shift % RM_TEST_ACTIONS < 2;
            }
        }
        rm_ring_commit(ring);
    }
}

struct rm_test_transition rm_test_rows_expect(const struct rm_test_rows *rows, uint32_t w,
                                              uint32_t i, uint32_t end, uint32_t n, double gamma)
{
    const struct rm_test_cell *c = rows->cell[w];
    struct rm_test_transition x = {0};
    if (c[i].flags & (RM_FLAG_TERMINATED | RM_FLAG_TRUNCATED | RM_FLAG_DEAD))
        return x;
    for (uint32_t k = 1; k <= n; k++) {
        if (i + k >= end)
            return (struct rm_test_transition){0}; /* not complete yet */
        const struct rm_test_cell *next = &c[i + k];
        const bool joined = next->generation == c[i].generation && next->episode == c[i].episode &&
                            !(next->flags & (RM_FLAG_DEAD | RM_FLAG_VOID));
        if (!joined)
            break;
        x.steps = k;
        x.ret += pow(gamma, k - 1) * (double)next->reward;
        x.terminated = next->flags & RM_FLAG_TERMINATED;
        if (next->flags & RM_FLAG_LAST)
            break;
    }
    x.valid = x.steps > 0;
    x.discount = x.terminated ? 0 : pow(gamma, x.steps);
    return x;
}
