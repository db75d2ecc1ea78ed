/* supply: checks that the actors of a policy insert enough rows for its learner. Otherwise a run
 * would learn nothing, or actors and learner would wait for each other for ever. The rules are
 * about one policy. Only the world has the number of agents, so the rules are checked twice: with
 * one agent when a file is checked (check_experience.c), and with all agents when a plan is made
 * (actor/worlds/plan.h). */
#ifndef RM_CONFIG_SUPPLY_H
#define RM_CONFIG_SUPPLY_H

#include "config/experiment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_supply_rule {
    const char *key; /* the key that an error names */
    /* Returns true and writes a message when a policy with `agents` (>= 1) agents would not get
     * enough rows. */
    bool (*wrong)(const struct rm_experiment *experiment, uint32_t agents, char *text,
                  size_t bytes);
};

/* Replay: a lane of the ring holds all rows of a sample; for sequences also a start. */
bool rm_supply_ring(const struct rm_experiment *experiment, uint32_t agents, char *text,
                    size_t bytes);

/* Replay: the rows that actors insert before they wait for the first update include a sample. */
bool rm_supply_first(const struct rm_experiment *experiment, uint32_t agents, char *text,
                     size_t bytes);

/* Replay: the run has enough steps for sample.min_fill. */
bool rm_supply_run(const struct rm_experiment *experiment, uint32_t agents, char *text,
                   size_t bytes);

/* Replay: the run is long enough for a sample. */
bool rm_supply_length(const struct rm_experiment *experiment, uint32_t agents, char *text,
                      size_t bytes);

/* Rollouts: every minibatch has a row. */
bool rm_supply_minibatches(const struct rm_experiment *experiment, uint32_t agents, char *text,
                           size_t bytes);

/* All rules, from 0; NULL past the last. */
const struct rm_supply_rule *rm_supply_rule_at(size_t index);

#endif
