/* prolog: worlds in Prolog (world.prolog), by the plugin ringmaster-prolog.so. Only the plugin
 * needs the library of SWI-Prolog. The plugin is a world of a shared object
 * (actor/worlds/prolog/plugin.c) and gets the Prolog file together with the experiment's options.
 */
#ifndef RM_ACTOR_WORLDS_BRIDGES_PROLOG_H
#define RM_ACTOR_WORLDS_BRIDGES_PROLOG_H

#include "actor/worlds/options.h"
#include "actor/worlds/worlds.h"

/* Opens the plugin, which rm_plugin_find() finds. -ENOENT: the plugin or SWI-Prolog is missing; the
 * message names what to install. */
int rm_prolog_open(struct rm_world *world, struct rm_error *error);

/* The plugin's options: the file, and the experiment's options unchecked, because only the Prolog
 * file declares which options there are. */
int rm_prolog_options(struct rm_options *options, const struct rm_world_config *config,
                      struct rm_error *error);

#endif
