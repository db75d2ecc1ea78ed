#include "shm/session/session.h"

#include "config/config.h"
#include "config/json_memory.h"
#include "config/forms.h"
#include "config/traits.h"
#include "shm/atomic.h"
#include "shm/duty.h"
#include "shm/layout.h"
#include "shm/station.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rows beyond the capacity: the one being written, and those that a stack or an n-step return reads
 * while the oldest rows are being overwritten. */
#define SLACK_ROWS 16

/* Least size of a ring that is recorded: what its actor writes while the recorder starts, or waits
 * for the disk. */
#define RECORDED_BYTES ((size_t)8 << 20)

void rm_session_worlds(const struct rm_experiment *experiment, uint32_t actor, uint64_t *first,
                       uint32_t *count)
{
    uint32_t actors = experiment->actor.count;
    uint32_t each = experiment->actor.worlds / actors;
    uint32_t more = experiment->actor.worlds % actors;

    *first = (uint64_t)actor * each + (actor < more ? actor : more);
    *count = each + (actor < more ? 1 : 0);
}

static uint64_t power_of_two_at_least(uint64_t n)
{
    uint64_t p = 4;
    while (p < n)
        p *= 2;
    return p;
}

uint32_t rm_plan_first_trained(const struct rm_plan *plan)
{
    uint32_t p = 0;

    while (p + 1 < plan->policies && plan->policy[p].frozen)
        p++;
    return plan->policy[p].frozen ? 0 : p;
}

uint32_t rm_session_capacity_rows(const struct rm_experiment *experiment,
                                  const struct rm_policy_plan *policy)
{
    uint64_t lanes = (uint64_t)policy->agents * experiment->actor.worlds;
    uint64_t rows = (experiment->ring.capacity + lanes - 1) / lanes;

    if (rm_algorithm_traits(experiment->algorithm.name)->rollout && !policy->frozen) {
        uint32_t held = rm_algorithm_traits(experiment->algorithm.name)->synchronous
                            ? experiment->rollout.max_policy_lag + 1
                            : experiment->rollout.queue;
        rows = (uint64_t)held * experiment->rollout.steps;
    }
    if (policy->frozen)
        rows = 1; /* no learner reads them */
    rows += SLACK_ROWS + experiment->sample.frame_stack + experiment->sample.n_step;
    if (rm_algorithm_traits(experiment->algorithm.name)->sequences)
        rows += (uint64_t)experiment->sample.burn_in + experiment->sample.sequence;
    if (experiment->mode != RM_MODE_FREE)
        rows += experiment->run.round_steps;
    if (rm_form_traits(experiment->algorithm.form)->slots)
        rows += 3 * experiment->ring.capacity; /* slots name rows of up to three laps ago */
    rows = power_of_two_at_least(rows);
    return rows > (1u << 30) ? 1u << 30 : (uint32_t)rows;
}

struct rm_ring_spec rm_session_ring_spec(const struct rm_experiment *experiment,
                                         const struct rm_policy_plan *policy, uint32_t actor,
                                         uint32_t index)
{
    uint64_t first;
    uint32_t worlds;

    const struct rm_algorithm_traits *traits = rm_algorithm_traits(experiment->algorithm.name);
    uint32_t columns = policy->mask_bytes ? RM_COLUMN_MASK : 0;
    if (traits->logp)
        columns |= RM_COLUMN_LOGP;
    if (policy->state_floats)
        columns |= RM_COLUMN_STATE;
    if (policy->values)
        columns |= RM_COLUMN_VALUE;
    rm_session_worlds(experiment, actor, &first, &worlds);
    struct rm_ring_spec spec = {
        /* No learner trains on the rows of frozen opponents. */
        .mode = traits->rollout && !policy->frozen ? RM_RING_ROLLOUT : RM_RING_REPLAY,
        .rows = rm_session_capacity_rows(experiment, policy),
        .lanes = worlds * policy->agents,
        .obs_bytes = policy->obs_bytes,
        .mask_bytes = policy->mask_bytes,
        .action_words = policy->action_words,
        .columns = columns,
        .state_floats = policy->state_floats,
        .state_every = traits->rollout && !policy->frozen ? experiment->rollout.steps : 1,
        .record_wait = rm_experiment_records(experiment) && experiment->record.wait,
        .actor = actor,
        .policy = index,
    };
    while (rm_experiment_records(experiment) && spec.rows < (1u << 30) &&
           rm_ring_bytes(&spec) - 1 < RECORDED_BYTES) /* 0, of no size, is more than any */
        spec.rows *= 2;
    return spec;
}

uint64_t rm_session_replay_rows(const struct rm_experiment *experiment,
                                const struct rm_policy_plan *policy)
{
    uint64_t lanes = (uint64_t)policy->agents * experiment->actor.worlds;
    uint64_t rows = experiment->ring.capacity / lanes;

    return rows < 2 ? 2 : rows; /* a transition and its successor */
}

struct rm_priorities_spec rm_session_priorities_spec(const struct rm_experiment *experiment,
                                                     const struct rm_policy_plan *policy,
                                                     uint32_t index)
{
    return (struct rm_priorities_spec){
        .slots = rm_session_replay_rows(experiment, policy),
        .lanes = policy->agents * experiment->actor.worlds,
        .sources = experiment->actor.count,
        .policy = index,
    };
}

static bool prioritised(const struct rm_experiment *experiment)
{
    return experiment->priority.kind == RM_PRIORITY_PROPORTIONAL &&
           !rm_experiment_is_offline(experiment) && /* the learner has its own */
           !rm_algorithm_traits(experiment->algorithm.name)->rollout;
}

/* An empty session of the right shape: nothing mapped, no descriptor. */
static int shape(struct rm_session *session, const struct rm_experiment *experiment,
                 const struct rm_plan *plan, struct rm_error *error)
{
    memset(session, 0, sizeof *session);
    session->experiment = *experiment;
    session->plan = *plan;
    session->objects.policies = plan->policies;
    session->objects.actors = rm_actor_processes(experiment);
    session->objects.priorities = prioritised(experiment) ? plan->policies : 0;
    session->objects.recorders = rm_experiment_records(experiment);
    session->objects.workers =
        rm_worker_solo(&session->objects) + (experiment->mode == RM_MODE_SEQUENTIAL);
    session->board.region.fd = -1;
    session->config.fd = -1;
    for (uint32_t p = 0; p < RM_BOARD_POLICIES; p++)
        session->weights[p].region.fd = -1;

    uint32_t rings = session->objects.actors * session->objects.policies;
    session->rings = calloc(rings ? rings : 1, sizeof *session->rings);
    session->wake_fds = malloc((session->objects.workers + 1) * sizeof *session->wake_fds);
    if (session->objects.priorities)
        session->priorities = calloc(session->objects.priorities, sizeof *session->priorities);
    if (!session->rings || !session->wake_fds ||
        (session->objects.priorities && !session->priorities)) {
        free(session->rings);
        free(session->wake_fds);
        free(session->priorities);
        session->priorities = NULL;
        session->rings = NULL;
        session->wake_fds = NULL;
        return rm_fail(error, -ENOMEM, "session: no memory for %u rings", rings);
    }
    for (uint32_t i = 0; i < rings; i++)
        session->rings[i].region.fd = -1;
    for (uint32_t p = 0; p < session->objects.priorities; p++)
        session->priorities[p].region.fd = -1;
    for (uint32_t i = 0; i <= session->objects.workers; i++)
        session->wake_fds[i] = -1;
    return 0;
}

/* The configuration, and after it the world's description, if the world was probed. */
int rm_session_config_text(struct rm_session *session, struct rm_error *error)
{
    const char *description = session->experiment.world.description;
    json_t *json = rm_config_to_json(&session->experiment);
    char *text = rm_json_dump(json, JSON_INDENT(2));
    int r;

    json_decref(json);
    if (!text)
        return rm_fail(error, -ENOMEM, "session: no memory for the configuration text");
    const size_t bytes = strlen(text) + 1, more = description ? strlen(description) + 1 : 0;
    r = rm_region_create(&session->config, RM_REGION_TEXT, "config",
                         sizeof(struct rm_region_header) + bytes + more, error);
    if (r == 0) {
        char *to = (char *)session->config.base + sizeof(struct rm_region_header);
        memcpy(to, text, bytes);
        if (description)
            memcpy(to + bytes, description, more);
        rm_region_publish(&session->config);
        r = rm_region_freeze(&session->config, error); /* no process can change it any more */
    }
    free(text);
    return r;
}

static void name_workers(struct rm_session *session)
{
    struct rm_board_worker *w = session->board.workers;
    const struct rm_objects *o = &session->objects;

    for (uint32_t i = 0; i < o->actors; i++, w++) {
        snprintf(w->name, sizeof w->name, "actor-%u", i);
        w->role = RM_ROLE_ACTOR;
        w->index = i;
    }
    for (uint32_t i = 0; i < o->policies; i++, w++) {
        snprintf(w->name, sizeof w->name, "learner-%.39s", session->plan.policy[i].name);
        w->role = RM_ROLE_LEARNER;
        w->index = i;
    }
    snprintf(w->name, sizeof w->name, "evaluator");
    w->role = RM_ROLE_EVALUATOR;
    if (o->recorders) {
        w++;
        snprintf(w->name, sizeof w->name, "recorder");
        w->role = RM_ROLE_RECORDER;
    }
    if (o->workers > rm_worker_solo(o)) {
        w++;
        snprintf(w->name, sizeof w->name, "solo");
        w->role = RM_ROLE_SOLO;
    }
}

static void fill_board(struct rm_session *session)
{
    const struct rm_experiment *e = &session->experiment;
    struct rm_board_view *b = &session->board;
    double hot[RM_HOT_COUNT];

    snprintf(b->run->name, sizeof b->run->name, "%.47s", e->name);
    b->run->mode = (uint32_t)e->mode;
    b->run->env_steps_budget = e->run.steps;
    rm_config_hot_values(e, hot);
    for (int i = 0; i < RM_HOT_COUNT; i++)
        b->run->settings[i] = hot[i];
    b->run->settings_version = 1;
    b->run->eval_best = NAN;
    b->run->bell_at = UINT64_MAX;

    for (uint32_t p = 0; p < session->plan.policies; p++) {
        const struct rm_policy_plan *policy = &session->plan.policy[p];
        /* The rows of frozen opponents are never sampled, so their limiter is off. */
        double per_insert = policy->frozen ? 0 : e->limiter.updates_per_step * e->sample.batch;
        double slack = e->limiter.slack_updates * e->sample.batch;

        memcpy(b->policies[p].name, policy->name, sizeof b->policies[p].name);
        rm_limiter_init(&b->policies[p].limiter, per_insert, -slack, slack, e->sample.min_fill);
        if (!rm_algorithm_traits(e->algorithm.name)->rollout)
            b->policies[p].replay_capacity = e->ring.capacity;
    }
    b->run->stages = e->curriculum.stages;
    b->run->stage_mean = NAN;
    b->run->figures = session->plan.figures;
    memcpy(b->run->figure, session->plan.figure, sizeof b->run->figure);
    for (uint32_t a = 0; a < session->plan.agents; a++) {
        memcpy(b->agents[a].name, session->plan.agent_name[a], sizeof b->agents[a].name);
        b->agents[a].policy = session->plan.agent_policy[a];
    }
    name_workers(session);
    /* The evaluator takes no part in rounds: evaluations do not affect training. */
    rm_round_init(b->round, session->objects.actors + session->objects.policies);
}

static int create_objects(struct rm_session *session, struct rm_error *error)
{
    const struct rm_objects *o = &session->objects;
    int r;

    if (o->workers > RM_BOARD_WORKERS)
        return rm_fail(error, -E2BIG, "session: %u workers; must be at most %d", o->workers,
                       RM_BOARD_WORKERS);
    r = rm_board_create(&session->board, session->plan.policies, session->plan.agents, o->workers,
                        error);
    if (r == 0)
        r = rm_session_config_text(session, error);
    for (uint32_t p = 0; r == 0 && p < o->policies; p++) {
        const struct rm_policy_plan *policy = &session->plan.policy[p];
        r = rm_weights_create(&session->weights[p], p, policy->param_count, policy->act_count,
                              error);
        if (r < 0)
            rm_fail_within(error, r, "weights of policy %s", policy->name);
    }
    for (uint32_t i = 0; r == 0 && i < o->actors * o->policies; i++) {
        const struct rm_policy_plan *policy = &session->plan.policy[i % o->policies];
        struct rm_ring_spec spec =
            rm_session_ring_spec(&session->experiment, policy, i / o->policies, i % o->policies);
        r = rm_ring_create(&session->rings[i], &spec, error);
        if (r < 0)
            rm_fail_within(error, r, "ring of actor %u for policy %s (ring.capacity %llu)",
                           i / o->policies, policy->name,
                           (unsigned long long)session->experiment.ring.capacity);
    }
    for (uint32_t i = 0; r == 0 && i <= o->workers; i++) {
        session->wake_fds[i] = rm_wake_create_fd(error);
        if (session->wake_fds[i] < 0)
            r = session->wake_fds[i];
    }
    for (uint32_t p = 0; r == 0 && p < o->priorities; p++) {
        struct rm_priorities_spec spec =
            rm_session_priorities_spec(&session->experiment, &session->plan.policy[p], p);
        r = rm_priorities_create(&session->priorities[p], &spec, error);
    }
    return r;
}

int rm_session_create(struct rm_session *session, const struct rm_experiment *experiment,
                      const struct rm_plan *plan, struct rm_error *error)
{
    int r = shape(session, experiment, plan, error);
    if (r < 0)
        return r;
    r = create_objects(session, error);
    if (r < 0) {
        rm_session_close(session);
        return r;
    }
    fill_board(session);
    return 0;
}

int rm_session_read_config(struct rm_experiment *experiment, struct rm_error *error)
{
    struct rm_region region;
    int r = rm_region_attach(&region, RM_FD_CONFIG, RM_REGION_TEXT, false, error);

    if (r != RM_ATTACH_OK)
        return r < 0 ? rm_fail_within(error, r,
                                      "descriptor %d (only ringmasterd starts this program)",
                                      RM_FD_CONFIG)
                     : rm_fail(error, -EAGAIN, "descriptor %d: the configuration is not complete",
                               RM_FD_CONFIG);
    if (!rm_region_frozen(RM_FD_CONFIG)) {
        rm_region_close(&region);
        return rm_fail(error, -EPROTO,
                       "descriptor %d: the configuration is not sealed against writing",
                       RM_FD_CONFIG);
    }
    const char *text = (const char *)region.base + sizeof(struct rm_region_header);
    const size_t room = region.bytes - sizeof(struct rm_region_header), bytes = strnlen(text, room);
    r = rm_config_parse(experiment, "inherited configuration", text, bytes, NULL, 0, error);
    if (r == 0 && bytes + 1 < room && text[bytes + 1]) {
        const size_t more = strnlen(text + bytes + 1, room - bytes - 1);
        experiment->world.description = strndup(text + bytes + 1, more); /* for good */
        if (!experiment->world.description)
            r = rm_fail(error, -ENOMEM, "no memory for the world's description");
    }
    rm_region_close(&region);
    return r;
}

/* The part of the session that a process maps. */
struct share {
    enum rm_role role; /* RM_ROLE_LEARNER: everything, writable */
    uint32_t worker;   /* its index, if the role has pages of its own */
};

static int attach_board(struct rm_session *session, const struct share *share,
                        struct rm_error *error)
{
    const struct rm_objects *o = &session->objects;
    const uint32_t policies = o->policies, agents = session->plan.agents;
    const int r =
        share->role == RM_ROLE_LEARNER
            ? rm_board_attach(&session->board, RM_FD_BOARD, true, error)
            : rm_board_attach_as(&session->board, RM_FD_BOARD, share->role, share->worker, error);
    if (r != 0)
        return r;
    const struct rm_board_run *run = session->board.run;
    if (run->policies != policies || run->agents != agents || run->workers != o->workers)
        return rm_fail(error, -EPROTO,
                       "board: %u policies, %u agents, %u workers; this process expects %u, %u, %u",
                       run->policies, run->agents, run->workers, policies, agents, o->workers);
    return 0;
}

static int attach_wakes(struct rm_session *session, struct rm_error *error)
{
    const struct rm_objects *o = &session->objects;
    for (uint32_t i = 0; i <= o->workers; i++) {
        session->wake_fds[i] = fcntl(rm_fd_wake(o, i), F_DUPFD_CLOEXEC, rm_fd_end(o));
        if (session->wake_fds[i] < 0)
            return rm_fail(error, -errno, "wake of worker %u: descriptor %d: %s", i,
                           rm_fd_wake(o, i), strerror(errno));
    }
    return 0;
}

/* The actor can write the ring's header, so take the ring's shape from the configuration. The ring
 * was complete before any worker was started. */
static int attach_ring(struct rm_session *session, uint32_t actor, uint32_t policy, int fd,
                       struct rm_error *error)
{
    const struct rm_policy_plan *plan = &session->plan.policy[policy];
    const struct rm_ring_spec want =
        rm_session_ring_spec(&session->experiment, plan, actor, policy);
    struct rm_ring *ring = rm_session_ring(session, actor, policy);
    int r = rm_ring_attach(ring, fd, true, error);
    if (r == RM_ATTACH_AWAITING_VERSION)
        r = rm_fail(error, -EPROTO, "it is not complete");
    else if (r == RM_ATTACH_OK && memcmp(&ring->spec, &want, sizeof want) != 0)
        r = rm_fail(error, -EPROTO, "it has a different shape");
    return r == -EPROTO ? rm_fail_within(error, r, "the ring for policy %s was damaged by actor-%u",
                                         plan->name, actor)
                        : r;
}

static int attach(struct rm_session *session, const struct share *share, struct rm_error *error)
{
    const struct rm_objects *o = &session->objects;
    const struct rm_plan *plan = &session->plan;
    const bool learns = share->role == RM_ROLE_LEARNER || share->role == RM_ROLE_SOLO;
    int r = attach_board(session, share, error);

    for (uint32_t p = 0; r == 0 && p < o->policies; p++) {
        r = rm_weights_attach(&session->weights[p], rm_fd_weights(o, p), learns, error);
        if (r == 0 && session->weights[p].count != plan->policy[p].param_count)
            r = rm_fail(error, -EPROTO, "weights of policy %u: %llu floats; the network has %llu",
                        p, (unsigned long long)session->weights[p].count,
                        (unsigned long long)plan->policy[p].param_count);
    }
    for (uint32_t a = 0; a < o->actors; a++)
        for (uint32_t p = 0; r == 0 && p < o->policies; p++)
            if (learns || (share->role == RM_ROLE_ACTOR && a == share->worker))
                r = attach_ring(session, a, p, rm_fd_ring(o, a, p), error);
    if (r == 0)
        r = attach_wakes(session, error);
    for (uint32_t p = 0; r == 0 && learns && p < o->priorities; p++)
        r = rm_priorities_attach(&session->priorities[p], rm_fd_priorities(o, p), true, error);
    return r;
}

static int attach_share(struct rm_session *session, const struct rm_experiment *experiment,
                        const struct rm_plan *plan, const struct share *share,
                        struct rm_error *error)
{
    int r = shape(session, experiment, plan, error);
    if (r < 0)
        return r;
    r = attach(session, share, error);
    if (r != 0) {
        rm_session_close(session);
        return r < 0 ? r : rm_fail(error, -EAGAIN, "session: an object is not complete");
    }
    return 0;
}

int rm_session_attach(struct rm_session *session, const struct rm_experiment *experiment,
                      const struct rm_plan *plan, struct rm_error *error)
{
    const struct share all = {.role = RM_ROLE_LEARNER};
    return attach_share(session, experiment, plan, &all, error);
}

int rm_session_attach_as(struct rm_session *session, const struct rm_experiment *experiment,
                         const struct rm_plan *plan, enum rm_role role, uint32_t worker,
                         struct rm_error *error)
{
    const struct share share = {role, worker};
    const int r = attach_share(session, experiment, plan, &share, error);
    /* With a descriptor the whole object could be mapped writable. */
    for (int fd = RM_FD_BOARD; r == 0 && fd < rm_fd_end(&session->objects); fd++)
        close(fd);
    return r;
}

void rm_session_close(struct rm_session *session)
{
    rm_duty_signals_end();
    if (session->rings)
        for (uint32_t i = 0; i < session->objects.actors * session->objects.policies; i++)
            rm_ring_close(&session->rings[i]);
    for (uint32_t p = 0; p < RM_BOARD_POLICIES; p++)
        rm_weights_close(&session->weights[p]);
    if (session->wake_fds)
        for (uint32_t i = 0; i <= session->objects.workers; i++)
            if (session->wake_fds[i] >= 0)
                close(session->wake_fds[i]);
    for (uint32_t p = 0; session->priorities && p < session->objects.priorities; p++)
        rm_priorities_close(&session->priorities[p]);
    rm_region_close(&session->config);
    rm_board_close(&session->board);
    free(session->priorities);
    session->priorities = NULL;
    free(session->rings);
    free(session->wake_fds);
    session->rings = NULL;
    session->wake_fds = NULL;
}

uint32_t rm_session_fds(const struct rm_session *session, int *fds, uint32_t max)
{
    const struct rm_objects *o = &session->objects;
    uint32_t n = 0;

#define PUT(fd)                                                                                    \
    do {                                                                                           \
        if (n < max)                                                                               \
            fds[n] = (fd);                                                                         \
        n++;                                                                                       \
    } while (0)
    PUT(session->board.region.fd);
    PUT(session->config.fd);
    for (uint32_t p = 0; p < o->policies; p++)
        PUT(session->weights[p].region.fd);
    for (uint32_t i = 0; i < o->actors * o->policies; i++)
        PUT(session->rings[i].region.fd);
    for (uint32_t i = 0; i <= o->workers; i++)
        PUT(session->wake_fds[i]);
    for (uint32_t p = 0; p < o->priorities; p++)
        PUT(session->priorities[p].region.fd);
#undef PUT
    return n;
}

uint64_t rm_session_steps(const struct rm_session *session)
{
    uint64_t steps = 0;

    for (uint32_t i = 0; i < rm_worker_evaluator(&session->objects); i++)
        steps += RM_PEEK(&session->board.workers[i].steps);
    return steps;
}

uint64_t rm_session_agent_steps(const struct rm_session *session)
{
    uint64_t steps = 0;

    for (uint32_t p = 0; p < session->board.run->policies; p++)
        steps += RM_PEEK(&session->board.policies[p].env_steps);
    return steps;
}

uint64_t rm_session_updates(const struct rm_session *session)
{
    uint64_t updates = 0;

    for (uint32_t p = 0; p < session->board.run->policies; p++)
        updates += RM_PEEK(&session->board.policies[p].updates);
    return updates;
}

bool rm_session_budget_spent(const struct rm_session *session, uint64_t round)
{
    const uint64_t budget = session->experiment.run.steps;
    uint64_t steps = 0;

    for (uint32_t a = 0; a < session->objects.actors; a++) {
        const uint32_t worker = rm_worker_actor(&session->objects, a);
        steps += RM_PEEK(&session->board.workers[worker].steps_at[(round - 1) & 1]);
    }
    return budget && steps >= budget;
}

uint32_t rm_session_process(const struct rm_session *session, uint32_t worker)
{
    const struct rm_objects *o = &session->objects;
    const uint32_t first = rm_worker_learner(o, 0);
    if (session->experiment.mode == RM_MODE_SEQUENTIAL)
        return rm_worker_solo(o);
    if (session->experiment.learner.processes == RM_LEARNERS_ONE && worker >= first &&
        worker < first + o->policies)
        return first;
    return worker;
}

bool rm_session_has_process(const struct rm_session *session, uint32_t worker)
{
    return rm_session_process(session, worker) == worker;
}

/* Whether the process of this worker has other workers' duties too. */
static bool has_others(const struct rm_session *session, uint32_t index)
{
    for (uint32_t i = 0; i < session->objects.workers; i++)
        if (i != index && rm_session_process(session, i) == index)
            return true;
    return false;
}

/* Of a process with several duties. The solo process's own slot is no duty's. */
static enum rm_worker_state state_of_all(const struct rm_session *session, uint32_t process,
                                         uint64_t *heartbeat_ns)
{
    enum rm_worker_state word = RM_WORKER_DONE;
    for (uint32_t i = 0; i < session->objects.workers; i++) {
        const struct rm_board_worker *slot = &session->board.workers[i];
        if (rm_session_process(session, i) != process || RM_PEEK(&slot->role) == RM_ROLE_SOLO)
            continue;
        enum rm_worker_state state = RM_SEE(&slot->state);
        uint64_t beat = RM_PEEK(&slot->heartbeat_ns);
        if (beat > *heartbeat_ns)
            *heartbeat_ns = beat;
        if (state == RM_WORKER_WAITING)
            return RM_WORKER_WAITING;
        if (state != RM_WORKER_DONE)
            word = RM_WORKER_BUSY;
    }
    return word;
}

enum rm_worker_state rm_session_process_state(const struct rm_session *session, uint32_t index,
                                              uint64_t *heartbeat_ns)
{
    const struct rm_board_worker *slot = &session->board.workers[index];
    enum rm_worker_state state = RM_SEE(&slot->state);
    *heartbeat_ns = RM_PEEK(&slot->heartbeat_ns);
    const bool at_work =
        state == RM_WORKER_WAITING || (RM_PEEK(&slot->role) != RM_ROLE_SOLO &&
                                       (state == RM_WORKER_BUSY || state == RM_WORKER_DONE));
    if (!at_work || !has_others(session, index))
        return state;
    return state_of_all(session, index, heartbeat_ns);
}

struct rm_wake rm_session_wake(struct rm_session *session, uint32_t worker)
{
    const uint32_t process = rm_session_process(session, worker);
    return (struct rm_wake){.word = &session->board.workers[process].wake,
                            .fd = session->wake_fds[process]};
}

void rm_session_ring_bell(const struct rm_session *session)
{
    rm_wake_ring(session->wake_fds[session->objects.workers]);
}

void rm_session_ring_at(const struct rm_session *session, uint64_t steps)
{
    _Atomic uint64_t *at = &session->board.run->bell_at;

    if (steps >= RM_PEEK(at) && RM_EXCHANGE(at, UINT64_MAX) != UINT64_MAX)
        rm_session_ring_bell(session);
}

void rm_session_phase_start(const struct rm_session *session, struct rm_phase_clock *clock,
                            uint32_t worker, enum rm_role role)
{
    const struct rm_experiment *e = &session->experiment;
    uint32_t phases = rm_station_phases(e->debug.lengthen, role);
    if (e->world.python[0] && role == RM_ROLE_ACTOR)
        phases &= ~(uint32_t)(1u << RM_PHASE_ENVIRONMENT);
    rm_phase_start(clock, &session->board.workers[worker]);
    rm_phase_lengthen(clock, phases, e->debug.lengthen_by);
}

void rm_session_wake_up(struct rm_session *session)
{
    for (uint32_t i = 0; i < session->objects.workers; i++) {
        struct rm_wake wake = rm_session_wake(session, i);
        rm_wake_force(&wake);
    }
}

void rm_session_wake_all(struct rm_session *session)
{
    for (uint32_t i = 0; i < session->objects.workers; i++) {
        struct rm_wake wake = rm_session_wake(session, i);
        rm_wake_signal(&wake);
    }
}

void rm_session_wake_actors(struct rm_session *session)
{
    for (uint32_t a = 0; a < session->objects.actors; a++) {
        struct rm_wake wake = rm_session_wake(session, rm_worker_actor(&session->objects, a));
        rm_wake_signal(&wake);
    }
}

/* --- taking over what a killed daemon left ------------------------------------------------- */

#define PUT(descriptor)                                                                            \
    do {                                                                                           \
        if (n < max)                                                                               \
            fds[n] = (descriptor);                                                                 \
        n++;                                                                                       \
    } while (0)

uint32_t rm_session_kept(const struct rm_session *session, int *fds, uint32_t max)
{
    const struct rm_objects *o = &session->objects;
    uint32_t n = 0;
    PUT(session->config.fd);
    PUT(session->board.region.fd);
    for (uint32_t p = 0; p < o->policies; p++)
        PUT(session->weights[p].region.fd);
    for (uint32_t i = 0; i < o->actors * o->policies; i++)
        PUT(session->rings[i].region.fd);
    for (uint32_t p = 0; p < o->priorities; p++)
        PUT(session->priorities[p].region.fd);
    return n;
}

uint64_t rm_session_rows(const struct rm_session *session)
{
    const uint32_t rings = session->objects.actors * session->objects.policies;
    uint64_t rows = 0, first, end;
    for (uint32_t i = 0; i < rings; i++) {
        rm_ring_window(&session->rings[i], &first, &end);
        rows += end - first;
    }
    return rows;
}

struct difference {
    char cold[256];
};

static void note_cold(void *user, const char *path, const char *before, const char *after, bool hot)
{
    struct difference *d = user;
    const size_t used = strlen(d->cold);
    (void)before;
    (void)after;
    if (!hot)
        snprintf(d->cold + used, sizeof d->cold - used, "%s%s", used ? ", " : "", path);
}

/* The kept configuration must equal this experiment's, except for hot keys. */
static int check_config(int fd, const struct rm_experiment *experiment, struct rm_error *error)
{
    struct rm_region region;
    struct rm_experiment before;
    struct difference difference = {""};
    int rc = rm_region_attach(&region, fd, RM_REGION_TEXT, false, error);
    if (rc != RM_ATTACH_OK)
        return rc < 0 ? rc : rm_fail(error, -EPROTO, "its configuration is not complete");
    const char *text = rm_region_payload(&region);
    rc = rm_config_parse(&before, "kept configuration", text,
                         strnlen(text, rm_region_payload_bytes(&region)), NULL, 0, error);
    rm_region_close(&region);
    if (rc)
        return rc;
    rc = rm_config_diff(&before, experiment, note_cold, &difference);
    if (rc < 0)
        return rm_fail(error, rc, "no memory to compare the kept configuration with the new one");
    return difference.cold[0]
               ? rm_fail(error, -EPROTO, "the configuration has changed since: %s", difference.cold)
               : 0;
}

static int attach_all(struct rm_session *session, const int *fds, struct rm_error *error)
{
    const struct rm_objects *o = &session->objects;
    const struct rm_plan *plan = &session->plan;
    uint32_t n = 1;
    int rc = rm_board_attach(&session->board, fds[n++], true, error);
    if (rc == 0 &&
        (session->board.run->policies != plan->policies ||
         session->board.run->agents != plan->agents || session->board.run->workers != o->workers))
        rc = rm_fail(error, -EPROTO,
                     "its board has different numbers of policies, agents or workers");
    for (uint32_t p = 0; rc == 0 && p < o->policies; p++) {
        rc = rm_weights_attach(&session->weights[p], fds[n++], true, error);
        if (rc == 0 && session->weights[p].count != plan->policy[p].param_count)
            rc = rm_fail(error, -EPROTO, "its weights of policy %s belong to a different network",
                         plan->policy[p].name);
    }
    for (uint32_t i = 0; rc == 0 && i < o->actors * o->policies; i++)
        rc = attach_ring(session, i / o->policies, i % o->policies, fds[n++], error);
    for (uint32_t p = 0; rc == 0 && p < o->priorities; p++)
        rc = rm_priorities_attach(&session->priorities[p], fds[n++], true, error);
    return rc > 0 ? rm_fail(error, -EPROTO, "one of its objects is not complete") : rc;
}

/* Gives the descriptors to the regions. */
static void own(struct rm_session *session, const int *fds)
{
    const struct rm_objects *o = &session->objects;
    uint32_t n = 1;
    session->board.region.fd = fds[n++];
    for (uint32_t p = 0; p < o->policies; p++)
        session->weights[p].region.fd = fds[n++];
    for (uint32_t i = 0; i < o->actors * o->policies; i++)
        session->rings[i].region.fd = fds[n++];
    for (uint32_t p = 0; p < o->priorities; p++)
        session->priorities[p].region.fd = fds[n++];
}

/* Clears workers and requests of the killed daemon from the board. */
static void reset_board(struct rm_session *session)
{
    struct rm_board_view *b = &session->board;
    double hot[RM_HOT_COUNT];
    for (uint32_t w = 0; w < session->objects.workers; w++) {
        struct rm_board_worker *slot = &b->workers[w];
        RM_POKE(&slot->pid, 0);
        RM_POKE(&slot->wake.sleeping, 0);
        RM_POKE(&slot->phase, 0);
        RM_RAISE(&slot->state, RM_WORKER_NONE);
        memset(slot->error, 0, sizeof slot->error);
    }
    rm_config_hot_values(&session->experiment, hot);
    for (int i = 0; i < RM_HOT_COUNT; i++)
        RM_POKE(&b->run->settings[i], hot[i]);
    RM_ADD_OWN(&b->run->settings_version, 1);
    RM_POKE(&b->run->stop, 0);
    RM_POKE(&b->run->pause, 0);
    RM_RAISE(&b->run->state, RM_RUN_STARTING);
    rm_round_settle(b->round); /* the last participant to arrive may have died before it advanced
                                * the round */
}

/* No run gets so far, and no checkpoint could be made of it: a world wrote there. */
static int check_counts(const struct rm_session *session, struct rm_error *error)
{
    const struct {
        const char *name;
        uint64_t now;
    } counts[] = {
        {"step", rm_session_steps(session)},
        {"update", rm_session_updates(session)},
        {"round", rm_round_current(session->board.round)},
        {"evaluation", RM_PEEK(&session->board.run->evaluations)},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].now > INT64_MAX)
            return rm_fail(error, -EPROTO, "the board is damaged: it says %s %llu, above %lld",
                           counts[i].name, (unsigned long long)counts[i].now, (long long)INT64_MAX);
    return 0;
}

int rm_session_adopt(struct rm_session *session, const struct rm_experiment *experiment,
                     const struct rm_plan *plan, const int *fds, uint32_t count,
                     struct rm_error *error)
{
    int rc = shape(session, experiment, plan, error);
    if (rc < 0)
        return rc;
    const uint32_t want = rm_session_kept(session, NULL, 0);
    if (count != want)
        rc = rm_fail(error, -EPROTO, "%u descriptors were kept; this experiment needs %u", count,
                     want);
    if (rc == 0)
        rc = check_config(fds[0], experiment, error);
    if (rc == 0)
        rc = attach_all(session, fds, error);
    if (rc == 0)
        rc = check_counts(session, error);
    if (rc == 0)
        rc = rm_session_config_text(session, error);
    for (uint32_t i = 0; rc == 0 && i <= session->objects.workers; i++) {
        session->wake_fds[i] = rm_wake_create_fd(error);
        if (session->wake_fds[i] < 0)
            rc = session->wake_fds[i];
    }
    if (rc) {
        rm_session_close(session);
        return rc;
    }
    own(session, fds);
    close(fds[0]); /* the configuration's region was created again */
    reset_board(session);
    return 0;
}
