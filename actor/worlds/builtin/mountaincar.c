/* mountaincar: MountainCar-v0. The kernel is in mountaincar_step.isa.c. */
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/common.h"

RM_CLASSIC_KERNELS(mountaincar_kernel);

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("max_steps", 200, 1, 1e9, "steps after which the episode is truncated"),
    {.key = NULL},
};

static void begin(struct rm_rng *rng, double state[RM_CLASSIC_STATES])
{
    state[0] = -0.6 + 0.2 * rm_rng_double(rng);
}

static void observe(const double state[RM_CLASSIC_STATES], float frame[RM_CLASSIC_FRAME])
{
    frame[0] = (float)state[0];
    frame[1] = (float)state[1];
}

static const struct rm_classic_problem problem = {
    .name = "mountaincar",
    .doc = "swing a weak car out of a valley (MountainCar-v0)",
    .options = options,
    .kernel = {rm_isa_v2_mountaincar_kernel, rm_isa_v3_mountaincar_kernel,
               rm_isa_v4_mountaincar_kernel},
    .actions = 3,
    .low = -1.2,
    .high = 0.6,
    .elements = 2,
    .begin = begin,
    .observe = observe,
    .score_per_step = -1,
    .score_random = -200,
    .score_solved = -110,
};

RM_CLASSIC_WORLD(mountaincar);
