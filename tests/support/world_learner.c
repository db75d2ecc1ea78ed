#include "tests/support/world_learner.h"

#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>

void rm_test_world_session(struct rm_session *session, const char *world, const char *options,
                           uint32_t worlds, uint32_t steps)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"worlds\", \"seed\": 11, \"algorithm\": {\"name\": \"ppo\","
             " \"epochs\": 2, \"minibatches\": 3},"
             " \"world\": {\"name\": \"%s\", \"options\": {%s}},"
             " \"actor\": {\"worlds\": %u, \"device\": \"cuda\"}, \"rollout\": {\"steps\": %u},"
             " \"optimizer\": {\"learning_rate\": 1e-3},"
             " \"network\": {\"trunk\": \"shared\", \"layers\": [{\"type\": \"linear\","
             " \"units\": 8}, {\"type\": \"tanh\"}]}}",
             world, options, worlds, steps);
    assert_int_equal(rm_test_session(session, json), 0);
    assert_int_equal(session->objects.actors, 0);
}

void rm_test_world_learner_open(struct rm_test_world_learner *l, struct rm_session *session,
                                struct rm_backend *device)
{
    struct rm_error error = {""};
    *l = (struct rm_test_world_learner){0};
    const struct rm_native_worlds_spec spec = {
        .session = session, .seed = session->experiment.seed, .backend = device};
    if (rm_native_worlds_create(&l->worlds, &spec, &error))
        fail_msg("%s", error.text);
    const struct rm_actor_critic_spec learner = {.experiment = &session->experiment,
                                                 .backend = device,
                                                 .rollout = &l->worlds.rows,
                                                 .shape = session->plan.policy[0].shape,
                                                 .name = "a"};
    if (rm_actor_critic_create(&l->ac, &learner, &error) ||
        rm_native_worlds_join(&l->worlds, l->ac, &error))
        fail_msg("%s", error.text);
}

void rm_test_world_learner_close(struct rm_test_world_learner *l)
{
    rm_native_worlds_destroy(&l->worlds);
    rm_actor_critic_destroy(l->ac);
}

void rm_test_world_learner_turn(struct rm_test_world_learner *l)
{
    struct rm_actor_critic_update u;
    rm_native_worlds_make(&l->worlds);
    rm_actor_critic_begin(l->ac, l->number++, NULL);
    while (rm_actor_critic_due(l->ac))
        rm_actor_critic_step(l->ac, l->attempts + 1, 0, NULL);
    assert_true(rm_actor_critic_collect(l->ac, &u, NULL));
    l->attempts += u.made + u.skipped;
    assert_int_equal(u.made, 6);
    assert_int_equal(u.samples, 2 * l->worlds.told->samples);
}

void *rm_test_device_fetch(struct rm_backend *device, const void *from, size_t bytes)
{
    const size_t words = (bytes + 3) / 4;
    float *to = malloc(words * sizeof *to);
    assert_non_null(to);
    device->ops->download(device, to, from, words);
    return to;
}

struct rm_state *rm_test_world_learner_state(struct rm_test_world_learner *l)
{
    struct rm_state *s;
    struct rm_error error = {""};
    assert_int_equal(rm_state_create(&s, &error), 0);
    rm_native_worlds_state(&l->worlds, s);
    rm_actor_critic_state(l->ac, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    return s;
}
