/* tree: finding and setting values in JSON by key path ("network.layers[1].units"). */
#ifndef RM_CONFIG_TREE_H
#define RM_CONFIG_TREE_H

#include "config/findings.h"

/* The value at `path`, borrowed; NULL if there is none. "" is the root itself. */
json_t *rm_tree_get(json_t *root, const char *path);

/* Sets the value at `path` and creates objects on the way; a list must already have the element
 * (network.layers starts from its default). Consumes `value`. Errors go to findings. */
void rm_tree_set(json_t *root, const char *path, json_t *value, struct rm_findings *findings);

/* Applies "key=value" of a command line: the value is JSON; if it is not valid JSON, it is text. */
void rm_tree_override(json_t *root, const char *text, struct rm_findings *findings);

/* Records that a key is unknown, with the key that was probably meant. */
void rm_tree_unknown(const char *path, struct rm_findings *findings);

/* Writes that message to `text`. */
void rm_tree_unknown_words(const char *path, char *text, size_t bytes);

#endif
