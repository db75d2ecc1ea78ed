/* tree: finding and setting values in JSON by key path ("network.layers[1].units"). */
#ifndef RM_CONFIG_TREE_H
#define RM_CONFIG_TREE_H

#include "config/findings.h"

/* The value at `path`, borrowed; NULL if there is none. "" is the root itself. */
json_t *rm_tree_get(json_t *root, const char *path);

/* Sets it, making objects on the way; a list must have the element already (network.layers starts
 * from its default). Takes over `value`. What cannot be goes to findings. */
void rm_tree_set(json_t *root, const char *path, json_t *value, struct rm_findings *findings);

/* Applies "key=value" of a command line: the value is JSON, or else text as it stands. */
void rm_tree_override(json_t *root, const char *text, struct rm_findings *findings);

/* Says that a key is unknown, with the one that was probably meant. */
void rm_tree_unknown(const char *path, struct rm_findings *findings);

/* The words for it. */
void rm_tree_unknown_words(const char *path, char *text, size_t bytes);

#endif
