/* The double of cublasLt: products with their epilogues, by the host, on the stream. */
#include "blas.h"

using namespace rm_emulated;

namespace
{
#define MAGIC 0x726d656d756c6174ull

/* --- calls ------------------------------------------------------------------------------------ */

/* An injected code is a status up to 16, and the device's above. */
class blas_call
{
  public:
    explicit blas_call(const char *name) : here_(nullptr)
    {
        if (lost() != cudaSuccess) {
            status = CUBLAS_STATUS_EXECUTION_FAILED;
            return;
        }
        const int code = injected(name);
        if (code > 16) {
            if (is_sticky((cudaError_t)code))
                lose((cudaError_t)code, std::string(name) + ": injected");
            here_.gives((cudaError_t)code);
            status = CUBLAS_STATUS_EXECUTION_FAILED;
        } else if (code) {
            mine().last = cudaErrorInvalidValue; /* the library leaves what it met */
            status = (cublasStatus_t)code;
        }
    }
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

  private:
    const call here_;
};
#define BLAS_CALL(name)                                                                            \
    const blas_call here(name);                                                                    \
    if (here.status != CUBLAS_STATUS_SUCCESS)                                                      \
    return here.status

cublasStatus_t refuse(cublasStatus_t status, const std::string &why)
{
    mine().last = complain(cudaErrorInvalidValue, "cublasLt: " + why);
    return status;
}

template <class Attribute>
struct field {
    Attribute attribute;
    void *at;
    size_t bytes;
};

template <class Attribute, size_t n>
cublasStatus_t assign(const field<Attribute> (&fields)[n], Attribute attribute, const void *value,
                      size_t bytes)
{
    for (const auto &f : fields)
        if (f.attribute == attribute) {
            if (bytes != f.bytes || !value)
                return refuse(
                    CUBLAS_STATUS_INVALID_VALUE,
                    format("attribute %d has %zu bytes, not %zu", (int)attribute, f.bytes, bytes));
            memcpy(f.at, value, bytes);
            return CUBLAS_STATUS_SUCCESS;
        }
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, format("attribute %d", (int)attribute));
}

} // namespace

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "CUBLAS_STATUS_UNKNOWN";
    }
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

size_t cublasLtGetVersion()
{
    return 130000;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    BLAS_CALL("cublasLtCreate");
    *handle = new rm_blas_handle{mine().device};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    BLAS_CALL("cublasLtMatmulDescCreate");
    *desc = new rm_blas_operation;
    (*desc)->compute = compute;
    (*desc)->scale = scale;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete desc;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    BLAS_CALL("cublasLtMatmulDescSetAttribute");
    const field<cublasLtMatmulDescAttributes_t> fields[] = {
        {CUBLASLT_MATMUL_DESC_POINTER_MODE, &d->pointer_mode, 4},
        {CUBLASLT_MATMUL_DESC_TRANSA, &d->turn_a, 4},
        {CUBLASLT_MATMUL_DESC_TRANSB, &d->turn_b, 4},
        {CUBLASLT_MATMUL_DESC_TRANSC, &d->turn_c, 4},
        {CUBLASLT_MATMUL_DESC_EPILOGUE, &d->epilogue, 4},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &d->bias, 8},
        {CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &d->bias_stride, 8},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &d->aux, 8},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &d->aux_ld, 8},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &d->aux_stride, 8},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &d->aux_type, 4},
        {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &d->bias_type, 4},
    };
    return assign(fields, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    BLAS_CALL("cublasLtMatrixLayoutCreate");
    rm_blas_layout *l = new rm_blas_layout;
    l->type = type;
    l->rows = rows;
    l->columns = columns;
    l->ld = ld;
    *layout = l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    BLAS_CALL("cublasLtMatrixLayoutSetAttribute");
    const field<cublasLtMatrixLayoutAttribute_t> fields[] = {
        {CUBLASLT_MATRIX_LAYOUT_TYPE, &l->type, 4},
        {CUBLASLT_MATRIX_LAYOUT_ORDER, &l->order, 4},
        {CUBLASLT_MATRIX_LAYOUT_ROWS, &l->rows, 8},
        {CUBLASLT_MATRIX_LAYOUT_COLS, &l->columns, 8},
        {CUBLASLT_MATRIX_LAYOUT_LD, &l->ld, 8},
        {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &l->batch, 4},
        {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &l->stride, 8},
    };
    return assign(fields, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    BLAS_CALL("cublasLtMatmulPreferenceCreate");
    *preference = new rm_blas_preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    BLAS_CALL("cublasLtMatmulPreferenceSetAttribute");
    const field<cublasLtMatmulPreferenceAttributes_t> fields[] = {
        {CUBLASLT_MATMUL_PREF_SEARCH_MODE, &p->search, 4},
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &p->workspace, 8},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &p->reductions, 4},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &p->align[0], 4},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &p->align[1], 4},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &p->align[2], 4},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &p->align[3], 4},
        {CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, &p->waves, 4},
        {CUBLASLT_MATMUL_PREF_IMPL_MASK, &p->implementations, 8},
    };
    return assign(fields, attribute, value, bytes);
}

/* An algorithm keeps what it was found for: the alignments and the workspace. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    *found = 0;
    BLAS_CALL("cublasLtMatmulAlgoGetHeuristic");
    if (!handle || asked < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    product p = {};
    p.op = *desc;
    p.la = *a;
    p.lb = *b;
    p.lc = *c;
    p.ld = *d;
    const std::string w = wrong_shape(p);
    if (!w.empty())
        return refuse(CUBLAS_STATUS_INVALID_VALUE, w);
    if (!unsupported(p).empty()) { /* which of the two is the library's whim */
        mine().last = cudaErrorInvalidValue;
        return p.op.epilogue & (256 | 512) ? CUBLAS_STATUS_INVALID_VALUE
                                           : CUBLAS_STATUS_NOT_SUPPORTED;
    }
    const uint64_t workspace = preference->workspace >= RM_BLAS_WORKSPACE ? RM_BLAS_WORKSPACE : 0;
    for (int i = 0; i < asked && i < 3; i++) {
        cublasLtMatmulHeuristicResult_t *r = &results[i];
        *r = cublasLtMatmulHeuristicResult_t{};
        r->algo.data[0] = MAGIC;
        r->algo.data[1] = (uint64_t)i;
        r->algo.data[2] = r->workspaceSize = i == 0 ? workspace : 0;
        for (int k = 0; k < 4; k++)
            r->algo.data[3 + k] = preference->align[k] < 16 ? preference->align[k] : 16;
        r->wavesCount = 1;
        ++*found;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static std::string wrong_algorithm(const product &p, const cublasLtMatmulAlgo_t &algo)
{
    const void *const at[4] = {p.a, p.b, p.c, p.d};
    if (algo.data[0] != MAGIC)
        return "an algorithm that the heuristics did not give";
    for (int i = 0; i < 4; i++)
        if (algo.data[3 + i] && (uintptr_t)at[i] % algo.data[3 + i])
            return format("%c at %p, for an algorithm that wants %llu bytes of alignment",
                          "ABCD"[i], at[i], (unsigned long long)algo.data[3 + i]);
    if (algo.data[2] > p.workspace_bytes)
        return format("a workspace of %zu bytes where %llu are wanted", p.workspace_bytes,
                      (unsigned long long)algo.data[2]);
    return "";
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    BLAS_CALL("cublasLtMatmul");
    const auto s = stream_of(stream);
    if (!handle || !s)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (handle->device != s->device || mine().device != s->device)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "a stream of another device");
    product p = {
        *desc,   *a_layout, *b_layout, *c_layout, *d_layout,       a,        b, c, d, nullptr,
        nullptr, 0,         0,         workspace, workspace_bytes, s->device};
    if (desc->pointer_mode == CUBLASLT_POINTER_MODE_HOST) {
        p.alpha = *static_cast<const float *>(alpha);
        p.beta = *static_cast<const float *>(beta);
    } else {
        p.alpha_at = alpha;
        p.beta_at = beta;
    }
    std::string w = wrong_shape(p);
    if (w.empty() && algo)
        w = wrong_algorithm(p, *algo);
    if (!w.empty())
        return refuse(CUBLAS_STATUS_INVALID_VALUE, w);
    w = unsupported(p);
    if (!w.empty())
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, w);
    if (p.n() > RM_BLAS_COLUMNS) {
        mine().last = complain(cudaErrorInvalidConfiguration,
                               format("cublasLtMatmul: a grid for %zu columns", p.n()));
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (!capturing(*s))
        counts.products++;
    return put(stream, [p] { run(p); }) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                       : CUBLAS_STATUS_EXECUTION_FAILED;
}
