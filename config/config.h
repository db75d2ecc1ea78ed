/* config: loads, checks, prints and compares experiments, all by the table in config/schema.c.
 * Callable from any thread; no global state. */
#ifndef RM_CONFIG_CONFIG_H
#define RM_CONFIG_CONFIG_H

#include "config/experiment.h"
#include "shm/base/error.h"

#include <jansson.h>
#include <stdio.h>

/* One "--set key.path=value" of a command line. */
struct rm_override {
    const char *text;
};

/* Reads FILE (JSON), applies overrides, fills defaults, checks ranges and cross-checks. Errors:
 * message "FILE:LINE:COLUMN: key.path: what is wrong; what would be right", with the nearest valid
 * key for an unknown one. Lists all errors, one a line, as many as fit. -EINVAL: what FILE says is
 * wrong; another code: FILE could not be read. */
int rm_config_load(struct rm_experiment *experiment, const char *path,
                   const struct rm_override *overrides, size_t override_count,
                   struct rm_error *error);

/* The same from text (for example the region that workers inherit). Errors show `name` as the
 * file. */
int rm_config_parse(struct rm_experiment *experiment, const char *name, const char *text,
                    size_t bytes, const struct rm_override *overrides, size_t override_count,
                    struct rm_error *error);

/* Every key at its default; world.name, which has none, is "". 0, or -ENOMEM. */
int rm_config_defaults(struct rm_experiment *experiment);

/* All keys, resolved, in schema order. Parsing it gives the same experiment. Caller frees with
 * json_decref. */
json_t *rm_config_to_json(const struct rm_experiment *experiment);

/* JSON Schema (draft 2020-12) of the whole file, for editors. */
json_t *rm_config_schema(void);

/* The reference page, in Markdown, to a stream. Returns 0 or negative errno. */
int rm_config_reference(FILE *out);

/* Compares two experiments. Calls `each` for every differing key with its path, both values as JSON
 * text and whether it is hot. Returns the number of differences, or -ENOMEM. */
typedef void (*rm_config_diff_fn)(void *user, const char *path, const char *before,
                                  const char *after, bool hot);
int rm_config_diff(const struct rm_experiment *before, const struct rm_experiment *after,
                   rm_config_diff_fn each, void *user);

/* One key by path ("sample.batch", "network.layers[0].units"), a section ("sample") or everything
 * (""), as JSON (new reference); NULL with an error if unknown. */
json_t *rm_config_get(const struct rm_experiment *experiment, const char *path,
                      struct rm_error *error);

/* Sets one key from JSON, range-checked and cross-checked; *experiment is unchanged on error. */
int rm_config_set(struct rm_experiment *experiment, const char *path, const json_t *value,
                  struct rm_error *error);

/* Whether the key has an effect: not every algorithm.name reads it, nor a run with
 * sample.from (the tables in config/unused.c). */
bool rm_config_reads(const struct rm_experiment *experiment, const char *path);

/* Lists keys without effect that differ from their default. Calls `each` with the path and a
 * message: "has no effect with algorithm.name ppo; it is for dqn, sac". Returns their number. */
typedef void (*rm_config_unused_fn)(void *user, const char *path, const char *words);
int rm_config_unused(const struct rm_experiment *experiment, rm_config_unused_fn each, void *user);

/* --- hot-reloadable numbers ---------------------------------------------------------------- */

/* Every hot key has an index into run->settings[] of the board. The order is the schema's. */
enum rm_hot {
    RM_HOT_LEARNING_RATE = 0,   /* optimizer.learning_rate */
    RM_HOT_GRAD_CLIP,           /* optimizer.grad_clip */
    RM_HOT_EPSILON_END,         /* epsilon.end */
    RM_HOT_PUBLISH_INTERVAL,    /* publish.interval */
    RM_HOT_PUBLISH_MIN_CHANGE,  /* publish.min_change */
    RM_HOT_UPDATES_PER_STEP,    /* limiter.updates_per_step */
    RM_HOT_SLACK_UPDATES,       /* limiter.slack_updates */
    RM_HOT_TARGET_TAU,          /* algorithm.target.tau */
    RM_HOT_ENTROPY_COEFFICIENT, /* algorithm.entropy_coefficient */
    RM_HOT_EVALUATION_INTERVAL, /* evaluation.interval */
    RM_HOT_METRICS_INTERVAL,    /* metrics.interval_s */
    RM_HOT_CHECKPOINT_INTERVAL, /* checkpoint.interval_s */
    RM_HOT_COUNT
};

/* Fills values[RM_HOT_COUNT] from the experiment, and back. */
void rm_config_hot_values(const struct rm_experiment *experiment, double *values);
void rm_config_apply_hot(struct rm_experiment *experiment, const double *values);

/* Levenshtein-nearest of `candidates` (ends with NULL) to `word`; NULL when none is near. Also used
 * for commands and worlds. */
const char *rm_nearest(const char *word, const char *const *candidates);

#endif
