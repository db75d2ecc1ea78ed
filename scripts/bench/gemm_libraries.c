/* gemm_libraries: the products that learners make, by this backend (libxsmm) and by whichever of
 * oneDNN, OpenBLAS and BLIS the dynamic loader finds, on one core, alternating. `make
 * gemm-libraries`. Row-major: forward y(B,out) = x(B,in) wt(in,out); dx = dy w; dw = dy^T x. */
#include "learner/backend/backend.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 7 };

typedef void (*blas_sgemm)(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                           const float *alpha, const float *a, const int *lda, const float *b,
                           const int *ldb, const float *beta, float *c, const int *ldc);
typedef int (*dnnl_sgemm)(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha,
                          const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                          float *c, int64_t ldc);

static const struct {
    const char *name, *library, *symbol;
} libraries[] = {
    {"libxsmm", NULL, NULL},
    {"oneDNN", "libdnnl.so.2", "dnnl_sgemm"},
    {"OpenBLAS", "openblas-pthread/libopenblas.so.0", "sgemm_"},
    {"BLIS", "libblis.so.4", "sgemm_"},
};
#define LIBRARIES (sizeof libraries / sizeof libraries[0])

static void *symbols[LIBRARIES];
static struct rm_backend *backend;

enum kind { FORWARD, DX, DW };

struct product {
    int rows, in, out;
    float *x, *w, *wt, *y, *dw, *bias;
};

static void run_backend(enum kind kind, const struct product *p)
{
    const struct rm_backend_ops *ops = backend->ops;
    uint32_t rows = (uint32_t)p->rows, in = (uint32_t)p->in, out = (uint32_t)p->out;
    if (kind == FORWARD)
        ops->linear(backend, p->x, p->wt, p->bias, rows, in, out, RM_ACT_NONE, p->y);
    else if (kind == DX)
        ops->linear_dx(backend, p->y, p->w, rows, in, out, p->x);
    else
        ops->linear_dw(backend, p->y, p->x, rows, in, out, p->dw, p->bias);
}

/* Column-major C(m,n) = A(m,k) op(B): m runs along the rows of the row-major result. */
static void run_library(size_t library, enum kind kind, const struct product *p)
{
    int m = kind == FORWARD ? p->out : p->in, n = kind == DW ? p->out : p->rows;
    int k = kind == FORWARD ? p->in : kind == DX ? p->out : p->rows, ldb = kind == DW ? n : k;
    const float *a = kind == FORWARD ? p->wt : kind == DX ? p->w : p->x;
    const float *b = kind == FORWARD ? p->x : p->y;
    float *c = kind == FORWARD ? p->y : kind == DX ? p->x : p->dw;
    const float one = 1, zero = 0;
    char tb = kind == DW ? 'T' : 'N';
    if (library == 1)
        ((dnnl_sgemm)symbols[1])(tb, 'N', n, m, k, 1, b, ldb, a, m, 0, c, m);
    else
        ((blas_sgemm)symbols[library])("N", &tb, &m, &n, &k, &one, a, &m, b, &ldb, &zero, c, &m);
}

static double gflops(size_t library, enum kind kind, const struct product *p, int repeat)
{
    uint64_t start = rm_now_ns();
    for (int i = 0; i < repeat; i++)
        if (library == 0)
            run_backend(kind, p);
        else
            run_library(library, kind, p);
    return 2.0 * p->rows * p->in * p->out * repeat / (double)(rm_now_ns() - start);
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

static void compare(const char *name, int rows, int in, int out)
{
    static const char *const kinds[] = {"forward", "dx", "dw"};
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
                        numbers((size_t)out)};
    int repeat = (int)(5e7 / ((double)rows * (double)w)) + 1;
    for (enum kind kind = FORWARD; kind <= DW; kind++) {
        double values[LIBRARIES][RUNS];
        for (int r = -1; r < RUNS; r++)
            for (size_t l = 0; l < LIBRARIES; l++)
                if (l == 0 || symbols[l])
                    values[l][r < 0 ? 0 : r] = gflops(l, kind, &p, repeat);
        printf("%-14s %-8s", name, kinds[kind]);
        for (size_t l = 0; l < LIBRARIES; l++)
            if (l == 0 || symbols[l])
                printf(" %9.1f", rm_bench_median(values[l], RUNS));
            else
                printf(" %9s", "-");
        printf("\n");
    }
    float *all[] = {p.x, p.w, p.wt, p.y, p.dw, p.bias};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        backend->ops->release(backend, all[i]);
}

int main(void)
{
    struct rm_error error;
    const char *isa = getenv("RM_BENCH_ISA");
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("BLIS_NUM_THREADS", "1", 1);
    rm_bench_pin(0);
    if (rm_backend_cpu_create(&backend, 1, isa ? isa : "auto", &error)) {
        fprintf(stderr, "gemm_libraries: %s\n", error.text);
        return 1;
    }
    for (size_t l = 1; l < LIBRARIES; l++) {
        char path[128];
        void *library = dlopen(libraries[l].library, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            snprintf(path, sizeof path, "/usr/lib/x86_64-linux-gnu/%s", libraries[l].library);
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
        symbols[l] = library ? dlsym(library, libraries[l].symbol) : NULL;
    }
    printf("%s; FMA peak %.1f GFLOP/s\nGFLOP/s %15s", backend->description, rm_bench_fma_gflops(),
           "");
    for (size_t l = 0; l < LIBRARIES; l++)
        printf(" %9s", libraries[l].name);
    printf("\n");
    compare("768x250x250", 768, 250, 250);
    compare("64x625x250", 64, 625, 250);
    compare("768x64x250", 768, 64, 250);
    compare("768x250x5", 768, 250, 5);
    compare("64x64x64", 64, 64, 64);
    compare("256x64x64", 256, 64, 64);
    compare("1024x64x64", 1024, 64, 64);
    compare("256x4x64", 256, 4, 64);
    compare("4x64x64", 4, 64, 64);
    compare("1x625x250", 1, 625, 250);
    rm_backend_destroy(backend);
    return 0;
}
