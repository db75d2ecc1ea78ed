/* print: readable JSON: numbers in their shortest exact form, short lists on one line. */
#ifndef RM_CONFIG_PRINT_H
#define RM_CONFIG_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* `indent` counts levels; -1 puts everything on one line. */
void rm_json_print(FILE *out, const json_t *value, int indent);

/* The same as a string, which the caller frees; NULL without memory, or for a NULL value. With
 * `lines`, indented and with a line break at its end. */
char *rm_json_text(const json_t *value, bool lines);

#endif
