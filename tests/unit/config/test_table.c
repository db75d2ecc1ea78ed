/* The table is sound: defaults in range, every field of the struct has a key, hot keys are
 * complete. */
#include "config/schema.h"
#include "config/synonyms.h"
#include "config/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct rm_source nowhere = {.name = NULL};

static void defaults_are_allowed(void **state)
{
    struct rm_experiment experiment;
    (void)state;

    assert_int_equal(rm_config_defaults(&experiment), 0);
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        struct rm_findings findings = {.source = &nowhere};
        json_t *value;
        if (key->required)
            continue;
        value = rm_value_default(key);
        assert_non_null(value);
        rm_key_type_ops[key->type]->read(key, value, &experiment, &findings);
        if (findings.total)
            fail_msg("%s: its default: %s", key->path, findings.list[0].text);
        /* What was read is what is written. */
        json_t *written = rm_key_type_ops[key->type]->write(key, &experiment);
        assert_true(json_equal(value, written));
        json_decref(written);
        json_decref(value);
    }
}

static void rows_are_well_formed(void **state)
{
    (void)state;
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        const char *dot = strrchr(key->path, '.');
        assert_ptr_equal(rm_key_find(key->path), key); /* no path twice */
        assert_true(strlen(key->path) < RM_KEY_PATH_MAX);
        assert_true(strlen(key->doc) > 3 && key->doc[strlen(key->doc) - 1] == '.');
        assert_non_null(key->unit);
        assert_true(key->low <= key->high);
        if (dot) { /* its section is described */
            size_t k = 0;
            while (k < rm_section_count &&
                   (strlen(rm_sections[k].path) != (size_t)(dot - key->path) ||
                    strncmp(rm_sections[k].path, key->path, (size_t)(dot - key->path)) != 0))
                k++;
            if (k == rm_section_count)
                fail_msg("%s stands in a section without a description", key->path);
        }
    }
    for (size_t k = 0; k < rm_section_count; k++)
        assert_true(rm_key_is_section(rm_sections[k].path));
}

static void field_sizes_fit_types(void **state)
{
    static const size_t bytes[RM_KEY_TYPE_COUNT] = {
        [RM_KEY_BOOL] = sizeof(bool),    [RM_KEY_U32] = sizeof(uint32_t),
        [RM_KEY_U64] = sizeof(uint64_t), [RM_KEY_F64] = sizeof(double),
        [RM_KEY_ENUM] = sizeof(int),
    };
    (void)state;
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        if (bytes[key->type])
            assert_int_equal(key->bytes, bytes[key->type]);
        if (key->type == RM_KEY_U32)
            assert_true(key->high <= UINT32_MAX);
        if (key->type == RM_KEY_U64)
            assert_true(key->high <= 9007199254740991.0);
        if (key->type == RM_KEY_TEXT || key->type == RM_KEY_NAME)
            assert_true(key->high < (double)key->bytes);
    }
}

/* Keys' fields do not overlap, and between them is no more than alignment takes. */
static void fields_are_apart(void **state)
{
    static unsigned char owner[sizeof(struct rm_experiment)];
    size_t gap = 0;
    (void)state;

    for (size_t i = 0; i < rm_key_count; i++)
        for (size_t b = 0; b < rm_keys[i].bytes; b++)
            if (owner[rm_keys[i].offset + b]++)
                fail_msg("%s shares byte %zu of the struct with another key", rm_keys[i].path,
                         rm_keys[i].offset + b);
    /* Beside the keys: what the world has said of itself. */
    memset(owner + offsetof(struct rm_experiment, world.description), 1, sizeof(char *));
    for (size_t b = 0; b < sizeof(owner); b++) {
        gap = owner[b] ? 0 : gap + 1;
        if (gap >= 8)
            fail_msg("byte %zu of struct rm_experiment has no key", b);
    }
}

/* --- every field of the header has a key: experiment.h is read as text ------------------------ */

/* Fields whose key has another name. */
static const struct {
    const char *field, *key;
} renamed[] = {
    {"policy.list_count", "policy.map"},
    {"policy.list", "policy.map"},
    {"policy.frozen_count", "policy.frozen"},
    {"network.input_count", "network.inputs"},
    {"network.input_layers", "network.inputs"},
    {"network.layer_count", "network.layers"},
    {"network.value_layer_count", "network.value_layers"},
    {"network.dueling", "network.head.dueling"},
    {"network.noisy_head", "network.head.noisy"},
    {"network.deviation", "network.head.deviation"},
    {"network.first_deviation", "network.head.first_deviation"},
};

static char *read_header(void)
{
    char *text = calloc(1, 65536);
    FILE *in = fopen("config/experiment.h", "r");
    assert_non_null(text);
    assert_non_null(in);
    assert_in_range(fread(text, 1, 65535, in), 1000, 65534);
    fclose(in);
    for (char *open; (open = strstr(text, "/*"));) /* blank out comments */
        for (char *end = strstr(open, "*/") + 2; open < end; open++)
            *open = ' ';
    return text;
}

static size_t check_field(const char *prefix, const char *name, size_t n)
{
    char path[200];
    snprintf(path, sizeof(path), "%s%.*s", prefix, (int)n, name);
    const char *key = path;
    for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++)
        if (!strcmp(renamed[i].field, path))
            key = renamed[i].key;
    if (strstr(path, "*description")) /* what is found out about a world, not configured */
        return 0;
    if (!rm_key_find(key))
        fail_msg("field %s of struct rm_experiment has no key", path);
    return 1;
}

static const char *next_word(const char *p)
{
    p += strcspn(p, " \n");
    return p + strspn(p, " \n");
}

/* `body` is behind a '{'. Returns how many fields it has; *end is set behind its '}'. */
static size_t check_fields(const char *header, const char *body, const char *prefix,
                           const char **end)
{
    size_t count = 0;
    for (;;) {
        char inner[200], type[64];
        body += strspn(body, " \n;");
        if (*body == '}') {
            *end = body + 1;
            return count;
        }
        if (!strncmp(body, "struct {", 8)) { /* its name comes last */
            const char *after = body + 8;
            for (int depth = 1; depth; after++)
                depth += (*after == '{') - (*after == '}');
            snprintf(inner, sizeof(inner), "%s%.*s.", prefix, (int)strcspn(after + 1, ";"),
                     after + 1);
            count += check_fields(header, body + 8, inner, &after);
            body = after + strcspn(after, ";");
            continue;
        }
        size_t n = strcspn(body, ";");
        bool known = sscanf(body, "struct %60s", type) == 1 &&
                     strcmp(type, "rm_layer_config") != 0 && strcmp(type, "rm_input_config") != 0 &&
                     strcmp(type, "rm_frozen_config") != 0 &&
                     strcmp(type, "rm_curriculum_config") != 0;
        const char *name = next_word(body);
        if (!strncmp(body, "enum ", 5) || !strncmp(body, "struct ", 7))
            name = next_word(name);
        if (known) { /* a struct of its own: its fields are keys */
            const char *after;
            snprintf(inner, sizeof(inner), "struct %s {", type);
            const char *other = strstr(header, inner);
            assert_non_null(other);
            other += strlen(inner);
            snprintf(inner, sizeof(inner), "%s%.*s.", prefix, (int)(body + n - name), name);
            count += check_fields(header, other, inner, &after);
        } else {
            while (name < body + n) { /* "double start, end" */
                size_t m = strcspn(name, "[,;");
                count += check_field(prefix, name, m);
                name += strcspn(name, ",;") + 1;
                name += strspn(name, " \n");
            }
        }
        body += n;
    }
}

static void every_field_has_a_key(void **state)
{
    static const char start[] = "struct rm_experiment {";
    char *header = read_header();
    const char *body = strstr(header, start), *end;
    (void)state;

    assert_non_null(body);
    size_t fields = check_fields(header, body + sizeof(start) - 1, "", &end);
    /* More fields than keys: five counts, the list behind policy.map, and the layers of inputs. */
    assert_int_equal(fields, rm_key_count + 7);
    free(header);
}

static void hot_keys_are_complete(void **state)
{
    size_t seen[RM_HOT_COUNT] = {0};
    (void)state;
    for (size_t i = 0; i < rm_key_count; i++) {
        if (rm_keys[i].hot == RM_COLD)
            continue;
        assert_in_range(rm_keys[i].hot, 0, RM_HOT_COUNT - 1);
        assert_true(rm_keys[i].type == RM_KEY_F64 || rm_keys[i].type == RM_KEY_U32 ||
                    rm_keys[i].type == RM_KEY_U64);
        seen[rm_keys[i].hot]++;
    }
    for (size_t i = 0; i < RM_HOT_COUNT; i++)
        assert_int_equal(seen[i], 1);
}

/* What may change while a run goes on may have changed when it goes on later. */
static void keys_that_may_change_later_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        if (key->hot != RM_COLD)
            assert_int_equal(key->on_resume, RM_ON_RESUME_ANY);
        if (key->on_resume == RM_ON_RESUME_MORE)
            assert_int_equal(key->type, RM_KEY_U64);
    }
    assert_int_equal(rm_key_find("run.steps")->on_resume, RM_ON_RESUME_MORE);
    assert_int_equal(rm_key_find("seed")->on_resume, RM_ON_RESUME_SAME);
    assert_int_equal(rm_key_find("checkpoint.keep")->on_resume, RM_ON_RESUME_ANY);
}

static void ends_of_ranges_are_honoured(void **state)
{
    (void)state;
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        bool whole = key->type == RM_KEY_U32 || key->type == RM_KEY_U64;
        double beyond = whole ? 1 : key->high * 1e-9 + 1e-9;
        const struct {
            double value;
            bool allowed;
        } probes[] = {{key->low, !key->low_open},
                      {key->high, true},
                      {key->low - beyond, false},
                      {key->high + (whole && key->high > 1e15 ? 2 : beyond), false}};
        if (!whole && key->type != RM_KEY_F64)
            continue;
        for (size_t p = 0; p < 4; p++) {
            struct rm_experiment experiment;
            struct rm_findings findings = {.source = &nowhere};
            json_t *value = json_real(probes[p].value);
            memset(&experiment, 0, sizeof(experiment));
            rm_key_type_ops[key->type]->read(key, value, &experiment, &findings);
            json_decref(value);
            if ((findings.total == 0) != probes[p].allowed)
                fail_msg("%s: %.17g should %sbe allowed", key->path, probes[p].value,
                         probes[p].allowed ? "" : "not ");
        }
    }
}

static void nearest_word(void **state)
{
    static const char *const words[] = {"sample",   "limiter", "learner", "ring",
                                        "min_fill", "rank",    "run",     NULL};
    static const struct {
        const char *word, *near;
    } cases[] = {
        {"sampel", "sample"},
        {"sample", "sample"},
        {"Sample", "sample"},
        {"limitr", "limiter"},
        {"learners", "learner"},
        {"rign", "ring"},
        {"rnu", "run"},
        {"min-fill", "min_fill"},
        {"minfill", "min_fill"},
        {"x", NULL},
        {"", NULL},
        {"banana", NULL},
        {"r", NULL},
    };
    char lengthy[500];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *near = rm_nearest(cases[i].word, words);
        if (!near != !cases[i].near || (near && strcmp(near, cases[i].near) != 0))
            fail_msg("nearest to \"%s\" is \"%s\"", cases[i].word, near ? near : "nothing");
    }
    memset(lengthy, 'a', sizeof(lengthy) - 1);
    lengthy[sizeof(lengthy) - 1] = 0;
    assert_null(rm_nearest(lengthy, words));
}

/* A synonym names a key or section that is there, and is none itself; each is there once. */
static void synonyms_name_keys(void **state)
{
    (void)state;
    for (const struct rm_synonym *s = rm_key_synonyms; s->theirs; s++) {
        if (!rm_key_find(s->ours))
            fail_msg("%s: %s is no key", s->theirs, s->ours);
        if (rm_key_find(s->theirs) || rm_key_is_section(s->theirs))
            fail_msg("%s is a key here", s->theirs);
        assert_ptr_equal(rm_synonym_of_key(s->theirs), s);
    }
}

static bool is_name(const char *word)
{
    for (size_t i = 0; i < rm_key_count; i++)
        for (const char *const *name = rm_keys[i].names; name && *name; name++)
            if (!strcmp(*name, word))
                return true;
    for (size_t i = 0; i < RM_LAYER_TYPE_COUNT; i++)
        if (!strcmp(rm_layer_rows[i].type, word))
            return true;
    return false;
}

static void synonyms_name_names(void **state)
{
    (void)state;
    for (const struct rm_synonym *s = rm_name_synonyms; s->theirs; s++) {
        const char *const names[] = {s->ours, NULL}, *const others[] = {"free", NULL};
        if (!is_name(s->ours))
            fail_msg("%s: %s is no name", s->theirs, s->ours);
        if (is_name(s->theirs))
            fail_msg("%s is a name here", s->theirs);
        assert_ptr_equal(rm_synonym_of_name(s->theirs, names), s);
        assert_null(rm_synonym_of_name(s->theirs, others));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_allowed),
        cmocka_unit_test(rows_are_well_formed),
        cmocka_unit_test(field_sizes_fit_types),
        cmocka_unit_test(fields_are_apart),
        cmocka_unit_test(every_field_has_a_key),
        cmocka_unit_test(hot_keys_are_complete),
        cmocka_unit_test(keys_that_may_change_later_are_sound),
        cmocka_unit_test(ends_of_ranges_are_honoured),
        cmocka_unit_test(nearest_word),
        cmocka_unit_test(synonyms_name_keys),
        cmocka_unit_test(synonyms_name_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
