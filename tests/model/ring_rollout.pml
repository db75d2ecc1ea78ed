/* Ring in rollout mode: one producer, one consumer, each row once. The producer needs credit before
 * it writes (R7), the consumer has read a row before it gives credit (R6).
 * drop 1 R2: `committed` is stored without release
 * drop 2 R3: `committed` is loaded without acquire
 * drop 3 R6: `consumed` is stored without release: the row is still being read
 * drop 4 R7: `consumed` is loaded without acquire: the row is already being written
 */
#define LOCS 5
#include "weak.h"
#define COMMITTED 0
#define ROW(i, w) (1 + 2 * ((i) % ROWS) + (w))
#define ROWS 2
#define LAST 5

byte consumed; /* stored last by the consumer below, so it needs no buffer */

active proctype producer()
{
    STORE_BUFFER;
    byte i = 0;
    (drop != 255);
    do
    :: i < LAST ->
        if
        :: drop == 4 ->
            /* Stores done ahead of the load that decides: it will say yes in the end. */
            store(ROW(i, 0), i + 1);
            store(ROW(i, 1), i + 1);
            (i - consumed < ROWS)
        :: else ->
            (i - consumed < ROWS);
            store(ROW(i, 0), i + 1);
            store(ROW(i, 1), i + 1)
        fi;
        if
        :: drop == 1 -> store(COMMITTED, i + 1)
        :: else -> store_release(COMMITTED, i + 1)
        fi;
        i++
    :: else -> break
    od;
    fence()
}

active proctype consumer()
{
    byte i = 0, behind = 0, word0 = 0, word1 = 0;
    byte got = 0; /* bits: committed 1, word0 2, word1 4, credit given 8 */
    (drop != 255);
    do
    :: i < LAST ->
        do
        :: !(got & 1) && mem[COMMITTED] > i -> behind = mem[COMMITTED]; got = got | 1
        :: !(got & 2) && ((got & 1) || drop == 2) -> word0 = mem[ROW(i, 0)]; got = got | 2
        :: !(got & 4) && ((got & 1) || drop == 2) -> word1 = mem[ROW(i, 1)]; got = got | 4
        :: !(got & 8) && (got & 1) && ((got & 6) == 6 || drop == 3) ->
            consumed = i + 1; got = got | 8
        :: got == 15 -> break
        od;
        assert(word0 == i + 1 && word1 == i + 1);
        assert(behind - i <= ROWS);
        d_step { got = 0; behind = 0; word0 = 0; word1 = 0; i++ }
    :: else -> break
    od
}

init { read_drop() }
