/* Weights: three slots, each with a sequence; `latest` names a version, which stands in slot
 * version % 3. The writer may be killed at any point; another goes on from `latest`. A copy that a
 * reader keeps is whole and of the version it was promised; versions never go backwards; and a read
 * fails only when the writer has come round to the slot, so no reader waits for the writer.
 * drop 1 W1: no release fence between the odd sequence and the data
 * drop 2 W2: the even sequence is stored without release
 * drop 3 W3: the sequence is loaded without acquire
 * drop 4 W4: no acquire fence between copying and loading the sequence again
 * drop 5 W6: `latest` is stored without release
 * drop 6 W7: `latest` is loaded without acquire
 * drop 7 q | 1: a new writer adds one to the sequence that a dead one left odd
 * drop 8 version: a reader does not compare the slot's version with the one it was promised
 */
#define LOCS 13
#include "weak.h"
#define LATEST 0
#define SEQ(v) (1 + 4 * ((v) % 3))
#define VERSION(v) (2 + 4 * ((v) % 3))
#define WORD0(v) (3 + 4 * ((v) % 3))
#define WORD1(v) (4 + 4 * ((v) % 3))
#define LAST 4 /* versions 1 .. LAST: one slot is used twice */

byte begun; /* ghost: the newest version whose slot the writer has begun to fill */

active proctype writer()
{
    STORE_BUFFER;
    byte v = 1, odd = 0, life = 0;
    (drop != 255);
    do
    :: v <= LAST ->
        /* It is the only one who stores the sequence: what it stored last, it knows. */
        if
        :: pend & BIT(SEQ(v)) -> odd = val[SEQ(v)]
        :: else -> odd = mem[SEQ(v)]
        fi;
        if
        :: drop == 7 -> odd = odd + 1
        :: else -> odd = odd | 1
        fi;
        begun = v;
        store(SEQ(v), odd);
        if
        :: drop != 1 -> fence()
        :: else -> skip
        fi;
        store(VERSION(v), v);
        if
        :: store(WORD0(v), v + 16 * life); store(WORD1(v), v + 16 * life)
        :: life == 0 -> store(WORD0(v), v + 16 * life); goto killed
        fi;
        if
        :: drop == 2 -> store(SEQ(v), odd + 1)
        :: else -> store_release(SEQ(v), odd + 1)
        fi;
        if
        :: life == 0 -> goto killed
        :: skip
        fi;
        if
        :: drop == 5 -> store(LATEST, v)
        :: else -> store_release(LATEST, v)
        fi;
        v++;
        goto lives;
killed:
        lose_buffer();
        skip;
        d_step { life = 1; v = mem[LATEST] + 1; odd = 0 };
lives:
        skip
    :: else -> break
    od;
    fence()
}

active proctype reader()
{
    byte turn = 0, v = 0, promised = 0, seq = 0, version = 0, word0 = 0, word1 = 0, again = 0;
    byte last = 0;
    byte got = 0; /* bits: latest 1, seq 2, version 4, word0 8, word1 16, again 32 */
    (drop != 255);
    do
    :: turn < 2 ->
        if
        :: drop == 6 -> select (v : 1 .. LAST) /* loads ahead of the one that says where */
        :: else -> v = mem[LATEST]; promised = v; got = 1
        fi;
        if
        :: v == 0 -> goto next /* nothing published */
        :: else -> skip
        fi;
        do
        :: !(got & 1) -> promised = mem[LATEST]; got = got | 1
        :: !(got & 2) -> seq = mem[SEQ(v)]; got = got | 2
        :: !(got & 4) && ((got & 2) || drop == 3) -> version = mem[VERSION(v)]; got = got | 4
        :: !(got & 8) && ((got & 2) || drop == 3) -> word0 = mem[WORD0(v)]; got = got | 8
        :: !(got & 16) && ((got & 2) || drop == 3) -> word1 = mem[WORD1(v)]; got = got | 16
        :: !(got & 32) && (got & 2) && ((got & 28) == 28 || drop == 4) ->
            again = mem[SEQ(v)]; got = got | 32
        :: got == 63 -> break
        od;
        if
        :: promised != v -> skip /* the guess was wrong: this did not happen */
        :: promised == v && !(seq & 1) && seq == again && (version == v || drop == 8) ->
            assert(word0 == word1);
            assert((word0 & 15) == v);
            assert(v >= last);
            last = v
        :: else -> assert(begun >= v + 3) /* lapped */
        fi;
next:
        skip;
        d_step {
            got = 0; v = 0; promised = 0; seq = 0; version = 0; word0 = 0; word1 = 0; again = 0;
            turn++
        }
    :: else -> break
    od
}

init { read_drop() }
