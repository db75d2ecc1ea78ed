/* Sleep and wake: a sleeper says that it sleeps and looks once more for work; a waker makes work
 * visible and looks whether somebody sleeps. A wake-up is lost if the model ends with the sleeper
 * asleep. A waker may be killed anywhere; who takes its place signals once, in case it owed that.
 * drop 1 S1: no full fence on the sleeper's side
 * drop 2 S2: no full fence on the waker's side
 * drop 3 S4: the waker stores 'signalled' instead of exchanging its own ticket for it
 * drop 4 order: the waker marks the ticket before it writes the eventfd
 */
#define WAKERS 2
#define LOCS 3
#include "weak.h"
#define SLEEPING 2 /* words 0 and 1 are the wakers' work */
#define PIECES(w) (2 - (w)) /* of waker w */

bool eventfd;
byte deaths;

active proctype sleeper()
{
    STORE_BUFFER;
    byte ticket = 0, done0 = 0, done1 = 0;
    (drop != 255);
    do
    :: true ->
        done0 = mem[0]; /* what it has seen, it has done */
        done1 = mem[1];
        if
        :: done0 == PIECES(0) && done1 == PIECES(1) -> break /* all work is there */
        :: else -> skip
        fi;
        ticket = (ticket | 1) + 2;
        store(SLEEPING, ticket);
        if
        :: drop != 1 -> fence()
        :: else -> skip
        fi;
        if
        :: mem[0] != done0 || mem[1] != done1 -> skip /* cancelled */
        :: else -> eventfd; drain_some()
        fi;
        ticket = (ticket | 1) + 1;
        store(SLEEPING, ticket);
        eventfd = false
    od;
    fence()
}

inline signal_sleeper()
{
    if
    :: drop != 2 -> fence()
    :: else -> skip
    fi;
    seen = mem[SLEEPING];
    if
    :: seen & 1 ->
        if
        :: drop == 4 -> mark(); maybe_die(); eventfd = true
        :: else -> eventfd = true; maybe_die(); mark()
        fi
    :: else -> skip
    fi
}

inline mark()
{
    if
    :: drop == 3 -> mem[SLEEPING] = seen + 1
    :: else -> atomic { if :: mem[SLEEPING] == seen -> mem[SLEEPING] = seen + 1 :: else -> skip fi }
    fi
}

inline maybe_die()
{
    if
    :: atomic { deaths == 0 -> deaths = 1; goto killed }
    :: skip
    fi
}

proctype waker(byte me)
{
    STORE_BUFFER;
    byte n = 0, seen = 0;
    do
    :: n < PIECES(me) ->
        n++;
        store(me, n);
        maybe_die();
        signal_sleeper();
        goto lives;
killed:
        lose_buffer();
        n = mem[me];
        goto heir;
lives:
        skip
    :: else -> break
    od;
    goto over;
heir:
    fence();
    seen = mem[SLEEPING];
    if
    :: seen & 1 -> eventfd = true; mark()
    :: else -> skip
    fi;
    do
    :: n < PIECES(me) ->
        n++;
        store(me, n);
        fence();
        seen = mem[SLEEPING];
        if
        :: seen & 1 -> eventfd = true; mark()
        :: else -> skip
        fi
    :: else -> break
    od;
over:
    fence()
}

init { atomic { read_drop(); run waker(0); run waker(1) } }
