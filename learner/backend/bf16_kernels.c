#include "learner/backend/bf16_kernels.h"

#include "learner/backend/pieces.h"
#include "shm/atomic.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WITH_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define INLINED   static inline __attribute__((always_inline)) WITH_BF16

#define LANES 16u

/* A tile of C in registers: 4 vectors of columns by 6 rows are 24 of the 32, enough chains to hide
 * the instruction's latency, and few enough loads a product. */
#define VECTORS 4u
#define ROWS    6u

#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

bool rm_bf16_supported(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bf16");
}

INLINED __mmask16 first_of(uint32_t n)
{
    return n < LANES ? (__mmask16)((1u << n) - 1) : (__mmask16)0xffff;
}

/* `last` is the mask of the last vector of columns. Numbers of rows and vectors are constants after
 * inlining, so the sums stay in registers. */
INLINED void tile(const struct rm_bf16_part *p, const uint32_t rows, const uint32_t vectors,
                  const bool by_columns, const uint32_t *a, const uint32_t *b, float *c,
                  const float *bias, __mmask16 last)
{
    __m512 sum[ROWS][VECTORS];
    UNROLLED
    for (uint32_t i = 0; i < vectors; i++) {
        const __mmask16 mask = i + 1 < vectors ? (__mmask16)0xffff : last;
        const __m512 start =
            bias ? _mm512_maskz_loadu_ps(mask, bias + i * LANES) : _mm512_setzero_ps();
        UNROLLED
        for (uint32_t j = 0; j < rows; j++)
            sum[j][i] = p->add ? _mm512_maskz_loadu_ps(mask, c + j * p->ldc + i * LANES) : start;
    }
    for (uint32_t k = 0; k < p->pairs; k++, a += p->lda) {
        __m512bh x[VECTORS];
        UNROLLED
        for (uint32_t i = 0; i < vectors; i++)
            x[i] = (__m512bh)_mm512_loadu_si512(a + i * LANES);
        UNROLLED
        for (uint32_t j = 0; j < rows; j++) {
            const uint32_t two = by_columns ? b[k * p->ldb + j] : b[j * p->ldb + k];
            const __m512bh y = (__m512bh)_mm512_set1_epi32((int32_t)two);
            UNROLLED
            for (uint32_t i = 0; i < vectors; i++)
                sum[j][i] = _mm512_dpbf16_ps(sum[j][i], x[i], y);
        }
    }
    UNROLLED
    for (uint32_t j = 0; j < rows; j++) {
        UNROLLED
        for (uint32_t i = 0; i < vectors; i++)
            _mm512_mask_storeu_ps(c + j * p->ldc + i * LANES,
                                  i + 1 < vectors ? (__mmask16)0xffff : last, sum[j][i]);
    }
}

/* All rows, as many at once as registers allow, then the rest. */
INLINED void panel(const struct rm_bf16_part *p, const uint32_t vectors, const bool by_columns)
{
    const __mmask16 last = first_of(p->columns - (vectors - 1) * LANES);
    const size_t step = by_columns ? 1 : p->ldb;
    const uint32_t *b = p->b;
    float *c = p->c;
    uint32_t left = p->rows;
    for (; left >= ROWS; left -= ROWS, b += ROWS * step, c += ROWS * p->ldc)
        tile(p, ROWS, vectors, by_columns, p->a, b, c, p->bias, last);
    if (left >= 3) {
        tile(p, 3, vectors, by_columns, p->a, b, c, p->bias, last);
        left -= 3, b += 3 * step, c += 3 * p->ldc;
    }
    if (left == 2)
        tile(p, 2, vectors, by_columns, p->a, b, c, p->bias, last);
    else if (left == 1)
        tile(p, 1, vectors, by_columns, p->a, b, c, p->bias, last);
}

#define PANEL(vectors, by_columns)                                                                 \
    static WITH_BF16 void panel_##vectors##_##by_columns(const struct rm_bf16_part *p)             \
    {                                                                                              \
        panel(p, vectors, by_columns);                                                             \
    }

PANEL(1, false)
PANEL(2, false)
PANEL(3, false)
PANEL(4, false)
PANEL(1, true)
PANEL(2, true)
PANEL(3, true)
PANEL(4, true)

/* --- AMX ------------------------------------------------------------------------------------- */

#define WITH_TILES __attribute__((target("amx-tile,amx-bf16")))
#define TILE_ROWS  16u /* of a tile, and its columns of words */
#define SIDE       (2 * TILE_ROWS)
#define TILE_STATE 18         /* the kernel's number for what a thread's tiles hold */
#define AMX_BF16   (1u << 22) /* of CPUID's leaf 7 */

/* gcc does not know what the instructions read: everything that was written is in memory. */
#define SEEN(what) __asm__ volatile("" : : "r"(what) : "memory")

static _Atomic enum { UNKNOWN, NO, YES } has_tiles;

bool rm_bf16_tiles(void)
{
    uint32_t a, b, c, d;
    if (RM_PEEK(&has_tiles) == UNKNOWN)
        RM_POKE(&has_tiles, __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) &&
                                    syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_STATE) == 0
                                ? YES
                                : NO);
    return RM_PEEK(&has_tiles) == YES;
}

/* The shape of this thread's tiles, which it keeps, because setting it takes time; 0: none. */
static _Thread_local uint32_t shaped;

WITH_TILES void rm_bf16_release_tiles(void)
{
    if (shaped)
        _tile_release();
    shaped = 0;
}

/* Tiles 0 to 3 are C's, 4 and 5 are B's, 6 and 7 are A's: up to two by two, each of up to 16 rows
 * of 16 words. */
static WITH_TILES void set_shape(uint32_t rows, uint32_t columns)
{
    static const uint8_t row_of[] = {0, 0, 1, 1, 0, 1}, column_of[] = {0, 1, 0, 1, 2, 2, 0, 1};
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape;
    const uint32_t wanted = rows << 8 | columns;
    if (shaped == wanted)
        return;
    const uint32_t r0 = rm_least(rows, TILE_ROWS), n0 = rm_least(columns, TILE_ROWS);
    const uint32_t r[] = {r0, rows - r0}, n[] = {n0, columns - n0, TILE_ROWS};
    memset(&shape, 0, sizeof shape);
    shape.palette = 1;
    for (int t = 0; t < 8; t++) {
        const uint32_t high = t < 6 ? r[row_of[t]] : RM_BF16_DEPTH, wide = n[column_of[t]];
        if (!high || !wide)
            continue; /* not used in this shape */
        shape.rows[t] = (uint8_t)high;
        shape.row_bytes[t] = (uint16_t)(4 * wide);
    }
    SEEN(&shape);
    _tile_loadconfig(&shape);
    shaped = wanted;
}

/* A square of C: rows r0 and, if `two_rows`, r0 + 16 on; columns alike. */
static inline __attribute__((always_inline)) WITH_TILES void square(const struct rm_bf16_part *p,
                                                                    uint32_t r0, uint32_t c0,
                                                                    const bool two_rows,
                                                                    const bool two_columns)
{
    const size_t a_row = 4 * p->lda, b_row = 4 * p->ldb, c_row = 4 * p->ldc;
    const uint32_t *b = p->b + r0 * p->ldb, *a = p->a + c0;
    const uint32_t *b_2 = b + TILE_ROWS * p->ldb, *a_2 = a + TILE_ROWS;
    float *c = p->c + r0 * p->ldc + c0, *c_2 = c + TILE_ROWS * p->ldc;
    if (p->add || p->bias) { /* all rows start with the bias */
        const size_t apart = p->add ? c_row : 0;
        const float *from = p->add ? c : p->bias + c0, *from_2 = p->add ? c_2 : from;
        _tile_loadd(0, from, apart);
        if (two_columns)
            _tile_loadd(1, from + TILE_ROWS, apart);
        if (two_rows)
            _tile_loadd(2, from_2, apart);
        if (two_rows && two_columns)
            _tile_loadd(3, from_2 + TILE_ROWS, apart);
    } else {
        _tile_zero(0);
        if (two_columns)
            _tile_zero(1);
        if (two_rows)
            _tile_zero(2);
        if (two_rows && two_columns)
            _tile_zero(3);
    }
    for (uint32_t k = 0; k < p->pairs; k += RM_BF16_DEPTH) {
        _tile_loadd(4, b + k, b_row);
        _tile_loadd(6, a + k * p->lda, a_row);
        _tile_dpbf16ps(0, 4, 6);
        if (two_columns) {
            _tile_loadd(7, a_2 + k * p->lda, a_row);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (two_rows) {
            _tile_loadd(5, b_2 + k, b_row);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (two_rows && two_columns)
            _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, c_row);
    if (two_columns)
        _tile_stored(1, c + TILE_ROWS, c_row);
    if (two_rows)
        _tile_stored(2, c_2, c_row);
    if (two_rows && two_columns)
        _tile_stored(3, c_2 + TILE_ROWS, c_row);
}

static WITH_TILES void rows_by_tiles(const struct rm_bf16_part *p)
{
    SEEN(p);
    for (uint32_t r = 0; r < p->rows; r += SIDE)
        for (uint32_t c = 0; c < p->columns; c += SIDE) {
            const uint32_t rows = rm_least(p->rows - r, SIDE);
            const uint32_t columns = rm_least(p->columns - c, SIDE);
            set_shape(rows, columns);
            if (rows > TILE_ROWS && columns > TILE_ROWS)
                square(p, r, c, true, true);
            else if (rows > TILE_ROWS)
                square(p, r, c, true, false);
            else if (columns > TILE_ROWS)
                square(p, r, c, false, true);
            else
                square(p, r, c, false, false);
        }
}

/* --- of both --------------------------------------------------------------------------------- */

typedef void (*panel_fn)(const struct rm_bf16_part *p);

void rm_bf16_rows(const struct rm_bf16_part *part)
{
    static const panel_fn panels[] = {panel_1_false, panel_2_false, panel_3_false, panel_4_false};
    if (part->tiles)
        rows_by_tiles(part);
    else
        panels[(part->columns - 1) / LANES](part);
}

void rm_bf16_columns(const struct rm_bf16_part *part)
{
    static const panel_fn panels[] = {panel_1_true, panel_2_true, panel_3_true, panel_4_true};
    panels[(part->columns - 1) / LANES](part);
}

INLINED __m512i two_of(__m512 upper, __m512 lower)
{
    return (__m512i)_mm512_cvtne2ps_pbh(upper, lower);
}

WITH_BF16 void rm_bf16_round(const float *x, size_t stride, uint32_t rows, uint32_t n, uint32_t *to,
                             size_t ld)
{
    for (uint32_t r = 0; r < rows; r++, x += stride, to += ld) {
        uint32_t at = 0;
        for (; at + 2 * LANES <= n; at += 2 * LANES)
            _mm512_storeu_si512(to + at / 2,
                                two_of(_mm512_loadu_ps(x + at + LANES), _mm512_loadu_ps(x + at)));
        if (at == n)
            continue;
        const uint32_t left = n - at, upper = left > LANES ? left - LANES : 0;
        const __m512 high = _mm512_maskz_loadu_ps(first_of(upper), x + at + LANES);
        const __m512 low = _mm512_maskz_loadu_ps(first_of(left), x + at);
        _mm512_mask_storeu_epi32(to + at / 2, first_of((left + 1) / 2), two_of(high, low));
    }
}

WITH_BF16 void rm_bf16_round_columns(const float *x, size_t stride, uint32_t rows, uint32_t n,
                                     uint32_t *to, size_t ld)
{
    const __m512i order = _mm512_set_epi32(
        0x1f000f, 0x1e000e, 0x1d000d, 0x1c000c, 0x1b000b, 0x1a000a, 0x190009, 0x180008, 0x170007,
        0x160006, 0x150005, 0x140004, 0x130003, 0x120002, 0x110001, 0x100000);
    for (uint32_t r = 0; r < rows; r += 2, x += 2 * stride, to += ld)
        for (uint32_t at = 0; at < n; at += LANES) {
            const __mmask16 mask = first_of(n - at);
            const __m512 low = _mm512_maskz_loadu_ps(mask, x + at);
            const __m512 high =
                _mm512_maskz_loadu_ps(r + 1 < rows ? mask : (__mmask16)0, x + stride + at);
            _mm512_storeu_si512(to + at, _mm512_permutexvar_epi16(order, two_of(high, low)));
        }
}
