/* kill -9 of the creator around publication: before it others wait, after it they attach. */
#include "tests/crash/fault_build.h"
#include "tests/crash/victim.h"
#include "tests/support/unit.h"

static struct rm_error failure;

static int publisher(void *arg)
{
    rm_region_publish(arg);
    return 0;
}

static void creator_dies_around_publication(void **state)
{
    (void)state;
    struct rm_region region, other;
    assert_int_equal(rm_region_create(&region, RM_REGION_TEXT, "rm-test", 4096, &failure), 0);
    pid_t pid = victim_start(publisher, &region, "region.publish.before", 1);
    assert_int_equal(victim_wait(pid), VICTIM_KILLED);
    assert_int_equal(rm_region_attach(&other, region.fd, RM_REGION_TEXT, false, &failure),
                     RM_ATTACH_AWAITING_VERSION);
    pid = victim_start(publisher, &region, "region.publish.after", 1);
    assert_int_equal(victim_wait(pid), VICTIM_KILLED);
    assert_int_equal(rm_region_attach(&other, region.fd, RM_REGION_TEXT, false, &failure),
                     RM_ATTACH_OK);
    rm_region_close(&other);
    rm_region_close(&region);
}

static void a_site_not_named_does_nothing(void **state)
{
    (void)state;
    struct rm_region region;
    assert_int_equal(rm_region_create(&region, RM_REGION_TEXT, "rm-test", 4096, &failure), 0);
    static const char *const others[] = {"region.publish", "region.publish.before.x", "", "x"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(victim_wait(victim_start(publisher, &region, others[i], 1)), 0);
    assert_int_equal(victim_wait(victim_start(publisher, &region, "region.publish.before", 2)), 0);
    rm_region_close(&region);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creator_dies_around_publication),
        cmocka_unit_test(a_site_not_named_does_nothing),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
