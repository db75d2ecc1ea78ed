#include "tests/support/replay_run.h"

#include "actor/actor.h"
#include "config/config.h"
#include "learner/learner.h"
#include "learner/net/safetensors.h"
#include "shm/base/file.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void rm_replay_run_start(struct rm_replay_run *r, const char *kind, const char *mode,
                         const char *more)
{
    struct rm_error error = {""};
    char json[2048];
    memset(r, 0, sizeof *r);
    snprintf(json, sizeof json,
             "{\"name\": \"test\", \"seed\": 3, \"mode\": \"%s\","
             " \"world\": {\"name\": \"count\", \"options\": {\"length\": 6}},"
             " \"epsilon\": {\"start\": 1, \"end\": 0.1, \"span\": 1000},"
             " \"optimizer\": {\"learning_rate\": 1e-3},"
             " %s, %s}",
             mode, kind, more);
    strcpy(r->folder, "/tmp/rm-learner-XXXXXX");
    assert_non_null(mkdtemp(r->folder));
    assert_int_equal(rm_test_session(&r->session, json), 0);
    rm_session_place(&r->session, r->folder, NULL);
    r->actors = r->session.objects.actors;
    if (rm_learner_create(&r->learner, &r->session, 0, r->folder, &r->duty[r->actors], &error))
        fail_msg("%s", error.text);
    for (uint32_t a = 0; a < r->actors; a++)
        if (rm_actor_create(&r->actor[a], &r->session, a, &r->duty[a], &error))
            fail_msg("%s", error.text);
}

void rm_replay_run_stop(struct rm_replay_run *r)
{
    for (uint32_t a = 0; a < r->actors; a++)
        rm_actor_destroy(r->actor[a]);
    rm_learner_destroy(r->learner);
    rm_session_close(&r->session);
    rm_file_remove_all(r->folder);
}

void rm_replay_run_to_its_end(struct rm_replay_run *r)
{
    struct rm_error error = {""};
    for (uint32_t i = 0; i <= r->actors; i++)
        r->duty[i].lingers = false; /* there is no daemon for whose checkpoint they would stay */
    if (rm_duty_run_in_turn(r->duty, r->actors + 1, &error) != RM_EXIT_OK)
        fail_msg("%s", error.text);
}

int rm_replay_run_learn(struct rm_replay_run *r)
{
    return rm_test_turn(&r->duty[r->actors]);
}

void rm_replay_run_succeed(struct rm_replay_run *r)
{
    struct rm_error error = {""};
    rm_learner_destroy(r->learner);
    if (rm_learner_create(&r->learner, &r->session, 0, r->folder, &r->duty[r->actors], &error))
        fail_msg("%s", error.text);
}

char *rm_replay_run_tensors(const struct rm_replay_run *r, size_t *bytes)
{
    char path[256];
    struct rm_error error = {""};
    struct rm_safetensors file;
    snprintf(path, sizeof path, "%s/policies/%s.safetensors", r->folder,
             r->session.plan.policy[0].name);
    if (rm_safetensors_read(&file, path, &error))
        fail_msg("%s", error.text);
    *bytes = 0;
    char *all = malloc(1 << 20);
    for (size_t i = 0; i < file.count; i++) {
        size_t n = sizeof(float);
        for (uint32_t d = 0; d < file.tensors[i].dims; d++)
            n *= file.tensors[i].shape[d];
        memcpy(all + *bytes, file.tensors[i].data, n);
        *bytes += n;
    }
    rm_safetensors_close(&file);
    return all;
}
