/* Steps the Python world of an experiment's file with random legal actions and writes every row,
 * for tests/oracle/python_worlds.py, which plays the bare environment beside it.
 *
 * usage: dump_worlds FILE WORLDS STEPS SEED
 *
 * One JSON line says what follows; then for every step, phase, agent of it and world: flags (1
 * byte), reward (float), observation, mask, and the actions that answer it (int32). */
#include "actor/worlds/bridges/python.h"
#include "config/config.h"
#include "tests/support/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define EPISODES 64

static struct rm_test_batch batch;

static void write_head(uint32_t worlds, uint32_t steps, uint64_t seed)
{
    printf("{\"worlds\": %u, \"steps\": %u, \"phases\": %u, \"agents\": [", worlds, steps,
           batch.spec->phases);
    for (uint32_t a = 0; a < batch.spec->agents; a++) {
        const struct rm_env_agent *agent = &batch.spec->agent[a];
        printf("%s{\"name\": \"%s\", \"phase\": %u, \"bytes\": %zu, \"mask\": %u, \"choices\": %u, "
               "\"reals\": %u}",
               a ? ", " : "", agent->name, agent->phase, batch.obs_bytes[a],
               agent->has_mask ? agent->actions : 0, rm_test_batch_choices(agent),
               rm_env_reals(agent));
    }
    printf("], \"seeds\": [");
    for (uint32_t w = 0; w < worlds; w++)
        for (uint64_t episode = 0; episode < EPISODES; episode++) {
            struct rm_rng rng = rm_rng_at(seed, RM_STREAM_WORLD, w, episode);
            printf("%s%" PRIu32, w || episode ? ", " : "", rm_rng_u32(&rng) >> 1);
        }
    printf("]}\n");
}

static void write_row(uint32_t a, uint32_t w)
{
    const struct rm_env_agent *agent = &batch.spec->agent[a];
    const size_t words = rm_test_batch_words(agent);
    fwrite(&batch.out[a].flags[w], 1, 1, stdout);
    fwrite(&batch.out[a].reward[w], sizeof(float), 1, stdout);
    fwrite(rm_test_batch_obs(&batch, a, w), batch.obs_bytes[a], 1, stdout);
    if (agent->has_mask)
        fwrite(rm_test_batch_mask(&batch, a, w), agent->actions, 1, stdout);
    fwrite(batch.actions[a] + w * words, sizeof(int32_t), words, stdout);
}

int main(int argc, char **argv)
{
    static struct rm_experiment experiment;
    struct rm_error error = {""};
    if (argc != 5) {
        fprintf(stderr, "usage: dump_worlds FILE WORLDS STEPS SEED\n");
        return 2;
    }
    const uint32_t worlds = (uint32_t)atoi(argv[2]), steps = (uint32_t)atoi(argv[3]);
    const uint64_t seed = strtoull(argv[4], NULL, 10);
    if (rm_config_load(&experiment, argv[1], NULL, 0, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    rm_python_place(&experiment, NULL);
    rm_test_batch_open_configured(&batch, &experiment.world, seed, 0, worlds);
    rm_test_batch_reset(&batch);
    write_head(worlds, steps, seed);
    for (uint32_t t = 0; t < steps; t++)
        for (uint32_t phase = 0; phase < batch.spec->phases; phase++) {
            rm_test_batch_draw(&batch, 5, 0, phase, t);
            for (uint32_t a = 0; a < batch.spec->agents; a++)
                for (uint32_t w = 0; batch.spec->agent[a].phase == phase && w < worlds; w++)
                    write_row(a, w);
            rm_test_batch_step(&batch, phase);
        }
    rm_test_batch_close(&batch);
    return 0;
}
