/* Gradients of weights over any number of rows: right for each, alone and added to what is there.
 */
#include "tests/support/levels.h"

#include "learner/backend/backend.h"
#include "shm/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 700, MOST = 40 * 50 };

struct shape {
    uint32_t in, out;
};
/* Wide, with a last tile that is narrower; few inputs; few outputs. */
static const struct shape shapes[] = {{50, 40}, {3, 40}, {24, 5}};

static void any_number_of_rows(void **state)
{
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    const struct rm_backend_ops *ops = b->ops;
    float *x = ops->alloc(b, ROWS * 50), *dy = ops->alloc(b, ROWS * 40);
    float *dw = ops->alloc(b, MOST), *db = ops->alloc(b, 40);
    ops->normals(b, 3, RM_STREAM_TEST, 0, 0, ROWS * 50, x);
    ops->normals(b, 3, RM_STREAM_TEST, 1, 0, ROWS * 40, dy);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const uint32_t in = shapes[s].in, out = shapes[s].out;
        static double sum[MOST], sums[40];
        memset(sum, 0, sizeof sum);
        memset(sums, 0, sizeof sums);
        assert_int_equal(ops->reserve(b, 1023, in, out, true), 0);
        for (uint32_t rows = 1; rows <= ROWS; rows++) {
            const float *xr = x + (size_t)(rows - 1) * in, *dr = dy + (size_t)(rows - 1) * out;
            for (uint32_t o = 0; o < out; o++) {
                for (uint32_t i = 0; i < in; i++)
                    sum[o * in + i] += (double)dr[o] * (double)xr[i];
                sums[o] += (double)dr[o];
            }
            const bool add = rows % 3 == 0;
            for (uint32_t i = 0; add && i < in * out; i++)
                dw[i] = 2;
            for (uint32_t o = 0; add && o < out; o++)
                db[o] = -3;
            (add ? ops->linear_dw_add : ops->linear_dw)(b, dy, x, rows, in, out, dw, db);
            const double off = 3e-6 * (rows + 10);
            for (uint32_t i = 0; i < in * out; i++)
                if (!(fabs((double)dw[i] - sum[i] - (add ? 2 : 0)) < off))
                    fail_msg("%ux%u, %u rows: weight %u is %g, wants %g", in, out, rows, i,
                             (double)dw[i], sum[i] + (add ? 2 : 0));
            for (uint32_t o = 0; o < out; o++)
                assert_true(fabs((double)db[o] - sums[o] + (add ? 3 : 0)) < off);
        }
    }
    ops->release(b, x);
    ops->release(b, dy);
    ops->release(b, dw);
    ops->release(b, db);
}

/* Where the biases' gradient is known already. */
static void without_biases(void **state)
{
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    const struct rm_backend_ops *ops = b->ops;
    float *x = ops->alloc(b, 37 * 24), *dy = ops->alloc(b, 37 * 20), db[20];
    float *with = ops->alloc(b, 24 * 20), *without = ops->alloc(b, 24 * 20);
    ops->normals(b, 4, RM_STREAM_TEST, 0, 0, 37 * 24, x);
    ops->normals(b, 4, RM_STREAM_TEST, 1, 0, 37 * 20, dy);
    memset(db, 0, sizeof db);
    ops->linear_dw_add(b, dy, x, 37, 24, 20, with, db);
    ops->linear_dw_add(b, dy, x, 37, 24, 20, without, NULL);
    assert_memory_equal(with, without, 24 * 20 * sizeof *with);
    ops->release(b, x);
    ops->release(b, dy);
    ops->release(b, with);
    ops->release(b, without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_number_of_rows),
                                       cmocka_unit_test(without_biases)};
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
