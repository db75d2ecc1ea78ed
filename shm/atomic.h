/* atomic: all memory orders of Ringmaster, and nothing else. Each order has a label and names its
 * partner: "A0 pairs with A1" means that what was written before A0 is seen after an A1 that read
 * what A0 stored. tests/model/ has a model of each protocol; the model checker finds an error if an
 * order is removed.
 *
 *   P  publication of a region        version
 *   R  ring                           reserved, committed, consumed
 *   W  weights                        slot sequence, latest
 *   S  sleep and wake                 sleeping, threshold
 *   L  limiter                        inserted, sampled
 *   B  barrier of rounds              arrived, current
 *   N  counters and settings          no order, or a plain hand-over
 *   T  thread pool of one process     one order of all accesses
 *
 * On x86-64 loads, and stores other than those of T, are plain moves: their orders restrain only
 * the compiler. Full fences, additions and exchanges cost more. Other processors need instructions
 * for the orders, too. No weaker order is correct in C11. */
#ifndef RM_SHM_ATOMIC_H
#define RM_SHM_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* gcc's ThreadSanitizer does not model fences and warns about them. It then misses orders that make
 * data visible, but reports no false race: data that may race is copied by copy.h. */
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* Words shared between processes must not hide a lock. */
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "64-bit atomics must be lock-free");
_Static_assert(sizeof(_Atomic double) == 8 && __atomic_always_lock_free(sizeof(double), 0),
               "atomic doubles must be lock-free words");
_Static_assert(sizeof(_Atomic float) == 4 && __atomic_always_lock_free(sizeof(float), 0),
               "atomic floats must be lock-free words");

/* --- N: numbers that are watched ------------------------------------------------------------- */

/* N0: a single number, read or written whole, ordered with nothing. Any _Atomic type. */
#define RM_PEEK(word)        atomic_load_explicit((word), memory_order_relaxed)
#define RM_POKE(word, value) atomic_store_explicit((word), (value), memory_order_relaxed)

/* N1: a counter with several writers. Ordered with nothing. Returns the value before the
 * addition. */
#define RM_ADD(word, n) atomic_fetch_add_explicit((word), (n), memory_order_relaxed)

/* N2: a counter with one writer, the caller: a load and a store, without a bus lock. */
#define RM_ADD_OWN(word, n)                                                                        \
    atomic_store_explicit((word), atomic_load_explicit((word), memory_order_relaxed) + (n),        \
                          memory_order_relaxed)

/* N3 pairs with N4: a flag or version that is stored after the data it announces: a worker's state
 * after its error text, settings_version after settings[], a request after its arguments. */
#define RM_RAISE(word, value) atomic_store_explicit((word), (value), memory_order_release)
#define RM_SEE(word)          atomic_load_explicit((word), memory_order_acquire)

/* N5: a maximum with several writers. Ordered with nothing. */
static inline void rm_atomic_max(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               word, &seen, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* N6: a number that several processes read and one exchanges for `value`. Ordered with nothing.
 * Returns the old number. */
#define RM_EXCHANGE(word, value) atomic_exchange_explicit((word), (value), memory_order_relaxed)

/* --- T: words of the thread pool -------------------------------------------------------------- */

/* T0: every thread sees all accesses by these in one total order. This is the most expensive order
 * and needs no partner. Use it for a few words per tile of a matrix product, not for rows. Any
 * _Atomic type. */
#define RM_TOTAL_LOAD(word)         atomic_load_explicit((word), memory_order_seq_cst)
#define RM_TOTAL_STORE(word, value) atomic_store_explicit((word), (value), memory_order_seq_cst)
#define RM_TOTAL_ADD(word, n)       atomic_fetch_add_explicit((word), (n), memory_order_seq_cst)
#define RM_TOTAL_SUB(word, n)       atomic_fetch_sub_explicit((word), (n), memory_order_seq_cst)
#define RM_TOTAL_EXCHANGE(word, value)                                                             \
    atomic_exchange_explicit((word), (value), memory_order_seq_cst)
#define RM_TOTAL_SWAP(word, expected, value)                                                       \
    atomic_compare_exchange_strong_explicit((word), (expected), (value), memory_order_seq_cst,     \
                                            memory_order_seq_cst)

/* --- P: publication of a region -------------------------------------------------------------- */

/* P0 pairs with P1: everything in the object is written before its version. */
static inline void rm_atomic_region_publish(_Atomic uint32_t *version, uint32_t value)
{
    atomic_store_explicit(version, value, memory_order_release); /* P0 */
}

static inline uint32_t rm_atomic_region_version(const _Atomic uint32_t *version)
{
    return atomic_load_explicit(version, memory_order_acquire); /* P1 */
}

/* --- R: ring --------------------------------------------------------------------------------- */

/* Writer, before it touches row `reserved - 1`. R0 then R1 pair with R4 then R5: a reader that
 * copied anything written after R1 reads this value of `reserved` or a later one in R5, and drops
 * its copy. The release store R0 is not enough: it orders the stores before it, and the row's
 * stores come after it. R0 pairs with RM_SEE() of `reserved`: a process that attaches and sees this
 * row reserved sees the row before it committed. */
static inline void rm_atomic_ring_reserve(_Atomic uint64_t *reserved, uint64_t value)
{
    atomic_store_explicit(reserved, value, memory_order_release); /* R0 */
    atomic_thread_fence(memory_order_release);                    /* R1 */
}

/* R2 pairs with R3: a reader that sees the row committed sees the whole row. */
static inline void rm_atomic_ring_commit(_Atomic uint64_t *committed, uint64_t value)
{
    atomic_store_explicit(committed, value, memory_order_release); /* R2 */
}

static inline uint64_t rm_atomic_ring_committed(const _Atomic uint64_t *committed)
{
    return atomic_load_explicit(committed, memory_order_acquire); /* R3 */
}

/* Reader, after it copied: R4 keeps the copy's loads before R5 (pair with R0, R1). */
static inline uint64_t rm_atomic_ring_recheck(const _Atomic uint64_t *reserved)
{
    atomic_thread_fence(memory_order_acquire);                   /* R4 */
    return atomic_load_explicit(reserved, memory_order_relaxed); /* R5 */
}

/* R8 pairs with R9 (rollout): a reader that sees the row offered sees its observation, mask, reward
 * and flags. */
static inline void rm_atomic_ring_offer(_Atomic uint64_t *offered, uint64_t value)
{
    atomic_store_explicit(offered, value, memory_order_release); /* R8 */
}

static inline uint64_t rm_atomic_ring_offered(const _Atomic uint64_t *offered)
{
    return atomic_load_explicit(offered, memory_order_acquire); /* R9 */
}

/* R6 pairs with R7 (rollout): the consumer's reads of a row end before the writer, which sees the
 * credit, overwrites it. */
static inline void rm_atomic_ring_consume(_Atomic uint64_t *consumed, uint64_t value)
{
    atomic_store_explicit(consumed, value, memory_order_release); /* R6 */
}

static inline uint64_t rm_atomic_ring_credit(const _Atomic uint64_t *consumed)
{
    return atomic_load_explicit(consumed, memory_order_acquire); /* R7 */
}

/* --- W: weights ------------------------------------------------------------------------------ */

/* Writer, before it fills a slot: the sequence becomes odd. `q | 1`, not `q + 1`: a writer that
 * died here left it odd, and adding one would mark the torn slot as complete. W0 then W1 pair with
 * W4 then W5, as R0 and R1 with R4 and R5. W0 pairs with W3: a process that attaches and sees a
 * slot being filled sees `latest` name the version before it. */
static inline uint64_t rm_atomic_weights_begin(_Atomic uint64_t *sequence)
{
    uint64_t odd = atomic_load_explicit(sequence, memory_order_relaxed) | 1;
    atomic_store_explicit(sequence, odd, memory_order_release); /* W0 */
    atomic_thread_fence(memory_order_release);                  /* W1 */
    return odd;
}

/* W2 pairs with W3: a reader that sees the sequence even sees the slot complete. */
static inline void rm_atomic_weights_end(_Atomic uint64_t *sequence, uint64_t odd)
{
    atomic_store_explicit(sequence, odd + 1, memory_order_release); /* W2 */
}

static inline uint64_t rm_atomic_weights_sequence(const _Atomic uint64_t *sequence)
{
    return atomic_load_explicit(sequence, memory_order_acquire); /* W3 */
}

/* Reader, after it copied: W4 keeps the copy's loads before W5 (pair with W0, W1). */
static inline uint64_t rm_atomic_weights_recheck(const _Atomic uint64_t *sequence)
{
    atomic_thread_fence(memory_order_acquire);                   /* W4 */
    return atomic_load_explicit(sequence, memory_order_relaxed); /* W5 */
}

/* W6 pairs with W7: a slot has its even sequence before `latest` names it, so a reader finds the
 * version that `latest` names unless the writer has lapped it. */
static inline void rm_atomic_weights_name(_Atomic uint64_t *latest, uint64_t version)
{
    atomic_store_explicit(latest, version, memory_order_release); /* W6 */
}

static inline uint64_t rm_atomic_weights_named(const _Atomic uint64_t *latest)
{
    return atomic_load_explicit(latest, memory_order_acquire); /* W7 */
}

/* --- S: sleep and wake ----------------------------------------------------------------------- */

/* Sleeper: announces that it will sleep, then checks once more for work. S0 then S1 pair with S2
 * then S3: of two sides that each store and then load what the other stored, a full fence on *both*
 * makes at least one see the other. With one fence missing both loads may pass their stores, on x86
 * too, and the wake-up is lost. */
static inline void rm_atomic_sleep(_Atomic uint32_t *sleeping, uint32_t ticket)
{
    atomic_store_explicit(sleeping, ticket, memory_order_relaxed); /* S0 */
    atomic_thread_fence(memory_order_seq_cst);                     /* S1 */
}

/* Waker, after it made work visible. */
static inline uint32_t rm_atomic_sleeper(const _Atomic uint32_t *sleeping)
{
    atomic_thread_fence(memory_order_seq_cst);                   /* S2 */
    return atomic_load_explicit(sleeping, memory_order_relaxed); /* S3 */
}

/* S4: marks the sleeper of this ticket as signalled. This only spares further system calls. It
 * fails when the sleeper sleeps with another ticket, so no order is needed. */
static inline void rm_atomic_sleeper_signalled(_Atomic uint32_t *sleeping, uint32_t ticket)
{
    atomic_compare_exchange_strong_explicit(sleeping, &ticket, ticket + 1, memory_order_relaxed,
                                            memory_order_relaxed); /* S4 */
}

/* For a sleeper that waits for a count (the wake's threshold). Sleeper: stores the threshold, then
 * reads the count once more. Waker: counts, then reads the threshold. S5 then S6 pair with S7 then
 * S8, as S0 to S3: at least one of the two sees the other. S1 does not replace S6: the last check
 * before a sleep comes after S1 and may store a lower threshold than the check before it, when a
 * setting has changed in between. */
static inline void rm_atomic_await_count(_Atomic uint64_t *threshold, uint64_t count)
{
    atomic_store_explicit(threshold, count, memory_order_relaxed); /* S5 */
    atomic_thread_fence(memory_order_seq_cst);                     /* S6 */
}

static inline uint64_t rm_atomic_awaited_count(const _Atomic uint64_t *threshold)
{
    atomic_thread_fence(memory_order_seq_cst);                    /* S7 */
    return atomic_load_explicit(threshold, memory_order_relaxed); /* S8 */
}

/* --- L: limiter ------------------------------------------------------------------------------ */

/* L0 pairs with L1: items are committed before they are counted as inserted, and drawn before they
 * are counted as sampled, so every counted item is there. */
static inline void rm_atomic_limiter_count(_Atomic uint64_t *word, uint64_t n)
{
    atomic_fetch_add_explicit(word, n, memory_order_release); /* L0 */
}

static inline uint64_t rm_atomic_limiter_counted(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire); /* L1 */
}

/* --- B: barrier of rounds -------------------------------------------------------------------- */

/* B0 pairs with B2: a process that sees a participant arrived sees its work. B1 is a full fence
 * between storing the participant's own arrival and reading the others': of two that arrive last
 * together at least one sees both (as S1 and S2). Without B1 the round might never advance. */
static inline void rm_atomic_round_arrive(_Atomic uint64_t *arrived, uint64_t round)
{
    atomic_store_explicit(arrived, round, memory_order_release); /* B0 */
    atomic_thread_fence(memory_order_seq_cst);                   /* B1 */
}

static inline uint64_t rm_atomic_round_arrived(const _Atomic uint64_t *arrived)
{
    return atomic_load_explicit(arrived, memory_order_acquire); /* B2 */
}

/* B3 pairs with B4: a process that sees the new round sees the work of all participants of the old
 * one. Several may see that all have arrived; the exchange picks one of them. */
static inline bool rm_atomic_round_advance(_Atomic uint64_t *current, uint64_t round)
{
    return atomic_compare_exchange_strong_explicit(current, &round, round + 1,
                                                   memory_order_release, /* B3 */
                                                   memory_order_relaxed);
}

static inline uint64_t rm_atomic_round_current(const _Atomic uint64_t *current)
{
    return atomic_load_explicit(current, memory_order_acquire); /* B4 */
}

#endif
