#include "config/forms.h"

#include <assert.h>

static const struct rm_form_traits traits[] = {
    [RM_FORM_PAPER] = {.slots = false},
    [RM_FORM_SORREL_SEQ] = {.slots = true,
                            .jump = 4, /* the original's frame stack of 5, less the current one */
                            .laps = 3,
                            .stacks_of_slots = true,
                            .drops_first_updates = true,
                            .copies_target = true,
                            .mean_over_quantiles = true},
    [RM_FORM_SORREL_MP] = {.slots = true,
                           .laps = 1,
                           .noiseless_target = true,
                           .mean_over_quantiles = true},
};
static_assert(sizeof traits / sizeof traits[0] == RM_FORM_SORREL_MP + 1, "a row per form");

const struct rm_form_traits *rm_form_traits(enum rm_form form)
{
    return &traits[form];
}
