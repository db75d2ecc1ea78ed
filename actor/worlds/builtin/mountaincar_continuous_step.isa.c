/* MountainCar with a force to choose: the car of mountaincar_step.isa.c, with the numbers of
 * Gymnasium's MountainCarContinuous-v0, which keeps its state in floats. Ends at position 0.45 or
 * beyond, for 100; force costs. */
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/trig.h"

void RM_ISA_NAME(mountaincar_continuous_kernel)(const struct rm_classic_arrays *arrays);

#define POWER       0.0015f
#define GRAVITY     0.0025
#define SPEED_LIMIT 0.07f
#define LEFT_END    (-1.2f)
#define RIGHT_END   0.6f
#define GOAL        0.45f

void RM_ISA_NAME(mountaincar_continuous_kernel)(const struct rm_classic_arrays *arrays)
{
    double *positions = arrays->state[0], *velocities = arrays->state[1];
    float *f0 = arrays->frame[0], *f1 = arrays->frame[1];
    float *terminated = arrays->terminated, *reward = arrays->reward;
    const int32_t *action = arrays->action;

    const uint32_t padded = arrays->padded;
    RM_INDEPENDENT
    for (uint32_t w = 0; w < padded; w++) {
        float position = (float)positions[w], velocity = (float)velocities[w];
        float force = rm_float_of_word(action[w]);
        double sine, cosine;
        force = force < -1.0f ? -1.0f : force;
        force = force > 1.0f ? 1.0f : force;
        rm_sincos((double)(3.0f * position), &sine, &cosine);
        velocity += force * POWER - (float)(GRAVITY * cosine);
        velocity = velocity < -SPEED_LIMIT ? -SPEED_LIMIT : velocity;
        velocity = velocity > SPEED_LIMIT ? SPEED_LIMIT : velocity;
        position += velocity;
        position = position < LEFT_END ? LEFT_END : position;
        position = position > RIGHT_END ? RIGHT_END : position;
        const float bounced = velocity < 0.0f ? 0.0f : velocity;
        velocity = position == LEFT_END ? bounced : velocity;

        positions[w] = (double)position;
        velocities[w] = (double)velocity;
        f0[w] = position;
        f1[w] = velocity;
        const float moving_on = velocity >= 0.0f ? 1.0f : 0.0f;
        const float arrived = position >= GOAL ? moving_on : 0.0f;
        terminated[w] = arrived;
        reward[w] = (float)((arrived > 0.0f ? 100.0 : 0.0) - (double)force * (double)force * 0.1);
    }
}
