/* MountainCar: a car in a valley, too weak to climb straight out; pushes left (0), coasts (1) or
 * pushes right (2). Moore (1990), "Efficient memory-based learning for robot control", with the
 * numbers of Gymnasium's MountainCar-v0. Ends at position 0.5 or beyond. */
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/trig.h"

void RM_ISA_NAME(mountaincar_kernel)(const struct rm_classic_arrays *arrays);

#define FORCE       0.001
#define GRAVITY     0.0025
#define SPEED_LIMIT 0.07
#define LEFT_END    (-1.2)
#define RIGHT_END   0.6
#define GOAL        0.5

void RM_ISA_NAME(mountaincar_kernel)(const struct rm_classic_arrays *arrays)
{
    double *positions = arrays->state[0], *velocities = arrays->state[1];
    float *f0 = arrays->frame[0], *f1 = arrays->frame[1];
    float *terminated = arrays->terminated, *reward = arrays->reward;
    const int32_t *action = arrays->action;

    const uint32_t padded = arrays->padded;
    RM_INDEPENDENT
    for (uint32_t w = 0; w < padded; w++) {
        double position = positions[w], velocity = velocities[w], sine, cosine;
        rm_sincos(3.0 * position, &sine, &cosine);
        velocity += (double)(action[w] - 1) * FORCE + cosine * -GRAVITY;
        velocity = velocity < -SPEED_LIMIT ? -SPEED_LIMIT : velocity;
        velocity = velocity > SPEED_LIMIT ? SPEED_LIMIT : velocity;
        position += velocity;
        position = position < LEFT_END ? LEFT_END : position;
        position = position > RIGHT_END ? RIGHT_END : position;
        double bounced = velocity < 0.0 ? 0.0 : velocity;
        velocity = position == LEFT_END ? bounced : velocity;

        positions[w] = position;
        velocities[w] = velocity;
        f0[w] = (float)position;
        f1[w] = (float)velocity;
        double moving_on = velocity >= 0.0 ? 1.0 : 0.0;
        double arrived = position >= GOAL ? moving_on : 0.0;
        terminated[w] = (float)arrived;
        reward[w] = -1.0f;
    }
}
