/* Every operation of backend.h on a device against the CPU's, over shapes drawn at random, and the
 * same to the bit whatever the order of threads. */
#include "learner/backend/device.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/op_cases.h"
#include "tests/support/unit.h"

#include <string.h>

#define MOST  rm_test_effort(6000, 2000) /* elements of an array */
#define DRAWS rm_test_effort(4, 1)

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
        for (size_t k = 0; k < sizeof orders / sizeof *orders; k += rm_test_effort(1, 3)) {
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

/* Where cublasLt has no algorithm with the epilogue that was asked for, or takes back what its
 * heuristics said, kernels do the rest (gradients of biases come from kernels in float32 always:
 * the emulated library is one that has no epilogue for them). 7 and 15:
 * CUBLAS_STATUS_INVALID_VALUE, _NOT_SUPPORTED. */
static void epilogues_may_be_missing(void **state)
{
    static const char *const faults[] = {"cublasLtMatmulAlgoGetHeuristic:15@1",
                                         "cublasLtMatmul:15@1", "cublasLtMatmul:7@1"};
    struct rm_error error;
    struct rm_backend *cpu, *device = rm_test_device_open();
    uint32_t tried = 0;
    (void)state;
    assert_int_equal(rm_backend_cpu_create(&cpu, 1, "auto", &error), 0);
    for (size_t i = 0; i < op_case_count && rm_test_emulated(); i++)
        for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
            const struct op_case *c = &op_cases[i];
            if (strcmp(c->name, "linear") != 0 && strcmp(c->name, "conv2d") != 0)
                continue;
            tried++;
            rm_test_emulated_fault(faults[k]);
            const struct op_result r = op_check(c, cpu, device, 1, MOST, 100 * k + tried);
            rm_test_emulated_fault("");
            if (r.failed || r.deviation > op_tolerance(c, RM_COMPUTE_FP32))
                print_error("%s, %s: deviates by %g\n", c->name, faults[k], r.deviation);
            rm_test_device_fine(device);
        }
    rm_backend_destroy(device);
    rm_backend_destroy(cpu);
    assert_true(tried > 0 || !rm_test_emulated());
}

/* Fewer bits in products: the formats, and the epilogues that float32 does not have. */
static void computed_in_fewer_bits(void **state)
{
    struct rm_error error;
    struct rm_backend *cpu;
    size_t wrong = 0;
    (void)state;
    assert_int_equal(rm_backend_cpu_create(&cpu, 1, "auto", &error), 0);
    for (int compute = RM_COMPUTE_TF32; compute < RM_COMPUTE_COUNT; compute++) {
        struct rm_backend *device = rm_test_device_open_for((enum rm_compute)compute);
        for (size_t i = 0; i < op_case_count; i++) {
            const struct op_case *c = &op_cases[i];
            if (!c->product)
                continue;
            const struct op_result r = op_check(c, cpu, device, DRAWS, MOST, i + 1);
            rm_test_device_fine(device);
            if (!r.failed && r.deviation <= op_tolerance(c, (enum rm_compute)compute))
                continue;
            print_error("%s, way %d of computing: deviates by %g\n", c->name, compute, r.deviation);
            wrong++;
        }
        rm_backend_destroy(device);
    }
    rm_backend_destroy(cpu);
    assert_int_equal(wrong, 0);
}

/* And where it has none at all: in every format. */
static void products_without_the_library(void **state)
{
    struct rm_error error;
    struct rm_backend *cpu;
    (void)state;
    assert_int_equal(rm_backend_cpu_create(&cpu, 1, "auto", &error), 0);
    for (int compute = 0; compute < RM_COMPUTE_COUNT; compute++) {
        struct rm_backend *device = rm_test_device_open_for((enum rm_compute)compute);
        rm_test_emulated_fault("cublasLtMatmulAlgoGetHeuristic:15@1+");
        for (size_t i = 0; i < op_case_count; i++) {
            const struct op_case *c = &op_cases[i];
            if (!c->product)
                continue;
            const struct op_result r = op_check(c, cpu, device, 2, MOST / 2, 50 + i);
            rm_test_device_fine(device);
            if (r.failed || r.deviation > op_tolerance(c, (enum rm_compute)compute))
                fail_msg("%s, way %d of computing: deviates by %g", c->name, compute, r.deviation);
        }
        rm_test_emulated_fault("");
        rm_backend_destroy(device);
    }
    rm_backend_destroy(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_products),      cmocka_unit_test(epilogues_may_be_missing),
        cmocka_unit_test(computed_in_fewer_bits), cmocka_unit_test(products_without_the_library),
        cmocka_unit_test(sequences_and_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
