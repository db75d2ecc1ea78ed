/* What of a stepping goes into a checkpoint. */
#include "actor/stepping.h"
#include "shm/base/state.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void world_state(struct rm_stepping *s, struct rm_state *state)
{
    const size_t bytes = s->world.ops->state_size(s->env);
    void *part = rm_state_part(state, "world", RM_STATE_BYTES, bytes);
    if (!part || !bytes)
        return;
    rm_watch_enter(&s->watch, RM_WATCH_STATE);
    const int rc = rm_state_loading(state) ? s->world.ops->load_state(s->env, part)
                                           : s->world.ops->save_state(s->env, part);
    rm_watch_leave();
    const char *why = rc < 0 && s->world.ops->last_error ? s->world.ops->last_error(s->env) : NULL;
    if (rc < 0)
        rm_state_fail(state, -EIO, "world %s: its state cannot be %s: %s", s->spec->name,
                      rm_state_loading(state) ? "loaded" : "saved", why ? why : strerror(EIO));
}

static void arrivals_state(struct rm_arrivals *a, struct rm_state *state)
{
    const size_t lanes = (size_t)a->spec->agents * a->worlds;
    rm_state_bytes(state, "playing", a->playing, lanes * sizeof *a->playing);
    rm_state_bytes(state, "score", a->score, lanes * sizeof *a->score);
    rm_state_bytes(state, "age", a->age, lanes * sizeof *a->age);
    rm_state_bytes(state, "live", a->live, a->worlds * sizeof *a->live);
    rm_state_bytes(state, "total", a->total, a->worlds * sizeof *a->total);
    rm_state_bytes(state, "episodes", a->episodes, a->worlds * sizeof *a->episodes);
    rm_state_bytes(state, "began", a->began, a->worlds * sizeof *a->began);
    RM_STATE(state, "finished", a->finished);
}

/* Those of last rows wait for the next step. Checkpoints of former versions have none. */
static void figures_state(struct rm_stepping *s, struct rm_state *state)
{
    const size_t count = (size_t)s->spec->agents * s->worlds * s->spec->figures;
    if (s->figures && (!rm_state_loading(state) || rm_state_has(state, "figures")))
        rm_state_bytes(state, "figures", s->figures, count * sizeof *s->figures);
    else if (s->figures)
        for (size_t i = 0; i < count; i++)
            s->figures[i] = NAN;
}

static void policy_state(struct rm_stepping_policy *p, struct rm_state *state)
{
    const size_t lanes = p->ring->spec.lanes;
    RM_STATE(state, "reserved", p->reserved);
    RM_STATE(state, "next", p->next);
    if (p->state)
        rm_state_floats(state, "state", p->state, lanes * p->acting.state_floats);
    for (size_t i = 0; p->slots && i < lanes; i++) {
        char name[32];
        snprintf(name, sizeof name, "slots%zu", i);
        rm_state_enter(state, name);
        RM_STATE(state, "head", p->slots[i].head);
        RM_STATE(state, "written", p->slots[i].written);
        rm_state_bytes(state, "row", p->slots[i].row,
                       p->slots[i].capacity * sizeof *p->slots[i].row);
        rm_state_leave(state);
    }
}

void rm_stepping_state(struct rm_stepping *s, struct rm_state *state)
{
    RM_STATE(state, "started", s->started);
    RM_STATE(state, "steps", s->steps);
    RM_STATE(state, "steps_before", s->steps_before);
    RM_STATE(state, "episodes_before", s->episodes_before);
    RM_STATE(state, "rate", s->rate);
    if (s->started)
        world_state(s, state);
    rm_state_enter(state, "arrivals");
    arrivals_state(&s->arrivals, state);
    rm_state_leave(state);
    figures_state(s, state);
    for (uint32_t i = 0; i < s->plan->policies; i++) {
        char name[32];
        snprintf(name, sizeof name, "policy%u", i);
        rm_state_enter(state, name);
        policy_state(&s->policies[i], state);
        rm_state_leave(state);
    }
    struct rm_error error = {""};
    const int rc = rm_state_loading(state) ? rm_stepping_reopen(s, &error) : 0;
    if (rc < 0)
        rm_state_fail(state, rc, "%s", error.text);
}

bool rm_stepping_state_whole(const struct rm_state *state)
{
    return !rm_state_has(state, "world") || rm_state_bytes_of(state, "world") > 0;
}
