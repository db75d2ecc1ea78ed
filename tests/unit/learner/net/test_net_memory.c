/* learner/net allocates nothing once its workspace is there. Every allocation of the process is
 * counted, by standing in front of the C library's. */
#include "tests/support/nets.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REPLACED_MALLOC 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REPLACED_MALLOC 1
#endif

#ifndef REPLACED_MALLOC

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t a, size_t n);

static _Atomic size_t allocations;

__attribute__((visibility("default"))) void *malloc(size_t n)
{
    allocations++;
    return __libc_malloc(n);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t m)
{
    allocations++;
    return __libc_calloc(n, m);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
    allocations++;
    return __libc_realloc(p, n);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t a, size_t n)
{
    allocations++;
    return __libc_memalign(a, n);
}

static void nothing_is_allocated(void **state)
{
    (void)state;
    struct rm_backend *b;
    struct rm_error error;
    assert_int_equal(rm_backend_cpu_create(&b, 2, "auto", &error), 0);
    for (size_t i = 0; i <= test_net_count; i++) {
        const struct named_net *of = i < test_net_count ? &test_nets[i] : &treasurehunt_net;
        struct rm_net *net;
        struct rm_net_workspace *train, *act;
        uint32_t q = of->quantiles ? of->quantiles : 1;
        assert_int_equal(rm_net_compile(&net, &of->config, &of->shape, &error), 0);
        assert_int_equal(rm_net_workspace_create(&train, net, b, of->batch, q, true, &error), 0);
        assert_int_equal(rm_net_workspace_create(&act, net, b, of->batch, q, false, &error), 0);
        size_t n = rm_net_param_count(net), out = (size_t)of->batch * q * rm_net_outputs(net);
        float *params = b->ops->alloc(b, n), *grads = b->ops->alloc(b, n);
        float *m = b->ops->alloc(b, n), *v = b->ops->alloc(b, n);
        float *x = b->ops->alloc(b, (size_t)of->batch * of->shape.inputs);
        float *tau = b->ops->alloc(b, (size_t)of->batch * q);
        float *noise = b->ops->alloc(b, rm_net_noise_count(net)), *d = b->ops->alloc(b, out);
        rm_net_init(net, params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
        b->ops->normals(b, 1, RM_STREAM_TEST, 0, 0, (size_t)of->batch * of->shape.inputs, x);
        test_net_input(of, net, x, (size_t)of->batch * of->shape.inputs, NULL);
        struct rm_net_input input = {.x = x,
                                     .dropout_update = 1,
                                     .batch = of->batch,
                                     .tau = of->quantiles ? tau : NULL,
                                     .quantiles = of->quantiles,
                                     .noise = of->noise ? noise : NULL};
        size_t before = allocations;
        assert_true(before > 0);
        for (uint64_t step = 1; step < 4; step++) {
            b->ops->normals(b, 1, RM_STREAM_NOISE, 0, step, rm_net_noise_count(net), noise);
            b->ops->uniforms(b, 1, RM_STREAM_TAU, 0, step, (size_t)of->batch * q, tau);
            rm_net_prepare(train, params);
            rm_net_prepare(act, params);
            input.batch = of->batch;
            rm_net_forward(train, params, &input);
            rm_net_backward(train, params, &input, d, grads);
            b->ops->sum_squares(b, grads, n);
            struct rm_adam adam = {1e-3f, 0.9f, 0.999f, 1e-8f, step, 0};
            b->ops->adam(b, &adam, 1.0f, grads, n, params, m, v);
            for (input.batch = 1; input.batch <= of->batch; input.batch++) /* acting on fewer */
                rm_net_forward(act, params, &input);
        }
        if (allocations != before)
            fail_msg("%s: %zu allocations in three updates", of->name, allocations - before);
        float *owned[] = {params, grads, m, v, x, tau, noise, d};
        for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++)
            b->ops->release(b, owned[k]);
        rm_net_workspace_destroy(train);
        rm_net_workspace_destroy(act);
        rm_net_destroy(net);
    }
    rm_backend_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_allocated)};
    return cmocka_run_group_tests_name("net memory", tests, NULL, NULL);
}

#else

int main(void)
{
    printf("skipped: a sanitizer stands where this test counts allocations\n");
    return 77;
}

#endif
