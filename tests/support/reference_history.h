/* reference_history: packed histories (learner/net/history.h) and their queries. */
#ifndef RM_TESTS_SUPPORT_REFERENCE_HISTORY_H
#define RM_TESTS_SUPPORT_REFERENCE_HISTORY_H

#include "tests/support/reference_walk.h"

/* The layer. */
void reference_history(struct reference_walk *w, const struct rm_layer_config *c, const char *name);
/* The queries of each sample, in the place of all rows. */
void reference_queries(struct reference_walk *w);

#endif
