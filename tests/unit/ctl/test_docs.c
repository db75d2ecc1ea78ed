/* Pages written by hand name everything that the tables have. */
#include "daemon/ctl/exit_code.h"
#include "daemon/daemon.h"
#include "daemon/running.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char page[65536];

static void load(const char *path)
{
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    size_t n = fread(page, 1, sizeof page - 1, in);
    fclose(in);
    page[n] = '\0';
}

static void has(const char *text)
{
    if (!strstr(page, text))
        fail_msg("the page does not have: %s", text);
}

/* A name as the page sets it. */
static void has_name(const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "`%s`", name);
    has(text);
}

static void the_protocol_page_has_every_command(void **state)
{
    (void)state;
    load("docs/control.md");
    for (size_t i = 0; i < rm_command_count; i++) {
        char row[256];
        snprintf(row, sizeof row, "| `%s` | %s |", rm_commands[i].name,
                 rm_access_name(rm_commands[i].access));
        has(row);
        for (const struct rm_field *f = rm_commands[i].arguments; f->name; f++)
            has_name(f->name);
        for (const struct rm_field *f = rm_commands[i].reply; f->name; f++)
            has_name(f->name);
    }
    for (int r = RM_REFUSED_NOT + 1; r < RM_REFUSED_COUNT; r++)
        has_name(rm_refusal_name((enum rm_refusal)r));
}

static void the_exit_code_page_has_every_code(void **state)
{
    (void)state;
    load("docs/exit-codes.md");
    for (int i = 0; i < RM_CTL_EXIT_COUNT; i++) {
        char row[512];
        snprintf(row, sizeof row, "| %d | %s |", i, rm_ctl_exit_docs[i]);
        has(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_protocol_page_has_every_command),
        cmocka_unit_test(the_exit_code_page_has_every_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
