/* kill -9 of a worker while its part of a checkpoint is written in the background: the board says
 * that it is written only when it is, and what stands there then reads back. */
#include "tests/crash/fault_build.h"
#include "tests/crash/victim.h"
#include "tests/support/crew.h"
#include "tests/support/unit.h"

#include "shm/session/saver.c"

#include <stdlib.h>
#include <string.h>

#define NUMBERS 1000

static struct rm_session session; /* only its directory is used */
static struct rm_board_worker *slot;
static double numbers[NUMBERS];
static char file[RM_SESSION_PATH_MAX + 64];

static int write_part(void *self, const struct rm_state *state, const char *folder,
                      struct rm_error *error)
{
    char path[RM_SESSION_PATH_MAX + 64];
    (void)self;
    snprintf(path, sizeof path, "%s/part.state", folder);
    return rm_state_write(state, path, RM_STATE_ALL, error);
}

static int save(void *arg)
{
    struct rm_saver saver = {.slot = slot, .write = write_part};
    struct rm_state *state;
    struct rm_error error = {""};
    (void)arg;
    if (rm_state_create(&state, &error))
        return 1;
    rm_state_bytes(state, "numbers", numbers, sizeof numbers);
    rm_saver_begin(&saver, &session, 1, state);
    rm_saver_end(&saver);
    return RM_PEEK(&slot->checkpoint_failed) != 0;
}

static bool reads_back(void)
{
    struct rm_state *state;
    struct rm_error error = {""};
    double read[NUMBERS] = {0};
    assert_int_equal(rm_state_create(&state, &error), 0);
    bool good = rm_state_read(state, file, &error) == 0;
    if (good) {
        rm_state_load(state);
        rm_state_bytes(state, "numbers", read, sizeof read);
        good = rm_state_end(state, &error) == 0;
        for (size_t i = 0; i < NUMBERS; i++)
            good = good && read[i] == numbers[i];
    }
    rm_state_destroy(state);
    return good;
}

static void what_is_said_to_be_written_is(void **state)
{
    static const struct {
        const char *name;
        bool written; /* is the part on the disk when it dies there? */
    } sites[] = {{"checkpoint.worker.before", false}, {"checkpoint.worker.after", true}};
    char folder[RM_SESSION_PATH_MAX], command[RM_SESSION_PATH_MAX + 16];
    struct rm_error error = {""};
    (void)state;

    slot = rm_crew_memory(sizeof *slot);
    snprintf(session.directory, sizeof session.directory, "/tmp/rm-saver-XXXXXX");
    assert_non_null(mkdtemp(session.directory));
    assert_int_equal(rm_session_checkpoint_folder(session.directory, 1, true, folder, &error), 0);
    snprintf(command, sizeof command, "mkdir -p %s", folder);
    assert_int_equal(system(command), 0);
    snprintf(file, sizeof file, "%s/part.state", folder);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = 1.0 / (i + 1);
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        unlink(file);
        memset(slot, 0, sizeof *slot);
        assert_int_equal(victim_wait(victim_start(save, NULL, sites[i].name, 1)), VICTIM_KILLED);
        assert_int_equal(RM_PEEK(&slot->checkpoint_written), 0);
        assert_int_equal(reads_back(), sites[i].written);
        /* A successor writes it anew, over whatever is there. */
        assert_int_equal(victim_wait(victim_start(save, NULL, NULL, 0)), 0);
        assert_int_equal(RM_PEEK(&slot->checkpoint_written), 1);
        assert_true(reads_back());
    }
    snprintf(command, sizeof command, "rm -rf %s", session.directory);
    assert_int_equal(system(command), 0);
}

static int fail_part(void *self, const struct rm_state *state, const char *folder,
                     struct rm_error *error)
{
    (void)state;
    return rm_fail(error, *(const int *)self, "%s cannot be written", folder);
}

/* The daemon reports a full disk, with the errno on the board. Other errors name their object. */
static void a_full_disk_is_left_to_the_daemon(void **state)
{
    static const int codes[] = {-ENOSPC, -EDQUOT, -EIO};
    char text[256];
    (void)state;

    slot = rm_crew_memory(sizeof *slot);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        int code = codes[i];
        struct rm_saver saver = {.slot = slot, .write = fail_part, .self = &code};
        struct rm_state *empty;
        struct rm_error error = {""};
        FILE *printed = tmpfile();
        const int screen = dup(STDERR_FILENO);
        assert_non_null(printed);
        assert_int_equal(rm_state_create(&empty, &error), 0);
        dup2(fileno(printed), STDERR_FILENO);
        rm_saver_begin(&saver, &session, i + 1, empty);
        rm_saver_end(&saver);
        dup2(screen, STDERR_FILENO);
        close(screen);
        rewind(printed);
        const size_t bytes = fread(text, 1, sizeof text - 1, printed);
        text[bytes] = '\0';
        fclose(printed);
        assert_int_equal(RM_PEEK(&slot->checkpoint_written), i + 1);
        assert_int_equal(RM_PEEK(&slot->checkpoint_failed), -code);
        assert_int_equal(strstr(text, "cannot be written") != NULL, code == -EIO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_to_be_written_is),
        cmocka_unit_test(a_full_disk_is_left_to_the_daemon),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
