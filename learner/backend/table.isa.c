#include "learner/backend/isa_parts.h"

#define RM_STRING2(x) #x
#define RM_STRING(x)  RM_STRING2(x)

const struct rm_kernels RM_ISA_NAME(kernels) = {
    .isa = "x86-64-" RM_STRING(RM_ISA),
    .bias_act = RM_ISA_NAME(bias_act),
    .narrow = RM_ISA_NAME(narrow),
    .narrow_pack = RM_ISA_NAME(narrow_pack),
    .narrow_dx = RM_ISA_NAME(narrow_dx),
    .column_sums = RM_ISA_NAME(column_sums),
    .transpose = RM_ISA_NAME(transpose),
    .activate = RM_ISA_NAME(activate),
    .activate_dx = RM_ISA_NAME(activate_dx),
    .layer_norm = RM_ISA_NAME(layer_norm),
    .layer_norm_dx = RM_ISA_NAME(layer_norm_dx),
    .layer_norm_dp = RM_ISA_NAME(layer_norm_dp),
    .cosines = RM_ISA_NAME(cosines),
    .broadcast_mul = RM_ISA_NAME(broadcast_mul),
    .broadcast_mul_dx = RM_ISA_NAME(broadcast_mul_dx),
    .noisy_weights = RM_ISA_NAME(noisy_weights),
    .multiply = RM_ISA_NAME(multiply),
    .normalize = RM_ISA_NAME(normalize),
    .noisy_outer = RM_ISA_NAME(noisy_outer),
    .signed_root = RM_ISA_NAME(signed_root),
    .dueling = RM_ISA_NAME(dueling),
    .dueling_dx = RM_ISA_NAME(dueling_dx),
    .normals = RM_ISA_NAME(normals),
    .uniforms = RM_ISA_NAME(uniforms),
    .sum_squares = RM_ISA_NAME(sum_squares),
    .sum_squares_diff = RM_ISA_NAME(sum_squares_diff),
    .adam = RM_ISA_NAME(adam),
    .rmsprop = RM_ISA_NAME(rmsprop),
    .combine = RM_ISA_NAME(combine),
    .sum_parts = RM_ISA_NAME(sum_parts),
    .lerp = RM_ISA_NAME(lerp),
};
