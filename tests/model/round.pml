/* The barrier of rounds. Participants store their arrival, look at all others', and the one who finds
 * everybody there advances the round; then each reads what the others did in it.
 *
 * Arrivals wait in store buffers (weak.h). What is visible to whom is kept as views: know[p] says up to
 * which round p is sure to see each other's work; a release attaches its storer's view to the word, an
 * acquire takes over the view that it finds there: happens-before, word for word, so it also covers
 * machines on which a store reaches some processors earlier than others.
 * A participant may be killed after it arrived; its heir arrives again.
 * drop 1 B0: the arrival is stored without release
 * drop 2 B1: no full fence between storing one's arrival and looking at the others'
 * drop 3 B2: the others' arrivals are loaded without acquire
 * drop 4 B3: the round is advanced without release
 * drop 5 B4: the round is loaded without acquire
 * drop 6 heir: who takes a dead participant's place does not arrive again
 */
#define P 3
#define ROUNDS 2
#define LOCS P
#include "weak.h" /* mem[p]: the round in which p arrived last */

byte current = 1;
byte view[2 * P * P + P];
#define KNOW(p, q) view[(p) * P + (q)]                /* p sees q's work up to this round */
#define ARRIVED_VIEW(p, q) view[P * P + (p) * P + (q)] /* attached to mem[p] */
#define CURRENT_VIEW(q) view[2 * P * P + (q)]          /* attached to `current` */
byte deaths;

inline acquire(me, at)
{
    d_step {
        k = 0;
        do
        :: k < P ->
            if
            :: view[at + k] > KNOW(me, k) -> KNOW(me, k) = view[at + k]
            :: else -> skip
            fi;
            k++
        :: else -> break
        od;
        k = 0
    }
}

proctype participant(byte me)
{
    STORE_BUFFER;
    byte r = 1, q = 0, k = 0;
    bool all = false;
    byte fenced[P]; /* own view at the fence: what a relaxed store after it carries */
    do
    :: r <= ROUNDS ->
        KNOW(me, me) = r; /* the work of the round, done */
arrive:
        if
        :: drop != 1 ->
            d_step {
                k = 0;
                do
                :: k < P -> ARRIVED_VIEW(me, k) = KNOW(me, k); k++
                :: else -> break
                od;
                k = 0
            }
        :: else -> skip
        fi;
        store(me, r);
        if
        :: drop != 2 -> fence()
        :: else -> skip
        fi;
        skip;
        d_step {
            k = 0;
            do
            :: k < P -> fenced[k] = KNOW(me, k); k++
            :: else -> break
            od;
            k = 0
        }
        if
        :: atomic { deaths == 0 && me == 0 && r == 1 -> deaths = 1 }
            drain_some();
            pend = 0; after[me] = 0; val[me] = 0;
            if
            :: drop != 6 -> goto arrive
            :: else -> goto wait
            fi
        :: skip
        fi;
        all = true;
        q = 0;
        do
        :: q < P && q != me ->
            atomic {
                if
                :: mem[q] < r -> all = false
                :: else ->
                    if
                    :: drop != 3 -> acquire(me, P * P + q * P)
                    :: else -> skip
                    fi
                fi;
                q++
            }
        :: q < P && q == me -> q++
        :: else -> break
        od;
        q = 0;
        if
        :: all ->
            atomic {
                if
                :: current == r ->
                    k = 0;
                    do
                    :: k < P ->
                        if
                        :: drop != 4 -> CURRENT_VIEW(k) = KNOW(me, k)
                        :: else -> CURRENT_VIEW(k) = fenced[k]
                        fi;
                        k++
                    :: else -> break
                    od;
                    k = 0;
                    current = r + 1
                :: else -> skip
                fi
            }
        :: else -> skip
        fi;
wait:
        do /* asleep until the round advances; stores become visible meanwhile */
        :: current > r -> break
        :: pend != 0 -> drain_one()
        od;
        assert(current == r + 1);
        if
        :: drop != 5 -> acquire(me, 2 * P * P)
        :: else -> skip
        fi;
        skip;
        d_step {
            do
            :: q < P -> assert(KNOW(me, q) >= r); q++
            :: else -> break
            od;
            q = 0;
            all = false;
            r++
        }
    :: else -> break
    od;
    fence()
}

init { atomic { read_drop(); run participant(0); run participant(1); run participant(2) } }
