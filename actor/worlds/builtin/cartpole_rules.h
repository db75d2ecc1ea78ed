/* cartpole_rules: CartPole's step, written once for the actor's vector kernels and for a CUDA
 * kernel (shm/base/both.h): a pole hinged to a cart that is pushed left (0) or right (1). Barto,
 * Sutton and Anderson (1983), "Neuronlike adaptive elements that can solve difficult learning
 * control problems", in the frictionless form and with the numbers of Gymnasium's CartPole-v1;
 * explicit Euler steps of 0.02 s. Ends beyond 2.4 m or 12 degrees.
 *
 * Compile this without fusing or reordering operations, so that every copy gives the same bits. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_CARTPOLE_RULES_H
#define RM_ACTOR_WORLDS_BUILTIN_CARTPOLE_RULES_H

#include "actor/worlds/builtin/trig.h"
#include "shm/base/draw.h"

/* Settings of all worlds of a run. */
struct rm_cartpole_rules {
    uint32_t max_steps;
    uint32_t elements; /* of an observation: 4, or 2 without velocities */
};

struct rm_cartpole_state {
    double x, dx, angle, dangle;
};

/* The first state of an episode. */
RM_BOTH void rm_cartpole_begin(struct rm_rng *rng, double state[4])
{
    for (int i = 0; i < 4; i++)
        state[i] = -0.05 + 0.1 * rm_draw_double(rng);
}

/* One step. Returns 1.0 if the episode terminates, else 0.0; then |angle| <= 12 degrees. */
RM_BOTH double rm_cartpole_move(struct rm_cartpole_state *s, int32_t action)
{
    const double gravity = 9.8, pole_mass = 0.1, total_mass = 1.0 + 0.1, half_length = 0.5;
    const double pole_moment = pole_mass * half_length, tau = 0.02;
    const double angle_limit = 12.0 * 2.0 * 3.14159265358979323846 / 360.0, position_limit = 2.4;
    const double force = action == 1 ? 10.0 : -10.0;
    const double sine = rm_sin_small(s->angle), cosine = rm_cos_small(s->angle);
    const double push = (force + pole_moment * (s->dangle * s->dangle) * sine) / total_mass;
    const double ddangle = (gravity * sine - cosine * push) /
                           (half_length * (4.0 / 3.0 - pole_mass * (cosine * cosine) / total_mass));
    const double ddx = push - pole_moment * ddangle * cosine / total_mass;
    s->x = s->x + tau * s->dx;
    s->dx = s->dx + tau * ddx;
    s->angle = s->angle + tau * s->dangle;
    s->dangle = s->dangle + tau * ddangle;
    const double out = s->x < -position_limit || s->x > position_limit ? 1.0 : 0.0;
    return s->angle < -angle_limit || s->angle > angle_limit ? 1.0 : out;
}

#endif
