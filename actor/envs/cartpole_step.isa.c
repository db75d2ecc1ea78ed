/* CartPole: a pole hinged to a cart that is pushed left (0) or right (1).
 * Barto, Sutton and Anderson (1983), "Neuronlike adaptive elements that can solve difficult
 * learning control problems", in the frictionless form and with the numbers of Gymnasium's
 * CartPole-v1; explicit Euler steps of 0.02 s. Ends beyond 2.4 m or 12 degrees. */
#include "actor/envs/classic.h"
#include "actor/envs/trig.h"

void RM_ISA_NAME(rm_cartpole_kernel)(const struct rm_classic_arrays *arrays);

#define GRAVITY        9.8
#define POLE_MASS      0.1
#define TOTAL_MASS     (1.0 + POLE_MASS)
#define HALF_LENGTH    0.5
#define POLE_MOMENT    (POLE_MASS * HALF_LENGTH)
#define FORCE          10.0
#define TAU            0.02
#define ANGLE_LIMIT    (12.0 * 2.0 * 3.14159265358979323846 / 360.0)
#define POSITION_LIMIT 2.4

void RM_ISA_NAME(rm_cartpole_kernel)(const struct rm_classic_arrays *arrays)
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
        double x = xs[w], dx = dxs[w], angle = angles[w], dangle = dangles[w];
        double force = action[w] == 1 ? FORCE : -FORCE;
        /* A world that goes on has |angle| <= 12 degrees. */
        double sine = rm_sin_small(angle), cosine = rm_cos_small(angle);
        double push = (force + POLE_MOMENT * (dangle * dangle) * sine) / TOTAL_MASS;
        double ddangle = (GRAVITY * sine - cosine * push) /
                         (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS));
        double ddx = push - POLE_MOMENT * ddangle * cosine / TOTAL_MASS;

        x = x + TAU * dx;
        dx = dx + TAU * ddx;
        angle = angle + TAU * dangle;
        dangle = dangle + TAU * ddangle;
        xs[w] = x;
        dxs[w] = dx;
        angles[w] = angle;
        dangles[w] = dangle;

        f0[w] = (float)x;
        f1[w] = (float)dx;
        f2[w] = (float)angle;
        f3[w] = (float)dangle;
        double out_x = x < -POSITION_LIMIT || x > POSITION_LIMIT ? 1.0 : 0.0;
        double out = angle < -ANGLE_LIMIT || angle > ANGLE_LIMIT ? 1.0 : out_x;
        terminated[w] = (float)out;
        reward[w] = 1.0f;
    }
}
