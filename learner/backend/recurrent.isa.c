/* Cells of recurrent layers, one step of some lanes. Plain loops, which the compiler vectorises. */
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"

/* 1 / (1 + e^-x) = (1 + tanh(x / 2)) / 2 */
#define RM_LOGISTIC(x) RM_FMA(0.5f, tanh_of(0.5f * (x)), 0.5f)
#define RM_TANH(x)     tanh_of(x)
#define RM_INLINE      static inline
#include "learner/backend/recurrent.h"

/* The copy says that no store changes a pointer. */
#define CELLS(name, unit)                                                                          \
    void RM_ISA_NAME(name)(const struct rm_cells *given, uint32_t from, uint32_t to)               \
    {                                                                                              \
        const struct rm_cells cells = *given;                                                      \
        for (size_t l = from; l < to; l++) {                                                       \
            RM_INDEPENDENT                                                                         \
            for (size_t i = 0; i < cells.n; i++)                                                   \
                unit(&cells, l, i);                                                                \
        }                                                                                          \
    }
CELLS(gru, rm_gru_unit)
CELLS(gru_dx, rm_gru_dx_unit)
CELLS(lstm, rm_lstm_unit)
CELLS(lstm_dx, rm_lstm_dx_unit)
#undef CELLS

void RM_ISA_NAME(add)(const float *x, const float *y, size_t n, float *z)
{
    for (size_t i = 0; i < n; i++)
        z[i] = x[i] + y[i];
}
