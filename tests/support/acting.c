#include "tests/support/acting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct rm_net *rm_test_net(const struct rm_experiment *experiment,
                           const struct rm_policy_plan *policy)
{
    struct rm_error error = {""};
    struct rm_net *net = NULL;

    if (rm_net_compile(&net, &experiment->network, &policy->shape, &error) < 0)
        fprintf(stderr, "network: %s\n", error.text);
    return net;
}

struct rm_net_tensor rm_test_tensor(const struct rm_net *net, const char *suffix)
{
    const struct rm_net_tensor *tensors;
    size_t n = rm_net_tensors(net, &tensors), length = strlen(suffix);

    while (n-- > 0) {
        size_t name = strlen(tensors[n].name);
        if (name >= length && strcmp(tensors[n].name + name - length, suffix) == 0)
            return tensors[n];
    }
    fail_msg("no tensor is named ...%s", suffix);
    return (struct rm_net_tensor){0};
}

void rm_test_publish_random(struct rm_session *session, uint64_t seed, uint64_t updates)
{
    for (uint32_t p = 0; p < session->plan.policies; p++) {
        struct rm_net *net = rm_test_net(&session->experiment, &session->plan.policy[p]);
        assert_non_null(net);
        float *params = calloc(rm_net_param_count(net), sizeof *params);
        assert_non_null(params);
        rm_net_init(net, params, rm_rng_at(seed, RM_STREAM_INIT, p, 0));
        rm_weights_publish(&session->weights[p], params,
                           (struct rm_weights_stamp){.updates = updates});
        free(params);
        rm_net_destroy(net);
    }
}

void rm_test_publish_action(struct rm_session *session, uint32_t policy, uint32_t action,
                            uint64_t updates, uint64_t round)
{
    const struct rm_policy_plan *plan = &session->plan.policy[policy];
    struct rm_net *net = rm_test_net(&session->experiment, plan);
    assert_non_null(net);
    float *params = calloc(rm_net_param_count(net), sizeof *params);
    assert_non_null(params);
    struct rm_net_tensor bias = rm_test_tensor(net, "bias");
    uint32_t outputs = bias.shape[0] / plan->actions;

    for (uint32_t i = 0; i < outputs; i++)
        params[bias.offset + action * outputs + i] = 1;
    rm_weights_publish(&session->weights[policy], params,
                       (struct rm_weights_stamp){.updates = updates, .round = round});
    free(params);
    rm_net_destroy(net);
}
