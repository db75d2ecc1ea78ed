#include "config/value.h"
#include "config/synonyms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field(const struct rm_key *key, struct rm_experiment *experiment)
{
    return (char *)experiment + key->offset;
}

static const void *field_of(const struct rm_key *key, const struct rm_experiment *experiment)
{
    return (const char *)experiment + key->offset;
}

const char *rm_number_text(double number, char *text, size_t bytes)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, bytes, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return text;
}

const char *rm_value_brief(const json_t *value, char *text, size_t bytes)
{
    char number[40];
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        snprintf(text, bytes, "an object");
        break;
    case JSON_ARRAY:
        snprintf(text, bytes, "a list");
        break;
    case JSON_STRING:
        snprintf(text, bytes, "\"%.40s%s\"", json_string_value(value),
                 json_string_length(value) > 40 ? "..." : "");
        break;
    case JSON_INTEGER:
        snprintf(text, bytes, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        snprintf(text, bytes, "%s", rm_number_text(json_real_value(value), number, sizeof(number)));
        break;
    default:
        snprintf(text, bytes, "%s",
                 json_is_true(value)    ? "true"
                 : json_is_false(value) ? "false"
                                        : "null");
    }
    return text;
}

/* --- numbers ------------------------------------------------------------------------------- */

static void number_allowed(const struct rm_key *key, char *text, size_t bytes)
{
    char low[40], high[40];
    rm_number_text(key->low, low, sizeof(low));
    rm_number_text(key->high, high, sizeof(high));
    if (key->low_open)
        snprintf(text, bytes, "above %s, at most %s", low, high);
    else
        snprintf(text, bytes, "%s to %s", low, high);
}

bool rm_value_whole(const json_t *value, const char *path, double low, double high,
                    uint64_t *number, struct rm_findings *findings)
{
    char is[64], least[40], most[40];
    double real = json_number_value(value);

    rm_value_brief(value, is, sizeof(is));
    if (!json_is_number(value) || real != floor(real)) {
        rm_find(findings, path, false, "should be a whole number, but is %s", is);
        return false;
    }
    if (real < low || real > high) {
        rm_find(findings, path, false, "%s is out of range; allowed is %s to %s", is,
                rm_number_text(low, least, sizeof(least)),
                rm_number_text(high, most, sizeof(most)));
        return false;
    }
    *number = json_is_integer(value) ? (uint64_t)json_integer_value(value) : (uint64_t)real;
    return true;
}

static void read_whole(const struct rm_key *key, const json_t *value,
                       struct rm_experiment *experiment, struct rm_findings *findings)
{
    uint64_t number;
    if (!rm_value_whole(value, key->path, key->low, key->high, &number, findings))
        return;
    if (key->type == RM_KEY_U32)
        *(uint32_t *)field(key, experiment) = (uint32_t)number;
    else
        *(uint64_t *)field(key, experiment) = number;
}

static json_t *write_whole(const struct rm_key *key, const struct rm_experiment *experiment)
{
    const void *at = field_of(key, experiment);
    return json_integer(key->type == RM_KEY_U32 ? (json_int_t) * (const uint32_t *)at
                                                : (json_int_t) * (const uint64_t *)at);
}

static json_t *schema_whole(const struct rm_key *key)
{
    return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)key->low,
                     "maximum", (json_int_t)key->high);
}

static void read_real(const struct rm_key *key, const json_t *value,
                      struct rm_experiment *experiment, struct rm_findings *findings)
{
    char is[64], allowed[96];
    double number = json_number_value(value);

    rm_value_brief(value, is, sizeof(is));
    number_allowed(key, allowed, sizeof(allowed));
    if (!json_is_number(value))
        rm_find(findings, key->path, false, "should be a number, but is %s", is);
    else if (!isfinite(number) || number < key->low || number > key->high ||
             (key->low_open && number == key->low))
        rm_find(findings, key->path, false, "%s is out of range; allowed is %s", is, allowed);
    else
        *(double *)field(key, experiment) = number + 0.0; /* -0 becomes 0 */
}

static json_t *write_real(const struct rm_key *key, const struct rm_experiment *experiment)
{
    return json_real(*(const double *)field_of(key, experiment));
}

static json_t *schema_real(const struct rm_key *key)
{
    return json_pack("{s:s, s:f, s:f}", "type", "number",
                     key->low_open ? "exclusiveMinimum" : "minimum", key->low, "maximum",
                     key->high);
}

static void read_bool(const struct rm_key *key, const json_t *value,
                      struct rm_experiment *experiment, struct rm_findings *findings)
{
    char is[64];
    if (!json_is_boolean(value))
        rm_find(findings, key->path, false, "should be true or false, but is %s",
                rm_value_brief(value, is, sizeof(is)));
    else
        *(bool *)field(key, experiment) = json_is_true(value);
}

static json_t *write_bool(const struct rm_key *key, const struct rm_experiment *experiment)
{
    return json_boolean(*(const bool *)field_of(key, experiment));
}

static json_t *schema_bool(const struct rm_key *key)
{
    (void)key;
    return json_pack("{s:s}", "type", "boolean");
}

static void allowed_bool(const struct rm_key *key, char *text, size_t bytes)
{
    (void)key;
    snprintf(text, bytes, "true, false");
}

/* --- names and texts ----------------------------------------------------------------------- */

static void list_names(const char *const *names, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; names[i] && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", names[i]);
}

int rm_value_name(const json_t *value, const char *path, const char *const *names,
                  struct rm_findings *findings)
{
    char is[64], all[480];
    const char *word = json_string_value(value), *near;

    list_names(names, all, sizeof(all));
    rm_value_brief(value, is, sizeof(is));
    if (!word) {
        rm_find(findings, path, false, "should be one of %s, but is %s", all, is);
        return -1;
    }
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], word))
            return i;
    const struct rm_synonym *synonym = rm_synonym_of_name(word, names);
    near = rm_nearest(word, names);
    if (synonym)
        rm_find(findings, path, false, "%s is not one of %s; Ringmaster calls it \"%s\"%s%s", is,
                all, synonym->ours, synonym->note ? ", " : "", synonym->note ? synonym->note : "");
    else if (near)
        rm_find(findings, path, false, "%s is not one of %s; did you mean \"%s\"?", is, all, near);
    else
        rm_find(findings, path, false, "%s is not one of %s", is, all);
    return -1;
}

static void read_enum(const struct rm_key *key, const json_t *value,
                      struct rm_experiment *experiment, struct rm_findings *findings)
{
    int index = rm_value_name(value, key->path, key->names, findings);
    if (index >= 0)
        memcpy(field(key, experiment), &index, sizeof(index));
}

static json_t *write_enum(const struct rm_key *key, const struct rm_experiment *experiment)
{
    int index;
    memcpy(&index, field_of(key, experiment), sizeof(index));
    return json_string(key->names[index]);
}

static json_t *schema_names(const struct rm_key *key)
{
    json_t *names = json_array();
    for (size_t i = 0; key->names[i]; i++)
        json_array_append_new(names, json_string(key->names[i]));
    return json_pack("{s:o}", "enum", names);
}

static void allowed_names(const struct rm_key *key, char *text, size_t bytes)
{
    list_names(key->names, text, bytes);
}

static void store_text(const struct rm_key *key, const char *text, struct rm_experiment *experiment)
{
    char *at = field(key, experiment);
    memset(at, 0, key->bytes);
    memcpy(at, text, strnlen(text, key->bytes - 1));
}

static void read_choice(const struct rm_key *key, const json_t *value,
                        struct rm_experiment *experiment, struct rm_findings *findings)
{
    int index = rm_value_name(value, key->path, key->names, findings);
    if (index >= 0)
        store_text(key, key->names[index], experiment);
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static void read_text(const struct rm_key *key, const json_t *value,
                      struct rm_experiment *experiment, struct rm_findings *findings)
{
    char is[64];
    const char *text = json_string_value(value);
    size_t n = json_string_length(value);

    rm_value_brief(value, is, sizeof(is));
    if (!text) {
        rm_find(findings, key->path, false, "should be text between double quotes, but is %s", is);
        return;
    }
    if ((double)n < key->low) {
        rm_find(findings, key->path, false, "must not be empty");
        return;
    }
    if ((double)n > key->high) {
        rm_find(findings, key->path, false, "%s has %zu bytes; allowed are at most %.0f", is, n,
                key->high);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            rm_find(findings, key->path, false, "has a control character (byte 0x%02x)",
                    (unsigned char)text[i]);
            return;
        }
        if (key->type == RM_KEY_NAME &&
            (!name_char(text[i]) || (i == 0 && strchr(".-", text[i])))) {
            rm_find(findings, key->path, false,
                    "%s is not a name; allowed are letters, digits, '.', '_' and '-', beginning "
                    "with none of '.' and '-'",
                    is);
            return;
        }
    }
    store_text(key, text, experiment);
}

static json_t *write_text(const struct rm_key *key, const struct rm_experiment *experiment)
{
    return json_string(field_of(key, experiment));
}

static json_t *schema_text(const struct rm_key *key)
{
    json_t *schema = json_pack("{s:s, s:I, s:I}", "type", "string", "minLength",
                               (json_int_t)key->low, "maxLength", (json_int_t)key->high);
    if (key->type == RM_KEY_NAME)
        json_object_set_new(schema, "pattern", json_string("^[A-Za-z0-9_][A-Za-z0-9._-]*$"));
    return schema;
}

static void allowed_text(const struct rm_key *key, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s%.0f bytes at most",
             key->type == RM_KEY_NAME ? "letters, digits, `.`, `_`, `-`; " : "", key->high);
}

static const struct rm_key_type_ops
    bool_ops = {read_bool, write_bool, schema_bool, allowed_bool, "boolean"},
    whole_ops = {read_whole, write_whole, schema_whole, number_allowed, "whole number"},
    real_ops = {read_real, write_real, schema_real, number_allowed, "number"},
    enum_ops = {read_enum, write_enum, schema_names, allowed_names, "one of"},
    choice_ops = {read_choice, write_text, schema_names, allowed_names, "one of"},
    text_ops = {read_text, write_text, schema_text, allowed_text, "text"};

const struct rm_key_type_ops *const rm_key_type_ops[RM_KEY_TYPE_COUNT] = {
    [RM_KEY_BOOL] = &bool_ops,
    [RM_KEY_U32] = &whole_ops,
    [RM_KEY_U64] = &whole_ops,
    [RM_KEY_F64] = &real_ops,
    [RM_KEY_ENUM] = &enum_ops,
    [RM_KEY_TEXT] = &text_ops,
    [RM_KEY_NAME] = &text_ops,
    [RM_KEY_CHOICE] = &choice_ops,
    [RM_KEY_OPTIONS] = &rm_options_ops,
    [RM_KEY_MAP] = &rm_map_ops,
    [RM_KEY_LAYERS] = &rm_layers_ops,
    [RM_KEY_FROZEN] = &rm_frozen_ops,
    [RM_KEY_INPUTS] = &rm_inputs_ops,
    [RM_KEY_FROM] = &rm_from_ops,
    [RM_KEY_STAGES] = &rm_curriculum_ops,
};

json_t *rm_value_default(const struct rm_key *key)
{
    if (key->type >= RM_KEY_OPTIONS)
        return json_loads(key->fallback_text, JSON_DECODE_ANY, NULL);
    switch (key->type) {
    case RM_KEY_BOOL:
        return json_boolean(key->fallback != 0);
    case RM_KEY_U32:
    case RM_KEY_U64:
        return json_integer((json_int_t)key->fallback);
    case RM_KEY_F64:
        return json_real(key->fallback);
    case RM_KEY_ENUM:
        return json_string(key->names[(int)key->fallback]);
    default:
        return json_string(key->fallback_text ? key->fallback_text : "");
    }
}
