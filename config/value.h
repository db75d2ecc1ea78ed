/* value: how a key of each type is read from JSON, checked, written and described. */
#ifndef RM_CONFIG_VALUE_H
#define RM_CONFIG_VALUE_H

#include "config/findings.h"
#include "config/schema.h"

struct rm_key_type_ops {
    /* Checks `value` and stores it. On an error it stores nothing and adds a finding. */
    void (*read)(const struct rm_key *key, const json_t *value, struct rm_experiment *experiment,
                 struct rm_findings *findings);
    /* The value as JSON, a new reference; reading it gives the same value. */
    json_t *(*write)(const struct rm_key *key, const struct rm_experiment *experiment);
    /* JSON Schema of the value, without description and default; new reference. */
    json_t *(*schema)(const struct rm_key *key);
    /* Writes the allowed values as text for people. */
    void (*allowed)(const struct rm_key *key, char *text, size_t bytes);
    const char *word; /* of the type: "whole number" */
};

extern const struct rm_key_type_ops *const rm_key_type_ops[RM_KEY_TYPE_COUNT];

/* The key's default as JSON, a new reference; for a required key its empty value. */
json_t *rm_value_default(const struct rm_key *key);

/* A short text of a JSON value, or its kind, for "but is ...". */
const char *rm_value_brief(const json_t *value, char *text, size_t bytes);

/* Reads a whole number within [low, high]; 4e3 and 4000.0 are whole numbers too. Errors go to
 * findings. */
bool rm_value_whole(const json_t *value, const char *path, double low, double high,
                    uint64_t *number, struct rm_findings *findings);

/* Index of `word` in names; -1 after adding a finding. */
int rm_value_name(const json_t *value, const char *path, const char *const *names,
                  struct rm_findings *findings);

/* The shortest decimal that reads back as the same double. */
const char *rm_number_text(double number, char *text, size_t bytes);

/* Types with more than one number or text, from compound.c, layers.c,
 * policy_from.c and curriculum.c. */
extern const struct rm_key_type_ops rm_options_ops, rm_map_ops, rm_layers_ops, rm_frozen_ops,
    rm_inputs_ops, rm_from_ops, rm_curriculum_ops;

#endif
