#include "actor/worlds/watched.h"

#include "actor/worlds/described.h"
#include "shm/base/state.h"
#include "shm/duty.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int failed(const struct rm_watched *b, int rc, const char *call, struct rm_error *error)
{
    const char *why = b->world.ops->last_error ? b->world.ops->last_error(b->env) : NULL;
    const bool is_errno = rc < 0 && rc > -4096;

    return rm_fail(error,
                   rc == -EPROTO ? RM_DUTY_NEVER
                   : is_errno    ? rc
                                 : -EIO,
                   "worlds %" PRIu64 "..%" PRIu64 " (%s): %s failed at vector step %" PRIu64 ": %s",
                   b->watch.first_world, b->watch.first_world + b->watch.worlds - 1, b->spec->name,
                   call, *b->watch.steps, why && *why ? why : strerror(is_errno ? -rc : EIO));
}

/* Learners know the world from its description alone: it must be what was described. */
static int check_description(const struct rm_watched *b, struct rm_error *error)
{
    struct rm_described *described;
    if (!b->described->description)
        return 0;
    int rc = rm_described_read(&described, b->described->description, error);
    if (rc < 0)
        return rc;
    if (!rm_described_alike(rm_described_spec(described), b->spec))
        rc =
            rm_fail(error, -EPROTO,
                    "world %s: %s has changed since the experiment started; restart the experiment",
                    b->spec->name, rm_world_source(b->described).value);
    rm_described_free(described);
    return rc;
}

static int create(struct rm_watched *b, const struct rm_world_config *config,
                  struct rm_error *error)
{
    const int rc = rm_world_create(&b->world, config, b->watch.seed, b->watch.first_world,
                                   b->watch.worlds, &b->env, error);
    if (rc < 0)
        return rc;
    b->spec = b->world.ops->describe(b->env);
    b->watch.world = b->spec->name;
    b->groups = b->apart && b->world.groups ? b->world.groups->count(b->env) : 1;
    return check_description(b, error);
}

static void close_env(struct rm_watched *b)
{
    if (!b->env)
        return;
    rm_watch_enter(&b->watch, RM_WATCH_CLOSE);
    b->world.ops->close(b->env);
    rm_watch_leave();
    b->env = NULL;
}

int rm_watched_open(struct rm_watched *b, const struct rm_world_config *config,
                    const struct rm_world_config *described, const struct rm_watch *watch,
                    bool apart, struct rm_error *error)
{
    *b = (struct rm_watched){.described = described, .watch = *watch, .apart = apart};
    const int rc = rm_world_open_configured(&b->world, config, error);
    return rc < 0 ? rc : create(b, config, error);
}

void rm_watched_close(struct rm_watched *b)
{
    close_env(b);
    if (b->world.ops)
        rm_world_close(&b->world);
    *b = (struct rm_watched){0};
}

int rm_watched_replace(struct rm_watched *b, const struct rm_world_config *config, uint64_t seed,
                       struct rm_error *error)
{
    const uint32_t agents = b->spec->agents, phases = b->spec->phases, figures = b->spec->figures;

    close_env(b);
    b->watch.seed = seed;
    const int rc = create(b, config, error);
    if (rc < 0)
        return rc;
    if (b->spec->agents != agents || b->spec->phases != phases || b->spec->figures != figures)
        return rm_fail(error, -EPROTO,
                       "world %s: its observations or actions differ with other options; they must "
                       "stay the same",
                       b->spec->name);
    return 0;
}

int rm_watched_reset(struct rm_watched *b, const struct rm_env_buffers *out, struct rm_error *error)
{
    rm_watch_enter(&b->watch, RM_WATCH_RESET);
    const int rc = b->world.ops->reset(b->env, out);
    rm_watch_leave();
    return rc < 0 ? failed(b, rc, "reset", error) : 0;
}

int rm_watched_step(struct rm_watched *b, uint32_t phase, const int32_t *const *actions,
                    const struct rm_env_buffers *out, struct rm_error *error)
{
    rm_watch_enter(&b->watch, RM_WATCH_STEP);
    const int rc = b->world.ops->step(b->env, phase, actions, out);
    rm_watch_leave();
    return rc < 0 ? failed(b, rc, "step", error) : 0;
}

int rm_watched_ask(struct rm_watched *b, uint32_t group, const int32_t *const *actions,
                   struct rm_error *error)
{
    const int rc = b->world.groups->ask(b->env, group, actions);
    return rc < 0 ? failed(b, rc, "step", error) : 0;
}

int rm_watched_receive(struct rm_watched *b, uint32_t left, const struct rm_env_buffers *out,
                       struct rm_error *error)
{
    rm_watch_enter(&b->watch, RM_WATCH_STEP);
    const uint32_t group = b->world.groups->first(b->env, left);
    const int rc = b->world.groups->receive(b->env, group, out);
    rm_watch_leave();
    return rc < 0 ? failed(b, rc, "step", error) : (int)group;
}

void rm_watched_state(struct rm_watched *b, struct rm_state *state)
{
    const size_t bytes = b->world.ops->state_size(b->env);
    void *part = rm_state_part(state, "world", RM_STATE_BYTES, bytes);
    if (!part || !bytes)
        return;
    rm_watch_enter(&b->watch, RM_WATCH_STATE);
    const int rc = rm_state_loading(state) ? b->world.ops->load_state(b->env, part)
                                           : b->world.ops->save_state(b->env, part);
    rm_watch_leave();
    const char *why = rc < 0 && b->world.ops->last_error ? b->world.ops->last_error(b->env) : NULL;
    if (rc < 0)
        rm_state_fail(state, -EIO, "world %s: its state cannot be %s: %s", b->spec->name,
                      rm_state_loading(state) ? "loaded" : "saved", why ? why : strerror(EIO));
}
