#include "daemon/world_facts.h"

#include "actor/worlds/described.h"
#include "actor/worlds/options.h"

#include <math.h>
#include <string.h>

int rm_world_facts_read(struct rm_world_facts *facts, const struct rm_experiment *experiment,
                        struct rm_error *error)
{
    struct rm_world_config config;
    struct rm_world_spec world;
    int rc = rm_options_evaluation_world(experiment, &config);
    if (rc < 0)
        return rm_fail(error, rc, "evaluation.options: no memory");
    *facts = (struct rm_world_facts){NAN, NAN, NAN, NAN};
    if (config.description && strcmp(config.options, experiment->world.options) != 0)
        return 0; /* described with other options */
    rc = rm_world_spec_open(&world, &config, experiment->seed, error);
    if (rc < 0)
        return rc;
    *facts = (struct rm_world_facts){.score_random = world.spec->score_random,
                                     .score_solved = world.spec->score_solved,
                                     .score_low = world.spec->score_low,
                                     .score_high = world.spec->score_high};
    rm_world_spec_close(&world);
    return 0;
}
