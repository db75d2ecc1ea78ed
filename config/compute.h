/* compute: how products are computed, learner.compute. Parameters, moments and sums are float32
 * always. The CPU has fp32, and bf16 where there is an instruction for it. A header of its own,
 * which C++ reads too. */
#ifndef RM_CONFIG_COMPUTE_H
#define RM_CONFIG_COMPUTE_H

enum rm_compute {
    RM_COMPUTE_FP32 = 0,
    RM_COMPUTE_TF32, /* 10 bits of mantissa in products */
    RM_COMPUTE_BF16, /* 7 bits */
    RM_COMPUTE_FP16, /* 10 bits and a short range: with a loss scale kept on the device */
    RM_COMPUTE_COUNT
};

#endif
