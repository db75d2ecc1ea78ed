/* plugin: what ringmaster-prolog.so and the code that opens it (actor/worlds/bridges/prolog.h)
 * agree on: a table of actor/env.h, made with the options of the experiment and this one. */
#ifndef RM_ACTOR_WORLDS_PROLOG_PLUGIN_H
#define RM_ACTOR_WORLDS_PROLOG_PLUGIN_H

/* The whole path of the Prolog file. No option of a user can be called so. */
#define RM_PROLOG_FILE ".file"

#endif
