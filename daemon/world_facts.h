/* world_facts: scores for comparison, as declared by the world that evaluations play. */
#ifndef RM_DAEMON_WORLD_FACTS_H
#define RM_DAEMON_WORLD_FACTS_H

#include "config/experiment.h"
#include "shm/base/error.h"

/* Scores of a whole episode, summed over agents; NaN where the world gives none. */
struct rm_world_facts {
    double score_random, score_solved, score_low, score_high;
};

/* Reads them from the world's description, or opens the world and closes it again. */
int rm_world_facts_read(struct rm_world_facts *facts, const struct rm_experiment *experiment,
                        struct rm_error *error);

#endif
