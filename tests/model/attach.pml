/* Whoever attaches to a ring or to weights looks whether the words fit together; a live writer, who
 * changes them meanwhile, is not refused. A ring's writer reserves row after row and commits it; one of
 * weights fills a slot, names its version and goes on to the slot that is looked at.
 * drop 1 R0: `reserved` is stored without release
 * drop 2 R3: `committed` is loaded without acquire: `reserved` anew before it
 * drop 3 W0: the odd sequence is stored without release
 * drop 4 W1: no release fence between the odd sequence and the version
 * drop 5 slot: the version is loaded without acquire: `latest` anew before it
 */
#define LOCS 5
#include "weak.h"
#define RESERVED 0
#define COMMITTED 1
#define LATEST 2
#define SEQUENCE 3 /* of the slot of version 1, filled anew with version 4 */
#define VERSION 4
#define ROWS 3

active proctype ring_writer()
{
    STORE_BUFFER;
    byte i = 0;
    (drop != 255);
    do
    :: i < ROWS ->
        if
        :: drop == 1 -> store(RESERVED, i + 1)
        :: else -> store_release(RESERVED, i + 1)
        fi;
        fence();
        store_release(COMMITTED, i + 1);
        i++
    :: else -> break
    od;
    fence()
}

active proctype ring_attacher()
{
    byte reserved = 0, committed = 0, again = 0;
    (drop != 255);
    reserved = mem[RESERVED];
    if
    :: drop == 2 -> again = mem[RESERVED]; committed = mem[COMMITTED]
    :: else -> committed = mem[COMMITTED]; again = mem[RESERVED]
    fi;
    /* Fits, or is seen to be alive. */
    assert(reserved == committed || reserved == committed + 1 || again != reserved)
}

/* Versions 1 and 2 stand; 3 goes into a slot that is not looked at, 4 into that of 1. */
active proctype weights_writer()
{
    STORE_BUFFER;
    (drop != 255);
    store_release(LATEST, 1); /* further than at first: version 3 is named */
    if
    :: drop == 3 -> store(SEQUENCE, 1)
    :: else -> store_release(SEQUENCE, 1)
    fi;
    if
    :: drop != 4 -> fence()
    :: else -> skip
    fi;
    store(VERSION, 1);
    store_release(SEQUENCE, 2);
    store_release(LATEST, 2);
    fence()
}

active proctype weights_attacher()
{
    byte latest = 0, sequence = 0, version = 0, again = 0;
    (drop != 255);
    latest = mem[LATEST];
    sequence = mem[SEQUENCE];
    if
    :: drop == 5 -> again = mem[LATEST]; version = mem[VERSION]
    :: else -> version = mem[VERSION]; again = mem[LATEST]
    fi;
    assert(latest != 0 || ((sequence & 1) == 0 && version == 0) || again != latest)
}

init { read_drop() }
