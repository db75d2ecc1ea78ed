/* options: reads world.options and checks them against the world's table: numbers, words, paths,
 * and lists of these. One message reports all errors. */
#ifndef RM_ACTOR_WORLDS_OPTIONS_H
#define RM_ACTOR_WORLDS_OPTIONS_H

#include "actor/env.h"
#include "config/experiment.h"
#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>

#define RM_OPTIONS_MAX 256 /* most options of a world, and most values of a list */

/* Options as create() takes them. */
struct rm_options {
    uint32_t count;
    struct rm_env_option *option; /* [count] */
    json_t *json;                 /* owns keys and texts */
    double *values;
    const char **texts;
    char **paths; /* absolute paths, made from relative ones; ends with NULL */
};

/* Reads config->options by the table `docs` (may be NULL) of the world `name`. The message has a
 * line for each wrong option, in their order. After 0 the caller frees *options. Errors: -EINVAL,
 * -ERANGE, -ENOMEM. */
int rm_options_read(struct rm_options *options, const char *name,
                    const struct rm_env_option_doc *docs, const struct rm_world_config *config,
                    struct rm_error *error);
void rm_options_free(struct rm_options *options);

/* Checks the types, ranges and words of a table. The message begins with `what`. -EPROTO: the table
 * is not valid. */
int rm_options_check_table(const char *what, const struct rm_env_option_doc *docs,
                           struct rm_error *error);

bool rm_option_is_number(const struct rm_env_option_doc *doc);
/* The kind of an option's value as text: "number", "word", "path", "list of words". */
const char *rm_option_takes(const struct rm_env_option_doc *doc);
/* The default of an option as text: "0.02", "red", "none", "empty". */
void rm_option_fallback_text(const struct rm_env_option_doc *doc, char *text, size_t size);

/* The world of evaluations: the experiment's world with its options replaced by those of
 * evaluation.options. -ENOMEM: together they are too long. */
int rm_options_evaluation_world(const struct rm_experiment *experiment,
                                struct rm_world_config *world);

#endif
