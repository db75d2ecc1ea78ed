/* hot: the keys that may change while training, as an array of numbers for the board. */
#include "config/config.h"
#include "config/schema.h"

#include <string.h>

void rm_config_hot_values(const struct rm_experiment *experiment, double *values)
{
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        const void *at = (const char *)experiment + key->offset;
        if (key->hot == RM_COLD)
            continue;
        values[key->hot] = key->type == RM_KEY_F64   ? *(const double *)at
                           : key->type == RM_KEY_U64 ? (double)*(const uint64_t *)at
                                                     : (double)*(const uint32_t *)at;
    }
}

void rm_config_apply_hot(struct rm_experiment *experiment, const double *values)
{
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        void *at = (char *)experiment + key->offset;
        if (key->hot == RM_COLD)
            continue;
        /* Values come from an experiment, so those out of range were never set. */
        double value = values[key->hot];
        if (!(value >= key->low && value <= key->high))
            continue;
        if (key->type == RM_KEY_F64)
            *(double *)at = value;
        else if (key->type == RM_KEY_U64)
            *(uint64_t *)at = (uint64_t)value;
        else
            *(uint32_t *)at = (uint32_t)value;
    }
}
