/* python_spec: makes a valid description, as describe() may return it (actor/worlds/worlds.h), from
 * the text that a Python worker writes about its world. The text is not trusted. */
#ifndef RM_ACTOR_WORLDS_BRIDGES_PYTHON_SPEC_H
#define RM_ACTOR_WORLDS_BRIDGES_PYTHON_SPEC_H

#include "actor/env.h"
#include "shm/base/error.h"

#include <stdbool.h>

struct rm_python_spec;

/* `name`: of the world. -EPROTO: the text is not a description, or not a valid one. */
int rm_python_spec_read(struct rm_python_spec **spec, const char *name, const char *text,
                        struct rm_error *error);
const struct rm_env_spec *rm_python_spec(const struct rm_python_spec *spec);
/* Can some of a worker's worlds be stepped without the others? */
bool rm_python_spec_apart(const struct rm_python_spec *spec);
/* The interpreter's version and those of packages, in whatever bytes the worker chose; "" if it
 * says none. */
const char *rm_python_spec_versions(const struct rm_python_spec *spec);
void rm_python_spec_free(struct rm_python_spec *spec);

#endif
