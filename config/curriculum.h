/* curriculum: the key of that name: stages of a run, each with options of its worlds and a rule for
 * when the next stage begins. The experiment has the stages' rules, and their options as JSON. */
#ifndef RM_CONFIG_CURRICULUM_H
#define RM_CONFIG_CURRICULUM_H

#include "config/experiment.h"

/* The world of a stage: the experiment's with the stage's options. -ENOMEM: they are too long
 * together. */
int rm_curriculum_world(const struct rm_experiment *experiment, uint32_t stage,
                        struct rm_world_config *world);

#endif
