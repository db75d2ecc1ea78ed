#include "daemon/policies.h"

#include "actor/worlds/described.h"
#include "learner/net/policy_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rm_policies_job {
    uv_work_t work;
    struct rm_policies *policies;
    struct rm_experiment experiment; /* at the time of the request */
    char directory[RM_SESSION_PATH_MAX];
    uint64_t client;
    uint64_t version[RM_BOARD_POLICIES];
    struct rm_error error;
    int rc;
};

static int write_one(struct rm_policies_job *job, uint32_t p, const struct rm_env_spec *spec)
{
    const struct rm_session *s = job->policies->session;
    const struct rm_policy_plan *plan = &s->plan.policy[p];
    struct rm_weights_stamp stamp;
    struct rm_net *net;
    float *params = malloc(s->weights[p].count * sizeof *params);
    if (!params)
        return rm_fail(&job->error, -ENOMEM, "policy %s: no memory", plan->name);
    int rc = rm_net_compile(&net, &job->experiment.network, &plan->shape, &job->error);
    if (rc < 0) {
        free(params);
        return rc;
    }
    if (rm_weights_read(&s->weights[p], params, s->weights[p].count, &stamp, NULL)) {
        const struct rm_policy_file file = {
            .experiment = &job->experiment,
            .policy = plan->name,
            .agent = &spec->agent[plan->agent[0]],
            .net = net,
            .params = params,
            .updates = stamp.updates,
            .env_steps = stamp.env_steps,
        };
        job->version[p] = stamp.version;
        rc = rm_policy_file_write(&file, job->directory, &job->error);
    } else {
        rc = rm_fail(&job->error, -EAGAIN, "policy %s: has no weights yet", plan->name);
    }
    rm_net_destroy(net);
    free(params);
    return rc;
}

static void write_all(uv_work_t *work)
{
    struct rm_policies_job *job = work->data;
    struct rm_world_spec world;
    job->rc = rm_world_spec_open(&world, &job->experiment.world, job->experiment.seed, &job->error);
    if (job->rc < 0)
        return;
    for (uint32_t p = 0; job->rc == 0 && p < job->policies->session->plan.policies; p++)
        job->rc = write_one(job, p, world.spec);
    rm_world_spec_close(&world);
}

static void written(uv_work_t *work, int status)
{
    struct rm_policies_job *job = work->data;
    struct rm_policies *policies = job->policies;
    const struct rm_plan *plan = &policies->session->plan;
    json_t *versions = json_object(), *reply = NULL;
    for (uint32_t p = 0; p < plan->policies; p++)
        json_object_set_new(versions, plan->policy[p].name,
                            json_integer((json_int_t)job->version[p]));
    if (status < 0)
        job->rc = rm_fail(&job->error, status, "policies: %s", uv_strerror(status));
    if (job->rc == 0)
        reply = json_pack("{s:s,s:O}", "directory", job->directory, "versions", versions);
    json_decref(versions);
    policies->job = NULL;
    policies->answer(policies->user, job->client,
                     job->rc == 0 ? RM_REFUSED_NOT : RM_REFUSED_NOT_NOW, reply, &job->error);
    free(job);
}

int rm_policies_write(struct rm_policies *policies, uint64_t client, struct rm_error *error)
{
    if (policies->job)
        return rm_fail(error, -EAGAIN, "policies: are being written; ask again");
    struct rm_policies_job *job = calloc(1, sizeof *job);
    if (!job)
        return rm_fail(error, -ENOMEM, "policies: no memory");
    job->work.data = job;
    job->policies = policies;
    job->experiment = policies->session->experiment;
    job->client = client;
    snprintf(job->directory, sizeof job->directory, "%.*s/policies/newest",
             RM_SESSION_DIRECTORY_MAX, policies->directory->path);
    const int rc = uv_queue_work(policies->loop, &job->work, write_all, written);
    if (rc < 0) {
        free(job);
        return rm_fail(error, rc, "policies: %s", uv_strerror(rc));
    }
    policies->job = job;
    return 0;
}
