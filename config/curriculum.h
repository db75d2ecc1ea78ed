/* curriculum: the stages of a run (the key `curriculum`). Each stage has options of its worlds and
 * a rule that begins the next stage. The experiment has the stages' rules, and their options as
 * JSON. */
#ifndef RM_CONFIG_CURRICULUM_H
#define RM_CONFIG_CURRICULUM_H

#include "config/experiment.h"

/* Writes the world of a stage: the experiment's world with the stage's options. -ENOMEM: together
 * the options are too long. */
int rm_curriculum_world(const struct rm_experiment *experiment, uint32_t stage,
                        struct rm_world_config *world);

#endif
