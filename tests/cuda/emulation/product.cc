/* Products as the library computes them: inputs rounded to its format, then the epilogue. */
#include "blas.h"
#include "gemm.h"
#include "half.h"

#include <math.h>

namespace rm_emulated
{
namespace
{
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

std::string wrong_memory(const product &p)
{
    const bool biased = p.op.epilogue & (4 | 16 | 256 | 512);
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
        {"bias", biased, p.op.bias, (p.op.epilogue & 512 ? p.n() : p.m()) * 2},
        {"workspace", p.workspace_bytes > 0, p.workspace, p.workspace_bytes},
    };
    for (size_t i = 0; i < 2; i++)
        if (static_cast<const char *>(parts[i].at) < static_cast<char *>(p.d) + parts[3].bytes &&
            static_cast<char *>(p.d) < static_cast<const char *>(parts[i].at) + parts[i].bytes)
            return std::string("cublasLtMatmul: D overlaps ") + parts[i].name;
    if (biased && (uintptr_t)p.op.bias % 16)
        return format("cublasLtMatmul: an epilogue reads bias at %p by 16 bytes", p.op.bias);
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

} // namespace

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
        fill(p.workspace,
             p.workspace_bytes < RM_BLAS_WORKSPACE ? p.workspace_bytes : RM_BLAS_WORKSPACE);
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
} // namespace rm_emulated
