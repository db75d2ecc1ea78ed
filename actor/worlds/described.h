/* described: a world's description as text. A confined process that has loaded the world writes the
 * text. Processes that need the world's observations and actions, but not its code, read it.
 * Numbers are exact. Text from a hostile world is either refused or read as a valid description
 * (rm_world_check_spec()). */
#ifndef RM_ACTOR_WORLDS_DESCRIBED_H
#define RM_ACTOR_WORLDS_DESCRIBED_H

#include "actor/worlds/worlds.h"

#include <jansson.h>
#include <stdbool.h>

/* A parsed description. */
struct rm_described;

/* NUL-terminated text, freed by the caller; NULL when there is no memory. */
char *rm_described_write(const struct rm_world *world, const struct rm_env_spec *spec);

/* -EPROTO: the text is not a description; -ENOMEM. */
int rm_described_read(struct rm_described **described, const char *text, struct rm_error *error);
void rm_described_free(struct rm_described *described);

const struct rm_env_spec *rm_described_spec(const struct rm_described *described);
/* The table of options, which ends with key NULL. NULL: the world has no options. */
const struct rm_env_option_doc *rm_described_options(const struct rm_described *described);

/* Do two specs describe the same observations, actions and figures? */
bool rm_described_alike(const struct rm_env_spec *a, const struct rm_env_spec *b);

/* Reads an agent's real actions: a list of {name, low, high}, where a bound is eight hexadecimal
 * digits for each value, the bits of a float. Sets agent->boxes and agent->box, which points to
 * *boxes: one block with the bounds, freed by the caller. False: no such list, or no memory. A NULL
 * or empty list has no boxes. */
bool rm_described_boxes(const json_t *list, struct rm_env_agent *agent, struct rm_env_box **boxes);

/* --- the spec of an experiment's world -------------------------------------------------------- */

/* Reads the spec from config->description if there is one; otherwise opens the world. Then the
 * shared object is loaded, so call this only where foreign code may run. */
struct rm_world_spec {
    struct rm_world world;
    struct rm_env *env;
    struct rm_described *described;
    const struct rm_env_spec *spec;
    const struct rm_env_option_doc *options;
};

int rm_world_spec_open(struct rm_world_spec *s, const struct rm_world_config *config, uint64_t seed,
                       struct rm_error *error);
void rm_world_spec_close(struct rm_world_spec *s);

/* Checks that the world with evaluation.options has the observations and actions of `spec`. Creates
 * the world, so a shared object is loaded. -EINVAL. */
int rm_world_check_evaluation(const struct rm_experiment *experiment,
                              const struct rm_env_spec *spec, struct rm_error *error);

#endif
