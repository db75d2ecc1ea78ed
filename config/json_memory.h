/* json_memory: whether jansson had all the memory that it asked for. Building a value takes many
 * small allocations, and one that fails leaves out a member or an element without a word to whoever
 * only looks at the whole. So whoever builds or reads one takes a mark first and asks afterwards:
 *
 *   const uint64_t mark = rm_json_failures();
 *   json_t *root = ...;
 *   if (rm_json_failures() != mark)
 *       ... what is in root is not all ...
 *
 * Counts per thread, from the program's start. */
#ifndef RM_CONFIG_JSON_MEMORY_H
#define RM_CONFIG_JSON_MEMORY_H

#include <jansson.h>
#include <stdint.h>

/* Allocations of jansson that failed in this thread. */
uint64_t rm_json_failures(void);

/* Takes `value`: the same if nothing failed since `mark`, else NULL. */
json_t *rm_json_whole(json_t *value, uint64_t mark);

/* json_dumps(), but NULL where that would leave out what it had no memory for. To be freed. */
char *rm_json_dump(const json_t *value, size_t flags);

#endif
