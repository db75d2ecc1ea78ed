/* What the CUDA plugin does with errors at any of its calls: it says which, ends quickly and does
 * nothing more. Each error is given at the first call, the second, ... until none is left. */
#include "tests/cuda/emulation/control.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 96, PATIENCE = 1000 };

static const struct rm_backend_plugin *plugin;
static int (*set_fault)(const char *faults);
static uint64_t (*reset)(void);
static void (*count)(struct rm_emulated_counts *out);

static void *symbol(const char *name)
{
    void *object = dlopen(rm_plugin_path(), RTLD_NOW | RTLD_NOLOAD);
    void *found = dlsym(object, name);
    assert_non_null(found);
    dlclose(object);
    return found;
}

static int setup(void **state)
{
    struct rm_error error = {""};
    (void)state;
    rm_test_device_use();
    if (rm_plugin_open(&plugin, &error))
        fail_msg("%s", error.text);
    if (!rm_test_emulated()) {
        print_message("skipped: the plugin is not the emulated one\n");
        skip();
    }
    *(void **)&set_fault = symbol("rm_emulated_fault");
    *(void **)&reset = symbol("rm_emulated_reset");
    *(void **)&count = symbol("rm_emulated_counts");
    return 0;
}

/* --- a short life of a backend ---------------------------------------------------------------- */

struct life {
    struct rm_backend *b;
    float *x, *y, *w;
    float *pinned;
    struct rm_device_mark *arrived;
    struct rm_device_graph *graph;
    float host[N];
    char words[RM_ERROR_TEXT]; /* the first error that was told */
    int rc;                    /* of create() */
};

static void hear(struct life *l, const struct rm_error *error)
{
    if (!l->words[0])
        snprintf(l->words, sizeof l->words, "%s", error->text);
}

static void begin(struct life *l)
{
    const struct rm_device_spec spec = {.index = 0, .compute = RM_COMPUTE_FP32, .threads = 1};
    struct rm_error error = {""};
    memset(l, 0, sizeof *l);
    l->rc = plugin->create(&l->b, &spec, &error);
    if (l->rc) {
        hear(l, &error);
        assert_null(l->b);
        return;
    }
    const struct rm_device_ops *d = l->b->device;
    const size_t bytes = N * sizeof(float);
    float **parts[] = {&l->x, &l->y, &l->w};
    for (size_t i = 0; i < 3; i++)
        if (!(*parts[i] = d->alloc(l->b, bytes, &error)))
            hear(l, &error);
    if (!(l->pinned = d->alloc_host(l->b, bytes, &error)))
        hear(l, &error);
    if (d->mark_create(l->b, &l->arrived, &error))
        hear(l, &error);
}

static bool whole(const struct life *l)
{
    return l->b && l->x && l->y && l->w && l->pinned && l->arrived;
}

static void work(struct life *l)
{
    struct rm_backend *b = l->b;
    const struct rm_device_ops *d = b->device;
    struct rm_device_graph *second = NULL;
    struct rm_error error = {""};
    for (int i = 0; i < N; i++)
        l->pinned[i] = (float)i;
    d->finish(b); /* what alloc() clears is put on COMPUTE */
    d->copy_in(b, RM_STREAM_IN, l->x, l->pinned, N * sizeof(float));
    d->mark(b, RM_STREAM_IN, l->arrived);
    d->follow(b, RM_STREAM_COMPUTE, l->arrived);
    b->ops->linear(b, l->x, l->w, l->w, 8, 12, 8, RM_ACT_NONE, l->y);
    b->ops->fill(b, 1.0f, N, l->y);
    b->ops->add(b, l->x, l->y, N, l->y);
    if (d->capture(b, &error))
        hear(l, &error);
    b->ops->add(b, l->x, l->y, N, l->y);
    if (d->captured(b, l->graph ? &second : &l->graph, &error))
        hear(l, &error);
    assert_null(second); /* only asked for after an error */
    for (int i = 0; i < 2 && l->graph; i++)
        d->launch(b, l->graph);
    d->mark(b, RM_STREAM_COMPUTE, l->arrived);
    d->follow(b, RM_STREAM_OUT, l->arrived);
    d->copy_out(b, RM_STREAM_OUT, l->pinned, l->y, N * sizeof(float));
    d->mark(b, RM_STREAM_OUT, l->arrived);
    for (int i = 0; !d->passed(b, l->arrived); i++)
        if (i > PATIENCE)
            fail_msg("a mark is never passed");
    d->wait(b, l->arrived);
    (void)b->ops->sum_squares(b, l->y, N);
    b->ops->download(b, l->host, l->y, N);
}

static void end(struct life *l)
{
    if (!l->b)
        return;
    const struct rm_device_ops *d = l->b->device;
    if (l->graph)
        d->graph_destroy(l->b, l->graph);
    d->mark_destroy(l->b, l->arrived);
    d->release_host(l->b, l->pinned);
    l->b->ops->release(l->b, l->x);
    l->b->ops->release(l->b, l->y);
    l->b->ops->release(l->b, l->w);
    rm_backend_destroy(l->b);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void without_errors_it_works_and_leaves_nothing(void **state)
{
    struct rm_emulated_counts n;
    struct life l;
    struct rm_error error = {""};
    (void)state;
    reset();
    begin(&l);
    assert_true(whole(&l));
    work(&l);
    assert_false(l.b->device->failed(l.b, &error));
    for (int i = 0; i < N; i++)
        assert_true(l.host[i] == (float)(1 + 3 * i) && l.pinned[i] == l.host[i]);
    end(&l);
    count(&n);
    assert_int_equal(n.allocations, n.frees);
    assert_int_equal(n.host_allocations, n.host_frees);
    assert_int_equal(n.streams + n.events + n.graphs, 0);
    assert_int_equal(reset(), 0);
}

/* After an error: nothing reaches the device, nothing waits, nothing looks like data. */
static void does_nothing_more(struct life *l)
{
    struct rm_emulated_counts before, after;
    struct rm_error first = {""}, later = {""};
    assert_true(l->b->device->failed(l->b, &first));
    count(&before);
    if (whole(l))
        work(l);
    count(&after);
    assert_int_equal(after.launches + after.products + after.copies + after.graph_launches,
                     before.launches + before.products + before.copies + before.graph_launches);
    assert_int_equal(after.synchronizations, before.synchronizations);
    assert_true(!whole(l) || l->host[0] != l->host[0]);
    assert_true(l->b->device->failed(l->b, &later));
    assert_string_equal(first.text, later.text);
}

/* One life with an error at the nth call of a kind. Whether there was an nth. */
static bool live_with(const char *call, int code, unsigned nth, bool on)
{
    char fault[96], number[16];
    struct rm_error error = {""};
    struct life l;
    reset();
    snprintf(fault, sizeof fault, "%s:%d@%u%s", call, code, nth, on ? "+" : "");
    snprintf(number, sizeof number, "%d", code);
    assert_int_equal(set_fault(fault), 0);
    begin(&l);
    if (whole(&l))
        work(&l);
    const bool failed = l.b && l.b->device->failed(l.b, &error);
    if (failed) {
        if (!strstr(error.text, number) || !strstr(error.text, "GPU-"))
            fail_msg("%s: '%s'", fault, error.text);
        does_nothing_more(&l);
    } else if (l.rc || (l.b && !whole(&l)))
        assert_true(l.words[0]); /* it was refused, in words */
    const bool reached = failed || l.words[0];
    end(&l);
    return reached;
}

static void sticky_errors_at_any_call_end_it(void **state)
{
    static const int codes[] = {700, 719};
    static const char *const calls[] = {"launch",
                                        "cudaMemcpyAsync",
                                        "cudaMemsetAsync",
                                        "cudaStreamSynchronize",
                                        "cudaEventRecord",
                                        "cudaStreamWaitEvent",
                                        "cudaEventQuery",
                                        "cudaEventSynchronize",
                                        "cudaStreamBeginCapture",
                                        "cudaStreamEndCapture",
                                        "cudaGraphInstantiate",
                                        "cudaGraphLaunch",
                                        "cublasLtMatmul"};
    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            unsigned nth = 1;
            while (live_with(calls[i], codes[c], nth, false))
                nth++;
            if (nth == 1)
                fail_msg("%s is never called", calls[i]);
        }
}

/* Every call there is, one after another. */
static void any_error_at_any_call_is_told(void **state)
{
    static const int codes[] = {2, 700, 719, 802};
    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        struct rm_emulated_counts n;
        struct life l;
        unsigned told = 0, nth = 1;
        for (; nth < 200; nth++)
            told += live_with("any", codes[c], nth, false);
        assert_true(told > 30);
        reset(); /* as a new process: */
        begin(&l);
        work(&l);
        assert_false(l.b->device->failed(l.b, &(struct rm_error){""}));
        end(&l);
        count(&n);
        assert_int_equal(n.allocations, n.frees);
    }
}

/* Not sticky: who asked hears it, what was there before stays of use. */
static void memory_that_is_not_there_is_said(void **state)
{
    struct rm_error error = {""};
    struct life l;
    (void)state;
    reset();
    begin(&l);
    assert_true(whole(&l));
    assert_null(l.b->device->alloc(l.b, (size_t)1 << 50, &error));
    assert_non_null(strstr(error.text, "1125899906842624 bytes"));
    assert_non_null(strstr(error.text, "free"));
    assert_non_null(strstr(error.text, "out of memory"));
    set_fault("cudaHostAlloc:2@1");
    assert_null(l.b->device->alloc_host(l.b, 4096, &error));
    assert_non_null(strstr(error.text, "4096 bytes of pinned memory"));
    assert_false(l.b->device->failed(l.b, &error));
    work(&l);
    assert_false(l.b->device->failed(l.b, &error));
    end(&l);
}

static void devices_that_cannot_be_had_are_said(void **state)
{
    static const struct {
        const char *fault;
        int rc;
        const char *words;
    } cases[] = {
        {"cudaGetDeviceCount:802@1", -ENODEV, "system not yet initialized"},
        {"cudaGetDeviceCount:35@1", -ENOTSUP, "driver version is insufficient"},
        {"cudaGetDeviceCount:3@1", -ENODEV, "initialization error"},
        {"cudaGetDeviceCount:803@1", -ENODEV, "driver"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rm_device_info info;
        struct rm_error error = {""};
        uint32_t n = 7;
        reset();
        set_fault(cases[i].fault);
        assert_int_equal(plugin->devices(&info, 1, &n, &error), cases[i].rc);
        assert_int_equal(n, 0);
        if (!strstr(error.text, cases[i].words))
            fail_msg("%s: '%s'", cases[i].fault, error.text);
        assert_int_equal(plugin->devices(&info, 1, &n, &error), 0); /* the next time */
        assert_int_equal(n, 1);
    }
    reset();
    set_fault("cudaGetDeviceCount:100@1"); /* none is no error */
    uint32_t n = 7;
    assert_int_equal(plugin->devices(NULL, 0, &n, &(struct rm_error){""}), 0);
    assert_int_equal(n, 0);
    reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_errors_it_works_and_leaves_nothing, setup),
        cmocka_unit_test_setup(sticky_errors_at_any_call_end_it, setup),
        cmocka_unit_test_setup(any_error_at_any_call_is_told, setup),
        cmocka_unit_test_setup(memory_that_is_not_there_is_said, setup),
        cmocka_unit_test_setup(devices_that_cannot_be_had_are_said, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
