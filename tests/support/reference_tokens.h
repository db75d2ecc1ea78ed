/* reference_tokens: layers over the tokens of a state, and what becomes of tokens around them. */
#ifndef RM_TESTS_SUPPORT_REFERENCE_TOKENS_H
#define RM_TESTS_SUPPORT_REFERENCE_TOKENS_H

#include "tests/support/reference_walk.h"

/* Three layers. */
void reference_mean_pool(struct reference_walk *w, const struct rm_layer_config *c,
                         const char *name);
void reference_place(struct reference_walk *w, const struct rm_layer_config *c, const char *name);
void reference_attend(struct reference_walk *w, const struct rm_layer_config *c, const char *name);
void reference_point(struct reference_walk *w, const struct rm_layer_config *c, const char *name);

/* The first token of each state, in the place of all. */
void reference_keep_first(struct reference_walk *w);
/* Tokens side by side, zeros for padding. */
void reference_flatten(struct reference_walk *w);
/* Rows of tokens, and which of them are padding. */
void reference_cut_tokens(struct reference_walk *w, struct reference_rows *x);

/* Whether the policy's layers, or the value's, have one of this type; one that looks at several
 * tokens. */
bool reference_has_layer(const struct rm_network_config *c, enum rm_layer_type type, bool value);
bool reference_looks_across(const struct rm_network_config *c, bool value);

#endif
