/* The double of cublasLt: products with their epilogues, by the host, on the stream. */
#include "cublasLt.h"
#include "gemm.h"
#include "half.h"
#include "state.h"

#include <math.h>

using namespace rm_emulated;

struct rm_blas_handle {
    int device;
};

struct rm_blas_operation {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
    int32_t turn_a = CUBLAS_OP_N, turn_b = CUBLAS_OP_N, turn_c = CUBLAS_OP_N;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    void *bias = nullptr, *aux = nullptr;
    int64_t bias_stride = 0, aux_ld = 0, aux_stride = 0;
    int32_t bias_type = -1, aux_type = -1;
};

struct rm_blas_layout {
    uint32_t type;
    int32_t order = CUBLASLT_ORDER_COL;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batch = 1;
    int64_t stride = 0;
};

struct rm_blas_preference {
    uint32_t search = 0, reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
    uint64_t workspace = 0, implementations = ~0ull;
    uint32_t align[4] = {256, 256, 256, 256};
    float waves = 0;
};

namespace
{
#define WORKSPACE 4096u /* that a product asks for, where it may */
#define MAGIC     0x726d656d756c6174ull

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
        } else
            status = (cublasStatus_t)code;
    }
    cublasStatus_t status;

  private:
    const call here_;
};
#define BLAS_CALL(name)                                                                            \
    const blas_call here(name);                                                                    \
    if (here.status != CUBLAS_STATUS_SUCCESS)                                                      \
    return here.status

cublasStatus_t refuse(cublasStatus_t status, const std::string &why)
{
    complain(cudaErrorInvalidValue, "cublasLt: " + why);
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

/* --- numbers ---------------------------------------------------------------------------------- */

float read_float(const void *at, size_t i)
{
    return static_cast<const float *>(at)[i];
}
float read_tf32(const void *at, size_t i)
{
    return to_tf32(static_cast<const float *>(at)[i]);
}
float read_float_as_bf16(const void *at, size_t i)
{
    return from_bf16(to_bf16(static_cast<const float *>(at)[i]));
}
float read_float_as_fp16(const void *at, size_t i)
{
    return from_fp16(to_fp16(static_cast<const float *>(at)[i]));
}
float read_bf16(const void *at, size_t i)
{
    return from_bf16(static_cast<const uint16_t *>(at)[i]);
}
float read_fp16(const void *at, size_t i)
{
    return from_fp16(static_cast<const uint16_t *>(at)[i]);
}

typedef float reader(const void *at, size_t i);

reader *reader_of(uint32_t type)
{
    return type == CUDA_R_32F ? read_float : type == CUDA_R_16BF ? read_bf16 : read_fp16;
}

/* How inputs of the product are read: in what it computes. */
reader *input_of(uint32_t type, cublasComputeType_t compute)
{
    if (type != CUDA_R_32F)
        return reader_of(type);
    return compute == CUBLAS_COMPUTE_32F_FAST_TF32   ? read_tf32
           : compute == CUBLAS_COMPUTE_32F_FAST_16BF ? read_float_as_bf16
           : compute == CUBLAS_COMPUTE_32F_FAST_16F  ? read_float_as_fp16
                                                     : read_float;
}

void write(uint32_t type, void *at, size_t i, float v)
{
    if (type == CUDA_R_32F)
        static_cast<float *>(at)[i] = v;
    else
        static_cast<uint16_t *>(at)[i] = type == CUDA_R_16BF ? to_bf16(v) : to_fp16(v);
}

size_t size_of(uint32_t type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

/* As the library has it: by tanh (Hendrycks 2016, section 2). */
float gelu(float x)
{
    return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

float gelu_slope(float x)
{
    const float t = tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}

/* --- a product -------------------------------------------------------------------------------- */

struct product {
    rm_blas_operation op;
    rm_blas_layout la, lb, lc, ld;
    const void *a, *b, *c;
    void *d;
    const void *alpha_at, *beta_at; /* on the device, where the pointer mode says so */
    float alpha, beta;
    void *workspace;
    size_t workspace_bytes;
    int device;
    size_t m() const
    {
        return ld.rows;
    }
    size_t n() const
    {
        return ld.columns;
    }
    size_t k() const
    {
        return op.turn_a == CUBLAS_OP_N ? la.columns : la.rows;
    }
};

size_t extent(const rm_blas_layout &l)
{
    const size_t lines = l.order == CUBLASLT_ORDER_COL ? l.columns : l.rows;
    const size_t line = l.order == CUBLASLT_ORDER_COL ? l.rows : l.columns;
    return ((size_t)(l.batch - 1) * (size_t)l.stride + (lines - 1) * (size_t)l.ld + line) *
           size_of(l.type);
}

matrix view(const rm_blas_layout &l, int32_t turn, const void *at, unsigned batch, reader *read)
{
    const bool by_column = (l.order == CUBLASLT_ORDER_COL) == (turn == CUBLAS_OP_N);
    const char *first = static_cast<const char *>(at) + batch * (size_t)l.stride * size_of(l.type);
    const size_t ld = (size_t)l.ld;
    return {first, read, by_column ? 1 : ld, by_column ? ld : 1};
}

/* What the layouts have to agree about. */
std::string wrong_shape(const product &p)
{
    const size_t am = p.op.turn_a == CUBLAS_OP_N ? p.la.rows : p.la.columns;
    const size_t bk = p.op.turn_b == CUBLAS_OP_N ? p.lb.rows : p.lb.columns;
    const size_t bn = p.op.turn_b == CUBLAS_OP_N ? p.lb.columns : p.lb.rows;
    if (am != p.m() || bk != p.k() || bn != p.n() || p.lc.rows != p.m() || p.lc.columns != p.n())
        return format("(%zu, %zu) times (%zu, %zu) into (%zu, %zu)", am, p.k(), bk, bn, p.m(),
                      p.n());
    for (const rm_blas_layout *l : {&p.la, &p.lb, &p.lc, &p.ld}) {
        const uint64_t line = l->order == CUBLASLT_ORDER_COL ? l->rows : l->columns;
        if (!l->rows || !l->columns || l->ld < (int64_t)line)
            return format("a matrix of %zu x %zu with leading dimension %lld", (size_t)l->rows,
                          (size_t)l->columns, (long long)l->ld);
        if (l->batch != p.ld.batch)
            return "batches that differ";
    }
    if (p.op.aux_ld < 0 || ((p.op.epilogue & 128) && (size_t)p.op.aux_ld < p.m()))
        return format("an epilogue's matrix with leading dimension %lld", (long long)p.op.aux_ld);
    if ((p.op.epilogue & (2 | 8)) && (p.op.epilogue & 128) && p.op.aux_ld % 128)
        return "a mask whose leading dimension is no multiple of 128";
    if ((p.op.epilogue & (32 | 64)) && (p.op.epilogue & 128) && p.op.aux_ld % 8)
        return "an input of GELU whose leading dimension is no multiple of 8";
    return "";
}

/* What the library has no algorithm for. */
std::string unsupported(const product &p)
{
    for (const rm_blas_layout *l : {&p.la, &p.lb, &p.lc, &p.ld})
        if (l->type != CUDA_R_32F && l->type != CUDA_R_16F && l->type != CUDA_R_16BF)
            return format("type %u", l->type);
    if (p.la.type != p.lb.type || p.lc.type != p.ld.type ||
        (p.la.type == CUDA_R_32F && p.ld.type != CUDA_R_32F))
        return "this combination of types";
    if (p.op.compute == CUBLAS_COMPUTE_64F || p.op.compute == CUBLAS_COMPUTE_16F ||
        p.op.scale != CUDA_R_32F)
        return "this compute type";
    if (p.la.type != CUDA_R_32F && p.op.compute != CUBLAS_COMPUTE_32F &&
        p.op.compute != CUBLAS_COMPUTE_32F_PEDANTIC)
        return "this compute type for inputs of 16 bits";
    if (p.op.epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
        (p.ld.order != CUBLASLT_ORDER_COL || p.la.order != CUBLASLT_ORDER_COL ||
         p.lb.order != CUBLASLT_ORDER_COL))
        return "an epilogue with matrices by rows";
    if (p.la.type == CUDA_R_32F && (p.op.epilogue & (256 | 512)))
        return "gradients of the bias from inputs of 32 bits";
    return "";
}

std::string wrong_memory(const product &p)
{
    const bool biased = p.op.epilogue & (4 | 16 | 256);
    const struct {
        const char *name;
        bool wanted;
        const void *at;
        size_t bytes;
    } parts[] = {
        {"A", true, p.a, extent(p.la)},
        {"B", true, p.b, extent(p.lb)},
        {"C", p.beta != 0, p.c, extent(p.lc)},
        {"D", true, p.d, extent(p.ld)},
        {"bias", biased, p.op.bias, p.m() * 2},
        {"workspace", p.workspace_bytes > 0, p.workspace, p.workspace_bytes},
    };
    for (size_t i = 0; i < 2; i++)
        if (static_cast<const char *>(parts[i].at) < static_cast<char *>(p.d) + parts[3].bytes &&
            static_cast<char *>(p.d) < static_cast<const char *>(parts[i].at) + parts[i].bytes)
            return std::string("cublasLtMatmul: D overlaps ") + parts[i].name;
    for (const auto &part : parts) {
        if (!part.wanted)
            continue;
        const std::string w = wrong_on_device(part.at, part.bytes, p.device);
        if (!w.empty())
            return std::string("cublasLtMatmul: ") + part.name + ": " + w;
    }
    return "";
}

float *row_of(std::vector<float> &v, size_t i)
{
    return v.data() + i;
}

void epilogue(const product &p, unsigned batch, const matrix &a, const matrix &b,
              std::vector<float> &v)
{
    const size_t m = p.m(), n = p.n(), k = p.k();
    const uint32_t e = p.op.epilogue;
    const uint32_t type = p.op.bias_type >= 0 ? (uint32_t)p.op.bias_type : p.ld.type;
    char *bias = static_cast<char *>(p.op.bias) + batch * (size_t)p.op.bias_stride * size_of(type);
    const size_t ld = (size_t)p.op.aux_ld, first = batch * (size_t)p.op.aux_stride;
    const uint32_t aux_type = p.op.aux_type >= 0 ? (uint32_t)p.op.aux_type : p.ld.type;
    unsigned char *mask = static_cast<unsigned char *>(p.op.aux) + first / 8;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++) {
            float &x = v[j * m + i];
            if (e & 4)
                x += reader_of(type)(bias, i);
            const size_t bit = j * ld + i;
            if ((e & 2) && (e & 128)) {
                mask[bit / 8] = (unsigned char)(mask[bit / 8] & ~(1u << bit % 8));
                mask[bit / 8] = (unsigned char)(mask[bit / 8] | (x > 0 ? 1u : 0u) << bit % 8);
            }
            if ((e & 32) && (e & 128))
                write(aux_type, p.op.aux, first + bit, x);
            if (e & 2)
                x = x > 0 ? x : (x == x ? 0.0f : x);
            else if (e & 32)
                x = gelu(x);
            else if (e & 8)
                x = mask[bit / 8] >> bit % 8 & 1u ? x : 0.0f;
            else if (e & 64)
                x *= gelu_slope(reader_of(aux_type)(p.op.aux, first + bit));
        }
    for (size_t i = 0; i < m && (e & 16); i++) {
        float sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += *row_of(v, j * m + i);
        write(type, bias, i, sum);
    }
    for (size_t i = 0; i < m && (e & 256); i++) {
        float sum = 0;
        for (size_t q = 0; q < k; q++)
            sum += a.read(a.at, i * a.row_step + q * a.column_step);
        write(type, bias, i, sum);
    }
    for (size_t j = 0; j < n && (e & 512); j++) {
        float sum = 0;
        for (size_t q = 0; q < k; q++)
            sum += b.read(b.at, q * b.row_step + j * b.column_step);
        write(type, bias, j, sum);
    }
}

void run(product p)
{
    if (p.alpha_at) {
        p.alpha = *static_cast<const float *>(p.alpha_at);
        p.beta = *static_cast<const float *>(p.beta_at);
    }
    const std::string w = wrong_memory(p);
    if (!w.empty()) {
        lose(cudaErrorIllegalAddress, w);
        return;
    }
    if (p.workspace)
        fill(p.workspace, p.workspace_bytes < WORKSPACE ? p.workspace_bytes : WORKSPACE);
    const size_t m = p.m(), n = p.n();
    std::vector<float> v(m * n);
    for (unsigned batch = 0; batch < (unsigned)p.ld.batch; batch++) {
        const matrix a = view(p.la, p.op.turn_a, p.a, batch, input_of(p.la.type, p.op.compute));
        const matrix b = view(p.lb, p.op.turn_b, p.b, batch, input_of(p.lb.type, p.op.compute));
        const matrix c = view(p.lc, CUBLAS_OP_N, p.c, batch, reader_of(p.lc.type));
        const matrix d = view(p.ld, CUBLAS_OP_N, p.d, batch, nullptr);
        multiply(a, b, m, n, p.k(), v.data());
        for (size_t j = 0; j < n; j++)
            for (size_t i = 0; i < m; i++) {
                float &x = v[j * m + i];
                x *= p.alpha;
                if (p.beta != 0)
                    x += p.beta * c.read(c.at, i * c.row_step + j * c.column_step);
            }
        if (p.op.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
            epilogue(p, batch, a, b, v);
        for (size_t j = 0; j < n; j++)
            for (size_t i = 0; i < m; i++)
                write(p.ld.type, const_cast<void *>(d.at), i * d.row_step + j * d.column_step,
                      v[j * m + i]);
    }
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
    if (!unsupported(p).empty())
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const uint64_t workspace = preference->workspace >= WORKSPACE ? WORKSPACE : 0;
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
    if (!capturing(*s))
        counts.products++;
    return put(stream, [p] { run(p); }) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                       : CUBLAS_STATUS_EXECUTION_FAILED;
}
