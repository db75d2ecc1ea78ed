/* Products of the double of cublasLt beside loops in double. */
#include "probes.h"

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <math.h>

#include <vector>

namespace
{
struct trial {
    unsigned m, n, k;
    bool turn_a, turn_b;
    cudaDataType_t type; /* of A and B; D is float */
    cublasComputeType_t compute;
    uint32_t epilogue;
    float alpha, beta;
    unsigned batch, pad;
};

/* Numbers between -1 and 1 that differ from one element to the next. */
float number(unsigned seed, size_t i)
{
    const uint32_t x = (uint32_t)(seed * 7919u + i * 2654435761u);
    return (float)((x >> 8) % 2001u) * 1e-3f - 1.0f;
}

double as(cudaDataType_t type, cublasComputeType_t compute, float v)
{
    if (type == CUDA_R_16BF || compute == CUBLAS_COMPUTE_32F_FAST_16BF)
        return (float)__float2bfloat16_rn(v);
    if (type == CUDA_R_16F)
        return (float)__float2half_rn(v);
    return v;
}

/* A matrix in device memory, by columns. */
struct operand {
    unsigned rows, columns, ld, batch;
    cudaDataType_t type;
    std::vector<float> host;
    void *at = nullptr;
    cublasLtMatrixLayout_t layout;
    operand(unsigned r, unsigned c, unsigned pad, unsigned b, cudaDataType_t t, unsigned seed)
        : rows(r), columns(c), ld(r + pad), batch(b), type(t), host((size_t)ld * c * b)
    {
        std::vector<uint16_t> halves(host.size());
        for (size_t i = 0; i < host.size(); i++) {
            host[i] = number(seed, i);
            halves[i] = t == CUDA_R_16BF ? __bfloat16_as_ushort(__float2bfloat16_rn(host[i]))
                                         : __half_as_ushort(__float2half_rn(host[i]));
        }
        const size_t size = t == CUDA_R_32F ? 4 : 2;
        cudaMalloc(&at, host.size() * size);
        cudaMemcpy(at, t == CUDA_R_32F ? (const void *)host.data() : halves.data(),
                   host.size() * size, cudaMemcpyHostToDevice);
        const int32_t count = (int32_t)b;
        const int64_t stride = (int64_t)ld * c;
        cublasLtMatrixLayoutCreate(&layout, t, r, c, ld);
        cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof count);
        cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                         &stride, sizeof stride);
    }
    ~operand()
    {
        cudaFree(at);
        cublasLtMatrixLayoutDestroy(layout);
    }
    float get(unsigned b, unsigned i, unsigned j) const
    {
        return host[((size_t)b * columns + j) * ld + i];
    }
    void fetch()
    {
        cudaMemcpy(host.data(), at, host.size() * 4, cudaMemcpyDeviceToHost);
    }
};

double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/* Largest error, relative to what sums of k numbers may have. */
double run(const trial &t, cublasLtHandle_t library)
{
    operand a(t.turn_a ? t.k : t.m, t.turn_a ? t.m : t.k, t.pad, t.batch, t.type, 1);
    operand b(t.turn_b ? t.n : t.k, t.turn_b ? t.k : t.n, t.pad, t.batch, t.type, 2);
    operand d(t.m, t.n, t.pad, t.batch, CUDA_R_32F, 3);
    operand bias(t.m, 1, 0, 1, CUDA_R_32F, 4), aux((t.m + 7) / 8 * 8, t.n, 0, 1, CUDA_R_32F, 5);
    const operand before = {t.m, t.n, t.pad, t.batch, CUDA_R_32F, 3};
    const int32_t turn[2] = {CUBLAS_OP_N, CUBLAS_OP_T};
    const int64_t aux_ld = aux.ld;
    cublasLtMatmulDesc_t op;
    cublasLtMatmulDescCreate(&op, t.compute, CUDA_R_32F);
    const struct {
        cublasLtMatmulDescAttributes_t attribute;
        const void *value;
        size_t bytes;
    } attributes[] = {
        {CUBLASLT_MATMUL_DESC_TRANSA, &turn[t.turn_a], 4},
        {CUBLASLT_MATMUL_DESC_TRANSB, &turn[t.turn_b], 4},
        {CUBLASLT_MATMUL_DESC_EPILOGUE, &t.epilogue, 4},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.at, 8},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux.at, 8},
        {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux_ld, 8},
    };
    for (const auto &x : attributes)
        if (cublasLtMatmulDescSetAttribute(op, x.attribute, x.value, x.bytes))
            return 1e9;
    const cublasStatus_t rc =
        cublasLtMatmul(library, op, &t.alpha, a.at, a.layout, b.at, b.layout, &t.beta, d.at,
                       d.layout, d.at, d.layout, nullptr, nullptr, 0, nullptr);
    cublasLtMatmulDescDestroy(op);
    if (rc || cudaDeviceSynchronize())
        return 1e9;
    d.fetch();
    if (t.epilogue & 16)
        bias.fetch();
    double worst = 0;
    std::vector<double> row_sums(t.m);
    for (unsigned q = 0; q < t.batch; q++)
        for (unsigned j = 0; j < t.n; j++)
            for (unsigned i = 0; i < t.m; i++) {
                double x = 0;
                for (unsigned p = 0; p < t.k; p++)
                    x += as(t.type, t.compute, t.turn_a ? a.get(q, p, i) : a.get(q, i, p)) *
                         as(t.type, t.compute, t.turn_b ? b.get(q, j, p) : b.get(q, p, j));
                x = t.alpha * x + t.beta * before.get(q, i, j);
                if (t.epilogue & 4)
                    x += bias.get(0, i, 0);
                if (t.epilogue & 2)
                    x = x > 0 ? x : 0;
                if (t.epilogue & 32)
                    x = gelu(x);
                if (t.epilogue & 64) { /* slope of GELU, by differences */
                    const double at = aux.get(0, i, j), h = 1e-5;
                    x *= (gelu(at + h) - gelu(at - h)) / (2 * h);
                }
                row_sums[i] += x;
                worst = fmax(worst, fabs(x - d.get(q, i, j)) / (1 + sqrt((double)t.k)));
            }
    for (unsigned i = 0; i < t.m && (t.epilogue & 16); i++)
        worst = fmax(worst, fabs(row_sums[i] - bias.get(0, i, 0)) / (t.n + sqrt((double)t.k)));
    return worst;
}
} // namespace

/* out[i]: error of trial i, as run() has it; -1 after the last. */
PROBE(products)
{
    const cublasComputeType_t f32 = CUBLAS_COMPUTE_32F;
    const trial trials[] = {
        {1, 1, 1, false, false, CUDA_R_32F, f32, 1, 1, 0, 1, 0},
        {17, 13, 300, false, false, CUDA_R_32F, f32, 1, 1, 0, 1, 0},
        {33, 7, 65, true, false, CUDA_R_32F, f32, 1, 0.5f, 0, 1, 3},
        {16, 6, 256, false, true, CUDA_R_32F, f32, 1, 1, 1, 1, 1},
        {130, 29, 520, true, true, CUDA_R_32F, f32, 1, -2, 0.25f, 1, 0},
        {20, 9, 31, true, false, CUDA_R_32F, f32, 1, 1, 0, 5, 2},
        {64, 32, 48, true, false, CUDA_R_32F, f32, CUBLASLT_EPILOGUE_BIAS, 1, 0, 1, 0},
        {64, 32, 48, true, false, CUDA_R_32F, f32, CUBLASLT_EPILOGUE_RELU_BIAS, 1, 0, 1, 0},
        {64, 32, 48, true, false, CUDA_R_32F, f32, CUBLASLT_EPILOGUE_GELU_BIAS, 1, 0, 1, 0},
        {64, 32, 48, true, false, CUDA_R_32F, f32, CUBLASLT_EPILOGUE_DGELU, 1, 0, 1, 0},
        {64, 32, 48, true, false, CUDA_R_32F, f32, CUBLASLT_EPILOGUE_DGELU_BGRAD, 1, 0, 1, 0},
        {40, 24, 96, true, false, CUDA_R_16BF, f32, 1, 1, 0, 1, 0},
        {40, 24, 96, false, true, CUDA_R_16F, f32, 1, 1, 0, 1, 8},
        {40, 24, 96, false, false, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16BF, 1, 1, 0, 1, 0},
    };
    cublasLtHandle_t library;
    cublasLtCreate(&library);
    int i = 0;
    for (const trial &t : trials)
        out[i++] = (float)run(t, library);
    out[i] = -1;
    cublasLtDestroy(library);
    return cudaGetLastError();
}

/* out[0]: error of a product in TF32 beside one in float; out[1]: of one in float. */
PROBE(tf32)
{
    const trial t = {48, 48, 200, true, false, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
                     1,  1,  0,   1,    0};
    trial exact = t;
    exact.compute = CUBLAS_COMPUTE_32F;
    cublasLtHandle_t library;
    cublasLtCreate(&library);
    out[0] = (float)run(t, library);
    out[1] = (float)run(exact, library);
    cublasLtDestroy(library);
    return cudaGetLastError();
}

/* out: what the library says about what it has no algorithm for, and about calls that are wrong. */
PROBE(wrong_products)
{
    cublasLtHandle_t library;
    cublasLtMatmulDesc_t op;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found[4];
    int count = 0;
    const uint64_t workspace = 1 << 20;
    const float one = 1, zero = 0;
    operand a(8, 8, 0, 1, CUDA_R_32F, 1), b(8, 8, 0, 1, CUDA_R_32F, 2),
        d(8, 8, 0, 1, CUDA_R_32F, 3);
    operand narrow(8, 7, 0, 1, CUDA_R_32F, 4);
    char *room;
    cudaMalloc(&room, workspace);
    cublasLtCreate(&library);
    cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace, sizeof workspace);
    out[0] = (float)cublasLtMatmulAlgoGetHeuristic(library, op, a.layout, b.layout, d.layout,
                                                   d.layout, preference, 4, found, &count);
    out[1] = (float)count;
    const auto multiply = [&](const operand &x, const operand &y, size_t offset, void *at,
                              size_t bytes) {
        return (float)cublasLtMatmul(library, op, &one, (const float *)x.at + offset, x.layout,
                                     y.at, y.layout, &zero, d.at, d.layout, d.at, d.layout,
                                     &found[0].algo, at, bytes, nullptr);
    };
    out[2] = multiply(a, b, 0, room, workspace);
    out[3] = multiply(a, narrow, 0, room, workspace); /* shapes that do not fit */
    out[4] = multiply(a, b, 1, room, workspace);      /* not aligned as was promised */
    out[5] = multiply(a, b, 0, room, 16);             /* less workspace than it wants */
    const uint32_t epilogue = CUBLASLT_EPILOGUE_BGRADA;
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4);
    out[6] = (float)cublasLtMatmulAlgoGetHeuristic(library, op, a.layout, b.layout, d.layout,
                                                   d.layout, preference, 4, found, &count);
    out[7] = (float)count;
    out[8] = (float)cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 8);
    cublasLtMatmulDescDestroy(op);
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtDestroy(library);
    cudaDeviceSynchronize();
    cudaFree(room);
    out[9] = (float)cudaGetLastError(); /* what the refusals left */
    return cudaGetLastError();
}

/* A product whose result overlaps what it is computed from. */
PROBE(product_in_place)
{
    (void)out;
    cublasLtHandle_t library;
    cublasLtMatmulDesc_t op;
    const float one = 1, zero = 0;
    operand a(8, 8, 0, 1, CUDA_R_32F, 1), b(8, 8, 0, 1, CUDA_R_32F, 2);
    cublasLtCreate(&library);
    cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmul(library, op, &one, a.at, a.layout, b.at, b.layout, &zero, a.at, a.layout, a.at,
                   a.layout, nullptr, nullptr, 0, nullptr);
    const int rc = cudaDeviceSynchronize();
    cublasLtMatmulDescDestroy(op);
    cublasLtDestroy(library);
    return rc;
}

/* Conversions of every number of 16 bits and back, and of halfway cases. out[0]: how many differ.
 */
PROBE(halves)
{
    unsigned wrong = 0;
    for (unsigned u = 0; u < 0x10000; u++) {
        const float f = (float)__ushort_as_half((unsigned short)u);
        const float g = (float)__ushort_as_bfloat16((unsigned short)u);
        wrong += f == f && __half_as_ushort(__float2half_rn(f)) != u;
        wrong += g == g && __bfloat16_as_ushort(__float2bfloat16_rn(g)) != u;
    }
    const struct {
        float from;
        unsigned short half, bfloat16;
    } cases[] = {
        {1.0f + 0x1p-11f, 0x3c00, 0x3f80},
        {1.0f + 0x1p-11f + 0x1p-20f, 0x3c01, 0x3f80},
        {1.0f + 3 * 0x1p-11f, 0x3c02, 0x3f80},
        {1.0f + 0x1p-8f, 0x3c04, 0x3f80},
        {1.0f + 3 * 0x1p-8f, 0x3c0c, 0x3f82},
        {65519.0f, 0x7bff, 0x4780},
        {65520.0f, 0x7c00, 0x4780},
        {0x1p-24f, 0x0001, 0x3380},
        {0x1p-25f, 0x0000, 0x3300},
        {0x1.8p-24f, 0x0002, 0x33c0},
        {-0x1p-14f, 0x8400, 0xb880},
        {INFINITY, 0x7c00, 0x7f80},
    };
    for (const auto &c : cases)
        wrong += (__half_as_ushort(__float2half_rn(c.from)) != c.half) +
                 (__bfloat16_as_ushort(__float2bfloat16_rn(c.from)) != c.bfloat16);
    out[0] = (float)wrong;
    return !__hisnan(__float2half_rn(NAN)) || !__hisnan(__float2bfloat16_rn(NAN));
}
