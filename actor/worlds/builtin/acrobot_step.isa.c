/* Acrobot: a double pendulum with torque -1 (0), 0 (1) or +1 (2) on the middle joint; ends when the
 * tip is one link above the first joint. Sutton (1996), "Generalization in reinforcement learning:
 * successful examples using sparse coarse coding", in the form of Sutton and Barto's book and with
 * the numbers of Gymnasium's Acrobot-v1: one Runge-Kutta step of order 4 over 0.2 s.
 *
 * All masses, lengths and moments of inertia are 1 and the centres of mass 0.5; the constants below
 * are the formula's with these put in. */
#include "actor/worlds/builtin/classic.h"
#include "actor/worlds/builtin/trig.h"

void RM_ISA_NAME(acrobot_kernel)(const struct rm_classic_arrays *arrays);

#define PI      3.14159265358979323846
#define GRAVITY 9.8
#define TAU     0.2
#define LIMIT_1 (4.0 * PI)
#define LIMIT_2 (9.0 * PI)

struct point {
    double angle1, angle2, velocity1, velocity2;
};

/* Time derivative of a state. cos(a - pi/2) is sin(a). */
__attribute__((always_inline)) static inline struct point derivative(struct point s, double torque)
{
    double sine1, cosine1, sine2, cosine2, sine12, cosine12;
    rm_sincos(s.angle1, &sine1, &cosine1);
    rm_sincos(s.angle2, &sine2, &cosine2);
    rm_sincos(s.angle1 + s.angle2, &sine12, &cosine12);
    double d1 = 0.25 + (1.25 + cosine2) + 2.0;
    double d2 = (0.25 + 0.5 * cosine2) + 1.0;
    double phi2 = 0.5 * GRAVITY * sine12;
    double phi1 = -0.5 * (s.velocity2 * s.velocity2) * sine2 - s.velocity2 * s.velocity1 * sine2 +
                  1.5 * GRAVITY * sine1 + phi2;
    double ratio = d2 / d1;
    double acceleration2 =
        (torque + ratio * phi1 - 0.5 * (s.velocity1 * s.velocity1) * sine2 - phi2) /
        (1.25 - d2 * ratio);
    double acceleration1 = -(d2 * acceleration2 + phi1) / d1;
    return (struct point){s.velocity1, s.velocity2, acceleration1, acceleration2};
}

static inline struct point along(struct point s, double time, struct point d)
{
    return (struct point){s.angle1 + time * d.angle1, s.angle2 + time * d.angle2,
                          s.velocity1 + time * d.velocity1, s.velocity2 + time * d.velocity2};
}

static inline double weighted(double k1, double k2, double k3, double k4)
{
    return TAU / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
}

static inline double turned_back(double angle)
{
    angle = angle > PI ? angle - 2.0 * PI : angle;
    return angle < -PI ? angle + 2.0 * PI : angle;
}

/* Into [-pi, pi]; a step turns a link by less than three turns. */
static inline double wrapped(double angle)
{
    return turned_back(turned_back(turned_back(angle)));
}

static inline double bounded(double x, double limit)
{
    x = x < -limit ? -limit : x;
    return x > limit ? limit : x;
}

void RM_ISA_NAME(acrobot_kernel)(const struct rm_classic_arrays *arrays)
{
    double *angles1 = arrays->state[0], *angles2 = arrays->state[1];
    double *velocities1 = arrays->state[2], *velocities2 = arrays->state[3];
    float *f0 = arrays->frame[0], *f1 = arrays->frame[1];
    float *f2 = arrays->frame[2], *f3 = arrays->frame[3];
    float *f4 = arrays->frame[4], *f5 = arrays->frame[5];
    float *terminated = arrays->terminated, *reward = arrays->reward;
    const int32_t *action = arrays->action;

    const uint32_t padded = arrays->padded;
    RM_INDEPENDENT
    for (uint32_t w = 0; w < padded; w++) {
        double torque = (double)(action[w] - 1);
        struct point s = {angles1[w], angles2[w], velocities1[w], velocities2[w]};
        struct point k1 = derivative(s, torque);
        struct point k2 = derivative(along(s, TAU / 2.0, k1), torque);
        struct point k3 = derivative(along(s, TAU / 2.0, k2), torque);
        struct point k4 = derivative(along(s, TAU, k3), torque);
        double angle1 = wrapped(s.angle1 + weighted(k1.angle1, k2.angle1, k3.angle1, k4.angle1));
        double angle2 = wrapped(s.angle2 + weighted(k1.angle2, k2.angle2, k3.angle2, k4.angle2));
        double velocity1 =
            bounded(s.velocity1 + weighted(k1.velocity1, k2.velocity1, k3.velocity1, k4.velocity1),
                    LIMIT_1);
        double velocity2 =
            bounded(s.velocity2 + weighted(k1.velocity2, k2.velocity2, k3.velocity2, k4.velocity2),
                    LIMIT_2);
        angles1[w] = angle1;
        angles2[w] = angle2;
        velocities1[w] = velocity1;
        velocities2[w] = velocity2;

        double sine1, cosine1, sine2, cosine2, sine12, cosine12;
        rm_sincos(angle1, &sine1, &cosine1);
        rm_sincos(angle2, &sine2, &cosine2);
        rm_sincos(angle1 + angle2, &sine12, &cosine12);
        f0[w] = (float)cosine1;
        f1[w] = (float)sine1;
        f2[w] = (float)cosine2;
        f3[w] = (float)sine2;
        f4[w] = (float)velocity1;
        f5[w] = (float)velocity2;
        double done = -cosine1 - cosine12 > 1.0 ? 1.0 : 0.0;
        terminated[w] = (float)done;
        reward[w] = (float)(done - 1.0);
    }
}
