/* cartpole: CartPole-v1. Its step is in cartpole_rules.h, a batch of them in cartpole_step.isa.c.
 */
#include "actor/worlds/builtin/cartpole_rules.h"
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/common.h"

RM_CLASSIC_KERNELS(cartpole_kernel);

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("max_steps", 500, 1, 1e9, "steps after which the episode is truncated"),
    RM_OPTION_WHOLE("velocities", 1, 0, 1, "0: observe position and angle only"),
    {.key = NULL},
};

static void begin(struct rm_rng *rng, double state[RM_CLASSIC_STATES])
{
    rm_cartpole_begin(rng, state);
}

static void observe(const double state[RM_CLASSIC_STATES], float frame[RM_CLASSIC_FRAME])
{
    for (int i = 0; i < 4; i++)
        frame[i] = (float)state[i];
}

static const struct rm_classic_problem problem = {
    .name = "cartpole",
    .doc = "balance a pole on a cart (CartPole-v1)",
    .options = options,
    .kernel = {rm_isa_v2_cartpole_kernel, rm_isa_v3_cartpole_kernel, rm_isa_v4_cartpole_kernel},
    .actions = 2,
    .low = -3.4028234663852886e38, /* velocities have no bound */
    .high = 3.4028234663852886e38,
    .elements = 4,
    .positions = 2,
    .position = {0, 2},
    .begin = begin,
    .observe = observe,
    .score_per_step = 1,
    .score_random = 22.2,
    .score_solved = 475,
};

RM_CLASSIC_WORLD(cartpole);
