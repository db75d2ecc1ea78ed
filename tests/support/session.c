#include "tests/support/session.h"

#include "actor/worlds/plan.h"
#include "config/config.h"

#include <stdio.h>
#include <string.h>

static int build(struct rm_session *session, const struct rm_experiment *experiment,
                 struct rm_error *error)
{
    static struct rm_plan plan;
    int r = rm_plan_make(&plan, experiment, error);

    if (r == 0)
        r = rm_session_create(session, experiment, &plan, error);
    if (r < 0)
        fprintf(stderr, "session: %s\n", error->text);
    return r;
}

int rm_test_session(struct rm_session *session, const char *json)
{
    static struct rm_experiment experiment;
    struct rm_error error = {""};
    int r = rm_config_parse(&experiment, "test", json, strlen(json), NULL, 0, &error);

    if (r < 0) {
        fprintf(stderr, "%s\n", error.text);
        return r;
    }
    return build(session, &experiment, &error);
}

int rm_test_session_file(struct rm_session *session, const char *path, const char *const *set)
{
    static struct rm_experiment experiment;
    struct rm_override overrides[32];
    struct rm_error error = {""};
    size_t n = 0;

    for (; set && set[n] && n < 32; n++)
        overrides[n].text = set[n];
    int r = rm_config_load(&experiment, path, overrides, n, &error);
    if (r < 0) {
        fprintf(stderr, "%s\n", error.text);
        return r;
    }
    return build(session, &experiment, &error);
}

int rm_test_turn(struct rm_duty *duty)
{
    struct rm_error error = {""};
    int r = duty->do_work(duty->self, &error);

    if (r < 0 && r != RM_DUTY_DONE)
        fprintf(stderr, "duty: %s\n", error.text);
    return r;
}
