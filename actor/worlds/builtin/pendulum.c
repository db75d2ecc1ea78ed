/* pendulum: Pendulum-v1. The kernel is in pendulum_step.isa.c. */
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/common.h"

#include <math.h>

RM_CLASSIC_KERNELS(pendulum_kernel);

/* An angle is never taken back by whole turns: within so many steps it stays below 1e5. */
static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("max_steps", 200, 1, 2e5, "steps after which the episode is truncated"),
    {.key = NULL},
};

static void begin(struct rm_rng *rng, double state[RM_CLASSIC_STATES])
{
    state[0] = M_PI * (2 * rm_rng_double(rng) - 1);
    state[1] = 2 * rm_rng_double(rng) - 1;
}

static void observe(const double state[RM_CLASSIC_STATES], float frame[RM_CLASSIC_FRAME])
{
    frame[0] = (float)cos(state[0]);
    frame[1] = (float)sin(state[0]);
    frame[2] = (float)state[1];
}

static const float least[] = {-2}, most[] = {2};
static const struct rm_env_box torque = {"torque", 1, least, most};

static const struct rm_classic_problem problem = {
    .name = "pendulum",
    .doc = "swing a rod up and hold it there (Pendulum-v1)",
    .options = options,
    .kernel = {rm_isa_v2_pendulum_kernel, rm_isa_v3_pendulum_kernel, rm_isa_v4_pendulum_kernel},
    .box = &torque,
    .low = -8,
    .high = 8,
    .elements = 3,
    .begin = begin,
    .observe = observe,
    .score_per_step = -16.2736044,
    .score_random = -1225,
    .score_solved = -200,
};

RM_CLASSIC_WORLD(pendulum);
