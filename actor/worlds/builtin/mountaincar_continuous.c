/* mountaincar_continuous: MountainCarContinuous-v0. The kernel is in
 * mountaincar_continuous_step.isa.c. */
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/common.h"

RM_CLASSIC_KERNELS(mountaincar_continuous_kernel);

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("max_steps", 999, 1, 1e9, "steps after which the episode is truncated"),
    {.key = NULL},
};

static void begin(struct rm_rng *rng, double state[RM_CLASSIC_STATES])
{
    state[0] = (double)(float)(-0.6 + 0.2 * rm_rng_double(rng));
}

static void observe(const double state[RM_CLASSIC_STATES], float frame[RM_CLASSIC_FRAME])
{
    frame[0] = (float)state[0];
    frame[1] = (float)state[1];
}

static const float least[] = {-1}, most[] = {1};
static const struct rm_env_box force = {"force", 1, least, most};

static const struct rm_classic_problem problem = {
    .name = "mountaincar_continuous",
    .doc = "swing a weak car out of a valley with little force (MountainCarContinuous-v0)",
    .options = options,
    .kernel = {rm_isa_v2_mountaincar_continuous_kernel, rm_isa_v3_mountaincar_continuous_kernel,
               rm_isa_v4_mountaincar_continuous_kernel},
    .box = &force,
    .low = -1.2,
    .high = 0.6,
    .elements = 2,
    .begin = begin,
    .observe = observe,
    .score_per_step = -0.1,
    .score_end = 100,
    .score_random = -33.3,
    .score_solved = 90,
};

RM_CLASSIC_WORLD(mountaincar_continuous);
