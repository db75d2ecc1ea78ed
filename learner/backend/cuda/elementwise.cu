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

/* z = rule(x, y) */
template <class Rule>
struct pairing {
    typedef two in;
    Rule rule;
    const float *x, *y;
    float *z;
    __device__ in load(size_t i) const
    {
        return {x[i], y[i]};
    }
    __device__ void store(size_t i, in v) const
    {
        z[i] = rule.result(v.x, v.y);
    }
};

/* x: the argument or the value, whichever the slope needs. */
struct activating_back {
    enum rm_activation act;
    __device__ float result(float x, float dy) const
    {
        return dy * rm_activation_slope(act, x, x);
    }
};

struct multiplying {
    __device__ float result(float x, float y) const
    {
        return x * y;
    }
};

struct adding {
    __device__ float result(float x, float y) const
    {
        return x + y;
    }
};

struct combining {
    float a, c;
    __device__ float result(float x, float y) const
    {
        return fmaf(a, x, c * y);
    }
};

struct following {
    float tau;
    __device__ float result(float params, float target) const
    {
        return fmaf(tau, params - target, target);
    }
};

template <class Rule>
void pair(struct rm_backend *b, const char *name, Rule rule, const float *x, const float *y,
          size_t n, float *z)
{
    rm_map(rm_cuda_of(b), name, pairing<Rule>{rule, x, y, z}, n);
}

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
    pair(b, "activate_dx", activating_back{act}, of, dy, n, dx);
}

/* --- sums and products ----------------------------------------------------------------------- */

void rm_cuda_multiply(struct rm_backend *b, const float *x, const float *y, size_t n, float *z)
{
    pair(b, "multiply", multiplying{}, x, y, n, z);
}

void rm_cuda_add(struct rm_backend *b, const float *x, const float *y, size_t n, float *z)
{
    pair(b, "add", adding{}, x, y, n, z);
}

void rm_cuda_combine(struct rm_backend *b, float a, const float *x, float c, const float *y,
                     size_t n, float *out)
{
    pair(b, "combine", combining{a, c}, x, y, n, out);
}

void rm_cuda_lerp(struct rm_backend *b, float tau, const float *params, size_t n, float *target)
{
    pair(b, "lerp", following{tau}, params, target, n, target);
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
