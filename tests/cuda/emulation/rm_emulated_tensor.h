/* rm_emulated_tensor: the double of learner/backend/cuda/tensor.h. Lanes meet; the first lane to go
 * on does the work of all of them, since no other lane has moved yet. */
#ifndef RM_TESTS_CUDA_EMULATION_RM_EMULATED_TENSOR_H
#define RM_TESTS_CUDA_EMULATION_RM_EMULATED_TENSOR_H

#include "half.h"
#include "rm_emulated.h"

#define RM_TENSOR static inline __device__

namespace rm_emulated
{
/* `count` matrices; of shared memory at a multiple of 16. */
void load_matrices(uint32_t *to, unsigned count, bool turned, const void *row, place at);
/* A lane's operands of a product, and its result. */
struct product_of_lane {
    float *d;
    const uint32_t *a, *b;
    bool done;
};
void multiply(float (*from)(uint16_t), product_of_lane *own, place at);
void copy_later(void *shared, const void *global, place at);
void copies_close();
void copies_wait(unsigned but);
void barrier_of(unsigned which, unsigned threads, place at);
} // namespace rm_emulated

RM_TENSOR void rm_load_matrices(uint32_t to[4], const void *row, RM_PLACE)
{
    rm_emulated::load_matrices(to, 4, false, row, {file, line});
}
RM_TENSOR void rm_load_turned(uint32_t to[4], const void *column, RM_PLACE)
{
    rm_emulated::load_matrices(to, 4, true, column, {file, line});
}
RM_TENSOR void rm_load_turned_pair(uint32_t to[2], const void *column, RM_PLACE)
{
    rm_emulated::load_matrices(to, 2, true, column, {file, line});
}
RM_TENSOR void rm_multiply(rm_in_bf16, float d[4], const uint32_t a[4], const uint32_t b[2],
                           RM_PLACE)
{
    rm_emulated::product_of_lane own = {d, a, b, false};
    rm_emulated::multiply(rm_emulated::from_bf16, &own, {file, line});
}
RM_TENSOR void rm_multiply(rm_in_fp16, float d[4], const uint32_t a[4], const uint32_t b[2],
                           RM_PLACE)
{
    rm_emulated::product_of_lane own = {d, a, b, false};
    rm_emulated::multiply(rm_emulated::from_fp16, &own, {file, line});
}
RM_TENSOR uint32_t rm_pair(rm_in_bf16, float low, float high)
{
    return rm_emulated::to_bf16(low) | (uint32_t)rm_emulated::to_bf16(high) << 16;
}
RM_TENSOR uint32_t rm_pair(rm_in_fp16, float low, float high)
{
    return rm_emulated::to_fp16(low) | (uint32_t)rm_emulated::to_fp16(high) << 16;
}
RM_TENSOR void rm_copy_later(void *shared, const void *global, RM_PLACE)
{
    rm_emulated::copy_later(shared, global, {file, line});
}
RM_TENSOR void rm_copies_close()
{
    rm_emulated::copies_close();
}
template <int n>
RM_TENSOR void rm_copies_wait()
{
    rm_emulated::copies_wait(n);
}
RM_TENSOR void rm_barrier_of(unsigned which, unsigned threads, RM_PLACE)
{
    rm_emulated::barrier_of(which, threads, {file, line});
}

#endif
