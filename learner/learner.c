#include "learner/learner.h"

#include "actor/worlds/described.h"
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "config/traits.h"
#include "shm/session/saver.h"
#include "learner/algo/trainer.h"
#include "learner/backend/ceiling.h"
#include "learner/backend/device.h"
#include "learner/device_choice.h"
#include "learner/method.h"
#include "learner/net/policy_file.h"
#include "learner/publisher.h"
#include "learner/state_file.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/severity.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rm_learner {
    struct rm_session *session;
    uint32_t policy;
    const struct rm_experiment *experiment;
    const struct rm_policy_plan *plan;
    struct rm_board_policy *counters;
    struct rm_board_run *run;
    struct rm_board_worker *slot;
    char directory[PATH_MAX]; /* of the run; "" = no files */

    struct rm_world_spec world; /* kept open for its description */
    const struct rm_env_agent *agent;

    struct rm_device_choice choice;
    struct rm_backend *backend;
    struct rm_device_counts device; /* the backend's counts that are already on the board */
    struct rm_publisher publisher;
    struct rm_method *method;
    struct rm_phase_clock clock;
    enum rm_wait waits; /* for what, in a turn without work */

    uint64_t begun;            /* with so many updates; UINT64_MAX: the first one was repeated */
    uint64_t saved;            /* updates in the final policy file, UINT64_MAX when there is none */
    uint64_t settings_version; /* of the board's settings in use */
    struct rm_saver saver;
    float *copy; /* (count) of the parameters, NULL before the first checkpoint */
    struct rm_policy_file copied;
};

/* --- making ---------------------------------------------------------------------------------- */

/* The learner needs only the world's description: with a shared object, the one from the probe. */
static int open_world(struct rm_learner *l, struct rm_error *error)
{
    const struct rm_experiment *e = l->experiment;
    int rc = rm_world_spec_open(&l->world, &e->world, e->seed, error);
    if (rc)
        return rc;
    l->agent = &l->world.spec->agent[l->plan->agent[0]];
    return 0;
}

/* Has a device failed so that only a new process can recover? Then *error has the device's
 * error. */
static bool device_failed(const struct rm_learner *l, struct rm_error *error)
{
    if (!l->backend || !l->backend->ops->failed(l->backend, error))
        return false;
    rm_device_report(l->slot, &l->choice, rm_device_failing(l->backend));
    return true;
}

static void close_method(struct rm_learner *l)
{
    if (l->method)
        l->method->ops->destroy(l->method);
    rm_publisher_close(&l->publisher);
    if (l->backend)
        rm_device_close(l->backend);
    l->method = NULL;
    l->backend = NULL;
}

/* An update of a large network may take longer than supervisor.heartbeat_s. */
static void beat(void *slot)
{
    RM_POKE(&((struct rm_board_worker *)slot)->heartbeat_ns, rm_now_ns());
}

/* At the start of a run the learners of several policies mostly choose the same for the same
 * reason: only the first one logs it. */
static bool logged_by_another(const struct rm_learner *l)
{
    struct rm_device_choice other;
    bool same = false;
    if (RM_PEEK(&l->slot->generation) > 1)
        return false;
    for (uint32_t p = 0; p < l->policy && !same; p++) {
        const struct rm_device_request request = rm_device_request_of(l->session, p);
        same =
            rm_device_choose(&other, &request, NULL) == 0 && strcmp(other.why, l->choice.why) == 0;
    }
    return same;
}

static int open_backend(struct rm_learner *l, const struct rm_device_request *request,
                        struct rm_error *error)
{
    if (!logged_by_another(l))
        fprintf(stderr, "learner of %s: %s\n", l->plan->name, l->choice.why);
    rm_device_report(l->slot, &l->choice, 0);
    const int rc = rm_device_open(&l->backend, &l->choice, request, error);
    if (!rc) {
        l->backend->alive = beat;
        l->backend->alive_user = l->slot;
    }
    return rc;
}

/* Observations whose moments are in the file that the policy starts from. A file that is gone is no
 * loss: a learner that needs it says so. */
static uint64_t rows_in_file(const struct rm_learner *l)
{
    struct rm_policy_file_facts facts = {.env_steps = 0};
    char path[RM_PATH_TEXT_MAX];
    if (!l->experiment->network.normalize_observations ||
        !rm_plan_from(&l->session->plan, l->experiment, l->policy, path, sizeof path) ||
        rm_policy_file_facts(path, &facts, NULL))
        return 0;
    return facts.env_steps;
}

static int make_method(struct rm_learner *l, struct rm_error *error)
{
    int rc = rm_publisher_open(&l->publisher, &l->session->weights[l->policy], l->backend,
                               l->counters, error);
    if (rc)
        return rc;
    const struct rm_method_spec spec = {
        .session = l->session,
        .policy = l->policy,
        .agent = l->agent,
        .backend = l->backend,
        .publisher = &l->publisher,
        .clock = &l->clock,
        .updates = RM_PEEK(&l->counters->updates),
        .attempts = RM_PEEK(&l->counters->updates_skipped),
        .rows = rows_in_file(l),
    };
    rc = rm_method_of(l->experiment, l->policy)->create(&l->method, &spec, error);
    if (!rc)
        return 0;
    l->method = NULL;
    if (device_failed(l, error))
        return rc;
    uint32_t which;
    const char *shortage = rm_device_shortage(l->backend, &which);
    if (!shortage[0])
        return rc;
    rm_device_report(l->slot, &l->choice, which);
    rm_fail(error, -ENOMEM, "%s", shortage);
    return -ENOMEM;
}

static int try_method(struct rm_learner *l, const struct rm_device_request *request,
                      struct rm_error *error)
{
    int rc = rm_device_choose(&l->choice, request, error);
    if (!rc)
        rc = open_backend(l, request, error);
    return rc ? rc : make_method(l, error);
}

/* If "auto" chose devices that fail to open, tries one device, then the CPU. */
static int open_method(struct rm_learner *l, struct rm_error *error)
{
    struct rm_device_request request = rm_device_request_of(l->session, l->policy);
    struct rm_error why[2];
    int rc = try_method(l, &request, error);
    if ((rc == -EIO || rc == -ENOMEM) && l->choice.device && l->choice.asked_for)
        return RM_LEARNER_DEVICE_FAILED; /* at most learner.device_faults times */
    for (int i = 0; i < 2 && rc && l->choice.device && !l->choice.asked_for; i++) {
        close_method(l);
        why[i] = *error;
        if (l->choice.count > 1)
            request.alone = why[i].text;
        else
            request.cannot = why[i].text;
        rc = try_method(l, &request, error);
    }
    return rc;
}

#define FLOPS_TRIES 10
#define COPY_TRIES  4
#define COPY_BYTES  (32u << 20) /* more than most caches */

/* Again after each publication: batches differ in their padding. */
static void note_flops(struct rm_learner *l)
{
    const struct rm_method *m = l->method;
    const double all = m->flops > 0 ? rm_net_forward_flops(m->net, 1, 1) : 0;
    RM_POKE(&l->counters->update_flops,
            all > 0 ? m->flops * rm_net_workspace_row_flops(m->space, 1) / all : 0);
}

/* What an update has to do at least, and the most that a core can do. */
static void note_work(struct rm_learner *l)
{
    struct rm_board_policy *c = l->counters;
    const uint64_t parameters = l->method->flops > 0 ? rm_net_param_count(l->method->net) : 0;
    RM_POKE(&c->parameters, parameters);
    note_flops(l);
    RM_POKE(&c->core_flops, 0.0); /* those of a predecessor, maybe on another device */
    RM_POKE(&c->core_flops_bf16, 0.0);
    RM_POKE(&c->copy_bytes, 0.0);
    RM_POKE(&c->update_fixed, 0.0);
    l->begun = l->method->updates;
    if (l->backend->device || !parameters)
        return;
    const char *isa = l->experiment->learner.isa;
    RM_POKE(&c->core_flops, rm_ceiling_flops(isa, FLOPS_TRIES));
    if (rm_backend_cpu_has_bf16(isa))
        RM_POKE(&c->core_flops_bf16, rm_ceiling_flops("bf16", FLOPS_TRIES));
    if (parameters * sizeof(float) > COPY_BYTES / 8)
        RM_POKE(&c->copy_bytes, rm_ceiling_copy(COPY_BYTES, COPY_TRIES));
}

/* Once, after the first update: until then there is no batch to repeat. */
static void note_fixed(struct rm_learner *l)
{
    if (l->method->updates <= l->begun || !l->method->trainer)
        return;
    l->begun = UINT64_MAX;
    const double fixed = rm_trainer_fixed(l->method->trainer);
    RM_POKE(&l->counters->update_fixed, isfinite(fixed) ? fixed : 0);
}

bool rm_learner_settled(const struct rm_learner *l)
{
    return !l->method->ops->settled || l->method->ops->settled(l->method);
}

void rm_learner_state(struct rm_learner *l, struct rm_state *s)
{
    rm_publisher_end(&l->publisher); /* a copy in progress counts as published */
    rm_state_enter(s, "publisher");
    RM_STATE(s, "due_at", l->publisher.due_at);
    RM_STATE(s, "stamped", l->publisher.stamped);
    RM_STATE(s, "env_steps", l->publisher.env_steps);
    rm_state_leave(s);
    rm_state_enter(s, l->method->ops->name);
    l->method->ops->state(l->method, s);
    rm_state_leave(s);
}

/* Loads the learner's state, or the parts of it that `only` lists, from a checkpoint. */
static int load_state(struct rm_learner *l, const char *folder, const char *const *only,
                      struct rm_error *error)
{
    struct rm_state *state = NULL;
    int rc = rm_state_create(&state, error);
    if (!rc)
        rc = rm_learner_state_read(state, folder, l->policy, error);
    if (!rc) {
        rm_state_load(state);
        if (only)
            rm_state_only(state, only);
        rm_learner_state(l, state);
        rc = rm_state_end(state, error);
    }
    rm_state_destroy(state);
    return rc;
}

/* A restarted learner loads its unpublished state from the newest checkpoint. That state is older
 * than the published weights, but better than none: with zero moments the first updates would be as
 * large as the learning rate allows; a target network copied from the policy would not follow it
 * slowly, and values would diverge; critics and temperature would start from nothing. Returns a
 * phrase for the log. */
static const char *take_rest(struct rm_learner *l)
{
    static const char *const rest[] = {"optimizer", "target", "critics", "temperature", NULL};
    struct rm_error error = {""};
    if (!l->session->newest[0] || !l->method->ops->takes_rest)
        return "starts from scratch";
    const int rc = load_state(l, l->session->newest, rest, &error);
    if (rc)
        fprintf(stderr, RM_SEVERITY_WARNING "learner of %s: %s\n", l->plan->name, error.text);
    return rc ? "starts from scratch" : "is that of the newest checkpoint";
}

/* policy.from: replaces the drawn weights. */
static int start_from(struct rm_learner *l, struct rm_error *error)
{
    char path[RM_PATH_TEXT_MAX];
    if (!rm_plan_from(&l->session->plan, l->experiment, l->policy, path, sizeof path))
        return 0;
    float *given = malloc(l->session->weights[l->policy].count * sizeof *given);
    if (!given)
        return rm_fail(error, -ENOMEM, "policy.from: no memory for the parameters");
    const int rc = rm_policy_file_read(l->method->net, path, given, error);
    if (!rc) {
        l->method->ops->load(l->method, given);
        fprintf(stderr, RM_SEVERITY_NOTICE "learner of %s: starts from %s\n", l->plan->name, path);
    }
    free(given);
    return rc ? rm_fail_within(error, rc, "policy.from") : 0;
}

/* Publishes the first version, resumes from a checkpoint, or continues with a predecessor's last
 * published parameters and its counts on the board. The predecessor's later updates are lost. */
static int begin(struct rm_learner *l, struct rm_error *error)
{
    const struct rm_weights *weights = &l->session->weights[l->policy];
    const char *resumed = l->session->resume;
    struct rm_weights_stamp stamp;
    if (!resumed[0] && rm_weights_latest(weights).version == 0) {
        const int rc = start_from(l, error);
        if (rc)
            return rc;
        rm_publisher_publish(&l->publisher, l->method->params, 0, 0);
        rm_session_wake_actors(l->session);
        return 0;
    }
    float *published = malloc(weights->count * sizeof *published);
    if (!published)
        return rm_fail(error, -ENOMEM, "no memory for %" PRIu64 " parameters", weights->count);
    const bool read = rm_weights_read(weights, published, weights->count, &stamp, NULL);
    if (!resumed[0])
        l->method->ops->load(l->method, published);
    if (read || !resumed[0])
        rm_publisher_resume(&l->publisher, published, stamp.updates);
    free(published);
    if (resumed[0]) {
        const int rc = load_state(l, resumed, NULL, error);
        return rc ? rm_fail_within(error, rc, "%s", resumed) : 0;
    }
    const uint64_t lost = l->method->updates - stamp.updates;
    fprintf(stderr,
            RM_SEVERITY_NOTICE "learner of %s: continues from version %" PRIu64 " (update %" PRIu64
                               "); %" PRIu64 " %s lost, its unpublished state %s\n",
            l->plan->name, stamp.version, stamp.updates, lost,
            rm_plural(lost, "update after it is", "updates after it are"), take_rest(l));
    return 0;
}

/* --- one turn -------------------------------------------------------------------------------- */

static void read_settings(struct rm_learner *l)
{
    const uint64_t version = RM_SEE(&l->run->settings_version);
    if (version == l->settings_version)
        return;
    l->settings_version = version;
    l->publisher.interval = (uint32_t)RM_PEEK(&l->run->settings[RM_HOT_PUBLISH_INTERVAL]);
    l->publisher.min_change = RM_PEEK(&l->run->settings[RM_HOT_PUBLISH_MIN_CHANGE]);
    if (l->method->ops->settings)
        l->method->ops->settings(l->method, l->run);
}

static struct rm_policy_file policy_file(const struct rm_learner *l, const float *parameters)
{
    return (struct rm_policy_file){
        .experiment = l->experiment,
        .policy = l->plan->name,
        .agent = l->agent,
        .net = l->method->net,
        .params = parameters,
        .updates = l->method->updates,
        .env_steps = RM_PEEK(&l->counters->env_steps),
    };
}

static int write_policy(struct rm_learner *l, struct rm_error *error)
{
    char directory[PATH_MAX];
    if (!l->directory[0])
        return 0;
    rm_phase_enter(&l->clock, RM_PHASE_CHECKPOINT);
    if (snprintf(directory, sizeof directory, "%s/policies", l->directory) >= (int)sizeof directory)
        return rm_fail(error, -ENAMETOOLONG, "%s: path too long", l->directory);
    l->backend->ops->download(l->backend, l->publisher.host, l->method->params,
                              l->session->weights[l->policy].count);
    const struct rm_policy_file file = policy_file(l, l->publisher.host);
    return rm_policy_file_write(&file, directory, error);
}

/* Runs in the saver's thread. The content of a policy file is fixed except for the parameters, of
 * which the saver has a copy. */
static int write_state(void *self, const struct rm_state *state, const char *folder,
                       struct rm_error *error)
{
    struct rm_learner *l = self;
    char directory[RM_SESSION_PATH_MAX];
    snprintf(directory, sizeof directory, "%.*s/policies", RM_SESSION_DIRECTORY_MAX, folder);
    int rc = rm_learner_state_write(state, folder, l->policy, error);
    return rc ? rc : rm_policy_file_write(&l->copied, directory, error);
}

static int copy_policy(struct rm_learner *l, struct rm_error *error)
{
    const uint64_t count = l->session->weights[l->policy].count;
    rm_saver_end(&l->saver); /* it may still be reading the previous copy */
    if (!l->copy && !(l->copy = malloc(count * sizeof *l->copy)))
        return rm_fail(error, -ENOMEM, "no memory for a copy of %" PRIu64 " parameters", count);
    l->backend->ops->download(l->backend, l->copy, l->method->params, count);
    l->copied = policy_file(l, l->copy);
    return 0;
}

static int checkpoint(void *self, uint64_t number)
{
    struct rm_learner *l = self;
    struct rm_error error = {""};
    struct rm_state *state = NULL;
    if (!rm_learner_settled(l))
        return 0;
    if (!rm_saver_is_free(&l->saver, number))
        return 1;
    const enum rm_phase before = rm_phase_enter(&l->clock, RM_PHASE_CHECKPOINT);
    int rc = copy_policy(l, &error);
    if (!rc)
        rc = rm_state_create(&state, &error);
    if (!rc) {
        rm_learner_state(l, state);
        rc = rm_state_end(state, &error);
    }
    if (!rc)
        rm_saver_begin(&l->saver, l->session, number, state);
    else
        rm_saver_give_up(&l->saver, number, rc, &error);
    if (rc)
        rm_state_destroy(state);
    rm_phase_enter(&l->clock, before);
    return 1;
}

int rm_learner_save(struct rm_learner *l, struct rm_error *error)
{
    const uint64_t updates = l->method->updates;
    if (l->saved == updates)
        return 0;
    const int rc = write_policy(l, error);
    if (!rc)
        l->saved = updates;
    return rc;
}

static int finish(struct rm_learner *l, struct rm_error *error)
{
    const int rc = rm_learner_save(l, error);
    if (l->method->ops->leave)
        l->method->ops->leave(l->method);
    if (rc)
        return rc;
    RM_RAISE(&l->saver.slot->state, RM_WORKER_DONE);
    rm_session_ring_bell(l->session);
    return RM_DUTY_DONE;
}

/* Frozen opponents of this policy take snapshots of published versions. */
static void wake_followers(struct rm_learner *l)
{
    for (uint32_t i = 0; i < l->experiment->policy.frozen_count; i++) {
        const struct rm_frozen_config *f = &l->experiment->policy.frozen[i];
        if (f->of != l->policy)
            continue;
        struct rm_wake wake =
            rm_session_wake(l->session, rm_worker_learner(&l->session->objects, f->policy));
        rm_wake_signal(&wake);
    }
}

/* The board's counters add up over restarts; a device's counters begin with its process. */
static void count_device(struct rm_learner *l)
{
    struct rm_device_counts now;
    struct rm_board_policy *c = l->counters;
    if (!l->backend->device)
        return;
    l->backend->device->counts(l->backend, &now);
    RM_ADD_OWN(&c->device_bytes_in, now.bytes_in - l->device.bytes_in);
    RM_ADD_OWN(&c->device_bytes_out, now.bytes_out - l->device.bytes_out);
    RM_ADD_OWN(&c->device_waits, now.synchronizations - l->device.synchronizations);
    l->device = now;
}

static enum rm_wait waits_for(const struct rm_learner *l)
{
    const struct rm_algorithm_traits *traits = rm_algorithm_traits(l->experiment->algorithm.name);
    if (l->plan->frozen)
        return RM_WAIT_WEIGHTS;
    if (l->experiment->mode != RM_MODE_FREE && !traits->synchronous)
        return RM_WAIT_ROUND;
    return traits->rollout ? RM_WAIT_ROWS : RM_WAIT_LIMITER;
}

static int do_work(void *self, struct rm_error *error)
{
    struct rm_learner *l = self;
    const uint64_t published = RM_PEEK(&l->counters->published);
    enum rm_method_turn turn = RM_METHOD_WAIT;
    rm_phase_enter(&l->clock, RM_PHASE_OTHER);
    read_settings(l);
    const bool over = rm_experiment_only_evaluates(l->experiment);
    int rc = over ? 0 : l->method->ops->turn(l->method, &turn, error);
    if (device_failed(l, error))
        return -EIO;
    if (!rc && (over || turn == RM_METHOD_FINISHED))
        rc = finish(l, error);
    else if (!rc)
        rc = turn == RM_METHOD_WORKED;
    l->clock.waits = l->waits;
    if (RM_PEEK(&l->counters->published) != published) {
        wake_followers(l);
        note_flops(l);
    }
    count_device(l);
    rm_phase_enter(&l->clock, RM_PHASE_OTHER);
    note_fixed(l);
    return rc;
}

/* --------------------------------------------------------------------------------------------- */

int rm_learner_create(struct rm_learner **learner, struct rm_session *session, uint32_t policy,
                      const char *run_directory, struct rm_duty *duty, struct rm_error *error)
{
    struct rm_learner *l = calloc(1, sizeof *l);
    if (!l)
        return rm_fail(error, -ENOMEM, "no memory for a learner");
    const uint32_t worker = rm_worker_learner(&session->objects, policy);
    l->session = session;
    l->policy = policy;
    l->experiment = &session->experiment;
    l->plan = &session->plan.policy[policy];
    l->counters = &session->board.policies[policy];
    l->run = session->board.run;
    l->slot = &session->board.workers[worker];
    l->saved = UINT64_MAX;
    l->waits = waits_for(l);
    snprintf(l->directory, sizeof l->directory, "%s", run_directory);
    l->saver =
        (struct rm_saver){.slot = &session->board.workers[worker], .write = write_state, .self = l};
    rm_session_phase_start(session, &l->clock, worker, RM_ROLE_LEARNER);
    int rc = open_world(l, error);
    if (!rc)
        rc = open_method(l, error);
    if (!rc)
        rc = begin(l, error);
    if (!rc)
        note_work(l);
    if (!rc)
        l->backend->ops->finish(l->backend); /* a new learner has no work in progress */
    if (device_failed(l, error))
        rc = RM_LEARNER_DEVICE_FAILED;
    if (rc) {
        rm_fail_within(error, rc, "learner of policy %s", l->plan->name);
        rm_learner_destroy(l);
        return rc;
    }
    *duty = (struct rm_duty){
        .self = l,
        .do_work = do_work,
        .checkpoint = session->directory[0] ? checkpoint : NULL,
        .run = session->board.run,
        .slot = &session->board.workers[worker],
        .wake = rm_session_wake(session, worker),
        .look_ns = rm_experiment_loads(&session->experiment) ? RM_DUTY_LOOK_NS : 0,
        .clock = &l->clock,
        .poll_us =
            l->experiment->mode == RM_MODE_FREE && l->experiment->limiter.wake == RM_WAKE_POLL
                ? l->experiment->limiter.poll_us
                : 0,
    };
    *learner = l;
    return 0;
}

int rm_learner_exit(int rc, bool resumed)
{
    if (rc == RM_LEARNER_DEVICE_FAILED)
        return RM_EXIT_CUDA;
    /* What is damaged or does not fit stays so. A resumed learner must not start from scratch. */
    const bool lasting = rc == -EINVAL || rc == -EBADMSG || rc == -ENODATA;
    return resumed || lasting || rm_device_hopeless(rc) ? RM_EXIT_NEVER : RM_EXIT_FAILED;
}

bool rm_learner_device_failed(const struct rm_learner *l)
{
    return device_failed(l, NULL);
}

void rm_learner_destroy(struct rm_learner *l)
{
    if (!l)
        return;
    rm_saver_end(&l->saver);
    free(l->copy);
    close_method(l);
    rm_world_spec_close(&l->world);
    free(l);
}
