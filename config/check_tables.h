/* check_tables: the rules that check.c runs, one table per subject, each in its own file:
 * check_processes.c, check_devices.c, check_experience.c, check_learning.c. To add a rule: a
 * function and a row there. */
#ifndef RM_CONFIG_CHECK_TABLES_H
#define RM_CONFIG_CHECK_TABLES_H

#include "config/check.h"

struct rm_check_table {
    const struct rm_check *rows;
    size_t count;
};
extern const struct rm_check_table rm_checks_of_processes, rm_checks_of_devices,
    rm_checks_of_experience, rm_checks_of_learning;

#endif
