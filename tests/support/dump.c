#include "tests/support/dump.h"

#include "config/config.h"
#include "tests/support/session.h"

_Noreturn void rm_test_dump_fail(const char *what)
{
    fprintf(stderr, "dump: %s\n", what);
    exit(1);
}

/* --- arrays ---------------------------------------------------------------------------------- */

void rm_test_dump_put(struct rm_test_dump *d, const char *name, uint64_t number, const float *x,
                      size_t n)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%u", name, (unsigned)number);
    json_array_append_new(d->arrays, json_pack("[sI]", whole, (json_int_t)n));
    if (n && fwrite(x, sizeof *x, n, d->file) != n)
        rm_test_dump_fail("cannot write");
}

void rm_test_dump_arena(struct rm_test_dump *d, const char *name, uint64_t number,
                        const float *arena, size_t n)
{
    float *copy = malloc((n + 1) * sizeof *copy);
    if (!copy)
        rm_test_dump_fail("out of memory");
    d->backend->ops->download(d->backend, copy, arena, n);
    rm_test_dump_put(d, name, number, copy, n);
    free(copy);
}

/* --- files ----------------------------------------------------------------------------------- */

void rm_test_dump_open(struct rm_test_dump *d, const struct rm_test_dump_sample *s, int choices,
                       const char *directory)
{
    char json[4096], path[512], world[128];
    struct rm_error error = {""};
    snprintf(world, sizeof world,
             choices ? "\"name\": \"count\", \"options\": {\"length\": 4, \"max_steps\": 7,"
                       " \"mask\": 1, \"choices\": %d}"
                     : "\"name\": \"pendulum\"",
             choices);
    snprintf(json, sizeof json,
             "{\"name\": \"%s\", \"seed\": 5, \"algorithm\": {%s},"
             " \"world\": {%s},"
             " \"actor\": {\"worlds\": 6}, \"rollout\": {\"steps\": 10},"
             " \"sample\": {%s\"batch\": 24, \"gamma\": 0.97}, \"priority\": {%s},"
             " \"optimizer\": {\"learning_rate\": 3e-3%s%s}, \"network\": {%s}}",
             s->name, s->algorithm, world, s->sample, s->priority, s->optimizer[0] ? ", " : "",
             s->optimizer, s->network);
    if (rm_test_session(&d->session, json))
        rm_test_dump_fail(s->name);
    const struct rm_experiment *e = &d->session.experiment;
    if (rm_world_open(&d->world, e->world.name, e->world.library, &error) ||
        rm_world_create(&d->world, &e->world, 1, 0, 1, &d->env, &error))
        rm_test_dump_fail(error.text);
    snprintf(path, sizeof path, "%s/%s.f32", directory, s->name);
    d->file = fopen(path, "wb");
    d->arrays = json_array();
    if (!d->file || !d->arrays)
        rm_test_dump_fail(path);
}

json_t *rm_test_dump_tensors(const struct rm_net *net)
{
    const struct rm_net_tensor *t;
    json_t *all = json_array();
    const size_t n = rm_net_tensors(net, &t);
    for (size_t i = 0; i < n; i++) {
        json_t *shape = json_array();
        for (uint32_t k = 0; k < t[i].dims; k++)
            json_array_append_new(shape, json_integer(t[i].shape[k]));
        json_array_append_new(all, json_pack("[soIb]", t[i].name, shape, (json_int_t)t[i].offset,
                                             (t[i].flags & RM_TENSOR_TRAINED) != 0));
    }
    return all;
}

/* `more` is taken over. */
void rm_test_dump_close(struct rm_test_dump *d, const struct rm_test_dump_sample *s,
                        const struct rm_net *net, const char *directory, json_t *more)
{
    char path[512];
    const struct rm_policy_plan *plan = &d->session.plan.policy[0];
    json_t *choices = json_array();
    for (uint32_t i = 0; i < plan->shape.choices; i++)
        json_array_append_new(choices, json_integer(plan->shape.choice_actions[i]));
    json_t *about =
        json_pack("{sosososisiso}", "experiment", rm_config_to_json(&d->session.experiment),
                  "tensors", rm_test_dump_tensors(net), "arrays", d->arrays, "inputs",
                  (int)plan->inputs, "actions", (int)plan->actions, "choices", choices);
    if (!about || json_object_update(about, more) || fclose(d->file))
        rm_test_dump_fail(s->name);
    snprintf(path, sizeof path, "%s/%s.json", directory, s->name);
    if (json_dump_file(about, path, JSON_INDENT(1)))
        rm_test_dump_fail(path);
    json_decref(more);
    json_decref(about);
    d->world.ops->close(d->env);
    rm_world_close(&d->world);
    rm_session_close(&d->session);
}
