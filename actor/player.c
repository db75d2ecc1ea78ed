#include "actor/player.h"

#include "actor/stepping.h"
#include "actor/worlds/options.h"
#include "actor/worlds/plan.h"
#include "learner/net/policy_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct player {
    const struct rm_experiment *experiment;
    const struct rm_player_options *options;
    struct rm_plan plan;
    struct rm_world_config world; /* with evaluation.options */
    struct rm_stepping stepping;
    struct rm_ring ring[RM_BOARD_POLICIES];
    struct rm_player_head head; /* of the next frame */
    char text[RM_PLAYER_TEXT_MAX];
    uint8_t *rgb;
    uint32_t finished; /* episodes */
    double score;      /* of the latest */
    uint64_t steps;
};

/* --- frames ---------------------------------------------------------------------------------- */

static int put(int fd, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        const ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -EPIPE;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int put_frame(struct player *p, enum rm_player_kind kind, struct rm_error *error)
{
    p->head.magic = RM_PLAYER_MAGIC;
    p->head.kind = kind;
    int rc = put(p->options->fd, &p->head, sizeof p->head);
    if (rc == 0)
        rc = put(p->options->fd, p->text, p->head.text_bytes);
    if (rc == 0)
        rc = put(p->options->fd, p->rgb, (size_t)p->head.width * p->head.height * 3);
    return rc < 0 ? rm_fail(error, rc, "the reader of the pictures has closed the pipe") : 0;
}

static int shown(const struct player *p, int rc, struct rm_error *error)
{
    const char *why = p->stepping.world.ops->last_error(p->stepping.env);
    if (rc >= 0)
        return rc;
    return rm_fail(error, -EIO, "world %s cannot be shown: %s", p->stepping.spec->name,
                   why && *why ? why : "it says no more");
}

/* The state in which the world stands. */
static int show(struct player *p, struct rm_error *error)
{
    const struct rm_env_ops *ops = p->stepping.world.ops;
    const struct rm_env_spec *spec = p->stepping.spec;
    int rc;

    rm_watch_enter(&p->stepping.watch, RM_WATCH_SHOW);
    if (p->options->picture)
        rc = ops->show_picture(p->stepping.env, 0, p->rgb);
    else
        rc = ops->show_text(p->stepping.env, 0, p->text, sizeof p->text);
    rm_watch_leave();
    if ((rc = shown(p, rc, error)) < 0)
        return rc;
    p->head.width = p->options->picture ? spec->picture_width : 0;
    p->head.height = p->options->picture ? spec->picture_height : 0;
    p->head.text_bytes = 0;
    if (!p->options->picture)
        p->head.text_bytes = (uint32_t)strnlen(p->text, sizeof p->text - 1);
    p->head.episode = p->finished + 1;
    p->head.step = (uint32_t)(p->stepping.steps - p->stepping.arrivals.began[0]);
    p->head.score = p->stepping.arrivals.total[0];
    for (uint32_t a = 0; a < spec->agents; a++)
        p->head.score += p->stepping.arrivals.playing[a] ? p->stepping.arrivals.score[a] : 0;
    return put_frame(p, RM_PLAYER_FRAME, error);
}

static int end_episode(struct player *p, struct rm_error *error)
{
    p->head.text_bytes = p->head.width = p->head.height = 0;
    p->head.episode = p->finished;
    p->head.step = (uint32_t)p->steps;
    p->head.score = p->score;
    return put_frame(p, RM_PLAYER_END, error);
}

/* --- episodes -------------------------------------------------------------------------------- */

static void agent_finished(void *self, uint32_t agent, uint32_t world,
                           const struct rm_episode *episode)
{
    (void)self, (void)agent, (void)world, (void)episode;
}

static void world_finished(void *self, uint32_t world, double score, uint64_t steps)
{
    struct player *p = self;
    (void)world;
    p->finished++;
    p->score = score;
    p->steps = steps;
}

/* The weights of policy `index` from whichever file has its name; the only one may have any. */
static int read_policy(struct player *p, uint32_t index, struct rm_error *error)
{
    struct rm_acting *acting = &p->stepping.policies[index].acting;
    const struct rm_policy_plan *plan = &p->plan.policy[index];
    float *all = calloc(plan->param_count, sizeof *all);
    int rc = 0;
    bool found = false;
    if (!all)
        return rm_fail(error, -ENOMEM, "policy %s: no memory", plan->name);

    for (uint32_t i = 0; rc == 0 && !found && i < p->options->file_count; i++) {
        char name[RM_NAME_MAX];
        rc = rm_policy_file_name(p->options->files[i], name, sizeof name, error);
        found = rc == 0 && (!strcmp(name, plan->name) ||
                            (p->plan.policies == 1 && p->options->file_count == 1));
        if (found)
            rc = rm_policy_file_read(acting->net, p->options->files[i], all, error);
    }
    if (rc == 0 && !found)
        rc = rm_fail(error, -ENOENT, "no file has policy %s; it needs a --policy", plan->name);
    if (rc == 0) {
        memcpy(acting->params, all, plan->act_count * sizeof *all);
        rm_acting_prepare(acting);
    }
    free(all);
    return rc;
}

static int check_shown(const struct player *p, struct rm_error *error)
{
    const struct rm_env_ops *ops = p->stepping.world.ops;
    const struct rm_env_spec *spec = p->stepping.spec;
    const bool picture = ops->show_picture && spec->picture_width && spec->picture_height;
    if (p->options->picture && !picture)
        return rm_fail(error, -EINVAL, "world %s gives no picture that could be recorded%s",
                       spec->name, ops->show_text ? "; without --record its text is shown" : "");
    if (!p->options->picture && !ops->show_text)
        return rm_fail(error, -EINVAL, "world %s does not show itself as text%s", spec->name,
                       picture ? "; --record FILE.gif has its picture" : "");
    return 0;
}

static int create(struct player *p, struct rm_error *error)
{
    struct rm_ring *rings[RM_BOARD_POLICIES];
    int rc = rm_plan_make(&p->plan, p->experiment, error);
    if (rc < 0)
        return rc;
    if ((rc = rm_options_evaluation_world(p->experiment, &p->world)) < 0)
        return rm_fail(error, rc, "evaluation.options: no memory");
    if ((rc = rm_stepping_own_rings(p->experiment, &p->plan, 1, p->ring, rings, error)) < 0)
        return rc;
    struct rm_stepping_options options = {
        .world = &p->world,
        .seed = p->experiment->seed,
        .total_worlds = 1,
        .worlds = 1,
        .quantiles = p->experiment->evaluation.quantiles,
        .greedy = p->experiment->evaluation.answer == RM_ANSWER_GREEDY,
        .rings = rings,
        .sink = {p, agent_finished, world_finished},
    };
    if ((rc = rm_stepping_create(&p->stepping, p->experiment, &p->plan, &options, error)) < 0 ||
        (rc = check_shown(p, error)) < 0)
        return rc;
    for (uint32_t i = 0; i < p->plan.policies; i++)
        if ((rc = read_policy(p, i, error)) < 0)
            return rc;
    const struct rm_env_spec *spec = p->stepping.spec;
    p->rgb = calloc((size_t)spec->picture_width * spec->picture_height + 1, 3);
    return p->rgb ? 0 : rm_fail(error, -ENOMEM, "no memory for a picture");
}

static int play(struct player *p, struct rm_error *error)
{
    int rc = rm_stepping_begin(&p->stepping, error);
    while (rc == 0 && p->finished < p->options->episodes) {
        const uint32_t before = p->finished;
        if ((rc = show(p, error)) < 0 || (rc = rm_stepping_step(&p->stepping, error)) < 0)
            break;
        if (p->finished > before)
            rc = end_episode(p, error);
    }
    return rc;
}

int rm_player_run(const struct rm_experiment *experiment, const struct rm_player_options *options,
                  struct rm_error *error)
{
    struct player *p = calloc(1, sizeof *p);
    if (!p)
        return rm_fail(error, -ENOMEM, "no memory to play");
    p->experiment = experiment;
    p->options = options;
    for (uint32_t i = 0; i < RM_BOARD_POLICIES; i++)
        p->ring[i].region.fd = -1;
    int rc = create(p, error);
    if (rc == 0)
        rc = play(p, error);
    if (rc < 0 && rc != -EPIPE) {
        struct rm_error ignored;
        p->head = (struct rm_player_head){.text_bytes = (uint32_t)strlen(error->text)};
        memcpy(p->text, error->text, p->head.text_bytes);
        put_frame(p, RM_PLAYER_REFUSED, &ignored);
    }
    if (p->stepping.experiment)
        rm_stepping_destroy(&p->stepping);
    for (uint32_t i = 0; i < RM_BOARD_POLICIES; i++)
        rm_ring_close(&p->ring[i]);
    free(p->rgb);
    free(p);
    return rc;
}
