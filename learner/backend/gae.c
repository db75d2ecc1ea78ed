/* Schulman 2016 (High-dimensional continuous control using generalized advantage estimation),
 * eq. 16. */
#include "learner/backend/gae.h"

#include <stddef.h>

void rm_gae(const struct rm_rollout_rows *rows, float lambda, float *advantage, float *target)
{
    const size_t lanes = rows->lanes;
    for (size_t t = rows->steps; t-- > 0;) {
        const float *reward = rows->reward + (t + 1) * lanes, *value = rows->value + t * lanes;
        const float *next = value + lanes, *valid = rows->valid + t * lanes;
        const float *discount = rows->discount + t * lanes;
        float *a = advantage + t * lanes, *to = target + t * lanes;
        const float *beyond = t + 1 < rows->steps ? a + lanes : NULL;
        for (size_t l = 0; l < lanes; l++) {
            const float delta = reward[l] + discount[l] * next[l] - value[l];
            const float carried = beyond ? discount[l] * lambda * beyond[l] : 0;
            a[l] = valid[l] > 0 ? delta + carried : 0;
            to[l] = a[l] + value[l];
        }
    }
}
