/* implements: config/check.h, for several GPUs that train one policy (learner.devices). */
#include "config/check_tables.h"
#include "config/config.h"
#include "config/names.h"
#include "config/traits.h"

#include <stdio.h>
#include <string.h>

typedef const struct rm_experiment experiment_t;

#define SAY(...)   (snprintf(text, bytes, __VA_ARGS__), true)
#define SEVERAL(e) ((e)->learner.devices > 1)
#define DEVICES(e) ((e)->learner.devices)
#define ROLLOUT(e) (rm_algorithm_traits((e)->algorithm.name)->rollout)

static bool algorithm(experiment_t *e, char *text, size_t bytes)
{
    const struct rm_algorithm_traits *traits = rm_algorithm_traits(e->algorithm.name);
    return SEVERAL(e) && !traits->devices &&
           SAY("%u GPUs: algorithm.name \"%s\" learns on one GPU", DEVICES(e),
               rm_algorithm_names[e->algorithm.name]);
}

static bool sequences(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && rm_algorithm_traits(e->algorithm.name)->devices &&
           rm_learns_sequences(e) &&
           SAY("%u GPUs: algorithm.name \"%s\" learns a recurrent network on one GPU", DEVICES(e),
               rm_algorithm_names[e->algorithm.name]);
}

static bool device(experiment_t *e, char *text, size_t bytes)
{
    const char *d = e->learner.device;
    return SEVERAL(e) && strcmp(d, "auto") != 0 && strncmp(d, "cuda:", 5) != 0 &&
           SAY("%u GPUs: learner.device \"%s\" does not choose several; use \"auto\" or \"cuda:N\"",
               DEVICES(e), d);
}

static bool batch(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && !ROLLOUT(e) && e->sample.batch % DEVICES(e) &&
           SAY("%u rows cannot be divided equally among %u GPUs (learner.devices)", e->sample.batch,
               DEVICES(e));
}

static bool finite(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && e->debug.check_finite != RM_CHECK_FINITE_OFF &&
           SAY("\"%s\" works with one GPU only, but learner.devices is %u",
               rm_check_finite_names[e->debug.check_finite], DEVICES(e));
}

static bool clip_maximum(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && e->algorithm.value_clip_maximum == RM_MAXIMUM_OF_MEANS &&
           SAY("\"means\" works with one GPU only, but learner.devices is %u", DEVICES(e));
}

static bool observations(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && !ROLLOUT(e) && e->network.normalize_observations &&
           SAY("true: with replay this works with one GPU only, but learner.devices is %u",
               DEVICES(e));
}

static bool worlds(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && e->actor.device != RM_ACTOR_CPU && e->actor.worlds < DEVICES(e) &&
           SAY("%u worlds on %u GPUs (learner.devices): every GPU needs at least one",
               e->actor.worlds, DEVICES(e));
}

static bool processes(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && e->learner.processes == RM_LEARNERS_ONE &&
           SAY("\"one\": several policies in one process would wait for each other on all %u GPUs "
               "(learner.devices); use \"each\"",
               DEVICES(e));
}

static const struct rm_check rows[] = {
    {{"learner.devices", "algorithm.name"},
     algorithm,
     "GPUs that train together run an algorithm that can divide its batches."},
    {{"learner.devices", "algorithm.name", "network.layers"},
     sequences,
     "GPUs that train together do not divide sequences."},
    {{"learner.devices", "learner.device"},
     device,
     "GPUs that train together are chosen by \"auto\" or \"cuda:N\"."},
    {{"sample.batch", "learner.devices"}, batch, "Every GPU has an equal part of a batch."},
    {{"debug.check_finite", "learner.devices"},
     finite,
     "Checks for non-finite numbers need a single GPU."},
    {{"algorithm.value_clip_maximum", "learner.devices"},
     clip_maximum,
     "The larger mean of a whole minibatch is known on one GPU only."},
    {{"network.normalize_observations", "learner.devices"},
     observations,
     "With replay, normalising observations needs a single GPU."},
    {{"actor.worlds", "learner.devices"},
     worlds,
     "With worlds on GPUs every GPU has at least one world."},
    {{"learner.processes", "learner.devices"},
     processes,
     "Several GPUs that train together need a process for each policy."},
};
const struct rm_check_table rm_checks_of_devices = {rows, sizeof(rows) / sizeof(rows[0])};
