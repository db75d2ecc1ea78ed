/* Steps the world of an experiment's file with actions drawn beforehand, as actors step it, and
 * prints the seconds that a step of one world took, as often as standard input asks for a
 * number of steps: what scripts/bench/measure-python compares with other loops. A row that begins
 * an episode is no step: reset() is a part of the time, as it is in those loops.
 *
 * usage: bench_python FILE WORLDS */
#include "actor/worlds/bridges/python.h"
#include "actor/worlds/worlds.h"
#include "config/config.h"
#include "shm/base/clock.h"
#include "shm/base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORLDS_MAX = 1024, ACTION_SETS = 16, OBS_MAX = 64 };

static struct rm_experiment experiment;
static uint8_t obs[WORLDS_MAX * OBS_MAX], flags[WORLDS_MAX];
static float reward[WORLDS_MAX];
static int32_t actions[ACTION_SETS][WORLDS_MAX];

/* Takes the rows of every group, the first that is ready first, and asks for the next ones with
 * `chosen`; NULL: does not ask. Returns the steps that were taken. */
static uint64_t receive_all(const struct rm_world *world, struct rm_env *env, uint32_t worlds,
                            const int32_t *const *chosen, const struct rm_env_buffers *out, int *rc)
{
    const struct rm_world_groups *groups = world->groups;
    uint64_t steps = 0;
    for (uint32_t left = (1u << groups->count(env)) - 1; *rc == 0 && left;) {
        const uint32_t g = groups->first(env, left);
        left &= ~(1u << g);
        *rc = groups->receive(env, g, out);
        if (*rc == 0 && chosen)
            *rc = groups->ask(env, g, chosen);
    }
    for (uint32_t w = 0; w < worlds; w++)
        steps += !(flags[w] & RM_ENV_FIRST);
    return steps;
}

static void ask_all(const struct rm_world *world, struct rm_env *env, const int32_t *const *chosen,
                    int *rc)
{
    for (uint32_t g = 0; *rc == 0 && g < world->groups->count(env); g++)
        *rc = world->groups->ask(env, g, chosen);
}

int main(int argc, char **argv)
{
    struct rm_error error = {""};
    struct rm_world world;
    struct rm_env *env;

    if (argc != 3 ||
        !strstr(argv[1], ".json")) /* as one of all benchmarks: measured by measure-python */
        return 77;
    const uint32_t worlds = (uint32_t)atoi(argv[2]);
    if (rm_config_load(&experiment, argv[1], NULL, 0, &error) < 0)
        return fprintf(stderr, "%s\n", error.text), 1;
    rm_python_place(&experiment, NULL);
    if (worlds > WORLDS_MAX || rm_world_open_configured(&world, &experiment.world, &error) < 0 ||
        rm_world_create(&world, &experiment.world, 1, 0, worlds, &env, &error) < 0)
        return fprintf(stderr, "%s\n", error.text), 1;
    const struct rm_env_agent *agent = world.ops->describe(env)->agent;
    const size_t bytes = rm_env_obs_bytes(agent);
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    for (uint32_t i = 0; i < ACTION_SETS * WORLDS_MAX; i++)
        actions[i / WORLDS_MAX][i % WORLDS_MAX] = (int32_t)rm_rng_below(&rng, agent->actions);
    if (bytes > OBS_MAX || agent->has_mask)
        return fprintf(stderr, "only worlds of few numbers without masks\n"), 1;
    const struct rm_env_buffers out = {
        .obs = obs, .obs_stride = (ptrdiff_t)bytes, .reward = reward, .flags = flags};
    int rc = world.ops->reset(env, &out);
    uint32_t asked, turn = 0;
    receive_all(&world, env, worlds, NULL, &out, &rc);
    while (rc == 0 && scanf("%u", &asked) == 1) {
        const uint64_t start = rm_now_ns();
        uint64_t steps = 0;
        ask_all(&world, env, (const int32_t *const[]){actions[turn++ % ACTION_SETS]}, &rc);
        while (rc == 0 && steps + worlds < asked) {
            const int32_t *const chosen[] = {actions[turn++ % ACTION_SETS]};
            steps += receive_all(&world, env, worlds, chosen, &out, &rc);
        }
        steps += receive_all(&world, env, worlds, NULL, &out, &rc);
        printf("%.6g\n", (double)(rm_now_ns() - start) * 1e-9 / (double)steps);
        fflush(stdout);
    }
    if (rc != 0)
        fprintf(stderr, "%s\n", world.ops->last_error(env));
    world.ops->close(env);
    rm_world_close(&world);
    return rc != 0;
}
