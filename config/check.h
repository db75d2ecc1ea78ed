/* check: contradictions between keys that are each in range. The tables are in
 * check_tables.h. */
#ifndef RM_CONFIG_CHECK_H
#define RM_CONFIG_CHECK_H

#include "config/findings.h"

#define RM_CHECK_KEYS 8

struct rm_check {
    const char *keys[RM_CHECK_KEYS]; /* the keys it compares; the first is named in the error; ends
                                      * with NULL */
    /* Returns true and writes a message when the experiment contradicts itself. */
    bool (*wrong)(const struct rm_experiment *experiment, char *text, size_t bytes);
    const char *doc; /* the rule, for the reference page */
};

/* The rules, from 0; NULL past the last. */
const struct rm_check *rm_check_at(size_t index);

/* Runs every check whose keys have nothing wrong on their own. How many agents a policy has is not
 * known yet: at least one, and exactly one where policies are independent. */
void rm_check_all(const struct rm_experiment *experiment, struct rm_findings *findings);

/* Runs the checks of a policy with `agents` agents. Returns the key of the first check that fails,
 * with a message, or NULL. */
const char *rm_check_policy(const struct rm_experiment *experiment, uint32_t agents, char *text,
                            size_t bytes);

#endif
