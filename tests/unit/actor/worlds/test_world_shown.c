/* Worlds of cells show themselves: what stands where, as text and as a picture, and nothing is
 * written beyond what there is room for. */
#include "tests/support/batch.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rm_test_batch batch;
static char text[8192];

static const char *show(uint32_t world)
{
    memset(text, 'z', sizeof text);
    const int bytes = batch.world.ops->show_text(batch.env, world, text, sizeof text);
    assert_in_range(bytes, 1, sizeof text - 1);
    assert_int_equal(strlen(text), bytes);
    assert_true(text[bytes - 1] == '\n');
    /* As much as fits, and how much there is. */
    char some[8];
    memset(some, 'z', sizeof some);
    assert_int_equal(batch.world.ops->show_text(batch.env, world, some, 5), bytes);
    assert_int_equal(strnlen(some, 5), 4);
    assert_memory_equal(some, text, 4);
    assert_true(some[5] == 'z');
    return text;
}

static void open_world(const char *name, const char *options)
{
    rm_test_batch_open(&batch, name, NULL, options, 1, 0, 2);
    rm_test_batch_reset(&batch);
}

static void act(int32_t action)
{
    batch.actions[0][0] = batch.actions[0][1] = action;
    rm_test_batch_step(&batch, 0);
}

static void a_lake_and_who_crosses_it(void **state)
{
    (void)state;
    open_world("frozenlake", "desc=[\"SFF\",\"HFG\"] slippery=0");
    assert_string_equal(show(0), "@ F F\nH F G\n");
    act(2);
    assert_string_equal(show(1), "S @ F\nH F G\n");
    rm_test_batch_close(&batch);
}

static void a_ninja_at_a_door(void **state)
{
    (void)state;
    open_world("platformer", "stage=\"c3\" levels=1 first_level=5");
    show(0);
    assert_non_null(strstr(text, "@"));
    assert_non_null(strstr(text, "k"));
    assert_non_null(strstr(text, "|"));
    assert_non_null(strstr(text, "x █"));
    assert_non_null(strstr(text, "\nframe 0, at ("));
    rm_test_batch_close(&batch);
}

static void a_game(void **state)
{
    (void)state;
    open_world("connect", "columns=3 rows=3 line=3 gravity=0");
    act(4);
    batch.actions[1][0] = batch.actions[1][1] = 0;
    rm_test_batch_step(&batch, 1);
    assert_string_equal(show(0), "o . .\n. x .\n. . .\n");
    rm_test_batch_close(&batch);
}

static unsigned count(const char *of, char what)
{
    unsigned n = 0;
    for (; *of; of++)
        n += *of == what;
    return n;
}

static void what_is_in_worlds_is_shown(void **state)
{
    (void)state;
    open_world("sokoban", "boxes=3");
    assert_int_equal(count(show(0), '$'), 3); /* no box begins on a goal */
    assert_int_equal(count(text, '.') + count(text, '+'), 3);
    assert_int_equal(count(text, '@') + count(text, '+'), 1);
    rm_test_batch_close(&batch);

    open_world("treasurehunt", "agents=3 spawn=1");
    assert_int_equal(count(show(0), '#'), 36);
    assert_int_equal(count(text, '*'), 64 - 3);
    assert_non_null(strstr(text, "turn 0 of 50\n"));
    rm_test_batch_close(&batch);

    open_world("goodhart", NULL);
    assert_int_equal(count(show(0), '@'), 1);
    assert_non_null(strstr(text, "energy 50.00, food 0, poison 0\n"));
    const char *middle = text + 10 * 62 + 2 * 15; /* 31 cells of two bytes a row */
    assert_true(*middle == '@');
    rm_test_batch_close(&batch);

    open_world("taxi", NULL);
    assert_int_equal(count(show(0), '@'), 1);
    assert_int_equal(count(text, '|'), 2 * 5 + 6); /* the sides of the town, and its walls */
    assert_non_null(strstr(text, "passenger at "));
    rm_test_batch_close(&batch);
}

/* Every picture is as large as the world says, and shows the same as the text. */
static void pictures_are_whole(void **state)
{
    static const char *const names[] = {"frozenlake", "taxi",    "treasurehunt",
                                        "goodhart",   "sokoban", "connect"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        open_world(names[i], NULL);
        const size_t bytes = (size_t)batch.spec->picture_width * batch.spec->picture_height * 3,
                     guard = 64;
        uint8_t *rgb[2];
        assert_true(bytes > 0);
        for (int k = 0; k < 2; k++) {
            rgb[k] = malloc(bytes + guard);
            assert_non_null(rgb[k]);
            memset(rgb[k], k ? 0x5a : 0xa5, bytes + guard);
            assert_int_equal(batch.world.ops->show_picture(batch.env, 0, rgb[k]), 0);
            for (size_t g = 0; g < guard; g++)
                assert_int_equal(rgb[k][bytes + g], k ? 0x5a : 0xa5);
        }
        assert_memory_equal(rgb[0], rgb[1], bytes); /* all of it is written */
        free(rgb[0]);
        free(rgb[1]);
        rm_test_batch_close(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lake_and_who_crosses_it),
        cmocka_unit_test(a_ninja_at_a_door),
        cmocka_unit_test(a_game),
        cmocka_unit_test(what_is_in_worlds_is_shown),
        cmocka_unit_test(pictures_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
