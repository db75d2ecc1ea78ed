#include "learner/backend/cuda/ops.h"

void rm_cuda_operations(struct rm_backend_ops *o)
{
    o->reserve = rm_cuda_reserve;
    o->fill = rm_cuda_fill;
    o->packed_floats = rm_cuda_packed_floats;
    o->pack = rm_cuda_pack;
    o->linear = rm_cuda_linear;
    o->linear_dx = rm_cuda_linear_dx;
    o->linear_dw = rm_cuda_linear_dw;
    o->activate = rm_cuda_activate;
    o->activate_dx = rm_cuda_activate_dx;
    o->layer_norm = rm_cuda_layer_norm;
    o->layer_norm_dx = rm_cuda_layer_norm_dx;
    o->cosines = rm_cuda_cosines;
    o->broadcast_mul = rm_cuda_broadcast_mul;
    o->broadcast_mul_dx = rm_cuda_broadcast_mul_dx;
    o->noisy_weights = rm_cuda_noisy_weights;
    o->noisy_factors = rm_cuda_noisy_factors;
    o->multiply = rm_cuda_multiply;
    o->dropout = rm_cuda_dropout;
    o->gather = rm_cuda_gather;
    o->normalize = rm_cuda_normalize;
    o->join = rm_cuda_join;
    o->split = rm_cuda_split;
    o->dueling = rm_cuda_dueling;
    o->dueling_dx = rm_cuda_dueling_dx;
    o->restart = rm_cuda_restart;
    o->add = rm_cuda_add;
    o->normals = rm_cuda_normals;
    o->uniforms = rm_cuda_uniforms;
    o->sum_squares = rm_cuda_sum_squares;
    o->sum_squares_diff = rm_cuda_sum_squares_diff;
    o->adam = rm_cuda_adam;
    o->rmsprop = rm_cuda_rmsprop;
    o->combine = rm_cuda_combine;
    o->sum_parts = rm_cuda_sum_parts;
    o->lerp = rm_cuda_lerp;
}
