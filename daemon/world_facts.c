#include "daemon/world_facts.h"

#include "actor/worlds.h"

int rm_world_facts_read(struct rm_world_facts *facts, const struct rm_experiment *experiment,
                        struct rm_error *error)
{
    struct rm_world world;
    struct rm_env *env = NULL;
    int rc = rm_world_open(&world, experiment->world.name, experiment->world.library, error);
    if (rc < 0)
        return rc;
    rc = rm_world_create(&world, &experiment->world, experiment->seed, 0, 1, &env, error);
    if (rc == 0) {
        const struct rm_env_spec *spec = world.ops->describe(env);
        *facts = (struct rm_world_facts){.score_random = spec->score_random,
                                         .score_solved = spec->score_solved,
                                         .score_low = spec->score_low,
                                         .score_high = spec->score_high};
        world.ops->close(env);
    }
    rm_world_close(&world);
    return rc;
}
