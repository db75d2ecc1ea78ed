/* forms: consequences of algorithm.form outside of the algorithms. A form is the paper's algorithm,
 * or an exact copy of the original treasure hunt's algorithm (compat). One row per form. Read-only
 * data; any thread. */
#ifndef RM_CONFIG_FORMS_H
#define RM_CONFIG_FORMS_H

#include "config/experiment.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_form_traits {
    bool slots;               /* replay is an array of ring.capacity slots with a write index */
    uint32_t jump;            /* slots that the index skips when an episode begins */
    uint32_t laps;            /* the rows in slots are at most this many ring.capacity old */
    bool stacks_of_slots;     /* actors stack the frames of the slots before the write index */
    bool drops_first_updates; /* updates due before sample.min_fill are never made */
    bool noiseless_target;
    bool copies_target; /* also copies the target at the start of every target.interval-th epoch */
    bool mean_over_quantiles; /* the loss is a mean over the online quantiles, not their sum */
};

const struct rm_form_traits *rm_form_traits(enum rm_form form);

#endif
