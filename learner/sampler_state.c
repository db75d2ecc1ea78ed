/* The state of a sampler, without rows and shared priorities. */
#include "learner/priority_tree.h"
#include "learner/sampler_private.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "shm/layout.h"

#include <stdio.h>

static void windows_state(struct rm_sampler *s, struct rm_state *state)
{
    /* In rounds the windows do not change during a round. */
    for (uint32_t i = 0; i < s->spec.source_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "window%u", i);
        rm_state_enter(state, name);
        RM_STATE(state, "end", s->windows[i].end);
        RM_STATE(state, "held", s->windows[i].held);
        RM_STATE(state, "starts", s->windows[i].starts);
        RM_STATE(state, "counted", s->windows[i].counted);
        rm_state_leave(state);
    }
    RM_STATE(state, "longest", s->longest);
}

static void slots_state(struct rm_sampler *s, struct rm_state *state)
{
    RM_STATE(state, "scanned", s->scanned);
    RM_STATE(state, "slots.head", s->slots.head);
    RM_STATE(state, "slots.written", s->slots.written);
    rm_state_bytes(state, "slots.row", s->slots.row, s->slots.capacity * sizeof *s->slots.row);
}

/* The sampler's own tree, for uniform draws of sequences. */
static void tree_state(struct rm_sampler *s, struct rm_state *state)
{
    rm_state_bytes(state, "leaves", s->own.level[0], s->own.nodes[0] * sizeof(double));
    rm_state_bytes(state, "entered", s->own.entered, s->own.spec.sources * sizeof(uint64_t));
    RM_STATE(state, "largest", s->own.shared->largest);
    if (!rm_state_loading(state))
        return;
    rm_priority_rebuild(&s->own);
    s->items = rm_priority_count(&s->own);
}

void rm_sampler_state(struct rm_sampler *s, struct rm_state *state)
{
    rm_state_enter(state, "sampler");
    windows_state(s, state);
    if (s->spec.form != RM_FORM_PAPER)
        slots_state(s, state);
    if (s->age)
        rm_state_bytes(state, "age", s->age, s->lanes * sizeof *s->age);
    if (s->tree && s->alike)
        tree_state(s, state);
    rm_state_leave(state);
}
