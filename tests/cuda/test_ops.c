/* Every operation of backend.h on a device against the CPU's, over shapes drawn at random, and the
 * same to the bit whatever the order of threads. */
#include "learner/backend/device.h"
#include "tests/support/emulated.h"
#include "tests/support/op_cases.h"
#include "tests/support/unit.h"

#define MOST  6000u /* elements of an array */
#define DRAWS 4u

static const char *const orders[] = {"forward", "reverse", "random:7"};

static void check(const struct op_case *cases, size_t count)
{
    struct rm_error error;
    struct rm_backend *cpu, *device = rm_test_device_open();
    size_t wrong = 0;
    assert_int_equal(rm_backend_cpu_create(&cpu, 1, "auto", &error), 0);
    for (size_t i = 0; i < count; i++) {
        const struct op_case *c = &cases[i];
        uint64_t bits = 0;
        for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
            rm_test_emulated_order(orders[k]);
            const struct op_result r = op_check(c, cpu, device, DRAWS, MOST, i + 1);
            const bool same = k == 0 || r.bits == bits;
            bits = r.bits;
            rm_test_device_fine(device);
            if (!r.failed && same && r.deviation <= op_tolerance(c, RM_COMPUTE_FP32))
                continue;
            print_error("%s, threads %s: deviates by %g%s%s\n", c->name, orders[k], r.deviation,
                        same ? "" : ", other bits than before", r.failed ? ", failed" : "");
            wrong++;
        }
    }
    rm_test_emulated_order("forward");
    rm_backend_destroy(device);
    rm_backend_destroy(cpu);
    assert_int_equal(wrong, 0);
}

static void rows_and_products(void **state)
{
    (void)state;
    check(op_cases, op_case_count);
}

static void sequences_and_tables(void **state)
{
    (void)state;
    check(op_sequence_cases, op_sequence_case_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_products),
        cmocka_unit_test(sequences_and_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
