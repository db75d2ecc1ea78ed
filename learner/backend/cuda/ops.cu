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
    o->embed = rm_cuda_embed;
    o->embed_dw = rm_cuda_embed_dw;
    o->dropout = rm_cuda_dropout;
    o->gather = rm_cuda_gather;
    o->normalize = rm_cuda_normalize;
    o->join = rm_cuda_join;
    o->split = rm_cuda_split;
    o->dueling = rm_cuda_dueling;
    o->dueling_dx = rm_cuda_dueling_dx;
    o->gru = rm_cuda_gru;
    o->gru_dx = rm_cuda_gru_dx;
    o->lstm = rm_cuda_lstm;
    o->lstm_dx = rm_cuda_lstm_dx;
    o->restart = rm_cuda_restart;
    o->add = rm_cuda_add;
    o->find_spans = rm_cuda_find_spans;
    o->span_mean = rm_cuda_span_mean;
    o->span_mean_dx = rm_cuda_span_mean_dx;
    o->span_first = rm_cuda_span_first;
    o->span_first_dx = rm_cuda_span_first_dx;
    o->spread = rm_cuda_spread;
    o->spread_dx = rm_cuda_spread_dx;
    o->relate = rm_cuda_relate;
    o->relate_dw = rm_cuda_relate_dw;
    o->pointer = rm_cuda_pointer;
    o->pointer_dx = rm_cuda_pointer_dx;
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
