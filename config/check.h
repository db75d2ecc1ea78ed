/* check: contradictions between keys that are each in range. One table, in check.c. */
#ifndef RM_CONFIG_CHECK_H
#define RM_CONFIG_CHECK_H

#include "config/findings.h"

#define RM_CHECK_KEYS 5

struct rm_check {
    const char
        *keys[RM_CHECK_KEYS]; /* those it compares; the first gets the blame; ends with NULL */
    /* true and words when the experiment contradicts itself. */
    bool (*wrong)(const struct rm_experiment *experiment, char *text, size_t bytes);
    const char *doc; /* the rule, for the reference page */
};
extern const struct rm_check rm_checks[];
extern const size_t rm_check_count;

/* Runs every check whose keys have nothing wrong on their own. */
void rm_check_all(const struct rm_experiment *experiment, struct rm_findings *findings);

#endif
