/* weak.h: a weak memory for Spin, whose own is sequentially consistent.
 *
 * Stores wait in a buffer of the process that made them and become visible one by one, in any order:
 * but a release store not before what was stored before it, and nothing later before a fence that
 * comes first. At most one store per location waits, so each location keeps its own order.
 * Loads: a model makes them in any order that its acquires and fences allow, as alternatives of one
 * loop, each guarded by what must come before it.
 *
 * DROP=n in the environment weakens the one order (or undoes the one rule) that the model's table
 * gives the number n; 0 or nothing: the protocol as it is. So one verifier runs every variant. */
#if !defined LOCS
#error "LOCS: how many words of shared memory"
#endif

byte mem[LOCS];
byte drop = 255; /* nobody starts before it is read */

c_decl {
\#include <stdlib.h>
}

inline read_drop()
{
    c_code { now.drop = getenv("DROP") ? atoi(getenv("DROP")) : 0; }
}

#define BIT(l) (1 << (l))

/* The buffer of one process: declare it among its locals. */
#define STORE_BUFFER                                                                               \
    int pend = 0;     /* bit l: a store to l waits */                                              \
    byte val[LOCS];   /* its value */                                                              \
    int after[LOCS];  /* which others must be visible first */                                     \
    byte j_ = 0

#define MAY(l) (LOCS > (l) && (pend & BIT(l)) && !(after[(l) % LOCS] & pend))

inline surface(l)
{
    d_step {
        mem[(l) % LOCS] = val[(l) % LOCS];
        val[(l) % LOCS] = 0;
        pend = pend & ~BIT(l);
        j_ = 0;
        do
        :: j_ < LOCS -> after[j_] = after[j_] & ~BIT(l); j_++
        :: else -> break
        od;
        j_ = 0
    }
}

/* One of the stores that may become visible does. */
inline drain_one()
{
    if
    :: atomic { MAY(0) -> surface(0) }
    :: atomic { MAY(1) -> surface(1) }
    :: atomic { MAY(2) -> surface(2) }
    :: atomic { MAY(3) -> surface(3) }
    :: atomic { MAY(4) -> surface(4) }
    :: atomic { MAY(5) -> surface(5) }
    :: atomic { MAY(6) -> surface(6) }
    :: atomic { MAY(7) -> surface(7) }
    :: atomic { MAY(8) -> surface(8) }
    :: atomic { MAY(9) -> surface(9) }
    :: atomic { MAY(10) -> surface(10) }
    :: atomic { MAY(11) -> surface(11) }
    :: atomic { MAY(12) -> surface(12) }
    fi
}

/* Any number of waiting stores become visible. */
inline drain_some()
{
    do
    :: pend != 0 -> drain_one()
    :: break
    od
}

/* A fence: all that waits becomes visible before anything later is done. */
inline fence()
{
    do
    :: pend != 0 -> drain_one()
    :: pend == 0 -> break
    od
}

inline put(l, v, deps)
{
    do
    :: pend & BIT(l) -> drain_one()
    :: !(pend & BIT(l)) -> break
    od;
    skip;
    d_step { after[l] = deps; val[l] = v; pend = pend | BIT(l) };
    drain_some()
}

inline store(l, v) { put(l, v, 0) }
inline store_release(l, v) { put(l, v, pend) }

/* The process is killed: some of what waits still gets out, the rest never does. */
inline lose_buffer()
{
    drain_some();
    skip;
    d_step {
        pend = 0;
        j_ = 0;
        do
        :: j_ < LOCS -> after[j_] = 0; val[j_] = 0; j_++
        :: else -> break
        od;
        j_ = 0
    }
}
