/* Pendulum: a torque too weak to lift a rod swings it up, and holds it there. The equations and
 * numbers of Gymnasium's Pendulum-v1, whose torque is a float until it meets the state: so is what
 * is made of it alone here. Never ends by itself. */
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/trig.h"

void RM_ISA_NAME(pendulum_kernel)(const struct rm_classic_arrays *arrays);

#define GRAVITY     10.0
#define SPEED_LIMIT 8.0
#define STEP        0.05
#define PI          3.14159265358979323846

/* Within [-pi, pi); rounds down by adding and taking off, as rm_sincos() does. */
static inline double around(double angle)
{
    const double to_integer = 6755399441055744.0, turns = angle * (0.5 / PI);
    const double whole = (turns + to_integer) - to_integer;
    return angle - 2.0 * PI * whole;
}

void RM_ISA_NAME(pendulum_kernel)(const struct rm_classic_arrays *arrays)
{
    double *angles = arrays->state[0], *velocities = arrays->state[1];
    float *f0 = arrays->frame[0], *f1 = arrays->frame[1], *f2 = arrays->frame[2];
    float *terminated = arrays->terminated, *reward = arrays->reward;
    const int32_t *action = arrays->action;

    const uint32_t padded = arrays->padded;
    RM_INDEPENDENT
    for (uint32_t w = 0; w < padded; w++) {
        double angle = angles[w], velocity = velocities[w], sine, cosine;
        float torque = rm_float_of_word(action[w]);
        torque = torque < -2.0f ? -2.0f : torque;
        torque = torque > 2.0f ? 2.0f : torque;
        const double off = around(angle);
        const double cost =
            off * off + 0.1 * (velocity * velocity) + (double)(0.001f * (torque * torque));
        rm_sincos(angle, &sine, &cosine);
        velocity += (1.5 * GRAVITY * sine + (double)(3.0f * torque)) * STEP;
        velocity = velocity < -SPEED_LIMIT ? -SPEED_LIMIT : velocity;
        velocity = velocity > SPEED_LIMIT ? SPEED_LIMIT : velocity;
        angle += velocity * STEP;
        rm_sincos(angle, &sine, &cosine);

        angles[w] = angle;
        velocities[w] = velocity;
        f0[w] = (float)cosine;
        f1[w] = (float)sine;
        f2[w] = (float)velocity;
        terminated[w] = 0.0f;
        reward[w] = (float)-cost;
    }
}
