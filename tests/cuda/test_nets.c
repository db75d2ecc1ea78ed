/* Whole networks on a device against the CPU's: results, gradients, states; alone and as a captured
 * graph; the same to the bit whatever the order of threads. */
#include "learner/backend/device.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/net_parity.h"
#include "tests/support/random_net.h"
#include "tests/support/unit.h"

#define DRAWN 32u

static struct rm_backend *cpu, *device;

static int open_backends(void **state)
{
    struct rm_error error;
    (void)state;
    device = rm_test_device_open();
    assert_int_equal(rm_backend_cpu_create(&cpu, 1, "auto", &error), 0);
    return 0;
}

static int close_backends(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    rm_backend_destroy(cpu);
    return 0;
}

/* Returns whether it is as it should be. */
static bool check(const struct named_net *of, uint64_t seed)
{
    static const char *const orders[] = {"forward", "reverse", "random:11"};
    uint64_t bits = 0;
    bool fine = true;
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k += rm_test_effort(1, 3)) {
        rm_test_emulated_order(orders[k]);
        const struct net_parity r = net_check(of, cpu, device, RM_COMPUTE_FP32, seed);
        const bool same = k == 0 || r.bits == bits;
        bits = r.bits;
        rm_test_device_fine(device);
        if (!r.failed && same && r.captured && r.result <= r.result_allowed &&
            r.gradient <= r.gradient_allowed)
            continue;
        print_error("%s, threads %s: results deviate by %g, gradients by %g%s%s%s\n", of->name,
                    orders[k], r.result, r.gradient, same ? "" : ", other bits than before",
                    r.captured ? "" : ", other bits when captured", r.failed ? ", failed" : "");
        fine = false;
    }
    rm_test_emulated_order("forward");
    return fine;
}

static void known_networks(void **state)
{
    size_t wrong = 0;
    (void)state;
    for (size_t i = 0; i < test_net_count; i++)
        wrong += !check(&test_nets[i], i);
    assert_int_equal(wrong, 0);
}

static void drawn_networks(void **state)
{
    size_t wrong = 0;
    (void)state;
    for (uint32_t i = 0; i < rm_test_effort(DRAWN, 4); i++) {
        struct random_net net;
        random_net_draw(i, &net);
        wrong += !check(&net.of, i);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(known_networks, open_backends, close_backends),
        cmocka_unit_test_setup_teardown(drawn_networks, open_backends, close_backends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
