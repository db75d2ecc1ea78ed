#include "learner/backend/cuda/memory.h"
#include "learner/backend/cuda/product.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS          256u
#define ALGORITHMS       8u                 /* number requested from the heuristics */
#define WORKSPACE_HOPPER ((size_t)32 << 20) /* NVIDIA's advice */
#define WORKSPACE        ((size_t)8 << 20)

namespace
{

/* The key of an algorithm. No padding: compared as bytes. */
struct shape {
    uint32_t m, n, k, lda, ldb, ldd;
    uint32_t a_turned, b_turned, compute, epilogue, add, d_reduced;
    uint32_t align_a, align_b, align_d; /* bytes */
};

struct plan {
    struct shape shape;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm[ALGORITHMS]; /* tried in turn */
    uint32_t at, found;
    struct plan *next;
};

struct kept {
    void *memory;
    struct kept *next;
};

} // namespace

struct rm_cuda_products {
    cublasLtHandle_t library;
    void *workspace;
    size_t workspace_bytes;
    struct plan *plans[BUCKETS];
    void *scratch[RM_SCRATCH_COUNT];
    size_t scratch_bytes[RM_SCRATCH_COUNT];
    struct kept *old;
};

namespace
{

#define RM_BLAS(c, call) rm_cuda_blas_ok((c), (call), #call)

cudaDataType_t type_of(uint32_t compute)
{
    return compute == RM_COMPUTE_BF16   ? CUDA_R_16BF
           : compute == RM_COMPUTE_FP16 ? CUDA_R_16F
                                        : CUDA_R_32F;
}

uint32_t alignment_of(const void *p)
{
    const uintptr_t at = (uintptr_t)p | 256u;
    return (uint32_t)(at & (~at + 1));
}

struct shape shape_of(const struct rm_cuda_product *p)
{
    const uint32_t d = alignment_of(p->d), bias = alignment_of(p->bias);
    return {p->m,
            p->n,
            p->k,
            p->a.stride,
            p->b.stride,
            p->d_stride,
            p->a.turned,
            p->b.turned,
            (uint32_t)p->compute,
            (uint32_t)p->epilogue,
            p->add,
            p->d_reduced,
            alignment_of(p->a.at),
            alignment_of(p->b.at),
            d < bias ? d : bias}; /* the library takes no alignment for a bias */
}

uint32_t bucket_of(const struct shape *s)
{
    uint32_t words[sizeof *s / sizeof(uint32_t)], hash = 2166136261u; /* FNV-1a, by words */
    memcpy(words, s, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = (hash ^ words[i]) * 16777619u;
    return (hash ^ hash >> 16) % BUCKETS;
}

bool describe(struct rm_cuda *c, struct plan *p)
{
    const struct shape *s = &p->shape;
    const cublasOperation_t turn[2] = {CUBLAS_OP_N, CUBLAS_OP_T};
    const cublasComputeType_t how =
        s->compute == RM_COMPUTE_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasLtEpilogue_t epilogue = (cublasLtEpilogue_t)s->epilogue;
    const cudaDataType_t type = type_of(s->compute);
    return RM_BLAS(c, cublasLtMatmulDescCreate(&p->operation, how, CUDA_R_32F)) &&
           RM_BLAS(c, cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_MATMUL_DESC_TRANSA,
                                                     &turn[s->a_turned], sizeof turn[0])) &&
           RM_BLAS(c, cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_MATMUL_DESC_TRANSB,
                                                     &turn[s->b_turned], sizeof turn[0])) &&
           RM_BLAS(c, cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                     &epilogue, sizeof epilogue)) &&
           RM_BLAS(c, cublasLtMatrixLayoutCreate(&p->a, type, s->a_turned ? s->k : s->m,
                                                 s->a_turned ? s->m : s->k, s->lda)) &&
           RM_BLAS(c, cublasLtMatrixLayoutCreate(&p->b, type, s->b_turned ? s->n : s->k,
                                                 s->b_turned ? s->k : s->n, s->ldb)) &&
           RM_BLAS(c, cublasLtMatrixLayoutCreate(&p->d, s->d_reduced ? type : CUDA_R_32F, s->m,
                                                 s->n, s->ldd));
}

bool set_bias(struct rm_cuda *c, const struct plan *p, float *bias)
{
    const void *pointer = bias;
    return !bias || RM_BLAS(c, cublasLtMatmulDescSetAttribute(p->operation,
                                                              CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                              &pointer, sizeof pointer));
}

/* Whether the library cannot compute this, so that the caller must ask for less. Clears the error
 * that the library left in the runtime. */
bool refused(cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE)
        return false;
    cudaGetLastError();
    return true;
}

/* The algorithms that the heuristics return, best first; p->found is their number. */
bool choose(struct rm_cuda *c, struct plan *p)
{
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        uint32_t bytes;
    } alignments[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p->shape.align_a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p->shape.align_b},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p->shape.align_d},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p->shape.align_d},
    };
    const uint64_t workspace = c->products->workspace_bytes;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result[ALGORITHMS];
    int count = 0;
    if (!RM_BLAS(c, cublasLtMatmulPreferenceCreate(&preference)))
        return false;
    bool good = RM_BLAS(
        c, cublasLtMatmulPreferenceSetAttribute(
               preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments && good; i++)
        good = RM_BLAS(c, cublasLtMatmulPreferenceSetAttribute(preference, alignments[i].attribute,
                                                               &alignments[i].bytes,
                                                               sizeof alignments[i].bytes));
    if (good) {
        const cublasStatus_t rc =
            cublasLtMatmulAlgoGetHeuristic(c->products->library, p->operation, p->a, p->b, p->d,
                                           p->d, preference, (int)ALGORITHMS, result, &count);
        for (int i = 0; i < count && rc == CUBLAS_STATUS_SUCCESS; i++)
            if (result[i].state == CUBLAS_STATUS_SUCCESS)
                p->algorithm[p->found++] = result[i].algo;
        good = refused(rc) || rm_cuda_blas_ok(c, rc, "cublasLtMatmulAlgoGetHeuristic");
    }
    cublasLtMatmulPreferenceDestroy(preference);
    return good;
}

void destroy_plan(struct plan *p)
{
    if (p->operation)
        cublasLtMatmulDescDestroy(p->operation);
    if (p->a)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->b)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->d)
        cublasLtMatrixLayoutDestroy(p->d);
    free(p);
}

struct plan *plan_of(struct rm_cuda *c, const struct rm_cuda_product *product)
{
    const struct shape s = shape_of(product);
    struct plan **bucket = &c->products->plans[bucket_of(&s)];
    for (struct plan *p = *bucket; p; p = p->next)
        if (memcmp(&p->shape, &s, sizeof s) == 0)
            return p;
    struct plan *p = static_cast<struct plan *>(calloc(1, sizeof *p));
    if (!p) {
        rm_cuda_ok(c, cudaErrorMemoryAllocation, "plan of a product");
        return NULL;
    }
    p->shape = s;
    if (!describe(c, p) || !set_bias(c, p, product->bias) || !choose(c, p)) {
        destroy_plan(p);
        return NULL;
    }
    p->next = *bucket;
    *bucket = p;
    return p;
}

} // namespace

bool rm_cuda_run_product(struct rm_cuda *c, const struct rm_cuda_product *product)
{
    static const float one = 1.0f, zero = 0.0f;
    if (!rm_cuda_ready(c))
        return false;
    struct plan *p = plan_of(c, product);
    if (!p || !set_bias(c, p, product->bias))
        return false;
    const struct rm_cuda_products *k = c->products;
    for (; p->at < p->found; p->at++) { /* a refused algorithm was not started, and never will be */
        const cublasStatus_t rc = cublasLtMatmul(
            k->library, p->operation, &one, product->a.at, p->a, product->b.at, p->b,
            product->add ? &one : &zero, product->d, p->d, product->d, p->d, &p->algorithm[p->at],
            k->workspace, k->workspace_bytes, rm_cuda_stream(c));
        if (refused(rc))
            continue;
        if (!rm_cuda_blas_ok(c, rc, "cublasLtMatmul"))
            return false;
        if (!c->capturing)
            c->counts.launches++;
        return true;
    }
    return false;
}

/* --- memory ---------------------------------------------------------------------------------- */

bool rm_cuda_products_create(struct rm_cuda *c)
{
    struct rm_cuda_products *p = static_cast<struct rm_cuda_products *>(calloc(1, sizeof *p));
    if (!p)
        return rm_cuda_ok(c, cudaErrorMemoryAllocation, "products");
    c->products = p;
    p->workspace_bytes = c->info.major >= 9 ? WORKSPACE_HOPPER : WORKSPACE;
    p->workspace = rm_cuda_alloc_bytes(&c->backend, p->workspace_bytes, NULL);
    return p->workspace && RM_BLAS(c, cublasLtCreate(&p->library));
}

void rm_cuda_products_destroy(struct rm_cuda *c)
{
    struct rm_cuda_products *p = c->products;
    if (!p)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (p->plans[i]) {
            struct plan *next = p->plans[i]->next;
            destroy_plan(p->plans[i]);
            p->plans[i] = next;
        }
    for (size_t i = 0; i < RM_SCRATCH_COUNT; i++)
        cudaFree(p->scratch[i]);
    while (p->old) {
        struct kept *next = p->old->next;
        cudaFree(p->old->memory);
        free(p->old);
        p->old = next;
    }
    cudaFree(p->workspace);
    if (p->library)
        cublasLtDestroy(p->library);
    free(p);
    c->products = NULL;
}

bool rm_cuda_scratch_reserve(struct rm_cuda *c, enum rm_cuda_scratch which, size_t bytes)
{
    struct rm_cuda_products *p = c->products;
    if (bytes <= p->scratch_bytes[which])
        return true;
    struct kept *old = static_cast<struct kept *>(calloc(1, sizeof *old));
    void *memory = old ? rm_cuda_alloc_bytes(&c->backend, bytes, NULL) : NULL;
    if (!memory) {
        free(old);
        return false;
    }
    *old = {p->scratch[which], p->old};
    p->old = old;
    p->scratch[which] = memory;
    p->scratch_bytes[which] = bytes;
    return true;
}

void *rm_cuda_scratch(struct rm_cuda *c, enum rm_cuda_scratch which, size_t bytes)
{
    if (rm_cuda_scratch_reserve(c, which, bytes))
        return c->products->scratch[which];
    rm_cuda_ok(c, cudaErrorMemoryAllocation, "scratch of an operation");
    return NULL;
}
