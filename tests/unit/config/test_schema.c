/* The JSON Schema says what the loader does: it is checked with a small validator of its own. */
#include "config/config.h"
#include "config/schema.h"

#include <glob.h>
#include <math.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *schema;
static char why[200];

static bool valid(const json_t *rule, const json_t *value, const char *at);

static bool deny(const char *at, const char *what)
{
    snprintf(why, sizeof(why), "%s: %s", at, what);
    return false;
}

static bool type_is(const char *type, const json_t *value)
{
    double number = json_number_value(value);
    return !strcmp(type, "object")    ? json_is_object(value)
           : !strcmp(type, "array")   ? json_is_array(value)
           : !strcmp(type, "string")  ? json_is_string(value)
           : !strcmp(type, "boolean") ? json_is_boolean(value)
           : !strcmp(type, "number")  ? json_is_number(value)
           : !strcmp(type, "integer") ? json_is_number(value) && number == floor(number)
                                      : deny(type, "is no type of JSON Schema");
}

static bool type_fits(const json_t *type, const json_t *value)
{
    const json_t *one;
    size_t i;
    if (json_is_string(type))
        return type_is(json_string_value(type), value);
    json_array_foreach(type, i, one)
    {
        if (type_is(json_string_value(one), value))
            return true;
    }
    return false;
}

static bool matches(const char *pattern, const char *text)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static bool object_fits(const json_t *rule, const json_t *value, const char *at)
{
    const json_t *properties = json_object_get(rule, "properties"), *name, *member;
    const json_t *others = json_object_get(rule, "additionalProperties");
    const char *key;
    size_t i;

    json_array_foreach(json_object_get(rule, "required"), i, name)
    {
        if (!json_object_get(value, json_string_value(name)))
            return deny(at, "a required key is missing");
    }
    json_object_foreach((json_t *)value, key, member)
    {
        const json_t *inner = json_object_get(properties, key);
        if (!inner && json_is_false(others))
            return deny(key, "is not allowed");
        if (!inner)
            inner = others;
        if (inner && !valid(inner, member, key))
            return false;
    }
    return true;
}

/* The part of the schema at "#/properties/NAME/properties/NAME". */
static const json_t *referred(const json_t *pointer)
{
    const json_t *node = schema;
    char copy[128];
    snprintf(copy, sizeof(copy), "%s", json_string_value(pointer));
    char *next = NULL;
    for (char *word = strtok_r(copy, "#/", &next); word; word = strtok_r(NULL, "/", &next))
        node = json_object_get(node, word);
    assert_non_null(node);
    return node;
}

static bool valid(const json_t *rule, const json_t *value, const char *at)
{
    static const char *const known[] = {"type",        "enum",      "const",
                                        "minimum",     "maximum",   "exclusiveMinimum",
                                        "minLength",   "maxLength", "pattern",
                                        "minItems",    "maxItems",  "maxProperties",
                                        "items",       "oneOf",     "anyOf",
                                        "properties",  "required",  "additionalProperties",
                                        "description", "default",   "title",
                                        "$schema",     "x-hot", /* these two are for readers,
                                                                   and judge nothing */
                                        "x-on-resume", "$ref",      "minProperties",
                                        NULL};
    const json_t *part, *one;
    const char *key;
    double number = json_number_value(value);
    size_t i, n = json_is_string(value) ? json_string_length(value) : json_array_size(value);

    json_object_foreach((json_t *)rule, key, part)
    {
        for (i = 0; known[i] && strcmp(known[i], key) != 0; i++)
            ;
        if (!known[i])
            fail_msg("the schema says \"%s\", which this test does not know", key);
    }
    if ((part = json_object_get(rule, "$ref")) && !valid(referred(part), value, at))
        return false;
    if ((part = json_object_get(rule, "minProperties")) &&
        json_object_size(value) < (size_t)json_integer_value(part))
        return deny(at, "is empty");
    if ((part = json_object_get(rule, "type")) && !type_fits(part, value))
        return deny(at, "is of another type");
    if ((part = json_object_get(rule, "const")) && !json_equal(part, value))
        return deny(at, "has another value");
    if ((part = json_object_get(rule, "enum"))) {
        bool found = false;
        json_array_foreach(part, i, one)
        {
            found = found || json_equal(one, value);
        }
        if (!found)
            return deny(at, "is none of the names");
    }
    if (json_is_number(value) &&
        (((part = json_object_get(rule, "minimum")) && number < json_number_value(part)) ||
         ((part = json_object_get(rule, "exclusiveMinimum")) &&
          number <= json_number_value(part)) ||
         ((part = json_object_get(rule, "maximum")) && number > json_number_value(part))))
        return deny(at, "is out of range");
    if (json_is_string(value)) {
        if (((part = json_object_get(rule, "minLength")) && n < (size_t)json_integer_value(part)) ||
            ((part = json_object_get(rule, "maxLength")) && n > (size_t)json_integer_value(part)))
            return deny(at, "is too short or too long");
        if ((part = json_object_get(rule, "pattern")) &&
            !matches(json_string_value(part), json_string_value(value)))
            return deny(at, "does not match the pattern");
    }
    if (json_is_array(value)) {
        if (((part = json_object_get(rule, "minItems")) && n < (size_t)json_integer_value(part)) ||
            ((part = json_object_get(rule, "maxItems")) && n > (size_t)json_integer_value(part)))
            return deny(at, "has too few or too many items");
        if ((part = json_object_get(rule, "items")))
            json_array_foreach(value, i, one)
            {
                if (!valid(part, one, at))
                    return false;
            }
    }
    if ((part = json_object_get(rule, "oneOf"))) {
        size_t fits = 0;
        const json_t *choice;
        json_array_foreach(part, i, choice)
        {
            fits += valid(choice, value, at);
        }
        if (fits != 1)
            return deny(at, "does not fit exactly one of the forms");
    }
    if ((part = json_object_get(rule, "anyOf"))) {
        bool fits = false;
        json_array_foreach(part, i, one)
        {
            fits = fits || valid(one, value, at);
        }
        if (!fits)
            return deny(at, "fits none of the forms");
    }
    return !json_is_object(value) || object_fits(rule, value, at);
}

static int make_schema(void **state)
{
    (void)state;
    schema = rm_config_schema();
    return schema ? 0 : -1;
}

static int drop_schema(void **state)
{
    (void)state;
    json_decref(schema);
    return 0;
}

/* As a file: it parses, and says what it is. */
static void is_json(void **state)
{
    char *text = json_dumps(schema, 0);
    json_t *again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    (void)state;
    assert_true(json_equal(schema, again));
    assert_string_equal(json_string_value(json_object_get(again, "$schema")),
                        "https://json-schema.org/draft/2020-12/schema");
    json_decref(again);
    free(text);
}

static json_t *rule_of(const char *path)
{
    json_t *node = schema;
    char copy[128];
    snprintf(copy, sizeof(copy), "%s", path);
    char *next = NULL;
    for (char *word = strtok_r(copy, ".", &next); word; word = strtok_r(NULL, ".", &next))
        node = json_object_get(json_object_get(node, "properties"), word);
    return node;
}

static void every_key_is_described(void **state)
{
    struct rm_experiment defaults;
    (void)state;
    assert_int_equal(rm_config_defaults(&defaults), 0);
    for (size_t i = 0; i < rm_key_count; i++) {
        json_t *rule = rule_of(rm_keys[i].path);
        if (!rule)
            fail_msg("%s is not in the schema", rm_keys[i].path);
        assert_string_equal(json_string_value(json_object_get(rule, "description")),
                            rm_keys[i].doc);
        json_t *fallback = json_object_get(rule, "default");
        assert_int_equal(fallback == NULL, rm_keys[i].required);
        if (fallback && !valid(rule, fallback, rm_keys[i].path))
            fail_msg("the default: %s", why);
    }
}

static void shipped_files_fit(void **state)
{
    glob_t files;
    (void)state;
    assert_int_equal(glob("config/*.json", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct rm_experiment experiment;
        struct rm_error error;
        json_t *file = json_load_file(files.gl_pathv[i], 0, NULL);
        assert_non_null(file);
        if (!valid(schema, file, "file"))
            fail_msg("%s: %s", files.gl_pathv[i], why);
        json_decref(file);
        assert_int_equal(rm_config_load(&experiment, files.gl_pathv[i], NULL, 0, &error), 0);
        file = rm_config_to_json(&experiment); /* resolved: every key */
        if (!valid(schema, file, "file"))
            fail_msg("%s, resolved: %s", files.gl_pathv[i], why);
        json_decref(file);
    }
    globfree(&files);
}

/* Each a file that differs from a sound one in one value: schema and loader say the same. */
static void agrees_with_the_loader(void **state)
{
    static const struct {
        const char *path, *value;
        bool sound;
    } cases[] = {
        {"name", "\"a.b-c_D9\"", true},
        {"name", "\"-a\"", false},
        {"name", "\"\"", false},
        {"name", "7", false},
        {"seed", "0", true},
        {"seed", "3.0", true},
        {"seed", "3.5", false},
        {"seed", "-1", false},
        {"seed", "9007199254740991", true},
        {"seed", "9007199254740992", false},
        {"seed", "true", false},
        {"mode", "\"free\"", true},
        {"mode", "\"Free\"", false},
        {"mode", "0", false},
        {"sample.batch", "1", true},
        {"sample.batch", "0", false},
        {"sample.gamma", "0", true},
        {"sample.gamma", "1", true},
        {"sample.gamma", "1.0000001", false},
        {"optimizer.learning_rate", "0", false},
        {"optimizer.learning_rate", "1e-300", true},
        {"actor.pin", "true", true},
        {"actor.pin", "1", false},
        {"learner.isa", "\"x86-64-v4\"", true},
        {"learner.isa", "\"v4\"", false},
        {"world.name", "\"\"", false},
        {"world.options", "{\"a\": 1, \"b\": true, \"//\": \"x\"}", true},
        {"world.options", "{\"a\": \"1\", \"b\": [1, \"c\"]}", true},
        {"evaluation.options", "{\"a\": 1}", true},
        {"evaluation.options", "3", false},
        {"world.options", "[]", false},
        {"policy.map", "\"shared\"", true},
        {"policy.map", "[0, 1]", true},
        {"policy.map", "\"each\"", false},
        {"policy.map", "[]", false},
        {"policy.map", "[0, 64]", false},
        {"policy.map", "{}", false},
        {"network.layers", "[]", true},
        {"network.layers", "[{\"type\": \"relu\", \"comment\": \"x\"}]", true},
        {"network.layers", "[{\"type\": \"relu\", \"units\": 1}]", false},
        {"network.layers", "[{\"type\": \"linear\"}]", false},
        {"network.layers", "[{\"type\": \"linear\", \"units\": 16384}]", true},
        {"network.layers", "[{\"type\": \"linear\", \"units\": 16385}]", false},
        {"network.layers", "[{\"type\": \"linear\", \"units\": 4, \"extra\": 4}]", false},
        {"network.layers", "[{\"type\": \"lineal\", \"units\": 4}]", false},
        {"network.layers", "[{}]", false},
        {"network.layers", "[5]", false},
        {"network.inputs", "{\"a\": [{\"type\": \"relu\"}], \"//\": \"x\"}", true},
        {"network.inputs", "{\"a\": {\"inputs\": {\"b\": {\"inputs\": {\"c\": []}}}}}", true},
        {"network.inputs", "{\"a\": {\"inputs\": {\"b\": []}, \"combine\": \"tokens\"}}", true},
        {"network.inputs", "{\"a\": {\"inputs\": {\"b\": []}, \"comment\": \"x\"}}", true},
        {"network.inputs", "{\"a\": {\"inputs\": {\"b\": []}, \"layers\": [{}]}}", false},
        {"network.inputs", "{\"a\": {\"inputs\": {\"b\": []}, \"combine\": \"sum\"}}", false},
        {"network.inputs", "{\"a\": {\"inputs\": {\"b\": []}, \"units\": 3}}", false},
        {"network.inputs", "{\"a\": {\"inputs\": {\"b\": {\"inputs\": {}}}}}", false},
        {"network.inputs", "{\"a\": {\"layers\": []}}", false},
        {"network.inputs", "{\"a\": 3}", false},
        {"network.heads", "{}", false},
        {"network.head", "{\"dueling\": true}", true},
        {"network.head", "{\"duelling\": true}", false},
        {"network.head", "true", false},
        {"algorithm.target", "{\"tau\": 0.5, \"//\": \"x\"}", true},
        {"algorithm.target", "{\"tau\": 0}", false},
        {"algorithm.target", "[]", false},
        {"comment", "[1, 2]", true},
        {"$schema", "\"x\"", true},
        {"sample.$schema", "\"x\"", false},
        {"extra", "1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rm_experiment experiment;
        struct rm_error error = {{0}};
        json_t *file =
            json_loads("{\"world\": {\"name\": \"x\"}, \"ring\": {\"capacity\": 70000}}", 0, NULL);
        json_t *value = json_loads(cases[i].value, JSON_DECODE_ANY, NULL), *node = file;
        char copy[64], *dot = copy;
        snprintf(copy, sizeof(copy), "%s", cases[i].path);
        while (strchr(dot, '.')) {
            char *word = dot;
            dot = strchr(dot, '.');
            *dot++ = 0;
            if (!json_object_get(node, word))
                json_object_set_new(node, word, json_object());
            node = json_object_get(node, word);
        }
        assert_non_null(value);
        json_object_set_new(node, dot, value);

        char *text = json_dumps(file, 0);
        bool loads = rm_config_parse(&experiment, "t", text, strlen(text), NULL, 0, &error) == 0;
        bool fits = valid(schema, file, "file");
        if (loads != cases[i].sound || fits != cases[i].sound)
            fail_msg("%s = %s: loader %s (%s), schema %s (%s)", cases[i].path, cases[i].value,
                     loads ? "yes" : "no", error.text, fits ? "yes" : "no", why);
        free(text);
        json_decref(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_json),
        cmocka_unit_test(every_key_is_described),
        cmocka_unit_test(shipped_files_fit),
        cmocka_unit_test(agrees_with_the_loader),
    };
    return cmocka_run_group_tests(tests, make_schema, drop_schema);
}
