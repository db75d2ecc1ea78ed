/* json_value: numbers and members of JSON values. JSON has no number for NAN or infinity: they are
 * null. Any thread. */
#ifndef RM_CONFIG_JSON_VALUE_H
#define RM_CONFIG_JSON_VALUE_H

#include <jansson.h>

/* A new reference: the number, or null if it is not finite. */
json_t *rm_json_finite(double number);

/* The member at `path`, names with dots between: "evaluation.mean". NULL: there is none. Borrowed
 * from `object`, which may be NULL. */
json_t *rm_json_at(const json_t *object, const char *path);

/* The number, or NAN if `value` is not one or NULL. */
double rm_json_number(const json_t *value);

/* The number at `path`; NAN: there is none. */
double rm_json_number_at(const json_t *object, const char *path);

#endif
