#include "tests/support/world_learner.h"

#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>

void rm_test_world_session(struct rm_session *session, const char *world, const char *options,
                           uint32_t worlds, uint32_t steps)
{
    rm_test_world_session_by(session, "\"epochs\": 2, \"minibatches\": 3", world, options, worlds,
                             steps);
}

void rm_test_world_session_by(struct rm_session *session, const char *algorithm, const char *world,
                              const char *options, uint32_t worlds, uint32_t steps)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"worlds\", \"seed\": 11, \"algorithm\": {\"name\": \"ppo\", %s},"
             " \"world\": {\"name\": \"%s\", \"options\": {%s}},"
             " \"actor\": {\"worlds\": %u, \"device\": \"cuda\"}, \"rollout\": {\"steps\": %u},"
             " \"optimizer\": {\"learning_rate\": 1e-3},"
             " \"network\": {\"trunk\": \"shared\", \"layers\": [{\"type\": \"linear\","
             " \"units\": 8}, {\"type\": \"tanh\"}]}}",
             algorithm, world, options, worlds, steps);
    assert_int_equal(rm_test_session(session, json), 0);
    assert_int_equal(session->objects.actors, 0);
}

void rm_test_world_learner_open(struct rm_test_world_learner *l, struct rm_session *session,
                                struct rm_backend *device)
{
    struct rm_error error = {""};
    *l = (struct rm_test_world_learner){.session = session};
    const struct rm_native_worlds_spec spec = {
        .session = session, .seed = session->experiment.seed, .backend = device};
    if (rm_native_worlds_create(&l->worlds, &spec, &error))
        fail_msg("%s", error.text);
    const struct rm_trainer_spec learner = {.experiment = &session->experiment,
                                            .backend = device,
                                            .rollout = l->worlds.rows[0],
                                            .others = rm_native_worlds_others(&l->worlds),
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
    const struct rm_experiment *e = &l->session->experiment;
    struct rm_actor_critic_update u;
    uint64_t samples = 0;
    rm_native_worlds_make(&l->worlds);
    rm_actor_critic_begin(l->ac, l->number++, NULL);
    while (rm_actor_critic_due(l->ac))
        rm_actor_critic_step(l->ac, l->attempts + 1, 0, NULL);
    u = rm_actor_critic_collect(l->ac, NULL);
    l->attempts += u.made + u.skipped;
    for (uint32_t i = 0; i < l->worlds.count; i++)
        samples += l->worlds.part[i].results->samples;
    assert_int_equal(u.made, e->algorithm.epochs * e->algorithm.minibatches);
    assert_int_equal(u.samples, e->algorithm.epochs * samples);
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
