#include "config/json_value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

json_t *rm_json_finite(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *rm_json_at(const json_t *object, const char *path)
{
    char name[64];
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
        object = json_object_get(object, name);
    }
    return json_object_get(object, path);
}

double rm_json_number(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

double rm_json_number_at(const json_t *object, const char *path)
{
    return rm_json_number(rm_json_at(object, path));
}
