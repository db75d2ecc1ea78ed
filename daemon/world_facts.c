#include "daemon/world_facts.h"

#include "actor/worlds/described.h"

int rm_world_facts_read(struct rm_world_facts *facts, const struct rm_experiment *experiment,
                        struct rm_error *error)
{
    struct rm_world_spec world;
    int rc = rm_world_spec_open(&world, &experiment->world, experiment->seed, error);
    if (rc < 0)
        return rc;
    *facts = (struct rm_world_facts){.score_random = world.spec->score_random,
                                     .score_solved = world.spec->score_solved,
                                     .score_low = world.spec->score_low,
                                     .score_high = world.spec->score_high};
    rm_world_spec_close(&world);
    return 0;
}
