/* Which device a learner trains on, where there is no plugin: refused or done without, in words.
 * With one: tests/cuda. */
#include "learner/device_choice.h"

#include "tests/support/unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rm_device_request request_of(const char *device)
{
    return (struct rm_device_request){
        .device = device, .isa = "auto", .threads = 1, .flops = 10 * RM_DEVICE_WORTH_FLOPS};
}

static void auto_takes_the_cpu_and_says_why(void **state)
{
    struct rm_device_request request = request_of("auto");
    struct rm_device_choice choice;
    struct rm_error error = {""};
    (void)state;
    assert_int_equal(rm_device_choose(&choice, &request, &error), 0);
    assert_false(choice.device);
    assert_non_null(strstr(choice.why, "cpu: RINGMASTER_CUDA_PLUGIN: /nowhere/plugin.so"));

    request.flops = RM_DEVICE_WORTH_FLOPS / 2;
    assert_int_equal(rm_device_choose(&choice, &request, &error), 0);
    assert_non_null(strstr(choice.why, "an update is 10 Mflop, too short for a GPU"));

    request.cannot = "a frozen opponent trains nothing";
    assert_int_equal(rm_device_choose(&choice, &request, &error), 0);
    assert_string_equal(choice.why, "cpu: a frozen opponent trains nothing");
}

/* The folders are those that a person would name: without "..". */
static void where_the_plugin_is_looked_for_is_said(void **state)
{
    struct rm_device_request request = request_of("auto");
    struct rm_device_choice choice;
    struct rm_error error = {""};
    char own[PATH_MAX] = "", said[2 * PATH_MAX + 64];
    (void)state;
    assert_true(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
    *strrchr(own, '/') = '\0';
    const int above = (int)(strrchr(own, '/') - own);
    snprintf(said, sizeof said, "cpu: no ringmaster-cuda.so in %s/ or %.*s/lib/ringmaster/: ", own,
             above, own);
    unsetenv("RINGMASTER_CUDA_PLUGIN");
    assert_int_equal(rm_device_choose(&choice, &request, &error), 0);
    setenv("RINGMASTER_CUDA_PLUGIN", "/nowhere/plugin.so", 1);
    assert_int_equal(strncmp(choice.why, said, strlen(said)), 0);
}

static void a_device_asked_for_by_name_is_refused(void **state)
{
    static const char *const names[] = {"cuda:0", "GPU-12345678"};
    struct rm_device_choice choice;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct rm_device_request request = request_of(names[i]);
        struct rm_error error = {""};
        const int rc = rm_device_choose(&choice, &request, &error);
        assert_int_equal(rc, -ENOENT);
        assert_true(rm_device_hopeless(rc));
        assert_non_null(strstr(error.text, "learner.device"));
        assert_non_null(strstr(error.text, names[i]));
    }
}

static void the_cpu_asked_for_is_not_argued_with(void **state)
{
    const struct rm_device_request request = request_of("cpu");
    struct rm_device_choice choice;
    struct rm_error error = {""};
    struct rm_backend *backend;
    (void)state;
    assert_int_equal(rm_device_choose(&choice, &request, &error), 0);
    assert_string_equal(choice.why, "cpu: asked for");
    assert_int_equal(rm_device_open(&backend, &choice, &request, &error), 0);
    assert_string_equal(backend->name, "cpu");
    assert_null(backend->device);
    rm_backend_destroy(backend);
}

/* What the log says is what the backend does, on hosts with AVX512_BF16 and without. */
static void the_cpu_says_how_it_computes(void **state)
{
    static const struct {
        enum rm_compute compute;
        const char *isa;
    } cases[] = {{RM_COMPUTE_BF16, "auto"},      {RM_COMPUTE_BF16, "x86-64-v2"},
                 {RM_COMPUTE_BF16, "x86-64-v3"}, {RM_COMPUTE_TF32, "auto"},
                 {RM_COMPUTE_FP16, "auto"},      {RM_COMPUTE_FP32, "auto"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rm_device_request request = request_of("cpu");
        struct rm_device_choice choice;
        struct rm_error error = {""};
        struct rm_backend *backend;
        request.compute = cases[i].compute;
        request.isa = cases[i].isa;
        assert_int_equal(rm_device_choose(&choice, &request, &error), 0);
        const int rc = rm_device_open(&backend, &choice, &request, &error);
        if (rc && strcmp(request.isa, "x86-64-v3") == 0 && !__builtin_cpu_supports("avx2"))
            continue; /* an older host */
        if (rc)
            fail_msg("case %zu: %s", i, error.text);
        const bool does = strstr(backend->description, "bf16 products");
        const bool says = strstr(choice.why, "products are bf16");
        const bool instead = strstr(choice.why, "products are fp32");
        assert_int_equal(does, says);
        assert_int_equal(instead, !does && request.compute != RM_COMPUTE_FP32);
        assert_false(does && strcmp(request.isa, "auto") != 0);
        rm_backend_destroy(backend);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_takes_the_cpu_and_says_why),
        cmocka_unit_test(where_the_plugin_is_looked_for_is_said),
        cmocka_unit_test(a_device_asked_for_by_name_is_refused),
        cmocka_unit_test(the_cpu_asked_for_is_not_argued_with),
        cmocka_unit_test(the_cpu_says_how_it_computes),
    };
    setenv("RINGMASTER_CUDA_PLUGIN", "/nowhere/plugin.so", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
