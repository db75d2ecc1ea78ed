/* Where things stand in a file: lines and columns of keys and values. */
#include "config/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char text[] = "{\n"
                           "  \"name\": \"x\",\n"
                           "  \"ring\": {\"capacity\": 5, \"mode\": \"replay\"},\n"
                           "\t\"\xc3\xa9\xe2\x82\xac\": {\"deep\": {\"er\": 1}}, \"z\": 2,\n"
                           "  \"list\": [10, {\"units\": 20}, [30, 31]],\r\n"
                           "  \"last\": true\n"
                           "}\n";

static const struct {
    const char *path;
    uint32_t key_line, key_column, line, column;
} places[] = {
    {"name", 2, 3, 2, 11},
    {"ring", 3, 3, 3, 11},
    {"ring.capacity", 3, 12, 3, 24},
    {"ring.mode", 3, 27, 3, 35},
    {"\xc3\xa9\xe2\x82\xac.deep.er", 4, 18, 4, 24}, /* columns count characters, not bytes */
    {"z", 4, 29, 4, 34},
    {"list[0]", 5, 12, 5, 12},
    {"list[1]", 5, 16, 5, 16},
    {"list[1].units", 5, 17, 5, 26},
    {"list[2][1]", 5, 36, 5, 36},
    {"last", 6, 3, 6, 11},
    /* What is not there: the nearest thing around it. */
    {"ring.nothing", 3, 11, 3, 11},
    {"list[7].units", 5, 11, 5, 11},
    {"nothing.at.all", 1, 1, 1, 1},
    {"rin", 1, 1, 1, 1},
    {"ringo", 1, 1, 1, 1},
    {"", 1, 1, 1, 1},
};

static void everything_is_found(void **state)
{
    struct rm_source source = {.name = "t", .text = text, .bytes = sizeof(text) - 1};
    struct rm_error error;
    (void)state;

    assert_int_equal(rm_source_scan(&source, &error), 0);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct rm_text_place key, value;
        assert_true(rm_source_find(&source, places[i].path, true, &key));
        assert_true(rm_source_find(&source, places[i].path, false, &value));
        if (key.line != places[i].key_line || key.column != places[i].key_column)
            fail_msg("key %s is said to be at %u:%u", places[i].path, key.line, key.column);
        if (value.line != places[i].line || value.column != places[i].column)
            fail_msg("value %s is said to be at %u:%u", places[i].path, value.line, value.column);
    }
    rm_source_close(&source);
    source.name = NULL;
    struct rm_text_place place;
    assert_false(rm_source_find(&source, "name", true, &place));
}

/* The scan agrees with jansson on what JSON is, for texts within its limits. */
static void agrees_with_jansson(void **state)
{
    static const char *const samples[] = {
        "{}",
        "{\"a\":1}",
        "{\"a\":-0.5e-3}",
        "{\"a\":0}",
        "{\"a\":[]}",
        "{\"a\":[[]],\"b\":{}}",
        "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"}",
        "{\"a\":true,\"b\":false,\"c\":null}",
        " \t\r\n{ \"a\" : 1 } ",
        "{\"a\":1e5}",
        "{\"a\":1E+5}",
        "{\"a\":\"\xf0\x9f\x98\x80\"}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,,\"b\":2}",
        "{\"a\":1}}",
        "{\"a\":[}",
        "{\"a\":{]}",
        "{\"a\":tru}",
        "{\"a\":truee}",
        "{\"a\":--1}",
        "{\"a\":1.2.3}",
        "{\"a\":00}",
        "{\"a\":-}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":0x10}",
        "{\"a\":1_000}",
        "{\"a\" 1}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\xc0\x80\"}",
        "{\"a\":\"\xf5\x80\x80\x80\"}",
        "{",
        "\"",
        "{\"",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct rm_source source = {.name = "t", .text = samples[i], .bytes = strlen(samples[i])};
        struct rm_error error;
        json_t *root = json_loadb(samples[i], strlen(samples[i]), JSON_REJECT_DUPLICATES, NULL);
        int rc = rm_source_scan(&source, &error);
        if ((rc == 0) != (root != NULL))
            fail_msg("%s: jansson says %s, the scan says %s", samples[i], root ? "yes" : "no",
                     rc ? error.text : "yes");
        json_decref(root);
        rm_source_close(&source);
    }
}

static void limits_are_exact(void **state)
{
    char deep[200];
    struct rm_error error;
    (void)state;

    for (int depth = RM_SOURCE_DEPTH_MAX - 1; depth <= RM_SOURCE_DEPTH_MAX + 1; depth++) {
        struct rm_source source = {.name = "t", .text = deep};
        int n = snprintf(deep, sizeof(deep), "{\"a\":");
        for (int i = 1; i < depth; i++)
            deep[n++] = '[';
        for (int i = 1; i < depth; i++)
            deep[n++] = ']';
        deep[n++] = '}';
        source.bytes = (size_t)n;
        assert_int_equal(rm_source_scan(&source, &error) == 0, depth <= RM_SOURCE_DEPTH_MAX);
        rm_source_close(&source);
    }
    for (int keys = RM_SOURCE_KEYS_MAX; keys <= RM_SOURCE_KEYS_MAX + 1; keys++) {
        static char many[16 * 1024];
        struct rm_source source = {.name = "t", .text = many};
        size_t n = (size_t)snprintf(many, sizeof(many), "{");
        for (int i = 0; i < keys; i++)
            n += (size_t)snprintf(many + n, sizeof(many) - n, "%s\"k%d\":%d", i ? "," : "", i, i);
        many[n++] = '}';
        source.bytes = n;
        assert_int_equal(rm_source_scan(&source, &error) == 0, keys <= RM_SOURCE_KEYS_MAX);
        rm_source_close(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_found),
        cmocka_unit_test(agrees_with_jansson),
        cmocka_unit_test(limits_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
