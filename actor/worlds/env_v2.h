/* env_v2: wraps worlds that were compiled against version 2 of the environment ABI in a table of
 * version 3. Only env_v2 knows version 2. */
#ifndef RM_ACTOR_WORLDS_ENV_V2_H
#define RM_ACTOR_WORLDS_ENV_V2_H

#include "actor/env.h"
#include "shm/base/error.h"

#define RM_ENV_V2 2u /* its abi_version, the first word of every table */

/* Makes a table of version 3 for a world whose table of version 2 is `table`. The result is valid
 * until rm_env_v2_forget(). Members that are NULL in `table` are NULL in the result. Returns NULL
 * after an error, with the code in *rc and a message. */
const struct rm_env_ops *rm_env_v2_adapt(const void *table, const char *library, int *rc,
                                         struct rm_error *error);
void rm_env_v2_forget(const struct rm_env_ops *adapted);

#endif
