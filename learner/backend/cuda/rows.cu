/* Operations on rows whose elements do not depend on each other, or on few. */
#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/ops.h"

namespace
{

struct gathering {
    const uint32_t *x, *index;
    uint32_t n;
    uint32_t *y;
    __device__ void at(size_t r, uint32_t i) const
    {
        y[r * n + i] = x[(size_t)index[r] * n + i];
    }
};

struct normalizing {
    const float *x, *mean, *scale;
    float bound;
    uint32_t n;
    float *y;
    __device__ void at(size_t r, uint32_t i) const
    {
        float z = (x[r * n + i] - mean[i]) * scale[i]; /* NaN stays NaN */
        z = z < -bound ? -bound : z;
        y[r * n + i] = z > bound ? bound : z;
    }
};

struct joining {
    const float *x, *y;
    uint32_t n, m;
    float *z;
    __device__ void at(size_t r, uint32_t i) const
    {
        z[r * ((size_t)n + m) + i] = i < n ? x[r * n + i] : y[r * m + i - n];
    }
};

struct splitting {
    const float *z;
    uint32_t n, m;
    float *x, *y;
    __device__ void at(size_t r, uint32_t i) const
    {
        const float v = z[r * ((size_t)n + m) + i];
        if (i < n && x)
            x[r * n + i] = v;
        if (i >= n && y)
            y[r * m + i - n] = v;
    }
};

struct restarting {
    const float *x;
    size_t x_stride;
    const uint8_t *restart;
    float *y;
    size_t y_stride;
    __device__ void at(size_t r, uint32_t i) const
    {
        const bool zero = !x || (restart && restart[r]);
        y[r * y_stride + i] = zero ? 0.0f : x[r * x_stride + i];
    }
};

struct cosine {
    const float *tau;
    uint32_t n;
    float *c;
    __device__ void at(size_t r, uint32_t i) const
    {
        c[r * n + i] = rm_cos_pi((double)tau[r] * (double)(i + 1));
    }
};

struct broadcasting {
    const float *x, *phi;
    uint32_t q, n;
    float *z;
    __device__ void at(size_t r, uint32_t i) const
    {
        z[r * n + i] = x[r / q * n + i] * phi[r * n + i];
    }
};

struct broadcasting_back {
    const float *x, *phi, *dz;
    uint32_t q, n;
    float *dx, *dphi;
    __device__ void at(size_t b, uint32_t i) const
    {
        const float xi = x[b * n + i];
        float sum = 0.0f;
        size_t at = b * q * n + i;
        for (uint32_t j = 0; j < q; j++, at += n) {
            const float d = dz[at], p = phi[at];
            sum = fmaf(d, p, sum);
            dphi[at] = p > 0.0f ? d * xi : 0.0f;
        }
        dx[b * n + i] = sum;
    }
};

/* Rows are outputs, columns inputs. */
struct factors {
    const float *eps;
    uint32_t in;
    float *eps_w, *eps_b;
    __device__ void at(size_t o, uint32_t i) const
    {
        const float f = rm_signed_root(eps[in + o]);
        eps_w[o * in + i] = f * rm_signed_root(eps[i]);
        if (i == 0)
            eps_b[o] = f;
    }
};

/* One output of all actions. */
struct dueling {
    const float *in;
    uint32_t actions, k;
    float *q;
    __device__ void at(size_t r, uint32_t j) const
    {
        const float *from = in + r * (actions + 1) * k + j;
        float *to = q + r * actions * k + j, sum = 0.0f;
        for (uint32_t a = 0; a < actions; a++)
            sum += from[a * k];
        const float base = from[actions * k] - sum / (float)actions;
        for (uint32_t a = 0; a < actions; a++)
            to[a * k] = from[a * k] + base;
    }
};

struct dueling_back {
    const float *dq;
    uint32_t actions, k;
    float *din;
    __device__ void at(size_t r, uint32_t j) const
    {
        const float *from = dq + r * actions * k + j;
        float *to = din + r * (actions + 1) * k + j, sum = 0.0f;
        for (uint32_t a = 0; a < actions; a++)
            sum += from[a * k];
        const float mean = sum / (float)actions;
        for (uint32_t a = 0; a < actions; a++)
            to[a * k] = from[a * k] - mean;
        to[actions * k] = sum;
    }
};

} // namespace

void rm_cuda_gather(struct rm_backend *b, const void *x, const uint32_t *index, uint32_t rows,
                    uint32_t n, void *y)
{
    const gathering op = {static_cast<const uint32_t *>(x), index, n, static_cast<uint32_t *>(y)};
    rm_map(rm_cuda_of(b), "gather", op, rows, n);
}

void rm_cuda_normalize(struct rm_backend *b, const float *x, const float *mean, const float *scale,
                       float bound, size_t rows, uint32_t n, float *y)
{
    rm_map(rm_cuda_of(b), "normalize", normalizing{x, mean, scale, bound, n, y}, rows, n);
}

void rm_cuda_join(struct rm_backend *b, const float *x, const float *y, size_t rows, uint32_t n,
                  uint32_t m, float *z)
{
    rm_map(rm_cuda_of(b), "join", joining{x, y, n, m, z}, rows, n + m);
}

void rm_cuda_split(struct rm_backend *b, const float *z, size_t rows, uint32_t n, uint32_t m,
                   float *x, float *y)
{
    rm_map(rm_cuda_of(b), "split", splitting{z, n, m, x, y}, rows, y ? n + m : n);
}

void rm_cuda_restart(struct rm_backend *b, const float *x, size_t x_stride, const uint8_t *restart,
                     uint32_t rows, uint32_t n, float *y, size_t y_stride)
{
    rm_map(rm_cuda_of(b), "restart", restarting{x, x_stride, restart, y, y_stride}, rows, n);
}

void rm_cuda_cosines(struct rm_backend *b, const float *tau, size_t rows, uint32_t n, float *c)
{
    rm_map(rm_cuda_of(b), "cosines", cosine{tau, n, c}, rows, n);
}

void rm_cuda_broadcast_mul(struct rm_backend *b, const float *x, const float *phi, uint32_t batch,
                           uint32_t q, uint32_t n, float *z)
{
    rm_map(rm_cuda_of(b), "broadcast_mul", broadcasting{x, phi, q, n, z}, (size_t)batch * q, n);
}

void rm_cuda_broadcast_mul_dx(struct rm_backend *b, const float *x, const float *phi,
                              const float *dz, uint32_t batch, uint32_t q, uint32_t n, float *dx,
                              float *dphi)
{
    rm_map(rm_cuda_of(b), "broadcast_mul_dx", broadcasting_back{x, phi, dz, q, n, dx, dphi},
           (size_t)batch, n);
}

void rm_cuda_noisy_factors(struct rm_backend *b, const float *eps, uint32_t in, uint32_t out,
                           float *eps_w, float *eps_b)
{
    rm_map(rm_cuda_of(b), "noisy_factors", factors{eps, in, eps_w, eps_b}, (size_t)out, in);
}

void rm_cuda_dueling(struct rm_backend *b, const float *in, uint32_t rows, uint32_t actions,
                     uint32_t k, float *q)
{
    rm_map(rm_cuda_of(b), "dueling", dueling{in, actions, k, q}, (size_t)rows, k);
}

void rm_cuda_dueling_dx(struct rm_backend *b, const float *dq, uint32_t rows, uint32_t actions,
                        uint32_t k, float *din)
{
    rm_map(rm_cuda_of(b), "dueling_dx", dueling_back{dq, actions, k, din}, (size_t)rows, k);
}
