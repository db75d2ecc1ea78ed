/* Operations on flat arrays: activations, sums, noise of weights, optimizers. */
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

struct moments {
    float g, p, m, v;
};

/* The computation of elementwise.isa.c, term by term. */
struct adam_step {
    typedef moments in;
    float step, root, beta1, beta2, epsilon, scale, decay;
    const float *grads;
    float *params, *m, *v;

    /* Moments of weights without gradients shrink for ever: small ones become 0, as on the CPU. */
    static __device__ float flushed(float x)
    {
        return fabsf(x) < 1e-35f ? 0.0f : x;
    }
    __device__ in load(size_t i) const
    {
        return {grads[i], params[i], m[i], v[i]};
    }
    __device__ void store(size_t i, in o) const
    {
        const float g = o.g * scale;
        const float mi = flushed(fmaf(1.0f - beta1, g, beta1 * o.m));
        const float vi = flushed(fmaf((1.0f - beta2) * g, g, beta2 * o.v));
        m[i] = mi;
        v[i] = vi;
        const float p = fmaf(-decay, o.p, o.p);
        params[i] = fmaf(-step, mi / fmaf(sqrtf(vi), root, epsilon), p);
    }
};

struct rmsprop_step {
    typedef moments in;
    struct rm_rmsprop r;
    float scale;
    const float *grads;
    float *params, *m, *v;
    __device__ in load(size_t i) const
    {
        return {grads[i], params[i], m ? m[i] : 0.0f, v[i]};
    }
    __device__ void store(size_t i, in o) const
    {
        const float g = o.g * scale;
        const float vi = fmaf((1.0f - r.alpha) * g, g, r.alpha * o.v);
        float d = g / (sqrtf(vi) + r.epsilon);
        v[i] = vi;
        if (m)
            m[i] = d = fmaf(r.momentum, o.m, d);
        params[i] = fmaf(-r.learning_rate, d, o.p);
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

/* --- optimizers ------------------------------------------------------------------------------ */

void rm_cuda_adam(struct rm_backend *b, const struct rm_adam *adam, float scale, const float *grads,
                  size_t n, float *params, float *m, float *v)
{
    const double t = (double)adam->step;
    const struct adam_step op = {
        (float)(adam->learning_rate / (1.0 - pow(adam->beta1, t))),
        (float)(1.0 / sqrt(1.0 - pow(adam->beta2, t))),
        adam->beta1,
        adam->beta2,
        adam->epsilon,
        scale,
        adam->learning_rate * adam->weight_decay,
        grads,
        params,
        m,
        v,
    };
    rm_map(rm_cuda_of(b), "adam", op, n);
}

void rm_cuda_rmsprop(struct rm_backend *b, const struct rm_rmsprop *rmsprop, float scale,
                     const float *grads, size_t n, float *params, float *m, float *v)
{
    rm_map(rm_cuda_of(b), "rmsprop", rmsprop_step{*rmsprop, scale, grads, params, m, v}, n);
}
