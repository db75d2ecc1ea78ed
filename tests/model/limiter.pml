/* The limiter's sleep: a learner that lacks items says from how many on it wants to be signalled and
 * sleeps; actors count each item, look at that number, and sleep where they are too far ahead. A
 * wake-up is lost if the model ends with the learner asleep. Sleeping itself is wake.pml's.
 *
 * The supervisor changes the rate once, after which fewer items suffice, and wakes all; a learner
 * that reads the new rate before that is signalled again. Where too few rows are there for a batch,
 * one more is awaited.
 * drop 1 one look: what is missing by one look is added to a later one
 * drop 2 one look: as 1, where no batch can be drawn
 * drop 3 S6: no full fence between saying the number and looking whether it is reached
 * drop 4 S6: does not look
 * drop 5 S7: no full fence between counting and looking at the number
 * drop 6 change: the supervisor wakes nobody
 */
#define LOCS 2
#include "weak.h"
#define THRESHOLD 0
#define SLEEPING 1
#define FILL 2    /* items there before any is sampled */
#define DRAW 3    /* the fewest that a batch can be drawn from */
#define LAST 6    /* items */
#define SAMPLES 3 /* of them, no more than LAST allows */

byte inserted, sampled; /* added to by locked operations: visible at once, in one order */
byte slow = 3;          /* items more before a sample, until the rate is changed */
bool actor_sleeps, actor_event, learner_event;

#define NEEDED (sampled + 1 + slow > FILL -> sampled + 1 + slow : FILL)
#define MAY_INSERT (inserted < DRAW || inserted + 1 <= sampled + 1 + slow)

inline wake_actor()
{
    d_step {
        if
        :: actor_sleeps -> actor_event = true
        :: else -> skip
        fi
    }
}

inline wake_learner()
{
    if
    :: mem[SLEEPING] -> learner_event = true
    :: else -> skip
    fi
}

active proctype learner()
{
    STORE_BUFFER;
    byte seen = 0, wanted = 0;
    bool prepared = false;
    (drop != 255);
    do
    :: sampled == SAMPLES -> break
    :: sampled < SAMPLES ->
        seen = inserted;
        wanted = NEEDED;
        if
        :: seen >= wanted && seen >= DRAW ->
            sampled++;
            wake_actor();
            wanted = 0
        :: seen >= wanted && seen < DRAW ->
            if
            :: drop == 2 -> wanted = inserted + 1
            :: else -> wanted = seen + 1
            fi
        :: seen < wanted ->
            if
            :: drop == 1 -> wanted = wanted - seen; wanted = wanted + inserted
            :: else -> skip
            fi
        fi;
        if
        :: wanted ->
            store(THRESHOLD, wanted);
            if
            :: drop != 3 -> fence()
            :: else -> skip
            fi;
            if
            :: drop != 4 && inserted >= wanted -> wanted = 0
            :: else -> skip
            fi
        :: else -> skip
        fi;
        if
        :: wanted && !prepared ->
            store(SLEEPING, 1);
            fence();
            prepared = true
        :: else ->
            if
            :: wanted -> /* asleep; what was stored becomes visible meanwhile */
                do
                :: learner_event -> break
                :: pend != 0 -> drain_one()
                od
            :: else -> skip
            fi;
            if
            :: prepared -> store(SLEEPING, 0); fence(); learner_event = false; prepared = false
            :: else -> skip
            fi
        fi;
        d_step { seen = 0; wanted = 0 }
    od;
    fence();
    wake_actor()
}

active proctype actor()
{
    byte awaited = 0, count = 0;
    (drop != 255);
    do
    :: inserted == LAST || sampled == SAMPLES -> break
    :: else ->
        awaited = mem[THRESHOLD]; /* where nothing keeps this look behind the count */
        if
        :: MAY_INSERT ->
            inserted++;
            count = inserted;
            if
            :: drop == 5 -> skip
            :: else -> awaited = mem[THRESHOLD]
            fi;
            if
            :: count >= awaited -> wake_learner()
            :: else -> skip
            fi
        :: else ->
            actor_sleeps = true;
            if
            :: MAY_INSERT || sampled == SAMPLES -> skip
            :: else -> actor_event
            fi;
            d_step { actor_sleeps = false; actor_event = false }
        fi;
        d_step { awaited = 0; count = 0 }
    od;
    wake_learner()
}

active proctype supervisor()
{
    (drop != 255);
    slow = 0;
    if
    :: drop == 6 -> skip
    :: else -> wake_actor(); wake_learner()
    fi
}

init { read_drop() }
