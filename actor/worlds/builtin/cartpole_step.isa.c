/* CartPole's step over a batch: that of cartpole_rules.h for every world. */
#include "actor/worlds/builtin/cartpole_rules.h"
#include "actor/worlds/builtin/classic.h"

void RM_ISA_NAME(cartpole_kernel)(const struct rm_classic_arrays *arrays);

void RM_ISA_NAME(cartpole_kernel)(const struct rm_classic_arrays *arrays)
{
    double *xs = arrays->state[0], *dxs = arrays->state[1];
    double *angles = arrays->state[2], *dangles = arrays->state[3];
    float *f0 = arrays->frame[0], *f1 = arrays->frame[1];
    float *f2 = arrays->frame[2], *f3 = arrays->frame[3];
    float *terminated = arrays->terminated, *reward = arrays->reward;
    const int32_t *action = arrays->action;

    const uint32_t padded = arrays->padded;
    RM_INDEPENDENT
    for (uint32_t w = 0; w < padded; w++) {
        struct rm_cartpole_state s = {xs[w], dxs[w], angles[w], dangles[w]};
        const double out = rm_cartpole_move(&s, action[w]);
        xs[w] = s.x;
        dxs[w] = s.dx;
        angles[w] = s.angle;
        dangles[w] = s.dangle;
        f0[w] = (float)s.x;
        f1[w] = (float)s.dx;
        f2[w] = (float)s.angle;
        f3[w] = (float)s.dangle;
        terminated[w] = (float)out;
        reward[w] = 1.0f;
    }
}
