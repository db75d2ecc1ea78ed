/* compute: how products are computed, learner.compute. Parameters, moments and sums are float32
 * always. The CPU has fp32, and bf16 if it has the instruction. A separate header, since C++
 * includes it too. */
#ifndef RM_CONFIG_COMPUTE_H
#define RM_CONFIG_COMPUTE_H

enum rm_compute {
    RM_COMPUTE_FP32 = 0,
    RM_COMPUTE_TF32, /* 10 bits of mantissa in products */
    RM_COMPUTE_BF16, /* 7 bits */
    RM_COMPUTE_FP16, /* 10 bits and a small range; the device keeps a loss scale */
    RM_COMPUTE_COUNT
};

#endif
