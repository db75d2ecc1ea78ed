#include "tests/support/story.h"

#include "tests/support/unit.h"

#include <string.h>

const struct rm_env_agent rm_story_agent = {
    .dtype = RM_ENV_F32, .dims = 1, .shape = {2}, .actions = 2};

static const struct {
    float place, reward;
    int32_t action;
    uint8_t flags;
} story[RM_STORY_ROWS] = {
    {0, 0, 0, RM_FLAG_FIRST},      {0, 1, 0, RM_FLAG_TRUNCATED},   {0, 0, 1, RM_FLAG_FIRST},
    {1, 2, 0, RM_FLAG_TERMINATED}, {1, 0, 0, RM_FLAG_FIRST},       {0, 0, 0, RM_FLAG_TRUNCATED},
    {1, 0, 1, RM_FLAG_FIRST},      {0, -1, 0, RM_FLAG_TERMINATED},
};

void rm_story_tell(struct rm_ring *ring, uint32_t state_floats, uint32_t times)
{
    struct rm_error error = {""};
    const struct rm_ring_spec spec = {
        .rows = RM_STORY_ROWS * times,
        .lanes = 1,
        .obs_bytes = 2 * sizeof(float),
        .action_words = 1,
        .columns = state_floats ? RM_COLUMN_STATE : 0,
        .state_floats = state_floats,
    };
    if (rm_ring_create(ring, &spec, &error))
        fail_msg("%s", error.text);
    rm_ring_writer_open(ring);
    for (size_t k = 0; k < (size_t)RM_STORY_ROWS * times; k++) {
        const size_t i = k % RM_STORY_ROWS;
        struct rm_row row;
        const float obs[2] = {1 - story[i].place, story[i].place};
        rm_ring_reserve(ring, &row);
        memcpy(row.obs, obs, sizeof obs);
        row.flags[0] = story[i].flags;
        row.reward[0] = story[i].reward;
        row.action[0] = story[i].action;
        if (row.state)
            memset(row.state, 0, state_floats * sizeof(float));
        rm_ring_commit(ring);
    }
}
