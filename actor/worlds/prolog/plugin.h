/* plugin: the interface between ringmaster-prolog.so and the code that opens it
 * (actor/worlds/bridges/prolog.h): a table of actor/env.h, whose create() gets the experiment's
 * options and this one. */
#ifndef RM_ACTOR_WORLDS_PROLOG_PLUGIN_H
#define RM_ACTOR_WORLDS_PROLOG_PLUGIN_H

/* The absolute path of the Prolog file. No option of a user can have this name. */
#define RM_PROLOG_FILE ".file"

#endif
