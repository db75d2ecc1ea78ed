/* evaluator: the duty that plays greedy episodes with the latest weights: at intervals of agent
 * steps, and when run->evaluate_request advances. The evaluator has its own worlds and does not
 * delay actors.
 */
#ifndef RM_ACTOR_EVALUATOR_H
#define RM_ACTOR_EVALUATOR_H

#include "shm/session/session.h"
#include "shm/duty.h"

struct rm_evaluator;

int rm_evaluator_create(struct rm_evaluator **evaluator, struct rm_session *session,
                        struct rm_duty *duty, struct rm_error *error);
void rm_evaluator_destroy(struct rm_evaluator *evaluator);

/* The seed of the worlds and actions of evaluations. Training does not use this seed. */
uint64_t rm_evaluator_seed(const struct rm_experiment *experiment);

#endif
