/* Publication of a region: the creator fills it and stores the version last (P0); who attaches loads
 * the version first (P1) and may then read everything. The creator may die anywhere.
 * drop 1 P0: the version is stored without release
 * drop 2 P1: the version is loaded without acquire
 */
#define LOCS 3
#include "weak.h"
#define VERSION 0
#define HEADER 1
#define BODY 2

active proctype creator()
{
    STORE_BUFFER;
    (drop != 255);
    store(HEADER, 7);
    store(BODY, 8);
    if
    :: drop == 1 -> store(VERSION, 1)
    :: else -> store_release(VERSION, 1)
    fi;
    fence()
}

active [2] proctype attacher()
{
    byte version = 0, header = 0, body = 0;
    bool got_version = false, got_header = false, got_body = false;
    (drop != 255);
    do
    :: !got_version -> version = mem[VERSION]; got_version = true
    :: !got_header && (got_version || drop == 2) -> header = mem[HEADER]; got_header = true
    :: !got_body && (got_version || drop == 2) -> body = mem[BODY]; got_body = true
    :: got_version && got_header && got_body -> break
    od;
    assert(version == 0 || (header == 7 && body == 8))
}

init { read_drop() }
