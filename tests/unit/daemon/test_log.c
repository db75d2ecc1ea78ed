/* The journal: lines, floods, and the page that lists the kinds of entries. */
#include "daemon/log.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *contents(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
    return text;
}

static int scratch(void)
{
    char path[] = "/tmp/ringmaster-log-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

static void an_entry_is_one_line(void **state)
{
    struct rm_log log = {.fd = scratch(), .echo_fd = scratch(), .echo = RM_LOG_NOTICE};
    (void)state;
    rm_log(&log, RM_LOG_INFO, "a\nb\x01%d", 7);
    rm_log(&log, RM_LOG_ERROR, "loud");
    char *file = contents(log.fd), *echo = contents(log.echo_fd);
    assert_non_null(strstr(file, "info    a;b?7\n"));
    assert_non_null(strstr(file, "error   loud\n"));
    assert_string_equal(echo, "ringmasterd: loud\n");
    free(file);
    free(echo);
    close(log.fd);
    close(log.echo_fd);
}

static void floods_of_a_kind_are_cut_and_counted(void **state)
{
    struct rm_log log = {.fd = scratch(), .echo_fd = -1};
    const struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    (void)state;
    for (int i = 0; i < RM_LOG_BURST + 50; i++)
        rm_log_message(&log, RM_LOG_WARNING, RM_MESSAGE_WORKER_DIED, &fields, "died %d.", i);
    rm_log_message(&log, RM_LOG_INFO, RM_MESSAGE_STATE, &fields, "another kind");
    char *text = contents(log.fd), last[32];
    snprintf(last, sizeof last, "died %d.", RM_LOG_BURST - 1);
    assert_non_null(strstr(text, last));
    snprintf(last, sizeof last, "died %d.", RM_LOG_BURST);
    assert_null(strstr(text, last));
    assert_non_null(strstr(text, "another kind"));
    free(text);

    log.pace[RM_MESSAGE_WORKER_DIED].since_ns -= RM_LOG_WINDOW_NS; /* as if it were over */
    rm_log_message(&log, RM_LOG_WARNING, RM_MESSAGE_WORKER_DIED, &fields, "later");
    text = contents(log.fd);
    char *said = strstr(text, "50 entries of kind worker-died came too fast");
    assert_non_null(said);
    assert_non_null(strstr(said, "later"));
    free(text);
    close(log.fd);
}

static void the_page_lists_every_kind(void **state)
{
    FILE *in = fopen("docs/journal.md", "r");
    static char page[65536];
    (void)state;
    assert_non_null(in);
    page[fread(page, 1, sizeof page - 1, in)] = '\0';
    fclose(in);
    for (int i = RM_MESSAGE_OTHER + 1; i < RM_MESSAGE_COUNT; i++) {
        char row[512];
        assert_int_equal(strspn(rm_messages[i].id, "0123456789abcdef"), 32);
        assert_int_equal(strlen(rm_messages[i].id), 32);
        for (int j = RM_MESSAGE_OTHER + 1; j < i; j++)
            assert_string_not_equal(rm_messages[i].id, rm_messages[j].id);
        snprintf(row, sizeof row, "\n| %s | `%s` | %s |\n", rm_messages[i].name, rm_messages[i].id,
                 rm_messages[i].doc);
        if (!strstr(page, row))
            fail_msg("docs/journal.md lacks: %s", row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_one_line),
        cmocka_unit_test(floods_of_a_kind_are_cut_and_counted),
        cmocka_unit_test(the_page_lists_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
