/* What the CUDA plugin does with errors at any of its calls: it says which, ends quickly and does
 * nothing more. Each error is given at the first call, the second, ... until none is left. */
#include "tests/cuda/emulation/control.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { N = 96, PATIENCE = 1000 };

static const struct rm_backend_plugin *plugin;
static int (*set_fault)(const char *faults);
static uint64_t (*reset)(void);
static void (*count)(struct rm_emulated_counts *out);

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
    *(void **)&set_fault = rm_test_emulated_symbol("rm_emulated_fault");
    *(void **)&reset = rm_test_emulated_symbol("rm_emulated_reset");
    *(void **)&count = rm_test_emulated_symbol("rm_emulated_counts");
    assert_true(set_fault && reset && count);
    return 0;
}

/* --- a short life of a backend ---------------------------------------------------------------- */

struct life {
    struct rm_backend *b;
    float *x, *y, *w;
    float *pinned;
    struct rm_queue_mark *arrived;
    struct rm_device_graph *graph;
    float host[N];
    char words[RM_ERROR_TEXT]; /* the first error that was reported */
    int rc;                    /* of create() */
};

static void keep_first_error(struct life *l, const struct rm_error *error)
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
        keep_first_error(l, &error);
        assert_null(l->b);
        return;
    }
    const struct rm_backend_ops *d = l->b->ops;
    const size_t bytes = N * sizeof(float);
    float **parts[] = {&l->x, &l->y, &l->w};
    for (size_t i = 0; i < 3; i++)
        if (!(*parts[i] = d->alloc_bytes(l->b, bytes, &error)))
            keep_first_error(l, &error);
    if (!(l->pinned = d->alloc_host(l->b, bytes, &error)))
        keep_first_error(l, &error);
    if (d->mark_create(l->b, &l->arrived, &error))
        keep_first_error(l, &error);
}

static bool whole(const struct life *l)
{
    return l->b && l->x && l->y && l->w && l->pinned && l->arrived;
}

static void work(struct life *l)
{
    struct rm_backend *b = l->b;
    const struct rm_backend_ops *d = b->ops;
    struct rm_device_graph *second = NULL;
    struct rm_error error = {""};
    for (int i = 0; i < N; i++)
        l->pinned[i] = (float)i;
    d->copy_in(b, RM_QUEUE_IN, l->x, l->pinned, N * sizeof(float));
    d->mark(b, RM_QUEUE_IN, l->arrived);
    d->follow(b, RM_QUEUE_COMPUTE, l->arrived);
    b->ops->linear(b, l->x, l->w, l->w, 8, 12, 8, RM_ACT_NONE, l->y);
    b->ops->fill(b, 1.0f, N, l->y);
    b->ops->add(b, l->x, l->y, N, l->y);
    if (b->device->capture(b, &error))
        keep_first_error(l, &error);
    b->ops->add(b, l->x, l->y, N, l->y);
    if (b->device->captured(b, l->graph ? &second : &l->graph, &error) ||
        b->device->instantiate(b, l->graph, &error))
        keep_first_error(l, &error);
    assert_null(second); /* only asked for after an error */
    for (int i = 0; i < 2 && l->graph; i++)
        b->device->launch(b, l->graph);
    d->mark(b, RM_QUEUE_COMPUTE, l->arrived);
    d->follow(b, RM_QUEUE_OUT, l->arrived);
    d->copy_out(b, RM_QUEUE_OUT, l->pinned, l->y, N * sizeof(float));
    d->mark(b, RM_QUEUE_OUT, l->arrived);
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
    const struct rm_backend_ops *d = l->b->ops;
    if (l->graph)
        l->b->device->graph_destroy(l->b, l->graph);
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
    assert_false(l.b->ops->failed(l.b, &error));
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
    assert_true(l->b->ops->failed(l->b, &first));
    count(&before);
    if (whole(l))
        work(l);
    count(&after);
    assert_int_equal(after.launches + after.products + after.copies + after.graph_launches,
                     before.launches + before.products + before.copies + before.graph_launches);
    assert_int_equal(after.synchronizations, before.synchronizations);
    assert_true(!whole(l) || l->host[0] != l->host[0]);
    assert_true(l->b->ops->failed(l->b, &later));
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
    const bool failed = l.b && l.b->ops->failed(l.b, &error);
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
static void any_error_at_any_call_is_reported(void **state)
{
    static const int codes[] = {2, 700, 719, 802};
    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c += rm_test_effort(1, 3)) {
        struct rm_emulated_counts n;
        struct life l;
        unsigned failed_lives = 0, nth = 1;
        for (; nth < 200; nth++)
            failed_lives += live_with("any", codes[c], nth, false);
        assert_true(failed_lives > 30);
        reset(); /* as a new process: */
        begin(&l);
        work(&l);
        assert_false(l.b->ops->failed(l.b, &(struct rm_error){""}));
        end(&l);
        count(&n);
        assert_int_equal(n.allocations, n.frees);
    }
}

/* Not a sticky error: the call reports it, and earlier allocations stay valid. */
static void too_much_memory_is_refused_with_a_message(void **state)
{
    struct rm_error error = {""};
    struct life l;
    (void)state;
    reset();
    begin(&l);
    assert_true(whole(&l));
    assert_null(l.b->ops->alloc_bytes(l.b, (size_t)1 << 50, &error));
    assert_non_null(strstr(error.text, "1125899906842624 bytes"));
    assert_non_null(strstr(error.text, "free"));
    assert_non_null(strstr(error.text, "out of memory"));
    set_fault("cudaHostAlloc:2@1");
    assert_null(l.b->ops->alloc_host(l.b, 4096, &error));
    assert_non_null(strstr(error.text, "4096 bytes of pinned memory"));
    assert_false(l.b->ops->failed(l.b, &error));
    work(&l);
    assert_false(l.b->ops->failed(l.b, &error));
    end(&l);
}

/* What was refused is handled: the next launch does not report it. */
static void left_no_error(struct life *l, const char *fault)
{
    struct rm_error error = {""};
    set_fault("");
    l->b->ops->fill(l->b, 1.0f, N, l->y);
    l->b->ops->download(l->b, l->host, l->y, N);
    if (l->b->ops->failed(l->b, &error))
        fail_msg("after %s: %s", fault, error.text);
    assert_true(l->host[N - 1] == 1.0f);
}

static void leaves_no_error(struct life *l, const char *fault, void (*refuse)(struct life *l))
{
    set_fault(fault);
    refuse(l);
    left_no_error(l, fault);
}

static void refuse_memory(struct life *l)
{
    assert_null(l->b->ops->alloc_bytes(l->b, 4096, NULL));
}

static void refuse_pinned(struct life *l)
{
    assert_null(l->b->ops->alloc_host(l->b, 4096, NULL));
}

static void refuse_mapping(struct life *l)
{
    static char page[4096] __attribute__((aligned(4096)));
    void *there;
    assert_int_equal(l->b->device->register_host(l->b, page, sizeof page, false, &there, NULL),
                     -ENOTSUP);
}

static void refuse_devices(struct life *l)
{
    struct rm_device_info info;
    struct rm_error error = {""};
    uint32_t n;
    (void)l;
    assert_true(plugin->devices(&info, 1, &n, &error) < 0);
}

static void what_was_refused_leaves_no_error(void **state)
{
    struct life l;
    (void)state;
    reset();
    set_fault("cudaSetDeviceFlags:708@1"); /* another user of the device has set them */
    begin(&l);
    assert_true(whole(&l));
    left_no_error(&l, "cudaSetDeviceFlags:708@1");
    leaves_no_error(&l, "cudaMalloc:2@1", refuse_memory);
    leaves_no_error(&l, "cudaHostAlloc:2@1", refuse_pinned);
    leaves_no_error(&l, "cudaHostRegister:801@1", refuse_mapping);
    leaves_no_error(&l, "cudaHostGetDevicePointer:801@1", refuse_mapping);
    leaves_no_error(&l, "cudaGetDeviceCount:3@1", refuse_devices);
    leaves_no_error(&l, "cudaGetDeviceProperties:101@1", refuse_devices);
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

/* --- what the library and the driver are like ------------------------------------------------- */

enum { IN = 8, OUT = 6, ROWS = 5 };

/* y = x w' + bias, small whole numbers: exact in any order. `off`: floats that the bias is moved by
 * from where memory begins. */
static void run_linear(struct rm_backend *b, size_t off, float y[ROWS * OUT])
{
    float x[ROWS * IN], w[OUT * IN], bias[OUT];
    float *on[4];
    const size_t floats[4] = {ROWS * IN, OUT * IN, OUT + off, ROWS * OUT};
    for (size_t i = 0; i < ROWS * IN; i++)
        x[i] = (float)(i % 7) - 3;
    for (size_t i = 0; i < OUT * IN; i++)
        w[i] = (float)(i % 5) - 2;
    for (size_t i = 0; i < OUT; i++)
        bias[i] = (float)i;
    for (size_t i = 0; i < 4; i++)
        assert_non_null(on[i] = b->ops->alloc(b, floats[i]));
    b->ops->upload(b, on[0], x, floats[0]);
    b->ops->upload(b, on[1], w, floats[1]);
    b->ops->upload(b, on[2] + off, bias, OUT);
    b->ops->linear(b, on[0], on[1], on[2] + off, ROWS, IN, OUT, RM_ACT_NONE, on[3]);
    b->ops->download(b, y, on[3], floats[3]);
    for (size_t i = 0; i < 4; i++)
        b->ops->release(b, on[i]);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t o = 0; o < OUT; o++) {
            float sum = bias[o];
            for (size_t k = 0; k < IN; k++)
                sum += x[r * IN + k] * w[o * IN + k];
            assert_true(y[r * OUT + o] == sum);
        }
}

static struct rm_backend *open_for(enum rm_compute compute)
{
    const struct rm_device_spec spec = {.index = 0, .compute = compute, .threads = 1};
    struct rm_backend *b = NULL;
    struct rm_error error = {""};
    reset();
    if (plugin->create(&b, &spec, &error))
        fail_msg("%s", error.text);
    return b;
}

/* The library refuses an algorithm that its heuristics gave (15, 7), or gives none: others are
 * tried, then kernels; nothing is lost, and no later call meets the error. */
static void what_the_library_refuses_is_done_otherwise(void **state)
{
    static const struct {
        const char *fault;
        uint64_t products; /* that the library makes */
    } cases[] = {{"", 1},
                 {"cublasLtMatmul:15@1", 1},
                 {"cublasLtMatmul:7@1", 1},
                 {"cublasLtMatmul:15@1+", 0},
                 {"cublasLtMatmulAlgoGetHeuristic:7@1+", 0},
                 {"cublasLtMatmulAlgoGetHeuristic:15@1+", 0}};
    uint64_t kernels = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rm_backend *b = open_for(RM_COMPUTE_FP32);
        struct rm_emulated_counts n;
        float y[ROWS * OUT];
        assert_int_equal(set_fault(cases[i].fault), 0);
        run_linear(b, 0, y);
        count(&n);
        assert_int_equal(n.products, cases[i].products);
        kernels = i ? kernels : n.launches;
        assert_true(cases[i].products ? n.launches == kernels : n.launches > kernels);
        rm_test_device_fine(b);
        rm_backend_destroy(b);
    }
}

static void biases_may_stand_anywhere(void **state)
{
    struct rm_backend *b = open_for(RM_COMPUTE_FP32);
    (void)state;
    for (size_t off = 0; off < 5; off++) {
        float y[ROWS * OUT];
        run_linear(b, off, y);
        rm_test_device_fine(b);
    }
    rm_backend_destroy(b);
}

/* So may their gradients, which the library's epilogue sums with products of 16 bits. */
static void gradients_of_biases_may_stand_anywhere(void **state)
{
    struct rm_backend *b = open_for(RM_COMPUTE_BF16);
    float dy[ROWS * OUT], db[OUT];
    (void)state;
    for (size_t i = 0; i < ROWS * OUT; i++)
        dy[i] = (float)(i % 7) - 3;
    float *x = b->ops->alloc(b, ROWS * IN), *on = b->ops->alloc(b, ROWS * OUT);
    float *dw = b->ops->alloc(b, OUT * IN), *sums = b->ops->alloc(b, OUT + 4);
    assert_true(x && on && dw && sums);
    b->ops->upload(b, on, dy, ROWS * OUT);
    for (size_t off = 0; off < 5; off++) {
        b->ops->linear_dw(b, on, x, ROWS, IN, OUT, dw, sums + off);
        b->ops->download(b, db, sums + off, OUT);
        rm_test_device_fine(b);
        for (size_t o = 0; o < OUT; o++) {
            float sum = 0;
            for (size_t r = 0; r < ROWS; r++)
                sum += dy[r * OUT + o];
            assert_true(db[o] == sum);
        }
    }
    float *all[] = {x, on, dw, sums};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        b->ops->release(b, all[i]);
    rm_backend_destroy(b);
}

/* More rows than a grid has tiles for. */
static void rows_may_be_very_many(void **state)
{
    const uint32_t rows = 1100000;
    struct rm_backend *b = open_for(RM_COMPUTE_FP32);
    float *x = b->ops->alloc(b, rows), *y = b->ops->alloc(b, rows), *w = b->ops->alloc(b, 2);
    float *host = malloc(rows * sizeof *host);
    (void)state;
    assert_true(x && y && w && host);
    for (uint32_t i = 0; i < rows; i++)
        host[i] = (float)(i % 1000);
    b->ops->upload(b, x, host, rows);
    b->ops->fill(b, 3.0f, 1, w);
    b->ops->linear(b, x, w, w, rows, 1, 1, RM_ACT_RELU, y);
    b->ops->download(b, host, y, rows);
    rm_test_device_fine(b);
    for (uint32_t i = 0; i < rows; i++)
        assert_true(host[i] == 3.0f * (float)(i % 1000) + 3.0f);
    free(host);
    b->ops->release(b, x);
    b->ops->release(b, y);
    b->ops->release(b, w);
    rm_backend_destroy(b);
}

/* What operations need besides is a shortage like any: the device is as good as before. */
static void scratch_that_is_not_there_is_said(void **state)
{
    struct rm_backend *b = open_for(RM_COMPUTE_BF16);
    const struct rm_conv large = {8, 200, 200, 3, 1, 1, 8, 200, 200, false, false};
    struct rm_error error = {""};
    (void)state;
    assert_int_equal(b->ops->reserve(b, 1u << 30, 4096, 4096, true), -ENOMEM);
    assert_non_null(strstr(b->device->shortage(b), "bytes asked for"));
    set_fault("cudaMalloc:2@1+");
    assert_int_equal(b->ops->conv2d_reserve(b, &large, 100, true), -ENOMEM);
    set_fault("");
    assert_non_null(strstr(b->device->shortage(b), "out of memory"));
    if (b->ops->failed(b, &error))
        fail_msg("%s", error.text);
    rm_backend_destroy(b);
}

/* The owner of memory may write to it on any stream. */
static void memory_is_clear_when_it_is_there(void **state)
{
    const size_t bytes = N * sizeof(float);
    (void)state;
    for (unsigned seed = 0; seed < rm_test_effort(30, 5); seed++) {
        struct rm_backend *b = open_for(RM_COMPUTE_FP32);
        const struct rm_backend_ops *d = b->ops;
        struct rm_error error = {""};
        float *pinned = d->alloc_host(b, bytes, &error), host[N];
        char order[32];
        snprintf(order, sizeof order, "random:%u", seed);
        rm_test_emulated_order(order);
        assert_non_null(pinned);
        for (int i = 0; i < N; i++)
            pinned[i] = (float)(i + 1);
        float *x = d->alloc_bytes(b, bytes, &error);
        assert_non_null(x);
        d->copy_in(b, RM_QUEUE_IN, x, pinned, bytes);
        d->finish(b);
        b->ops->download(b, host, x, N);
        assert_memory_equal(host, pinned, bytes);
        b->ops->release(b, x);
        d->release_host(b, pinned);
        rm_backend_destroy(b);
    }
    rm_test_emulated_order("forward");
}

/* A query that says "not ready" leaves that as the runtime's last error. It is no error, so the
 * next launch does not report it. */
static void a_query_that_is_not_ready_leaves_no_error(void **state)
{
    struct rm_backend *b = open_for(RM_COMPUTE_FP32);
    const struct rm_backend_ops *d = b->ops;
    struct rm_queue_mark *mark;
    struct rm_error error = {""};
    float *x = b->ops->alloc(b, N), host[N];
    (void)state;
    assert_int_equal(d->mark_create(b, &mark, &error), 0);
    assert_non_null(x);
    b->ops->fill(b, 1.0f, N, x);
    d->mark(b, RM_QUEUE_COMPUTE, mark);
    assert_false(d->passed(b, mark));
    b->ops->fill(b, 2.0f, N, x);
    b->ops->download(b, host, x, N);
    assert_true(d->passed(b, mark));
    rm_test_device_fine(b);
    assert_true(host[0] == 2.0f);
    d->mark_destroy(b, mark);
    b->ops->release(b, x);
    rm_backend_destroy(b);
}

static bool under_mps(void)
{
    struct rm_device_info info;
    struct rm_error error = {""};
    uint32_t n = 0;
    assert_int_equal(plugin->devices(&info, 1, &n, &error), 0);
    return info.mps;
}

/* Its daemon listens on a socket; what a dead one left does not answer. */
static void mps_is_seen_where_it_listens(void **state)
{
    char folder[] = "/tmp/mps-XXXXXX";
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)state;
    reset();
    assert_non_null(mkdtemp(folder));
    setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
    assert_false(under_mps());
    snprintf(at.sun_path, sizeof at.sun_path, "%s/control", folder);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_true(under_mps());
    close(fd);
    assert_false(under_mps());
    unlink(at.sun_path);
    rmdir(folder);
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_errors_it_works_and_leaves_nothing, setup),
        cmocka_unit_test_setup(sticky_errors_at_any_call_end_it, setup),
        cmocka_unit_test_setup(any_error_at_any_call_is_reported, setup),
        cmocka_unit_test_setup(too_much_memory_is_refused_with_a_message, setup),
        cmocka_unit_test_setup(what_was_refused_leaves_no_error, setup),
        cmocka_unit_test_setup(devices_that_cannot_be_had_are_said, setup),
        cmocka_unit_test_setup(what_the_library_refuses_is_done_otherwise, setup),
        cmocka_unit_test_setup(biases_may_stand_anywhere, setup),
        cmocka_unit_test_setup(gradients_of_biases_may_stand_anywhere, setup),
        cmocka_unit_test_setup(rows_may_be_very_many, setup),
        cmocka_unit_test_setup(scratch_that_is_not_there_is_said, setup),
        cmocka_unit_test_setup(memory_is_clear_when_it_is_there, setup),
        cmocka_unit_test_setup(a_query_that_is_not_ready_leaves_no_error, setup),
        cmocka_unit_test_setup(mps_is_seen_where_it_listens, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
