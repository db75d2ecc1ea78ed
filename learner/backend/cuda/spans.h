/* spans: the sample of a row, in kernels. spans(batch + 1) increase; sample i has rows spans[i] to
 * spans[i + 1], counted from spans[0]. */
#ifndef RM_LEARNER_BACKEND_CUDA_SPANS_H
#define RM_LEARNER_BACKEND_CUDA_SPANS_H

#include "learner/backend/cuda/math.h"

struct rm_span {
    uint32_t sample; /* `batch`: the row is after the last sample */
    uint32_t from, rows;
};

RM_INLINE struct rm_span rm_span_of_sample(const uint32_t *spans, uint32_t sample)
{
    return {sample, spans[sample] - spans[0], spans[sample + 1] - spans[sample]};
}

/* The sample of a row: the last one that begins at or before it. */
RM_INLINE struct rm_span rm_span_of_row(const uint32_t *spans, uint32_t batch, size_t row)
{
    const size_t at = row + spans[0];
    uint32_t low = 0, high = batch; /* spans[low] <= at < spans[high] */
    if (at >= spans[batch])
        return {batch, 0, 0};
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (spans[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return rm_span_of_sample(spans, low);
}

#endif
