/* Cells of recurrent layers, one unit of one lane for a thread. */
#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/ops.h"

#define RM_LOGISTIC(x) rm_logistic(x)
#define RM_TANH(x)     tanhf(x)
#include "learner/backend/recurrent.h"

#define CELLS(name, unit)                                                                          \
    namespace                                                                                      \
    {                                                                                              \
    struct name##_cells {                                                                          \
        struct rm_cells cells;                                                                     \
        __device__ void at(size_t l, uint32_t i) const                                             \
        {                                                                                          \
            unit(&cells, l, i);                                                                    \
        }                                                                                          \
    };                                                                                             \
    }                                                                                              \
    void rm_cuda_##name(struct rm_backend *b, const struct rm_cells *cells)                        \
    {                                                                                              \
        rm_map(rm_cuda_of(b), #name, name##_cells{*cells}, cells->lanes, cells->n);                \
    }
CELLS(gru, rm_gru_unit)
CELLS(gru_dx, rm_gru_dx_unit)
CELLS(lstm, rm_lstm_unit)
CELLS(lstm_dx, rm_lstm_dx_unit)
#undef CELLS
