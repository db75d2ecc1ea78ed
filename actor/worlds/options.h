/* options: reads world.options by a world's table: numbers, words, paths, and lists of these. One
 * message reports all errors. */
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
 * line for each wrong option, in their order. If it returns 0, the caller frees *options. Errors:
 * -EINVAL, -ERANGE, -ENOMEM. */
int rm_options_read(struct rm_options *options, const char *name,
                    const struct rm_env_option_doc *docs, const struct rm_world_config *config,
                    struct rm_error *error);
void rm_options_free(struct rm_options *options);

/* Is this a valid table: types, ranges, words? `what` begins the message. -EPROTO. */
int rm_options_check_table(const char *what, const struct rm_env_option_doc *docs,
                           struct rm_error *error);

bool rm_option_is_number(const struct rm_env_option_doc *doc);
/* "number", "word", "path", "list of words": what an option takes, for people. */
const char *rm_option_takes(const struct rm_env_option_doc *doc);
/* "0.02", "red", "none", "empty": its default. */
void rm_option_fallback_text(const struct rm_env_option_doc *doc, char *text, size_t size);

/* The world of evaluations: the experiment's world with its options replaced by those of
 * evaluation.options. -ENOMEM: together they are too long. */
int rm_options_evaluation_world(const struct rm_experiment *experiment,
                                struct rm_world_config *world);

#endif
