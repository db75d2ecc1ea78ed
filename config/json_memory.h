/* json_memory: detects failed allocations of jansson. Building a value takes many small
 * allocations, and a failed one silently leaves out a member or an element. So code that builds or
 * reads a value takes a mark first and compares afterwards:
 *
 *   const uint64_t mark = rm_json_failures();
 *   json_t *root = ...;
 *   if (rm_json_failures() != mark)
 *       ... root is incomplete ...
 *
 * Counts per thread, from the program's start. */
#ifndef RM_CONFIG_JSON_MEMORY_H
#define RM_CONFIG_JSON_MEMORY_H

#include <jansson.h>
#include <stdint.h>

/* Allocations of jansson that failed in this thread. */
uint64_t rm_json_failures(void);

/* Consumes `value`; returns it if no allocation failed since `mark`, otherwise NULL. */
json_t *rm_json_whole(json_t *value, uint64_t mark);

/* json_dumps(), but NULL if an allocation failed. The caller frees it. */
char *rm_json_dump(const json_t *value, size_t flags);

#endif
