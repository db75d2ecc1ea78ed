/* acrobot: Acrobot-v1. The kernel is in acrobot_step.isa.c. */
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/common.h"
#include "actor/worlds/builtin/trig.h"

RM_CLASSIC_KERNELS(acrobot_kernel);

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("max_steps", 500, 1, 1e9, "steps after which the episode is truncated"),
    {.key = NULL},
};

/* The definition begins in single precision. */
static void begin(struct rm_rng *rng, double state[RM_CLASSIC_STATES])
{
    for (int i = 0; i < 4; i++)
        state[i] = (float)(-0.1 + 0.2 * rm_rng_double(rng));
}

static void observe(const double state[RM_CLASSIC_STATES], float frame[RM_CLASSIC_FRAME])
{
    double sine, cosine;
    rm_sincos(state[0], &sine, &cosine);
    frame[0] = (float)cosine;
    frame[1] = (float)sine;
    rm_sincos(state[1], &sine, &cosine);
    frame[2] = (float)cosine;
    frame[3] = (float)sine;
    frame[4] = (float)state[2];
    frame[5] = (float)state[3];
}

static const struct rm_classic_problem problem = {
    .name = "acrobot",
    .doc = "swing up a two-link pendulum (Acrobot-v1)",
    .options = options,
    .kernel = {rm_isa_v2_acrobot_kernel, rm_isa_v3_acrobot_kernel, rm_isa_v4_acrobot_kernel},
    .actions = 3,
    .low = -9 * 3.14159265358979323846,
    .high = 9 * 3.14159265358979323846,
    .elements = 6,
    .begin = begin,
    .observe = observe,
    .score_per_step = -1,
    .score_random = -498.9,
    .score_solved = -100,
};

RM_CLASSIC_WORLD(acrobot);
