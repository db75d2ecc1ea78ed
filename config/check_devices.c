/* implements: config/check.h, for several GPUs that train an agent together (learner.devices). */
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
           SAY("%u GPUs: algorithm.name \"%s\" %s", DEVICES(e),
               rm_algorithm_names[e->algorithm.name],
               traits->device ? "learns on one GPU" : "has no GPU form");
}

static bool device(experiment_t *e, char *text, size_t bytes)
{
    const char *d = e->learner.device;
    return SEVERAL(e) && strcmp(d, "auto") != 0 && strncmp(d, "cuda:", 5) != 0 &&
           SAY("%u GPUs: learner.device \"%s\" does not say which; \"auto\" or \"cuda:N\" does",
               DEVICES(e), d);
}

static bool batch(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && !ROLLOUT(e) && e->sample.batch % DEVICES(e) &&
           SAY("%u rows are no equal parts for %u GPUs (learner.devices)", e->sample.batch,
               DEVICES(e));
}

static bool finite(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && e->debug.check_finite != RM_CHECK_FINITE_OFF &&
           SAY("\"%s\" looks through one GPU's numbers in the middle of an update, and "
               "learner.devices is %u",
               rm_check_finite_names[e->debug.check_finite], DEVICES(e));
}

static bool observations(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && !ROLLOUT(e) && e->network.normalize_observations &&
           SAY("true: the moments of batches from replay are kept for one GPU, and learner.devices "
               "is %u",
               DEVICES(e));
}

static bool worlds(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && e->actor.device != RM_ACTOR_CPU && e->actor.worlds < DEVICES(e) &&
           SAY("%u worlds on %u GPUs (learner.devices): each steps one at least", e->actor.worlds,
               DEVICES(e));
}

static bool processes(experiment_t *e, char *text, size_t bytes)
{
    return SEVERAL(e) && e->learner.processes == RM_LEARNERS_ONE &&
           SAY("\"one\": several policies in one process would wait for each other on each of "
               "learner.devices %u GPUs",
               DEVICES(e));
}

static const struct rm_check rows[] = {
    {{"learner.devices", "algorithm.name"},
     algorithm,
     "GPUs that train together run an algorithm that can divide its batches."},
    {{"learner.devices", "learner.device"}, device, "GPUs that train together can be told."},
    {{"sample.batch", "learner.devices"}, batch, "Every GPU has an equal part of a batch."},
    {{"debug.check_finite", "learner.devices"},
     finite,
     "Numbers are looked through where one GPU has all of an update."},
    {{"network.normalize_observations", "learner.devices"},
     observations,
     "Observations are normalised where one GPU has all of a batch."},
    {{"actor.worlds", "learner.devices"},
     worlds,
     "Every GPU has a world, where worlds are on GPUs."},
    {{"learner.processes", "learner.devices"},
     processes,
     "GPUs that train together are one policy's at a time."},
};
const struct rm_check_table rm_checks_of_devices = {rows, sizeof(rows) / sizeof(rows[0])};
