#include "learner/algo/temperature.h"

void rm_temperature_move(struct rm_temperature *t, const struct rm_soft_step *step,
                         double learning_rate, double gap)
{
    const double b1 = step->beta1, b2 = step->beta2;
    const double gradient = -rm_temperature_alpha(t) * gap, k = (double)++t->steps;
    t->m = b1 * t->m + (1 - b1) * gradient;
    t->v = b2 * t->v + (1 - b2) * gradient * gradient;
    const double m = t->m / (1 - pow(b1, k)), v = t->v / (1 - pow(b2, k));
    t->log -= learning_rate * m / (sqrt(v) + step->epsilon);
}
