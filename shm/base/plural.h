/* plural: singular or plural of a noun, by a count. */
#ifndef RM_SHM_BASE_PLURAL_H
#define RM_SHM_BASE_PLURAL_H

#include <stdint.h>

/* rm_plural(1, "policy", "policies") is "policy". */
static inline const char *rm_plural(uint64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

#endif
