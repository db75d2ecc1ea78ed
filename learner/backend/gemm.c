#include "learner/backend/gemm.h"

#include <errno.h>
#include <libxsmm.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Row counts that a ROWS plan has kernels for: a full tile, and what the rest is put together from.
 */
static const uint32_t row_steps[] = {RM_GEMM_TILE_N, 16, 8, 4, 2, 1};
#define STEPS     (sizeof row_steps / sizeof row_steps[0])
#define M_CLASSES 3u

struct rm_gemm_plan {
    enum rm_gemm_kind kind;
    uint32_t m, n, k;
    /* m is full tiles of 64, and then up to two others so that none is 16 or thinner. */
    uint32_t m_count[M_CLASSES], m_size[M_CLASSES], m_tiles;
    /* ROWS: by row_steps; OUTER: a full tile of columns and the last. NULL: libxsmm has none. */
    libxsmm_smmfunction kernel[M_CLASSES][STEPS];
};

struct rm_gemm {
    struct rm_gemm_plan **plans; /* a hash table, open addressing */
    uint32_t capacity, count;
    char isa[16];
};

/* --- libxsmm's own state: one per process --------------------------------------------------- */

static pthread_mutex_t process_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned process_users;
static char process_isa[16];

static const struct {
    const char *isa, *target;
} targets[] = {{"x86-64-v2", "wsm"}, {"x86-64-v3", "hsw"}, {"x86-64-v4", "skx"}};

static int join_process(const char *isa, struct rm_error *error)
{
    int code = 0;
    pthread_mutex_lock(&process_mutex);
    if (process_users && strcmp(process_isa, isa) != 0) {
        code = rm_fail(error, -EBUSY,
                       "backend: kernels are being compiled for %s in this process; %s is possible "
                       "once that backend is gone",
                       process_isa, isa);
    } else if (process_users++ == 0) {
        libxsmm_init();
        for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
            if (strcmp(targets[i].isa, isa) == 0)
                libxsmm_set_target_arch(targets[i].target);
        strncpy(process_isa, isa, sizeof process_isa - 1);
    }
    pthread_mutex_unlock(&process_mutex);
    return code;
}

static void leave_process(void)
{
    pthread_mutex_lock(&process_mutex);
    if (--process_users == 0)
        libxsmm_finalize(); /* drops its kernels: the next user may want another level */
    pthread_mutex_unlock(&process_mutex);
}

/* --- plans ----------------------------------------------------------------------------------- */

static libxsmm_smmfunction compile(const struct rm_gemm_plan *plan, uint32_t m, uint32_t n)
{
    const float one = 1.0f, zero = 0.0f;
    bool outer = plan->kind == RM_GEMM_OUTER;
    int lda = (int)plan->m, ldb = (int)(outer ? plan->n : plan->k), ldc = (int)plan->m;
    int flags = outer ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
    int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    return libxsmm_smmdispatch((int)m, (int)n, (int)plan->k, &lda, &ldb, &ldc, &one, &zero, &flags,
                               &prefetch);
}

static void cut_m(struct rm_gemm_plan *plan)
{
    uint32_t full = plan->m / RM_GEMM_TILE_M, rest = plan->m % RM_GEMM_TILE_M;
    uint32_t middle = 0;
    if (rest > 0 && rest <= 16 && full > 0) {
        full--;
        middle = 48;
        rest += 16;
    }
    const uint32_t sizes[M_CLASSES] = {RM_GEMM_TILE_M, middle, rest};
    const uint32_t counts[M_CLASSES] = {full, middle > 0, rest > 0};
    for (uint32_t i = 0; i < M_CLASSES; i++) {
        plan->m_size[i] = sizes[i];
        plan->m_count[i] = counts[i];
        plan->m_tiles += counts[i];
    }
}

static struct rm_gemm_plan *make_plan(enum rm_gemm_kind kind, uint32_t m, uint32_t n, uint32_t k)
{
    struct rm_gemm_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    plan->kind = kind;
    plan->m = m;
    plan->n = n;
    plan->k = k;
    cut_m(plan);
    uint32_t last = n % RM_GEMM_TILE_N;
    for (uint32_t i = 0; i < M_CLASSES; i++) {
        if (!plan->m_count[i])
            continue;
        if (kind == RM_GEMM_ROWS)
            for (uint32_t s = 0; s < STEPS; s++)
                plan->kernel[i][s] = compile(plan, plan->m_size[i], row_steps[s]);
        else {
            if (n >= RM_GEMM_TILE_N)
                plan->kernel[i][0] = compile(plan, plan->m_size[i], RM_GEMM_TILE_N);
            if (last)
                plan->kernel[i][1] = compile(plan, plan->m_size[i], last);
        }
    }
    return plan;
}

static uint32_t slot_of(const struct rm_gemm *gemm, enum rm_gemm_kind kind, uint32_t m, uint32_t n,
                        uint32_t k)
{
    uint64_t h = (uint64_t)kind * 0x9E3779B97F4A7C15u;
    h = (h ^ m) * 0xD6E8FEB86659FD93u;
    h = (h ^ n ^ (h >> 32)) * 0xD6E8FEB86659FD93u;
    h = (h ^ k ^ (h >> 32)) * 0xD6E8FEB86659FD93u;
    uint32_t i = (uint32_t)(h >> 32) & (gemm->capacity - 1);
    for (;; i = (i + 1) & (gemm->capacity - 1)) {
        const struct rm_gemm_plan *p = gemm->plans[i];
        if (!p || (p->kind == kind && p->m == m && p->n == n && p->k == k))
            return i;
    }
}

static bool grow(struct rm_gemm *gemm)
{
    struct rm_gemm bigger = {.capacity = gemm->capacity ? gemm->capacity * 2 : 64};
    bigger.plans = calloc(bigger.capacity, sizeof *bigger.plans);
    if (!bigger.plans)
        return false;
    for (uint32_t i = 0; i < gemm->capacity; i++) {
        struct rm_gemm_plan *p = gemm->plans[i];
        if (p)
            bigger.plans[slot_of(&bigger, p->kind, p->m, p->n, p->k)] = p;
    }
    free(gemm->plans);
    gemm->plans = bigger.plans;
    gemm->capacity = bigger.capacity;
    return true;
}

const struct rm_gemm_plan *rm_gemm_plan(struct rm_gemm *gemm, enum rm_gemm_kind kind, uint32_t m,
                                        uint32_t n, uint32_t k)
{
    if (kind == RM_GEMM_ROWS)
        n = 0;
    uint32_t i = slot_of(gemm, kind, m, n, k);
    if (gemm->plans[i])
        return gemm->plans[i];
    if ((gemm->count + 1) * 2 > gemm->capacity) {
        if (!grow(gemm))
            return NULL;
        i = slot_of(gemm, kind, m, n, k);
    }
    gemm->plans[i] = make_plan(kind, m, n, k);
    gemm->count += gemm->plans[i] != NULL;
    return gemm->plans[i];
}

int rm_gemm_create(struct rm_gemm **out, const char *isa, struct rm_error *error)
{
    *out = NULL;
    int code = join_process(isa, error);
    if (code)
        return code;
    struct rm_gemm *gemm = calloc(1, sizeof *gemm);
    if (!gemm || !grow(gemm)) {
        free(gemm);
        leave_process();
        return rm_fail(error, -ENOMEM, "backend: no memory for the plans of matrix products");
    }
    *out = gemm;
    return 0;
}

void rm_gemm_destroy(struct rm_gemm *gemm)
{
    if (!gemm)
        return;
    for (uint32_t i = 0; i < gemm->capacity; i++)
        free(gemm->plans[i]);
    free(gemm->plans);
    free(gemm);
    leave_process();
}

/* --- tiles ----------------------------------------------------------------------------------- */

uint32_t rm_gemm_tiles(const struct rm_gemm_plan *plan, uint32_t n)
{
    return plan->m_tiles * ((n + RM_GEMM_TILE_N - 1) / RM_GEMM_TILE_N);
}

static uint32_t class_of(const struct rm_gemm_plan *plan, uint32_t m_tile, uint32_t *m0)
{
    uint32_t start = 0, c = 0;
    while (m_tile >= plan->m_count[c]) {
        m_tile -= plan->m_count[c];
        start += plan->m_count[c] * plan->m_size[c];
        c++;
    }
    *m0 = start + m_tile * plan->m_size[c];
    return c;
}

/* Rows run fastest, so that 64 columns of A stay in the cache over a run of tiles. */
struct rm_gemm_tile rm_gemm_tile(const struct rm_gemm_plan *plan, uint32_t n, uint32_t index)
{
    uint32_t n_tiles = (n + RM_GEMM_TILE_N - 1) / RM_GEMM_TILE_N;
    struct rm_gemm_tile t;
    uint32_t c = class_of(plan, index / n_tiles, &t.m0);
    t.m = plan->m_size[c];
    t.n0 = index % n_tiles * RM_GEMM_TILE_N;
    t.n = n - t.n0 < RM_GEMM_TILE_N ? n - t.n0 : RM_GEMM_TILE_N;
    return t;
}

/* The same product where libxsmm has no kernel (a host that forbids executable memory). */
static void run_plainly(const struct rm_gemm_plan *plan, uint32_t m, uint32_t n, const float *a,
                        const float *b, float *c)
{
    bool outer = plan->kind == RM_GEMM_OUTER;
    for (uint32_t j = 0; j < n; j++) {
        float *cj = c + (size_t)j * plan->m;
        memset(cj, 0, m * sizeof *cj);
        for (uint32_t p = 0; p < plan->k; p++) {
            float x = outer ? b[(size_t)p * plan->n + j] : b[(size_t)j * plan->k + p];
            const float *ap = a + (size_t)p * plan->m;
            for (uint32_t i = 0; i < m; i++)
                cj[i] += ap[i] * x;
        }
    }
}

static void run_kernel(const struct rm_gemm_plan *plan, libxsmm_smmfunction kernel, uint32_t m,
                       uint32_t n, const float *a, const float *b, float *c)
{
    if (kernel)
        kernel(a, b, c);
    else
        run_plainly(plan, m, n, a, b, c);
}

void rm_gemm_run(const struct rm_gemm_plan *plan, const struct rm_gemm_tile *tile, const float *a,
                 const float *b, float *c)
{
    uint32_t cls = 0;
    while (plan->m_size[cls] != tile->m || !plan->m_count[cls])
        cls++;
    a += tile->m0;
    c += (size_t)tile->n0 * plan->m + tile->m0;
    if (plan->kind == RM_GEMM_OUTER) {
        run_kernel(plan, plan->kernel[cls][tile->n != RM_GEMM_TILE_N], tile->m, tile->n, a,
                   b + tile->n0, c);
        return;
    }
    b += (size_t)tile->n0 * plan->k;
    uint32_t left = tile->n;
    for (uint32_t s = 0; left; s++)
        for (; left >= row_steps[s]; left -= row_steps[s]) {
            run_kernel(plan, plan->kernel[cls][s], tile->m, row_steps[s], a, b, c);
            b += (size_t)row_steps[s] * plan->k;
            c += (size_t)row_steps[s] * plan->m;
        }
}
