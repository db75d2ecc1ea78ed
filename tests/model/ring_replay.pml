/* Ring in replay mode: the writer overwrites the oldest row without asking; a reader copies a row and
 * keeps the copy if `reserved` shows that the writer had not come round to it. Two words a row, so
 * that a torn copy shows; the writer is killed at any point, and another takes over.
 * drop 1 R1: no release fence between storing `reserved` and the row
 * drop 2 R1: the store of `reserved` is a release instead of the fence after it
 * drop 3 R2: `committed` is stored without release
 * drop 4 R3: `committed` is loaded without acquire
 * drop 5 R4: no acquire fence between copying and loading `reserved` again
 * drop 6 takeover: the new writer takes `reserved` back to `committed`
 */
#define LOCS 6
#include "weak.h"
#define RESERVED 0
#define COMMITTED 1
#define ROW(i, w) (2 + 2 * ((i) % ROWS) + (w))
#define ROWS 2
#define LAST 3 /* indices 0 .. LAST - 1 are written */

#define VALUE(i, life) (1 + (i) + 16 * (life))

active proctype writer()
{
    STORE_BUFFER;
    byte i = 0, life = 0;
    (drop != 255);
    do
    :: i < LAST ->
        /* The writer knows its own indices; memory is only for the others. */
        if
        :: drop == 2 -> store_release(RESERVED, i + 1)
        :: else -> store(RESERVED, i + 1)
        fi;
        if
        :: drop != 1 && drop != 2 -> fence()
        :: else -> skip
        fi;
        if
        :: store(ROW(i, 0), VALUE(i, life)); store(ROW(i, 1), VALUE(i, life))
        :: store(ROW(i, 0), VALUE(i, life)); goto killed /* half a row */
        :: goto killed
        fi;
        if
        :: drop == 3 -> store(COMMITTED, i + 1)
        :: else -> store_release(COMMITTED, i + 1)
        fi;
        i++;
        if
        :: goto killed
        :: skip
        fi;
        goto lives;
killed:
        if
        :: life == 0 ->
            lose_buffer();
            life = 1;
            i = mem[COMMITTED];
            if
            :: drop == 6 -> store(RESERVED, i); fence()
            :: else -> skip
            fi
        :: else -> goto over /* once is enough */
        fi;
lives:
        skip
    :: else -> break
    od;
over:
    fence()
}

active proctype reader()
{
    byte turn = 0, i = 0, behind = 0, word0 = 0, word1 = 0, reserved = 0;
    byte got = 0; /* bits: committed 1, word0 2, word1 4, reserved 8 */
    (drop != 255);
    do
    :: turn < 2 ->
        atomic { select (i : 0 .. LAST - 1) };
        do
        :: !(got & 1) -> behind = mem[COMMITTED]; got = got | 1
        :: !(got & 2) && ((got & 1) || drop == 4) -> word0 = mem[ROW(i, 0)]; got = got | 2
        :: !(got & 4) && ((got & 1) || drop == 4) -> word1 = mem[ROW(i, 1)]; got = got | 4
        :: !(got & 8) && ((got & 6) == 6 || drop == 5) -> reserved = mem[RESERVED]; got = got | 8
        :: got == 15 -> break
        od;
        if
        :: i < behind && reserved <= i + ROWS -> /* in the window, and intact */
            assert(word0 == word1);
            assert((word0 & 15) == 1 + i)
        :: else -> skip
        fi;
        skip;
        d_step { got = 0; behind = 0; word0 = 0; word1 = 0; reserved = 0; i = 0; turn++ }
    :: else -> break
    od
}

init { read_drop() }
