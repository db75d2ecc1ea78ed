/* Takes over a session whose daemon was killed. */
#include "config/config.h"
#include "shm/session/session_private.h"
#include "shm/atomic.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
        rc = rm_fail(error, -EPROTO, "its board has other numbers of policies, agents or workers");
    for (uint32_t p = 0; rc == 0 && p < o->policies; p++) {
        rc = rm_weights_attach(&session->weights[p], fds[n++], true, error);
        if (rc == 0 && session->weights[p].count != plan->policy[p].param_count)
            rc = rm_fail(error, -EPROTO, "its weights of policy %s are of another network",
                         plan->policy[p].name);
    }
    for (uint32_t i = 0; rc == 0 && i < o->actors * o->policies; i++) {
        const uint32_t actor = i / o->policies, policy = i % o->policies;
        const struct rm_ring_spec want =
            rm_session_ring_spec(&session->experiment, &plan->policy[policy], actor, policy);
        rc = rm_ring_attach(&session->rings[i], fds[n++], true, error);
        if (rc == 0 && memcmp(&session->rings[i].spec, &want, sizeof want) != 0)
            rc = rm_fail(error, -EPROTO, "its ring of actor %u for policy %s has another shape",
                         actor, plan->policy[policy].name);
    }
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

int rm_session_adopt(struct rm_session *session, const struct rm_experiment *experiment,
                     const struct rm_plan *plan, const int *fds, uint32_t count,
                     struct rm_error *error)
{
    int rc = rm_session_shape(session, experiment, plan, error);
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
