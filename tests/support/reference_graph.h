/* reference_graph: layers over the edges of a graph. */
#ifndef RM_TESTS_SUPPORT_REFERENCE_GRAPH_H
#define RM_TESTS_SUPPORT_REFERENCE_GRAPH_H

#include "tests/support/reference_walk.h"

void reference_one_hot(struct reference_walk *w, const struct rm_layer_config *c, const char *name);
void reference_pass_messages(struct reference_walk *w, const struct rm_layer_config *c,
                             const char *name);
void reference_attend_edges(struct reference_walk *w, const struct rm_layer_config *c,
                            const char *name);
void reference_pool_graph(struct reference_walk *w, const struct rm_layer_config *c,
                          const char *name);

#endif
