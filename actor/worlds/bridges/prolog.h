/* prolog: worlds in Prolog (world.prolog), by the plugin ringmaster-prolog.so, which needs the
 * library of SWI-Prolog; nothing else does. The plugin is a world of a shared object
 * (actor/worlds/prolog/plugin.c); it is given the Prolog file beside the experiment's options. */
#ifndef RM_ACTOR_WORLDS_BRIDGES_PROLOG_H
#define RM_ACTOR_WORLDS_BRIDGES_PROLOG_H

#include "actor/worlds/options.h"
#include "actor/worlds/worlds.h"

/* Opens the plugin, found as rm_plugin_find() does. -ENOENT: there is none, or no SWI-Prolog; the
 * message says what to install. */
int rm_prolog_open(struct rm_world *world, struct rm_error *error);

/* Options as the plugin takes them: the file, and those of the experiment as they are, since the
 * Prolog file itself says which it takes. */
int rm_prolog_options(struct rm_options *options, const struct rm_world_config *config,
                      struct rm_error *error);

#endif
