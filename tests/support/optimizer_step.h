/* A step of an optimizer of the CPU, and what came of it: what its tests share. */
#ifndef RM_TESTS_SUPPORT_OPTIMIZER_STEP_H
#define RM_TESTS_SUPPORT_OPTIMIZER_STEP_H

#include "learner/algo/optimizer.h"
#include "learner/backend/device.h"

struct rm_test_step {
    float *params;
    const float *grads;
    double loss;
    uint64_t update; /* from 1 */
};

struct rm_test_stepped {
    double grad_norm, learning_rate;
    float scale; /* of the first group */
    bool skipped;
};

static inline struct rm_test_stepped rm_test_optimizer_step(struct rm_optimizer *optimizer,
                                                            const struct rm_test_step *step)
{
    struct rm_update_figures *f = rm_optimizer_figures(optimizer);
    struct rm_update_knobs knobs = {0};
    const struct rm_optimizer_put put = {
        .params = step->params, .grads = step->grads, .knobs = &knobs};
    rm_optimizer_knobs(optimizer, step->update, 0, &knobs);
    f->last_loss = step->loss;
    rm_optimizer_put(optimizer, &put);
    return (struct rm_test_stepped){f->last_grad_norm, knobs.learning_rate, f->scale[0], f->skip};
}

#endif
