/* Numbers and tables as people read them. */
#include "daemon/format.h"
#include "daemon/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void numbers_are_short(void **state)
{
    (void)state;
    assert_string_equal(rm_format_count(0).s, "0");
    assert_string_equal(rm_format_count(999).s, "999");
    assert_string_equal(rm_format_count(1000).s, "1.00k");
    assert_string_equal(rm_format_count(9994).s, "9.99k");
    assert_string_equal(rm_format_count(9996).s, "10.0k");
    assert_string_equal(rm_format_count(99940).s, "99.9k");
    assert_string_equal(rm_format_count(999499).s, "999k");
    assert_string_equal(rm_format_count(999600).s, "1.00M");
    assert_string_equal(rm_format_count(1234567890).s, "1.23G");
    assert_string_equal(rm_format_count(NAN).s, "-");
    assert_string_equal(rm_format_bytes(512).s, "512 B");
    assert_string_equal(rm_format_bytes(1536).s, "1.50 KiB");
    assert_string_equal(rm_format_bytes(3.0 * 1024 * 1024 * 1024).s, "3.00 GiB");
    assert_string_equal(rm_format_number(-0.00123456).s, "-0.001235");
    assert_string_equal(rm_format_number(INFINITY).s, "-");
    assert_string_equal(rm_format_measure(30).s, "30.00");
    assert_string_equal(rm_format_measure(-18.375).s, "-18.38");
    assert_string_equal(rm_format_measure(9.99951).s, "10.00");
    assert_string_equal(rm_format_measure(505.5).s, "505.5");
    assert_string_equal(rm_format_measure(1234.5678).s, "1235");
    assert_string_equal(rm_format_measure(0).s, "0");
    assert_string_equal(rm_format_measure(2e-7).s, "2e-07");
    assert_string_equal(rm_format_measure(NAN).s, "-");
    assert_string_equal(rm_format_percent(0.1234).s, "12.3%");
}

static void durations_are_clocks(void **state)
{
    (void)state;
    assert_string_equal(rm_format_duration(0).s, "0:00");
    assert_string_equal(rm_format_duration(59.6).s, "1:00");
    assert_string_equal(rm_format_duration(754).s, "12:34");
    assert_string_equal(rm_format_duration(3600).s, "1:00:00");
    assert_string_equal(rm_format_duration(86400 * 2 + 3661).s, "2d 01:01");
    assert_string_equal(rm_format_duration(-1).s, "-");
    assert_string_equal(rm_format_duration(NAN).s, "-");
}

static const struct rm_column columns[] = {
    {"NAME", true, 0}, {"COUNT", false, 0}, {"EXTRA", false, 2}, {"MORE", false, 1}};

/* The printed table of two rows in `width` columns. */
static char *printed_so(struct rm_style style)
{
    struct rm_table table;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    rm_table_begin(&table, columns, 4);
    static const char *const cells[] = {"short", "1", "22", "333", "quite-a-long-name",
                                        "12",    "3", "4"};
    for (size_t i = 0; i < 8; i++)
        rm_table_cell(&table, "%s", cells[i]);
    rm_table_end(&table, out, &style);
    fclose(out);
    return text;
}

static char *printed(int width, bool colour)
{
    return printed_so((struct rm_style){.width = width, .colour = colour});
}

static void columns_are_aligned(void **state)
{
    (void)state;
    char *text = printed(0, false);
    assert_string_equal(text, "NAME               COUNT  EXTRA  MORE\n"
                              "short                  1     22   333\n"
                              "quite-a-long-name     12      3     4\n");
    free(text);
}

static void text_gives_way_before_columns_do(void **state)
{
    (void)state;
    char *text = printed(32, false);
    assert_string_equal(text, "NAME          COUNT  EXTRA  MORE\n"
                              "short             1     22   333\n"
                              "quite-a-lon\xe2\x80\xa6     12      3     4\n");
    free(text);
    text = printed(22, false);
    assert_string_equal(text, "NAME      COUNT  MORE\n"
                              "short         1   333\n"
                              "quite-a\xe2\x80\xa6     12     4\n");
    free(text);
    /* Narrower than anything can be: what must be there is there. */
    text = printed(3, false);
    assert_non_null(strstr(text, "COUNT"));
    assert_null(strstr(text, "MORE"));
    free(text);
}

static void columns_give_way_to_whole_text(void **state)
{
    (void)state;
    char *text = printed_so((struct rm_style){.width = 32, .whole = true});
    assert_string_equal(text, "NAME               COUNT  MORE\n"
                              "short                  1   333\n"
                              "quite-a-long-name     12     4\n");
    free(text);
    text = printed_so((struct rm_style){.width = 20, .whole = true});
    assert_string_equal(text, "NAME           COUNT\n"
                              "short              1\n"
                              "quite-a-long\xe2\x80\xa6     12\n");
    free(text);
}

static void colours_only_where_asked(void **state)
{
    (void)state;
    char *text = printed(0, true);
    assert_non_null(strstr(text, "\033[1mNAME\033[0m"));
    free(text);
    struct rm_style plain = {.colour = false}, rich = {.colour = true};
    assert_string_equal(rm_style_state(&plain, "failed"), "");
    assert_string_not_equal(rm_style_state(&rich, "failed"), "");
    assert_string_equal(rm_style_state(&rich, "no-such-state"), "");
}

static void control_characters_are_not_printed(void **state)
{
    struct rm_style style = {.width = 0};
    struct rm_table table;
    char *text = NULL;
    size_t bytes = 0;
    (void)state;
    FILE *out = open_memstream(&text, &bytes);
    rm_table_begin(&table, columns, 1);
    rm_table_cell(&table, "a\033[2Jb\nc");
    rm_table_end(&table, out, &style);
    fclose(out);
    assert_string_equal(text, "NAME\na?[2Jb;c\n");
    free(text);
}

static void an_empty_table_prints_nothing(void **state)
{
    struct rm_style style = {.width = 0};
    struct rm_table table;
    char *text = NULL;
    size_t bytes = 0;
    (void)state;
    FILE *out = open_memstream(&text, &bytes);
    rm_table_begin(&table, columns, 4);
    rm_table_end(&table, out, &style);
    fclose(out);
    assert_int_equal(bytes, 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_short),
        cmocka_unit_test(durations_are_clocks),
        cmocka_unit_test(columns_are_aligned),
        cmocka_unit_test(text_gives_way_before_columns_do),
        cmocka_unit_test(columns_give_way_to_whole_text),
        cmocka_unit_test(colours_only_where_asked),
        cmocka_unit_test(control_characters_are_not_printed),
        cmocka_unit_test(an_empty_table_prints_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
