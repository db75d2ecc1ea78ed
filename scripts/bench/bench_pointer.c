/* clang-format off: the table keeps its lines */
/* Networks over tokens and sequences, on one core.
 *
 * w0.pointer         forward pass of the knowledge-graph prover's policy (sizes L: 256 floats an
 *                    atom, trunk of 128 and eight residual blocks, 20 candidates, 4.44 of them
 *                    present on average) over a batch of 256 states, counted in the arithmetic that
 *                    those candidates need. Ceiling: the core's FMA peak.
 * w0.pointer.small   sizes S.
 * w0.pointer.update  forward and backward, three times that arithmetic.
 * attention.TOKENSxHEADSxWIDTH
 *                    softmax(q k^T) v alone; attention.gradient: its gradient.
 * recurrent.gru, recurrent.lstm
 *                    forward and backward of 128 units, 64 steps of 64 lanes.
 * recurrent.gru.bf16, recurrent.lstm.bf16
 *                    the same with learner.compute "bf16", in turns with float32, which is the
 *                    baseline; ceiling: the core's peak with products of bf16. */
/* clang-format on */
#include "learner/net/net.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 9 };

static struct rm_backend *backend;

static double seconds_since(uint64_t start)
{
    return (double)(rm_now_ns() - start) * 1e-9;
}

static void need(int code, const struct rm_error *error)
{
    if (code) {
        fprintf(stderr, "bench_pointer: %s\n", error->text);
        exit(1);
    }
}

static float *normals(size_t n)
{
    float *p = backend->ops->alloc(backend, n);
    if (!p)
        exit(1);
    backend->ops->normals(backend, 1, RM_STREAM_TEST, 0, 0, n, p);
    return p;
}

/* Runs `work` for about a fifth of a second a run, and reports GFLOP/s. */
static void report(const char *name, double flops, void (*work)(void *), void *self,
                   const char *note)
{
    double values[RUNS], peak = rm_bench_fma_gflops();
    uint32_t repeat = 1;
    work(self);
    uint64_t start = rm_now_ns();
    work(self);
    double once = seconds_since(start);
    if (once < 0.1)
        repeat = (uint32_t)(0.1 / once) + 1;
    for (int r = 0; r < RUNS; r++) {
        start = rm_now_ns();
        for (uint32_t i = 0; i < repeat; i++)
            work(self);
        values[r] = flops * repeat / seconds_since(start) * 1e-9;
    }
    rm_bench_report(&(struct rm_bench_result){name, "GFLOP/s", values, RUNS, peak, 0, note});
}

/* --- the prover's policy --------------------------------------------------------------------- */

enum { ITEMS = 21, ATOMS = 10, CODES = 3481, PREDICATES = 17, STATES = 256 };

struct network {
    struct rm_net *net;
    struct rm_net_workspace *workspace;
    float *params, *grads, *d_out, *state;
    struct rm_net_input input;
};

static void forward(void *self)
{
    struct network *n = self;
    rm_net_forward(n->workspace, n->params, &n->input);
}

static void forward_backward(void *self)
{
    struct network *n = self;
    rm_net_forward(n->workspace, n->params, &n->input);
    rm_net_backward(n->workspace, n->params, &n->input, n->d_out, n->grads);
}

static void make(struct network *n, const struct rm_network_config *config,
                 const struct rm_net_shape *shape, uint32_t batch, enum rm_net_use use)
{
    struct rm_error error;
    need(rm_net_compile(&n->net, config, shape, &error), &error);
    need(rm_net_workspace_create(&n->workspace, n->net, backend, batch, 1, use, &error), &error);
    n->params = normals(rm_net_param_count(n->net));
    n->grads = normals(rm_net_param_count(n->net));
    n->d_out = normals((size_t)batch * rm_net_outputs(n->net));
    rm_net_init(n->net, n->params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    rm_net_prepare(n->workspace, n->params);
}

static void unmake(struct network *n)
{
    float *owned[] = {n->params, n->grads, n->d_out};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        backend->ops->release(backend, owned[i]);
    rm_net_workspace_destroy(n->workspace);
    rm_net_destroy(n->net);
}

static struct rm_layer_config *add(struct rm_network_config *c, enum rm_layer_type type,
                                   uint32_t units)
{
    struct rm_layer_config *layer = &c->layers[c->layer_count++];
    layer->type = type;
    layer->units = units;
    return layer;
}

static struct rm_network_config prover(uint32_t width, uint32_t hidden, uint32_t blocks)
{
    struct rm_network_config c = {.layer_count = 0};
    struct rm_layer_config *embedding = add(&c, RM_LAYER_EMBEDDING, width);
    embedding->codes = CODES;
    embedding->columns = 3;
    embedding->first_codes = PREDICATES;
    embedding->difference = true;
    for (uint32_t b = 0; b <= blocks; b++) {
        add(&c, RM_LAYER_LINEAR, hidden);
        add(&c, RM_LAYER_RELU, 0);
        add(&c, RM_LAYER_LAYER_NORM, 0);
        if (b > 0)
            add(&c, RM_LAYER_RESIDUAL, 0)->span = 3;
    }
    add(&c, RM_LAYER_LINEAR, hidden);
    add(&c, RM_LAYER_RELU, 0);
    add(&c, RM_LAYER_POINTER, width);
    return c;
}

/* States as the world shows them: 3.12 atoms an item and 4.44 candidates on average. Returns how
 * many items there are. */
static uint32_t fill(int32_t (*x)[ITEMS][ATOMS][3])
{
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    uint32_t items = 0;
    memset(x, 0, sizeof *x * STATES);
    for (uint32_t s = 0; s < STATES; s++) {
        uint32_t candidates = 1 + rm_rng_below(&rng, 4) + rm_rng_below(&rng, 5);
        items += 1 + candidates;
        for (uint32_t i = 0; i <= candidates; i++) {
            uint32_t atoms = 1 + rm_rng_below(&rng, 3) + rm_rng_below(&rng, 3);
            for (uint32_t a = 0; a < atoms; a++) {
                x[s][i][a][0] = (int32_t)(1 + rm_rng_below(&rng, PREDICATES - 1));
                x[s][i][a][1] = (int32_t)(1 + rm_rng_below(&rng, CODES - 1));
                x[s][i][a][2] = (int32_t)(1 + rm_rng_below(&rng, CODES - 1));
            }
        }
    }
    return items;
}

static void bench_prover(const char *name, uint32_t width, uint32_t hidden, uint32_t blocks,
                         bool update)
{
    const struct rm_net_shape shape = {.inputs = ITEMS * ATOMS * 3,
                                       .actions = ITEMS - 1,
                                       .outputs_per_action = 1,
                                       .head = RM_HEAD_LOGITS,
                                       .dims = 3,
                                       .dim = {ITEMS, ATOMS, 3},
                                       .high = CODES - 1};
    const struct rm_network_config config = prover(width, hidden, blocks);
    int32_t(*x)[ITEMS][ATOMS][3] = malloc(sizeof *x * STATES);
    struct network n;
    char note[96];
    if (!x)
        exit(1);
    uint32_t items = fill(x);
    make(&n, &config, &shape, STATES, update ? RM_NET_TRAIN : RM_NET_ACT);
    n.input = (struct rm_net_input){.x = x, .batch = STATES};
    double macs = 2.0 * width * hidden + (blocks + 1.0) * hidden * hidden;
    double flops = items * 2.0 * macs + (items - STATES) * 2.0 * width;
    snprintf(note, sizeof note, "%d states, %.2f candidates of %d", STATES,
             (double)items / STATES - 1, ITEMS - 1);
    report(name, update ? 3 * flops : flops, update ? forward_backward : forward, &n, note);
    unmake(&n);
    free(x);
}

/* --- attention ------------------------------------------------------------------------------- */

struct attention {
    struct rm_attention shape;
    float *qkv, *o, *stats, *d_o, *d_qkv;
};

static void attend(void *self)
{
    struct attention *a = self;
    backend->ops->attention(backend, &a->shape, a->qkv, a->o, a->stats);
}

static void attend_back(void *self)
{
    struct attention *a = self;
    backend->ops->attention_dx(backend, &a->shape, a->qkv, a->o, a->stats, a->d_o, a->d_qkv);
}

static void bench_attention(int argc, char **argv, uint32_t tokens, uint32_t heads, uint32_t width)
{
    enum { SAMPLES = 32 };
    uint32_t spans[SAMPLES + 1], units = heads * width, rows = SAMPLES * tokens;
    char name[64], gradient[64];
    snprintf(name, sizeof name, "attention.%ux%ux%u", tokens, heads, width);
    snprintf(gradient, sizeof gradient, "attention.gradient.%ux%ux%u", tokens, heads, width);
    if (!rm_bench_wanted(argc, argv, name) && !rm_bench_wanted(argc, argv, gradient))
        return;
    for (uint32_t i = 0; i <= SAMPLES; i++)
        spans[i] = i * tokens;
    struct attention a = {
        .shape = {spans, SAMPLES, heads, units, false, spans[SAMPLES]},
        .qkv = normals((size_t)rows * 3 * units),
        .o = normals((size_t)rows * units),
        .stats = normals((size_t)rows * 2 * heads),
        .d_o = normals((size_t)rows * units),
        .d_qkv = normals((size_t)rows * 3 * units),
    };
    double flops = 4.0 * SAMPLES * tokens * tokens * units;
    if (rm_bench_wanted(argc, argv, name))
        report(name, flops, attend, &a, NULL);
    attend(&a);
    if (rm_bench_wanted(argc, argv, gradient))
        report(gradient, 2.5 * flops, attend_back, &a, NULL);
    float *owned[] = {a.qkv, a.o, a.stats, a.d_o, a.d_qkv};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        backend->ops->release(backend, owned[i]);
}

/* --- recurrent ------------------------------------------------------------------------------- */

enum { UNITS = 128, STEPS = 64, LANES = 64 };
static const struct rm_net_shape sequences = {
    .inputs = UNITS, .actions = 17, .outputs_per_action = 1, .head = RM_HEAD_VALUES};
static const char sizes[] = "64 steps of 64 lanes, 128 units";

/* forward two products, weights two, the state's gradient one; the head's three */
static double recurrent_flops(uint32_t gates)
{
    const double rows = (double)STEPS * LANES, products = 2.0 * UNITS * gates * UNITS;
    return rows * (5.0 * products + 6.0 * UNITS * sequences.actions);
}

static float *make_recurrent(struct network *n, enum rm_layer_type type)
{
    struct rm_network_config config = {.layer_count = 0};
    add(&config, type, UNITS);
    make(n, &config, &sequences, STEPS * LANES, RM_NET_TRAIN);
    float *x = normals((size_t)STEPS * LANES * UNITS);
    n->input = (struct rm_net_input){.x = x, .batch = STEPS * LANES, .steps = STEPS};
    return x;
}

static void bench_recurrent(const char *name, enum rm_layer_type type, uint32_t gates)
{
    struct network n;
    float *x = make_recurrent(&n, type);
    report(name, recurrent_flops(gates), forward_backward, &n, sizes);
    backend->ops->release(backend, x);
    unmake(&n);
}

static double gflops(struct network *n, uint32_t repeat, double flops)
{
    const uint64_t start = rm_now_ns();
    for (uint32_t i = 0; i < repeat; i++)
        forward_backward(n);
    return flops * repeat / seconds_since(start) * 1e-9;
}

static void bench_bf16(const char *name, enum rm_layer_type type, uint32_t gates)
{
    enum { REPEAT = 12 };
    struct rm_backend *const float32 = backend;
    struct network n[2];
    double values[2][RUNS];
    float *x[2];
    struct rm_error error;
    if (!rm_backend_cpu_has_bf16("auto")) {
        fprintf(stderr, "%s: left out: there is no AVX512_BF16 here\n", name);
        return;
    }
    x[0] = make_recurrent(&n[0], type);
    need(rm_backend_cpu_create_for(&backend, 1, "auto", RM_COMPUTE_BF16, &error), &error);
    x[1] = make_recurrent(&n[1], type);
    for (int r = -1; r < RUNS; r++)
        for (int k = 0; k < 2; k++)
            values[k][r < 0 ? 0 : r] = gflops(&n[k], REPEAT, recurrent_flops(gates));
    rm_bench_report(&(struct rm_bench_result){name, "GFLOP/s", values[1], RUNS,
                                              rm_bench_fma_gflops_of("bf16"),
                                              rm_bench_median(values[0], RUNS), sizes});
    for (int k = 1; k >= 0; k--) {
        backend->ops->release(backend, x[k]);
        unmake(&n[k]);
        if (k)
            rm_backend_destroy(backend);
        backend = float32;
    }
}

int main(int argc, char **argv)
{
    struct rm_error error;
    rm_bench_pin(0);
    need(rm_backend_cpu_create(&backend, 1, "auto", &error), &error);
    if (rm_bench_wanted(argc, argv, "w0.pointer"))
        bench_prover("w0.pointer", 256, 128, 8, false);
    if (rm_bench_wanted(argc, argv, "w0.pointer.small"))
        bench_prover("w0.pointer.small", 64, 64, 2, false);
    if (rm_bench_wanted(argc, argv, "w0.pointer.update"))
        bench_prover("w0.pointer.update", 256, 128, 8, true);
    bench_attention(argc, argv, 16, 4, 16);
    bench_attention(argc, argv, 64, 4, 32);
    bench_attention(argc, argv, 512, 4, 64);
    if (rm_bench_wanted(argc, argv, "recurrent.gru"))
        bench_recurrent("recurrent.gru", RM_LAYER_GRU, 3);
    if (rm_bench_wanted(argc, argv, "recurrent.lstm"))
        bench_recurrent("recurrent.lstm", RM_LAYER_LSTM, 4);
    if (rm_bench_wanted(argc, argv, "recurrent.gru.bf16"))
        bench_bf16("recurrent.gru.bf16", RM_LAYER_GRU, 3);
    if (rm_bench_wanted(argc, argv, "recurrent.lstm.bf16"))
        bench_bf16("recurrent.lstm.bf16", RM_LAYER_LSTM, 4);
    rm_backend_destroy(backend);
    return 0;
}
