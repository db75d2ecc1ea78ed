/* How `ringctl envs` and ringmaster-worlds(7) put a world into words. */
#include "daemon/ctl/world_view.h"
#include "tests/support/unit.h"

static void actions_are_shown_per_choice(void **unused)
{
    (void)unused;
    const struct rm_env_agent plain = {.actions = 4}, one = {.actions = 5, .choices = 1},
                              three = {.actions = 9, .choices = 3, .choice_actions = {2, 3, 4}};
    char text[96], cut[6];
    rm_world_actions_text(&plain, text, sizeof text);
    assert_string_equal(text, "4");
    rm_world_actions_text(&one, text, sizeof text);
    assert_string_equal(text, "5");
    rm_world_actions_text(&three, text, sizeof text);
    assert_string_equal(text, "2 x 3 x 4");
    rm_world_actions_text(&three, cut, sizeof cut);
    assert_string_equal(cut, "2 x 3");
}

static void observations_are_shown_with_their_type(void **unused)
{
    (void)unused;
    const struct rm_env_agent flat = {.dtype = RM_ENV_F32, .dims = 1, .shape = {4}},
                              coded = {.dtype = RM_ENV_CODE8,
                                       .dims = 2,
                                       .shape = {11, 7},
                                       .codes = 3,
                                       .channels = 6};
    char text[96];
    rm_world_observation_text(&flat, text, sizeof text);
    assert_string_equal(text, "f32[4]");
    rm_world_observation_text(&coded, text, sizeof text);
    assert_string_equal(text, "code[11, 7] of 3 codes, 6 values each");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_are_shown_per_choice),
        cmocka_unit_test(observations_are_shown_with_their_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
