/* Opens the policy's rings, the sampler, and the feed to a device. */
#include "config/forms.h"
#include "config/traits.h"
#include "learner/algo/parallel.h"
#include "learner/replay_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct rm_sampler_source *make_sources(const struct rm_replay *r, struct rm_error *error)
{
    const uint32_t actors = r->session->objects.actors;
    struct rm_sampler_source *sources = calloc(actors, sizeof *sources);
    if (!sources)
        rm_fail(error, -ENOMEM, "no memory for %u rings", actors);
    for (uint32_t a = 0; sources && a < actors; a++) {
        sources[a].ring = rm_session_ring(r->session, a, r->policy);
        rm_session_worlds(r->experiment, a, &sources[a].first_world, &sources[a].worlds);
    }
    return sources;
}

/* Why batches must be made on the host; NULL: they need not. */
static const char *staged_because(const struct rm_replay *r, struct rm_backend *backend)
{
    const struct rm_experiment *e = r->experiment;
    if (rm_parallel_devices(backend) > 1)
        return "learner.devices: the host divides a batch among the devices";
    if (rm_form_traits(e->algorithm.form)->slots)
        return "algorithm.form has stacks across episodes";
    if (rm_algorithm_traits(e->algorithm.name)->sequences)
        return "sequences are made on the host";
    if (e->algorithm.name == RM_ALGORITHM_SAC && r->agent->has_mask)
        return "algorithm.name sac: the host has the legal actions of both states";
    if (e->network.normalize_observations)
        return "network.normalize_observations: the host computes the moments";
    return NULL;
}

static int open_feed(struct rm_replay *r, struct rm_backend *backend,
                     const struct rm_sampler_spec *sampler, struct rm_error *error)
{
    const struct rm_experiment *e = r->experiment;
    const struct rm_feed_spec spec = {
        .backend = backend,
        .sampler = sampler,
        .kind = e->learner.feed,
        .cannot = staged_because(r, backend),
        .name = r->plan->name,
    };
    const int rc = backend->device ? rm_feed_create(&r->feed, &spec, error) : 0;
    rm_sampler_device_draws(r->sampler, r->feed && rm_feed_draw(r->feed));
    return rc;
}

int rm_replay_open_sampler(struct rm_replay *r, struct rm_backend *backend, struct rm_error *error)
{
    const struct rm_experiment *e = r->experiment;
    const uint32_t actors = r->session->objects.actors;
    const bool sequences = rm_algorithm_traits(e->algorithm.name)->sequences;
    struct rm_sampler_source *sources = make_sources(r, error);
    if (!sources)
        return -ENOMEM;
    const struct rm_sampler_spec spec = {
        .sources = sources,
        .source_count = actors,
        .agents = r->plan->agents,
        .agent = r->agent,
        .codes = rm_network_takes_codes(&e->network),
        .batch = e->sample.batch,
        .n_step = e->sample.n_step,
        .frame_stack = e->sample.frame_stack,
        .gamma = e->sample.gamma,
        .capacity = e->ring.capacity,
        .form = e->algorithm.form,
        .seed = e->seed,
        .policy = r->policy,
        .priorities = r->session->priorities ? &r->session->priorities[r->policy] : NULL,
        .alpha = e->priority.alpha,
        .epsilon = e->priority.epsilon,
        .sequence.trace = sequences ? e->sample.sequence : 0,
        .sequence.burn_in = e->sample.burn_in,
        .sequence.period = e->sample.period,
        .sequence.state_floats = r->plan->state_floats,
    };
    int rc = rm_sampler_create(&r->sampler, &spec, error);
    if (!rc)
        rc = open_feed(r, backend, &spec, error);
    free(sources);
    return rc;
}

int rm_replay_open_trainer(struct rm_replay *r, struct rm_trainer_spec *spec,
                           struct rm_error *error)
{
    spec->gather = r->feed ? rm_feed_gather(r->feed) : NULL;
    spec->draw = r->feed ? rm_feed_draw(r->feed) : NULL;
    const int rc = rm_trainer_create(&r->trainer, spec, error);
    if (rc != -ENOMEM || !r->feed || r->experiment->learner.feed != RM_FEED_AUTO)
        return rc;
    fprintf(stderr, "learner of %s: batches are staged on the host after all: %s\n", r->plan->name,
            error->text);
    rm_feed_destroy(r->feed);
    r->feed = NULL;
    rm_sampler_device_draws(r->sampler, false);
    spec->gather = NULL;
    spec->draw = NULL;
    return rm_trainer_create(&r->trainer, spec, error);
}
