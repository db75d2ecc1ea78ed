/* The reference page names every key, section and rule, and the committed one is up to date. */
#include "config/check.h"
#include "config/config.h"
#include "config/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *page;
static size_t page_bytes;

static int make_page(void **state)
{
    FILE *out = open_memstream(&page, &page_bytes);
    (void)state;
    return !out || rm_config_reference(out) || fclose(out);
}

static int drop_page(void **state)
{
    (void)state;
    free(page);
    return 0;
}

static void names_everything(void **state)
{
    char row[256];
    (void)state;
    for (size_t i = 0; i < rm_key_count; i++) {
        snprintf(row, sizeof(row), "\n| `%s` | ", rm_keys[i].path);
        const char *found = strstr(page, row);
        if (!found) {
            fail_msg("%s has no row", rm_keys[i].path);
            return;
        }
        assert_non_null(strstr(found, rm_keys[i].doc));
        /* Hot keys are marked, others are not. */
        const char *end = strchr(found + 1, '\n'), *hot = strstr(found, "*Hot.*");
        assert_int_equal(hot && hot < end, rm_keys[i].hot != RM_COLD);
        const char *later = strstr(found, "*On resume");
        assert_int_equal(later && later < end,
                         rm_keys[i].hot == RM_COLD && rm_keys[i].on_resume != RM_ON_RESUME_SAME);
    }
    for (size_t i = 0; i < rm_section_count; i++) {
        snprintf(row, sizeof(row), "\n## %s\n", rm_sections[i].path);
        assert_non_null(strstr(page, row));
    }
    for (int i = 0; i < RM_LAYER_TYPE_COUNT; i++) {
        snprintf(row, sizeof(row), "\n| `%s` | ", rm_layer_rows[i].type);
        assert_non_null(strstr(page, row));
    }
    const struct rm_check *check;
    size_t checks = 0;
    for (; (check = rm_check_at(checks)); checks++)
        assert_non_null(strstr(page, check->doc));
    assert_true(checks > 0);
}

/* Every row of a table has as many columns as its head. */
static void tables_are_even(void **state)
{
    char *copy = strdup(page);
    size_t columns = 0;
    (void)state;
    char *next = NULL;
    for (char *line = strtok_r(copy, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
        size_t bars = 0;
        for (char *p = line; *p; p++)
            bars += *p == '|' && (p == line || p[-1] != '\\');
        if (line[0] != '|')
            columns = 0;
        else if (!columns)
            columns = bars;
        else if (bars != columns)
            fail_msg("%zu bars instead of %zu: %s", bars, columns, line);
    }
    free(copy);
}

static void committed_page_is_current(void **state)
{
    char *text = calloc(1, page_bytes + 2);
    FILE *in = fopen("docs/configuration.md", "r");
    (void)state;
    assert_non_null(text);
    assert_non_null(in);
    size_t n = fread(text, 1, page_bytes + 1, in);
    fclose(in);
    if (n != page_bytes || memcmp(text, page, page_bytes) != 0)
        fail_msg("docs/configuration.md is not what the table says: run `make generated`");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_everything),
        cmocka_unit_test(tables_are_even),
        cmocka_unit_test(committed_page_is_current),
    };
    return cmocka_run_group_tests(tests, make_page, drop_page);
}
