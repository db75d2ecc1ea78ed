/* check_tables: the rules that check.c runs, one table per subject, each in its own file:
 * check_processes.c, check_devices.c, check_experience.c, check_supply.c, check_learning.c. To add
 * a rule: a function and a row there. */
#ifndef RM_CONFIG_CHECK_TABLES_H
#define RM_CONFIG_CHECK_TABLES_H

#include "config/check.h"

struct rm_check_table {
    const struct rm_check *rows;
    size_t count;
};
extern const struct rm_check_table rm_checks_of_processes, rm_checks_of_devices,
    rm_checks_of_experience, rm_checks_of_learning;

/* A rule about a policy, by its number of agents (>= 1); check.wrong is NULL. */
struct rm_policy_check {
    struct rm_check check;
    bool (*wrong)(const struct rm_experiment *experiment, uint32_t agents, char *text,
                  size_t bytes);
    bool more_agents_help; /* the rule may hold for several agents and not for one */
};
extern const struct rm_policy_check rm_checks_of_supply[];
extern const size_t rm_checks_of_supply_count;

#endif
