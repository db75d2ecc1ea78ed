/* The matrix products that learners make, over widths 64 to 256 and batches 64 to 1024, on one
 * core.
 *
 * gemm.forward, gemm.input_gradient, gemm.weight_gradient
 *          the median shape's speed; spread over shapes; ceiling: the core's FMA peak; baseline: at
 *          each shape the fastest of libxsmm, oneDNN, OpenBLAS and BLIS where the dynamic loader
 * finds them. Bias and ReLU included forward, the sums for the biases in the gradient of the
 *          weights, and weights are packed ahead; libraries do the product alone. libxsmm compiles
 *          one kernel for the whole shape, ahead.
 * gemm.*.v3  the same on an AVX-512 host with everything held to AVX2, against AVX2's peak.
 *
 * `make gemm-libraries` prints every shape. Time is the thread's own CPU time: other processes of
 * the host take none of it. Row-major: forward y(B,out) = x(B,in) wt(in,out); dx = dy w; dw = dy^T
 * x. */
#include "learner/backend/backend.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 7 };

typedef void (*blas_sgemm)(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                           const float *alpha, const float *a, const int *lda, const float *b,
                           const int *ldb, const float *beta, float *c, const int *ldc);
typedef int (*dnnl_sgemm)(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha,
                          const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                          float *c, int64_t ldc);

typedef void (*xsmm_kernel)(const float *a, const float *b, float *c);
typedef xsmm_kernel (*xsmm_dispatch)(int m, int n, int k, const int *lda, const int *ldb,
                                     const int *ldc, const float *alpha, const float *beta,
                                     const int *flags, const int *prefetch);

enum { HERE, ONEDNN, LIBXSMM };
static const struct {
    const char *name, *library, *symbol;
} libraries[] = {
    [HERE] = {"here", NULL, NULL},
    [ONEDNN] = {"oneDNN", "libdnnl.so.2", "dnnl_sgemm"},
    [LIBXSMM] = {"libxsmm", NULL, "libxsmm_smmdispatch"},
    {"OpenBLAS", "openblas-pthread/libopenblas.so.0", "sgemm_"},
    {"BLIS", "libblis.so.4", "sgemm_"},
};
#define LIBRARIES (sizeof libraries / sizeof libraries[0])

static void *symbols[LIBRARIES];
static struct rm_backend *backend;
static const char *isa; /* NULL: the best */
static double peak;
static bool tabulate;

enum kind { FORWARD, DX, DW, KINDS };
static const char *const kind_names[] = {"gemm.forward", "gemm.input_gradient",
                                         "gemm.weight_gradient"};

static const int widths[] = {64, 128, 192, 256}, batches[] = {64, 256, 1024};
#define WIDTHS  (sizeof widths / sizeof widths[0])
#define BATCHES (sizeof batches / sizeof batches[0])
#define SHAPES  (WIDTHS * WIDTHS * BATCHES)

struct product {
    int rows, in, out;
    float *x, *w, *wt, *y, *dw, *bias;
    xsmm_kernel compiled;
};

static uint64_t own_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * RM_NS_PER_S + (uint64_t)t.tv_nsec;
}

static void run_backend(enum kind kind, const struct product *p)
{
    const struct rm_backend_ops *ops = backend->ops;
    uint32_t rows = (uint32_t)p->rows, in = (uint32_t)p->in, out = (uint32_t)p->out;
    if (kind == FORWARD)
        ops->linear(backend, p->x, p->wt, p->bias, rows, in, out, RM_ACT_RELU, p->y);
    else if (kind == DX)
        ops->linear_dx(backend, p->y, p->w, rows, in, out, p->x);
    else
        ops->linear_dw(backend, p->y, p->x, rows, in, out, p->dw, p->bias);
}

/* Column-major C(m,n) = A(m,k) op(B): m runs along the rows of the row-major result. */
struct extents {
    int m, n, k, ldb;
};

static struct extents extents_of(enum kind kind, const struct product *p)
{
    int n = kind == DW ? p->out : p->rows;
    int k = kind == FORWARD ? p->in : kind == DX ? p->out : p->rows;
    return (struct extents){kind == FORWARD ? p->out : p->in, n, k, kind == DW ? n : k};
}

/* NULL where libxsmm is missing or has none. */
static xsmm_kernel compile(enum kind kind, const struct product *p)
{
    struct extents e = extents_of(kind, p);
    const float one = 1, zero = 0;
    const int flags = kind == DW ? 2 : 0, prefetch = 0; /* of libxsmm: B transposed; none */
    return symbols[LIBXSMM] ? ((xsmm_dispatch)symbols[LIBXSMM])(e.m, e.n, e.k, &e.m, &e.ldb, &e.m,
                                                                &one, &zero, &flags, &prefetch)
                            : NULL;
}

static void run_library(size_t library, enum kind kind, const struct product *p)
{
    const struct extents e = extents_of(kind, p);
    const int m = e.m, n = e.n, k = e.k, ldb = e.ldb;
    const float *a = kind == FORWARD ? p->wt : kind == DX ? p->w : p->x;
    const float *b = kind == FORWARD ? p->x : p->y;
    float *c = kind == FORWARD ? p->y : kind == DX ? p->x : p->dw;
    const float one = 1, zero = 0;
    char tb = kind == DW ? 'T' : 'N';
    if (library == LIBXSMM)
        p->compiled(a, b, c);
    else if (library == ONEDNN)
        ((dnnl_sgemm)symbols[ONEDNN])(tb, 'N', n, m, k, 1, b, ldb, a, m, 0, c, m);
    else
        ((blas_sgemm)symbols[library])("N", &tb, &m, &n, &k, &one, a, &m, b, &ldb, &zero, c, &m);
}

static double gflops(size_t library, enum kind kind, const struct product *p, int repeat)
{
    uint64_t start = own_ns();
    for (int i = 0; i < repeat; i++)
        if (library == HERE)
            run_backend(kind, p);
        else
            run_library(library, kind, p);
    return 2.0 * p->rows * p->in * p->out * repeat / (double)(own_ns() - start);
}

static float *numbers(size_t n)
{
    float *p = backend->ops->alloc(backend, n);
    if (!p)
        exit(1);
    for (size_t i = 0; i < n; i++)
        p[i] = (float)(i % 17) * 0.01f - 0.08f;
    return p;
}

static bool takes(size_t library, const struct product *p)
{
    return library == HERE || (library == LIBXSMM ? p->compiled != NULL : symbols[library] != NULL);
}

/* speeds[l]: the median of runs of every library there is, taken in turn; 0 of those missing. Each
 * turn is scaled by the peak just before it: a host that is shared runs now faster, now slower. */
static void compare(enum kind kind, int rows, int in, int out, double speeds[LIBRARIES])
{
    const size_t w = (size_t)in * (size_t)out;
    const size_t packed = backend->ops->packed_floats(backend, (uint32_t)out, (uint32_t)in);
    struct product p = {rows,
                        in,
                        out,
                        numbers((size_t)rows * (size_t)in),
                        numbers(w),
                        numbers(packed > w ? packed : w),
                        numbers((size_t)rows * (size_t)out),
                        numbers(w),
                        numbers((size_t)out),
                        NULL};
    p.compiled = compile(kind, &p);
    int repeat = (int)(2e7 / ((double)rows * (double)w)) + 1;
    double values[LIBRARIES][RUNS];
    for (int r = -1; r < RUNS; r++)
        for (size_t l = 0; l < LIBRARIES; l++)
            if (takes(l, &p)) {
                double now = rm_bench_fma_once(isa), own = gflops(l, kind, &p, repeat);
                values[l][r < 0 ? 0 : r] = own * peak / now;
            }
    for (size_t l = 0; l < LIBRARIES; l++)
        speeds[l] = takes(l, &p) ? rm_bench_median(values[l], RUNS) : 0;
    float *all[] = {p.x, p.w, p.wt, p.y, p.dw, p.bias};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        backend->ops->release(backend, all[i]);
}

static size_t best_of(const double speeds[LIBRARIES])
{
    size_t best = 1;
    for (size_t l = 2; l < LIBRARIES; l++)
        if (speeds[l] > speeds[best])
            best = l;
    return best;
}

static void print_row(enum kind kind, int rows, int in, int out, const double *speeds)
{
    char shape[48];
    snprintf(shape, sizeof shape, "%dx%dx%d", rows, in, out);
    printf("%-21s %-13s %5.2f of peak", kind_names[kind], shape, speeds[0] / peak);
    for (size_t l = 0; l < LIBRARIES; l++)
        if (speeds[l] > 0)
            printf(" %9.1f", speeds[l]);
        else
            printf(" %9s", "-");
    printf("\n");
}

/* All shapes of one kind of product. */
static void bench_kind(enum kind kind, const char *suffix)
{
    double own[SHAPES], other[SHAPES], worst = 1e9, behind = 1e9;
    size_t n = 0;
    char name[64], note[160], worst_shape[48] = "", behind_shape[80] = "";
    for (size_t b = 0; b < BATCHES; b++)
        for (size_t i = 0; i < WIDTHS; i++)
            for (size_t o = 0; o < WIDTHS; o++, n++) {
                int rows = batches[b], in = widths[i], out = widths[o];
                double speeds[LIBRARIES];
                compare(kind, rows, in, out, speeds);
                size_t best = best_of(speeds);
                own[n] = speeds[0];
                other[n] = speeds[best];
                if (tabulate)
                    print_row(kind, rows, in, out, speeds);
                if (own[n] < worst) {
                    worst = own[n];
                    snprintf(worst_shape, sizeof worst_shape, "%dx%dx%d", rows, in, out);
                }
                if (other[n] > 0 && own[n] / other[n] < behind) {
                    behind = own[n] / other[n];
                    snprintf(behind_shape, sizeof behind_shape, "%s at %dx%dx%d",
                             libraries[best].name, rows, in, out);
                }
            }
    snprintf(name, sizeof name, "%s%s", kind_names[kind], suffix);
    int used = snprintf(note, sizeof note, "least %.2f of peak at %s", worst / peak, worst_shape);
    if (behind < 1e9)
        snprintf(note + used, sizeof note - (size_t)used, ", %.2f of %s", behind, behind_shape);
    rm_bench_report(&(struct rm_bench_result){name, "GFLOP/s", own, SHAPES, peak,
                                              rm_bench_median(other, SHAPES), note});
}

/* Shapes of small networks' ends and of the treasure hunt, for the table alone. */
static void other_shapes(void)
{
    static const int shapes[][3] = {{768, 250, 250}, {64, 625, 250}, {768, 64, 250}, {768, 250, 5},
                                    {256, 4, 64},    {256, 11, 64},  {256, 64, 2},   {256, 64, 8},
                                    {256, 8, 128},   {4, 64, 64},    {1, 625, 250}};
    for (enum kind kind = FORWARD; kind < KINDS; kind++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            double speeds[LIBRARIES];
            compare(kind, shapes[s][0], shapes[s][1], shapes[s][2], speeds);
            print_row(kind, shapes[s][0], shapes[s][1], shapes[s][2], speeds);
        }
}

static void open_libraries(void)
{
    for (size_t l = 1; l < LIBRARIES; l++) {
        char path[128];
        const char *name = libraries[l].library; /* libxsmm is linked, if at all: see gemm.mk */
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library && name) {
            snprintf(path, sizeof path, "/usr/lib/x86_64-linux-gnu/%s", name);
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
        symbols[l] = library ? dlsym(library, libraries[l].symbol) : NULL;
    }
}

/* The libraries choose once per process, so the lower level gets a process of its own. */
static int again_with_avx2(char **argv)
{
    setenv("RM_BENCH_ISA", "x86-64-v3", 1);
    setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
    setenv("LIBXSMM_TARGET", "hsw", 1);
    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    setenv("BLIS_ARCH_TYPE", "haswell", 1);
    execv("/proc/self/exe", argv);
    perror("bench_gemm: cannot start again for AVX2");
    return 1;
}

int main(int argc, char **argv)
{
    struct rm_error error;
    isa = getenv("RM_BENCH_ISA");
    const char *suffix = isa && strcmp(isa, "x86-64-v3") == 0 ? ".v3" : "";
    bool wanted = false;
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("BLIS_NUM_THREADS", "1", 1);
    if (argc > 1 && strcmp(argv[1], "--table") == 0)
        tabulate = true;
    rm_bench_pin(0);
    if (rm_backend_cpu_create(&backend, 1, isa ? isa : "auto", &error)) {
        fprintf(stderr, "bench_gemm: %s\n", error.text);
        return 1;
    }
    open_libraries();
    peak = rm_bench_fma_gflops_of(isa);
    if (tabulate) {
        printf("%s; FMA peak %.1f GFLOP/s\n%*s", backend->description, peak, 49, "GFLOP/s");
        for (size_t l = 0; l < LIBRARIES; l++)
            printf(" %9s", libraries[l].name);
        printf("\n");
        other_shapes();
    }
    for (enum kind kind = FORWARD; kind < KINDS; kind++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", kind_names[kind], suffix);
        if (tabulate || rm_bench_wanted(argc, argv, name))
            bench_kind(kind, suffix);
        snprintf(name, sizeof name, "%s.v3", kind_names[kind]);
        wanted = wanted || tabulate || rm_bench_wanted(argc, argv, name);
    }
    bool best = !isa && strstr(backend->description, "x86-64-v4");
    rm_backend_destroy(backend);
    return best && wanted ? again_with_avx2(argv) : 0;
}
