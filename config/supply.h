/* supply: whether what the actors of a policy bring can ever be what its learner waits for. Where
 * it cannot, a run would learn nothing or stand still for ever, actors and learner each waiting for
 * the other. Rules of one policy; how many agents it has only the world says, so that they are
 * asked twice: with one agent, when a file is checked (check_experience.c), and with as many as
 * there are, when a plan is made (actor/worlds/plan.h). */
#ifndef RM_CONFIG_SUPPLY_H
#define RM_CONFIG_SUPPLY_H

#include "config/experiment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_supply_rule {
    const char *key; /* that gets the blame */
    /* true and words when a policy of `agents` (>= 1) agents would not get what it needs. */
    bool (*wrong)(const struct rm_experiment *experiment, uint32_t agents, char *text,
                  size_t bytes);
};

/* Replay: a lane of the ring holds all rows that a sample spans; of sequences also a start. */
bool rm_supply_ring(const struct rm_experiment *experiment, uint32_t agents, char *text,
                    size_t bytes);

/* Replay: what actors insert before they wait for the first update has a sample in it. */
bool rm_supply_first(const struct rm_experiment *experiment, uint32_t agents, char *text,
                     size_t bytes);

/* Replay: the run brings what the first update waits for. */
bool rm_supply_run(const struct rm_experiment *experiment, uint32_t agents, char *text,
                   size_t bytes);

/* Replay: the run is long enough for a sample. */
bool rm_supply_length(const struct rm_experiment *experiment, uint32_t agents, char *text,
                      size_t bytes);

/* Rollouts: every minibatch has a row. */
bool rm_supply_minibatches(const struct rm_experiment *experiment, uint32_t agents, char *text,
                           size_t bytes);

/* All of them, from 0; NULL past the last. */
const struct rm_supply_rule *rm_supply_rule_at(size_t index);

#endif
