#include "learner/backend/gemm.h"

#include <errno.h>
#include <libxsmm.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Row counts that a plan has kernels for: a full tile, and what the rest is put together from.
 */
static const uint32_t row_steps[] = {RM_GEMM_TILE_N, 16, 8, 4, 2, 1};
#define STEPS (sizeof row_steps / sizeof row_steps[0])

/* Row counts of the kernels of DW, for the first rows and for more that are added. Any number of
 * rows is put together from these, so that there are kernels for all of them. */
static const uint32_t outer_steps[] = {256, 128, 64, 32, 16, 8, 4, 2, 1};
#define OUTER_STEPS (sizeof outer_steps / sizeof outer_steps[0])
enum { OUTER_FIRST, OUTER_MORE, OUTER_PARTS };

/* What the kernels of one stretch of m do. */
struct stretch {
    uint32_t m0, m;
    uint32_t width; /* computed: m, or m padded to a multiple of 16 */
    uint32_t lda, ldc;
    bool panel;  /* A is a panel (padded, so lda is a multiple of 16) */
    bool direct; /* C is the result itself */
    /* By row_steps; DW: by part, of outer_steps, and whether it is of the last, narrower tile.
     * NULL: libxsmm has none, or nobody asked for it. */
    union {
        libxsmm_smmfunction kernel[STEPS];
        libxsmm_smmfunction outer[OUTER_STEPS][OUTER_PARTS][2];
    };
};

struct rm_gemm_plan {
    enum rm_gemm_kind kind;
    uint32_t m, n, k;  /* DW: no k, which is the rows */
    bool masks;        /* odd widths cost nothing: AVX-512 */
    bool panelled;     /* DX and DW: A must be loaded */
    uint32_t compiled; /* DW: bit OUTER_PARTS * step + part */
    uint32_t count;
    struct stretch stretches[];
};

struct rm_gemm {
    struct rm_gemm_plan **plans; /* a hash table, open addressing */
    uint32_t capacity, count;
    bool masks;
};

/* --- libxsmm's own state: one per process --------------------------------------------------- */

static pthread_mutex_t process_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned process_users;
static char process_isa[16];

/* libxsmm's key of thread-local storage. It makes one key in a process's life, but deletes it
 * whenever it ends: at the second end, whoever's key has that number by then. So whoever begins
 * again gives it a key of its own. */
extern pthread_key_t libxsmm_tlskey __attribute__((weak));

static int begin(struct rm_error *error)
{
    static bool begun;
    const int code = begun && &libxsmm_tlskey ? pthread_key_create(&libxsmm_tlskey, NULL) : 0;
    if (code)
        return rm_fail(error, -code, "backend: no key of thread-local storage for libxsmm: %s",
                       strerror(code));
    begun = true;
    libxsmm_init();
    return 0;
}

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
    } else if (process_users > 0) {
        process_users++;
    } else if ((code = begin(error)) == 0) {
        process_users = 1;
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

static bool is_outer(enum rm_gemm_kind kind)
{
    return kind == RM_GEMM_DW || kind == RM_GEMM_DW_TURNED;
}

static uint32_t pad(uint32_t m)
{
    return (m + 15) / 16 * 16;
}

/* Most rows that a kernel of DW goes through at once: so many that A, B and the tile of C stay in
 * the first cache where there are few registers to hold the tile, more where there are many. */
static uint32_t first_step(const struct rm_gemm_plan *plan)
{
    return plan->masks ? 0 : 2;
}

static void compile_outer(struct rm_gemm_plan *plan, uint32_t step, uint32_t part)
{
    const uint32_t bit = 1u << (OUTER_PARTS * step + part);
    const float one = 1.0f, add = part == OUTER_FIRST ? 0.0f : 1.0f;
    const int k = (int)outer_steps[step], ldb = (int)plan->n;
    const int flags = LIBXSMM_GEMM_FLAG_TRANS_B, prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    if (plan->compiled & bit)
        return; /* and nothing is written: threads come here at the same time */
    for (uint32_t i = 0; i < plan->count; i++) {
        struct stretch *t = &plan->stretches[i];
        const int m = (int)t->width, lda = (int)t->lda, ldc = (int)t->ldc;
        for (uint32_t last = 0; last < 2; last++) {
            const int n = (int)(last ? plan->n % RM_GEMM_TILE_N : RM_GEMM_TILE_N);
            if (n && n <= (int)plan->n)
                t->outer[step][part][last] =
                    libxsmm_smmdispatch(m, n, k, &lda, &ldb, &ldc, &one, &add, &flags, &prefetch);
        }
    }
    plan->compiled |= bit;
}

/* The kernels that so many rows are put together from. */
static void compile_rows(struct rm_gemm_plan *plan, uint32_t rows)
{
    uint32_t part = OUTER_FIRST;
    for (uint32_t step = first_step(plan); step < OUTER_STEPS; step++)
        for (uint32_t twice = 0; twice < 2 && rows >= outer_steps[step]; twice++) {
            compile_outer(plan, step, part);
            part = OUTER_MORE;
            rows -= twice ? rows / outer_steps[step] * outer_steps[step] : outer_steps[step];
        }
}

/* Those of any number of rows up to this. */
static void compile_up_to(struct rm_gemm_plan *plan, uint32_t rows)
{
    for (uint32_t step = first_step(plan); step < OUTER_STEPS; step++)
        for (uint32_t part = 0; part < OUTER_PARTS && outer_steps[step] <= rows; part++)
            compile_outer(plan, step, part);
}

static void compile(const struct rm_gemm_plan *plan, struct stretch *t)
{
    const float one = 1.0f, zero = 0.0f;
    int m = (int)t->width, k = (int)plan->k, lda = (int)t->lda, ldc = (int)t->ldc;
    int flags = LIBXSMM_GEMM_FLAG_NONE, prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    for (uint32_t s = 0; s < STEPS; s++)
        t->kernel[s] = libxsmm_smmdispatch(m, (int)row_steps[s], k, &lda, &k, &ldc, &one, &zero,
                                           &flags, &prefetch);
}

/* Where stretches of 64 end: the last two are evened out if the last were 16 or thinner. */
static uint32_t next_width(uint32_t left)
{
    if (left > RM_GEMM_TILE_M && left <= RM_GEMM_TILE_M + 16)
        return 48;
    return left < RM_GEMM_TILE_M ? left : RM_GEMM_TILE_M;
}

static void cut_m(struct rm_gemm_plan *plan)
{
    for (uint32_t m0 = 0; m0 < plan->m; plan->count++) {
        struct stretch *t = &plan->stretches[plan->count];
        t->m0 = m0;
        t->m = next_width(plan->m - m0);
        t->panel = plan->kind == RM_GEMM_FORWARD || plan->panelled;
        /* Only a panel has zeros behind its m: elsewhere that would be the next row, or nothing. */
        bool odd = t->panel && t->m % 16 != 0 && !plan->masks;
        t->width = odd ? pad(t->m) : t->m;
        t->lda = t->panel ? pad(t->m) : plan->m;
        t->direct = !odd && plan->kind != RM_GEMM_DW_TURNED;
        t->ldc = t->direct ? plan->m : t->width;
        m0 += t->m;
    }
}

static struct rm_gemm_plan *make_plan(const struct rm_gemm *gemm, enum rm_gemm_kind kind,
                                      uint32_t m, uint32_t n, uint32_t k)
{
    struct rm_gemm_plan *plan =
        calloc(1, sizeof *plan + (m / RM_GEMM_TILE_M + 2) * sizeof plan->stretches[0]);
    if (!plan)
        return NULL;
    plan->kind = kind;
    plan->m = m;
    plan->n = n;
    plan->k = is_outer(kind) ? 0 : k;
    plan->masks = gemm->masks;
    plan->panelled = kind != RM_GEMM_FORWARD && !gemm->masks && m % 8 != 0;
    cut_m(plan);
    for (uint32_t i = 0; i < plan->count && !is_outer(kind); i++)
        compile(plan, &plan->stretches[i]);
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
    bigger.plans = calloc(bigger.capacity, sizeof(struct rm_gemm_plan *));
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

/* The plan of a shape, made when it is asked for first. NULL without memory. */
static struct rm_gemm_plan *find(struct rm_gemm *gemm, enum rm_gemm_kind kind, uint32_t m,
                                 uint32_t n, uint32_t k)
{
    uint32_t i = slot_of(gemm, kind, m, n, k);
    if (gemm->plans[i])
        return gemm->plans[i];
    if ((gemm->count + 1) * 2 > gemm->capacity) {
        if (!grow(gemm))
            return NULL;
        i = slot_of(gemm, kind, m, n, k);
    }
    gemm->plans[i] = make_plan(gemm, kind, m, n, k);
    gemm->count += gemm->plans[i] != NULL;
    return gemm->plans[i];
}

const struct rm_gemm_plan *rm_gemm_plan(struct rm_gemm *gemm, enum rm_gemm_kind kind, uint32_t m,
                                        uint32_t n, uint32_t k)
{
    if (!is_outer(kind))
        return find(gemm, kind, m, 0, k);
    struct rm_gemm_plan *plan = find(gemm, kind, m, n, 0);
    if (plan)
        compile_rows(plan, k);
    return plan;
}

const struct rm_gemm_plan *rm_gemm_plan_up_to(struct rm_gemm *gemm, enum rm_gemm_kind kind,
                                              uint32_t m, uint32_t n, uint32_t k)
{
    struct rm_gemm_plan *plan = find(gemm, kind, m, n, 0);
    if (plan)
        compile_up_to(plan, k);
    return plan;
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
    gemm->masks = strcmp(isa, "x86-64-v4") == 0;
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
    return plan->count * ((n + RM_GEMM_TILE_N - 1) / RM_GEMM_TILE_N);
}

/* Rows run fastest, so that a panel stays in the cache over a run of tiles. */
struct rm_gemm_tile rm_gemm_tile(const struct rm_gemm_plan *plan, uint32_t n, uint32_t index)
{
    uint32_t n_tiles = (n + RM_GEMM_TILE_N - 1) / RM_GEMM_TILE_N;
    uint32_t n0 = index % n_tiles * RM_GEMM_TILE_N;
    const struct stretch *s = &plan->stretches[index / n_tiles];
    return (struct rm_gemm_tile){.stretch = index / n_tiles,
                                 .m0 = s->m0,
                                 .m = s->m,
                                 .ldc = s->ldc,
                                 .direct = s->direct,
                                 .n0 = n0,
                                 .n = n - n0 < RM_GEMM_TILE_N ? n - n0 : RM_GEMM_TILE_N};
}

uint32_t rm_gemm_panels(const struct rm_gemm_plan *plan)
{
    return plan->count;
}

struct rm_gemm_panel rm_gemm_panel(const struct rm_gemm_plan *plan, uint32_t index)
{
    const struct stretch *s = &plan->stretches[index];
    return (struct rm_gemm_panel){s->m0, s->m, pad(s->m), (size_t)s->m0 * plan->k};
}

size_t rm_gemm_panel_floats(uint32_t m, uint32_t k)
{
    return (size_t)pad(m) * k;
}

size_t rm_gemm_load_floats(const struct rm_gemm_plan *plan, uint32_t k)
{
    return plan->panelled ? rm_gemm_panel_floats(plan->m, k) : 0;
}

const float *rm_gemm_load(const struct rm_gemm_plan *plan, uint32_t k, const float *a,
                          float *panels)
{
    if (!plan->panelled)
        return a;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct stretch *s = &plan->stretches[i];
        float *to = panels + (size_t)s->m0 * k;
        const float *from = a + s->m0;
        for (uint32_t p = 0; p < k; p++, from += plan->m, to += s->lda) {
            memcpy(to, from, s->m * sizeof *a);
            for (uint32_t j = s->m; j < s->lda; j++)
                to[j] = 0.0f;
        }
    }
    return panels;
}

/* The same product where libxsmm has no kernel (a host that forbids executable memory). */
static void run_plainly(const struct rm_gemm_plan *plan, const struct stretch *s, uint32_t n,
                        uint32_t k, bool add, const float *a, const float *b, float *c)
{
    bool outer = is_outer(plan->kind);
    for (uint32_t j = 0; j < n; j++) {
        float *cj = c + (size_t)j * s->ldc;
        if (!add)
            memset(cj, 0, s->width * sizeof *cj);
        for (uint32_t p = 0; p < k; p++) {
            float x = outer ? b[(size_t)p * plan->n + j] : b[(size_t)j * k + p];
            const float *ap = a + (size_t)p * s->lda;
            for (uint32_t i = 0; i < s->width; i++)
                cj[i] += ap[i] * x;
        }
    }
}

static void run_outer(const struct rm_gemm_plan *plan, const struct stretch *s, uint32_t n,
                      uint32_t rows, bool add, const float *a, const float *b, float *c)
{
    const bool last = n != RM_GEMM_TILE_N;
    uint32_t part = add ? OUTER_MORE : OUTER_FIRST;
    for (uint32_t step = first_step(plan); rows; step++)
        for (uint32_t k = outer_steps[step]; rows >= k; rows -= k) {
            libxsmm_smmfunction kernel = s->outer[step][part][last];
            if (kernel)
                kernel(a, b, c);
            else
                run_plainly(plan, s, n, k, part == OUTER_MORE, a, b, c);
            part = OUTER_MORE;
            a += (size_t)k * s->lda;
            b += (size_t)k * plan->n;
        }
}

void rm_gemm_run(const struct rm_gemm_plan *plan, const struct rm_gemm_tile *tile, uint32_t k,
                 const float *a, const float *b, bool add, float *c)
{
    const struct stretch *s = &plan->stretches[tile->stretch];
    a += s->panel ? (size_t)s->m0 * k : s->m0;
    if (is_outer(plan->kind)) {
        run_outer(plan, s, tile->n, k, add, a, b + tile->n0, c);
        return;
    }
    b += (size_t)tile->n0 * plan->k;
    uint32_t left = tile->n;
    for (uint32_t step = 0; left; step++)
        for (uint32_t n = row_steps[step]; left >= n; left -= n) {
            if (s->kernel[step])
                s->kernel[step](a, b, c);
            else
                run_plainly(plan, s, n, plan->k, false, a, b, c);
            b += (size_t)n * plan->k;
            c += (size_t)n * s->ldc;
        }
}
