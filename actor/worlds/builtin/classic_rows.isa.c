/* What follows a kernel of a classic control problem: flags, and frames into rows. */
#include "actor/worlds/builtin/classic.h"

#include <string.h>

int RM_ISA_NAME(classic_flags)(uint32_t padded, uint32_t max_steps, const float *terminated,
                               uint32_t *step, uint8_t *flags);
void RM_ISA_NAME(classic_rows)(uint32_t worlds, uint32_t elements, float *const *frame, void *out,
                               ptrdiff_t stride);

int RM_ISA_NAME(classic_flags)(uint32_t padded, uint32_t max_steps,
                               const float *restrict terminated, uint32_t *restrict step,
                               uint8_t *restrict flags)
{
    uint32_t any = 0;
    for (uint32_t w = 0; w < padded; w++) {
        uint32_t steps = step[w] + 1;
        uint32_t flag = rm_classic_flag(steps, max_steps, terminated[w] != 0);
        step[w] = steps;
        flags[w] = (uint8_t)flag;
        any |= flag;
    }
    return any != 0;
}

/* Rows without gaps: `elements` is a constant where this is inlined. */
static inline void interleave(uint32_t worlds, uint32_t elements, float *const *frame,
                              float *restrict out)
{
    const float *a = frame[0], *b = frame[1], *c = elements > 2 ? frame[2] : NULL,
                *d = elements > 2 ? frame[3] : NULL;
    for (uint32_t w = 0; w < worlds; w++) {
        out[w * elements] = a[w];
        out[w * elements + 1] = b[w];
        if (elements > 2) {
            out[w * elements + 2] = c[w];
            out[w * elements + 3] = d[w];
        }
    }
}

void RM_ISA_NAME(classic_rows)(uint32_t worlds, uint32_t elements, float *const *frame, void *out,
                               ptrdiff_t stride)
{
    if (stride == (ptrdiff_t)(elements * sizeof(float)) && elements == 4) {
        interleave(worlds, 4, frame, out);
        return;
    }
    if (stride == (ptrdiff_t)(elements * sizeof(float)) && elements == 2) {
        interleave(worlds, 2, frame, out);
        return;
    }
    for (uint32_t w = 0; w < worlds; w++)
        for (uint32_t e = 0; e < elements; e++)
            memcpy((char *)out + (ptrdiff_t)w * stride + e * sizeof(float), &frame[e][w],
                   sizeof(float));
}
