/* Operations on flat arrays: activations, sums, noise of weights. */
#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/ops.h"

namespace
{

struct one {
    float x;
};

struct two {
    float x, y;
};

struct three {
    float x, y, z;
};

struct filling {
    typedef one in;
    float *to, value;
    __device__ in load(size_t) const
    {
        return {value};
    }
    __device__ void store(size_t i, in v) const
    {
        to[i] = v.x;
    }
};

struct activating {
    typedef one in;
    enum rm_activation act;
    const float *x;
    float *y;
    __device__ in load(size_t i) const
    {
        return {x[i]};
    }
    __device__ void store(size_t i, in v) const
    {
        y[i] = rm_activated(act, v.x);
    }
};

/* `of`: x or y, whichever the slope needs. */
struct activating_back {
    typedef two in;
    enum rm_activation act;
    const float *of, *dy;
    float *dx;
    __device__ in load(size_t i) const
    {
        return {of[i], dy[i]};
    }
    __device__ void store(size_t i, in v) const
    {
        dx[i] = v.y * rm_activation_slope(act, v.x, v.x);
    }
};

struct multiplying {
    typedef two in;
    const float *x, *y;
    float *z;
    __device__ in load(size_t i) const
    {
        return {x[i], y[i]};
    }
    __device__ void store(size_t i, in v) const
    {
        z[i] = v.x * v.y;
    }
};

struct adding {
    typedef two in;
    const float *x, *y;
    float *z;
    __device__ in load(size_t i) const
    {
        return {x[i], y[i]};
    }
    __device__ void store(size_t i, in v) const
    {
        z[i] = v.x + v.y;
    }
};

struct combining {
    typedef two in;
    float a, c;
    const float *x, *y;
    float *out;
    __device__ in load(size_t i) const
    {
        return {x[i], y[i]};
    }
    __device__ void store(size_t i, in v) const
    {
        out[i] = fmaf(a, v.x, c * v.y);
    }
};

struct following {
    typedef two in;
    float tau;
    const float *params;
    float *target;
    __device__ in load(size_t i) const
    {
        return {params[i], target[i]};
    }
    __device__ void store(size_t i, in v) const
    {
        target[i] = fmaf(tau, v.x - v.y, v.y);
    }
};

struct summing_parts {
    typedef one in;
    const float *parts;
    uint32_t count;
    size_t stride;
    float *sum;
    __device__ in load(size_t i) const
    {
        float s = parts[i];
        for (uint32_t p = 1; p < count; p++)
            s += parts[p * stride + i];
        return {s};
    }
    __device__ void store(size_t i, in v) const
    {
        sum[i] = v.x;
    }
};

struct adding_noise {
    typedef three in;
    const float *mu, *sigma, *eps;
    float *w;
    __device__ in load(size_t i) const
    {
        return {mu[i], sigma[i], eps[i]};
    }
    __device__ void store(size_t i, in v) const
    {
        w[i] = fmaf(v.y, v.z, v.x);
    }
};

} // namespace

void rm_cuda_fill(struct rm_backend *b, float value, size_t n, float *x)
{
    rm_map(rm_cuda_of(b), "fill", filling{x, value}, n);
}

/* --- activations ----------------------------------------------------------------------------- */

void rm_cuda_activate(struct rm_backend *b, enum rm_activation act, const float *x, size_t n,
                      float *y)
{
    rm_map(rm_cuda_of(b), "activate", activating{act, x, y}, n);
}

void rm_cuda_activate_dx(struct rm_backend *b, enum rm_activation act, const float *x,
                         const float *y, const float *dy, size_t n, float *dx)
{
    const float *of = act == RM_ACT_NONE ? dy : rm_slope_reads_input(act) ? x : y;
    rm_map(rm_cuda_of(b), "activate_dx", activating_back{act, of, dy, dx}, n);
}

/* --- sums and products ----------------------------------------------------------------------- */

void rm_cuda_multiply(struct rm_backend *b, const float *x, const float *y, size_t n, float *z)
{
    rm_map(rm_cuda_of(b), "multiply", multiplying{x, y, z}, n);
}

void rm_cuda_add(struct rm_backend *b, const float *x, const float *y, size_t n, float *z)
{
    rm_map(rm_cuda_of(b), "add", adding{x, y, z}, n);
}

void rm_cuda_combine(struct rm_backend *b, float a, const float *x, float c, const float *y,
                     size_t n, float *out)
{
    rm_map(rm_cuda_of(b), "combine", combining{a, c, x, y, out}, n);
}

void rm_cuda_lerp(struct rm_backend *b, float tau, const float *params, size_t n, float *target)
{
    rm_map(rm_cuda_of(b), "lerp", following{tau, params, target}, n);
}

void rm_cuda_sum_parts(struct rm_backend *b, const float *parts, uint32_t count, size_t stride,
                       size_t n, float *sum)
{
    rm_map(rm_cuda_of(b), "sum_parts", summing_parts{parts, count, stride, sum}, n);
}

void rm_cuda_noisy_weights(struct rm_backend *b, const float *mu, const float *sigma,
                           const float *eps, size_t n, float *w)
{
    rm_map(rm_cuda_of(b), "noisy_weights", adding_noise{mu, sigma, eps, w}, n);
}
