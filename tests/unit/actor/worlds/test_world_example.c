/* The worked example as its page shows it: the experiment next to it, with the world from its
 * shared object, trained in one process. The actor checks every row that the world gives. */
#include "actor/actor.h"
#include "learner/learner.h"
#include "shm/duty.h"
#include "tests/support/batch.h"
#include "tests/support/effort.h"
#include "tests/support/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct rm_session session;

static void test_trains(void **unused)
{
    (void)unused;
    char library[1300], steps[32], directory[] = "/tmp/rm-example-XXXXXX";
    const uint32_t budget = rm_test_effort(3000, 1200);
    struct rm_error error = {""};
    struct rm_duty duties[3];
    struct rm_learner *learner[2];
    struct rm_actor *actor;

    snprintf(library, sizeof(library), "world.library=%s",
             rm_test_build_path("examples/tictactoe.so"));
    snprintf(steps, sizeof(steps), "run.steps=%u", budget);
    const char *const set[] = {
        "mode=sequential", steps, "sample.min_fill=400", "world.options={\"opening\": true}",
        library,           NULL};
    assert_int_equal(rm_test_session_file(&session, "scripts/examples/tictactoe.json", set), 0);
    assert_int_equal(session.plan.policies, 2);
    assert_int_equal(session.plan.phases, 2);
    assert_string_equal(session.plan.policy[0].name, "x");
    assert_int_equal(session.plan.policy[1].features, 18);
    assert_int_equal(session.plan.policy[1].mask_bytes, 9);
    assert_non_null(mkdtemp(directory));

    for (uint32_t p = 0; p < 2; p++)
        if (rm_learner_create(&learner[p], &session, p, directory, &duties[p], &error) < 0)
            fail_msg("%s", error.text);
    if (rm_actor_create(&actor, &session, 0, &duties[2], &error) < 0)
        fail_msg("%s", error.text);
    if (rm_duty_run_in_turn(duties, 3, &error) != RM_EXIT_OK)
        fail_msg("%s", error.text);
    for (uint32_t p = 0; p < 2; p++) {
        assert_true(session.board.policies[p].env_steps >= budget);
        assert_true(session.board.policies[p].updates >= budget / 20);
    }
    rm_actor_destroy(actor);
    for (uint32_t p = 0; p < 2; p++)
        rm_learner_destroy(learner[p]);
    rm_session_close(&session);

    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
