#include "actor/stages.h"

#include "config/curriculum.h"
#include "shm/atomic.h"
#include "shm/base/rng.h"
#include "shm/base/state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SCALE   1048576.0 /* units of a sum per unit of the figure */
#define LARGEST 1e9       /* a larger figure counts as this */

/* Cumulative, since the stage began. */
struct totals {
    uint64_t episodes;
    int64_t sum;
};

/* --- making ---------------------------------------------------------------------------------- */

static int make_windows(struct rm_stages *s, const struct rm_curriculum_config *c,
                        struct rm_error *error)
{
    for (int end = 0; end < RM_STAGE_ENDS; end++) {
        struct rm_stage_window *w = &s->window[end];
        for (uint32_t i = 0; i < s->count; i++) {
            const uint32_t over =
                (end == RM_STAGE_UNTIL ? &c->stage[i].until : &c->stage[i].back)->over;
            w->room = over + 3 > w->room ? over + 3 : w->room;
        }
        w->episodes = calloc(w->room, sizeof *w->episodes);
        w->sums = calloc(w->room, sizeof *w->sums);
        w->count = 1; /* zeros: where the stage begins */
        if (!w->episodes || !w->sums)
            return rm_fail(error, -ENOMEM, "curriculum: no memory");
    }
    return 0;
}

int rm_stages_create(struct rm_stages *s, struct rm_session *session, uint32_t actor, bool units,
                     struct rm_error *error)
{
    const struct rm_curriculum_config *c = &session->experiment.curriculum;
    struct rm_board_run *run = session->board.run;
    *s = (struct rm_stages){.session = session, .count = c->stages, .units = units};
    if (!s->count)
        return 0;
    s->slot = &session->board.workers[rm_worker_actor(&session->objects, actor)];
    s->decides = actor == 0;
    s->lag = session->experiment.rollout.max_policy_lag;
    for (uint32_t i = 0; i < s->count; i++) {
        int rc = rm_plan_stage_figure(&session->plan, &c->stage[i].until,
                                      &s->figure[i][RM_STAGE_UNTIL], error);
        if (rc == 0)
            rc = rm_plan_stage_figure(&session->plan, &c->stage[i].back,
                                      &s->figure[i][RM_STAGE_BACK], error);
        if (rc < 0)
            return rc;
    }
    s->wanted = RM_PEEK(&s->slot->stage);
    s->planned = RM_PEEK(&run->stage);
    return make_windows(s, c, error);
}

void rm_stages_destroy(struct rm_stages *s)
{
    for (int end = 0; end < RM_STAGE_ENDS; end++) {
        free(s->window[end].episodes);
        free(s->window[end].sums);
    }
}

int rm_stages_world(const struct rm_stages *s, uint64_t seed, struct rm_world_config *world,
                    uint64_t *world_seed, struct rm_error *error)
{
    const uint64_t word = RM_PEEK(&s->slot->stage), changes = rm_stage_changes(word);
    const int rc = rm_curriculum_world(&s->session->experiment, rm_stage_of(word), world);
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_WORLD, UINT32_MAX - RM_ROUND_MAX, changes);
    const uint64_t high = rm_rng_u32(&rng);
    *world_seed = changes ? high << 32 | rm_rng_u32(&rng) : seed;
    return rc < 0 ? rm_fail(error, rc,
                            "curriculum[%u].options: no memory, or too long with world.options",
                            rm_stage_of(word))
                  : 0;
}

/* --- deciding -------------------------------------------------------------------------------- */

static const struct rm_stage_rule *rule_of(const struct rm_stages *s, uint32_t stage, int end)
{
    const struct rm_stage_config *c = &s->session->experiment.curriculum.stage[stage];
    return end == RM_STAGE_UNTIL ? &c->until : &c->back;
}

/* The mean over the latest episodes, at least `over`, or NAN; takes the totals into the window. */
static double mean_of(struct rm_stage_window *w, uint32_t over, struct totals now,
                      uint64_t *episodes)
{
    const uint32_t last = (w->first + w->count - 1) % w->room;
    if (now.episodes > w->episodes[last] && w->count < w->room) {
        const uint32_t next = (w->first + w->count++) % w->room;
        w->episodes[next] = now.episodes;
        w->sums[next] = now.sum;
    }
    while (w->count > 1 && now.episodes - w->episodes[(w->first + 1) % w->room] >= over) {
        w->first = (w->first + 1) % w->room;
        w->count--;
    }
    *episodes = now.episodes - w->episodes[w->first];
    return *episodes < over ? (double)NAN
                            : (double)(now.sum - w->sums[w->first]) / SCALE / (double)*episodes;
}

static void empty_windows(struct rm_stages *s)
{
    for (int end = 0; end < RM_STAGE_ENDS; end++) {
        struct rm_stage_window *w = &s->window[end];
        w->first = 0;
        w->count = 1;
        w->episodes[0] = 0;
        w->sums[0] = 0;
    }
}

/* The stage after these totals of the stage that is planned. */
static bool judge(struct rm_stages *s, const struct totals now[RM_STAGE_ENDS])
{
    struct rm_board_run *run = s->session->board.run;
    const uint32_t stage = rm_stage_of(s->planned);
    for (int end = 0; end < RM_STAGE_ENDS; end++) {
        const struct rm_stage_rule *rule = rule_of(s, stage, end);
        uint64_t episodes;
        if (!rule->over)
            continue;
        const double mean = mean_of(&s->window[end], rule->over, now[end], &episodes);
        if (end == RM_STAGE_UNTIL) {
            RM_POKE(&run->stage_mean, mean);
            RM_POKE(&run->stage_episodes, episodes);
        }
        if (isnan(mean))
            continue;
        const bool over = end == RM_STAGE_UNTIL
                              ? (rule->high ? mean >= rule->bound : mean <= rule->bound)
                              : (rule->high ? mean > rule->bound : mean < rule->bound);
        if (!over)
            continue;
        RM_POKE(&run->stage_mean, mean);
        RM_POKE(&run->stage_episodes, episodes);
        s->planned = (rm_stage_changes(s->planned) + 1) << 8 |
                     (end == RM_STAGE_UNTIL ? stage + 1 : stage - 1);
        empty_windows(s);
        return true;
    }
    return false;
}

static void publish(struct rm_stages *s)
{
    RM_RAISE(&s->session->board.run->stage, s->planned);
    rm_session_ring_bell(s->session);
}

static void decide(struct rm_stages *s, uint64_t unit)
{
    struct rm_board_run *run = s->session->board.run;
    const uint64_t target = unit + 1 + s->lag, known = unit - 1 - s->lag;
    struct totals now[RM_STAGE_ENDS] = {{0, 0}};
    if (target <= s->decided)
        return;
    if (unit >= s->since + 1 + s->lag) {
        for (uint32_t a = 0; a < s->session->objects.actors; a++) {
            const struct rm_board_worker *w =
                &s->session->board.workers[rm_worker_actor(&s->session->objects, a)];
            for (int end = 0; end < RM_STAGE_ENDS; end++) {
                now[end].episodes += RM_PEEK(&w->stage_episodes_at[known & 3][end]);
                now[end].sum += RM_PEEK(&w->stage_sums_at[known & 3][end]);
            }
        }
        if (judge(s, now)) {
            s->since = target;
            publish(s);
        }
    }
    RM_POKE(&run->stage_at[target & 3], s->planned);
    s->decided = target;
}

void rm_stages_begin_unit(struct rm_stages *s, uint64_t unit)
{
    if (!s->count)
        return;
    if (s->decides)
        decide(s, unit);
    s->unit = unit;
    for (int end = 0; end < RM_STAGE_ENDS; end++) {
        RM_POKE(&s->slot->stage_episodes_at[unit & 3][end], RM_PEEK(&s->slot->stage_episodes[end]));
        RM_POKE(&s->slot->stage_sums_at[unit & 3][end], RM_PEEK(&s->slot->stage_sums[end]));
    }
    s->wanted = RM_PEEK(&s->session->board.run->stage_at[unit & 3]);
}

bool rm_stages_differ(const struct rm_stages *s)
{
    return s->count && s->wanted != RM_PEEK(&s->slot->stage);
}

/* Without units: whatever ended in the stage that is planned. */
static void decide_now(struct rm_stages *s)
{
    struct totals now[RM_STAGE_ENDS] = {{0, 0}};
    uint64_t ended = 0;
    for (uint32_t a = 0; a < s->session->objects.actors; a++) {
        const struct rm_board_worker *w =
            &s->session->board.workers[rm_worker_actor(&s->session->objects, a)];
        if (RM_SEE(&w->stage) != s->planned)
            continue;
        for (int end = 0; end < RM_STAGE_ENDS; end++) {
            now[end].episodes += RM_PEEK(&w->stage_episodes[end]);
            now[end].sum += RM_PEEK(&w->stage_sums[end]);
            ended += now[end].episodes;
        }
    }
    if (ended == s->decided)
        return;
    s->decided = ended;
    if (judge(s, now)) {
        s->decided = 0;
        publish(s);
    }
}

bool rm_stages_follow(struct rm_stages *s)
{
    if (!s->count)
        return false;
    if (s->decides)
        decide_now(s);
    s->wanted = RM_SEE(&s->session->board.run->stage);
    return rm_stages_differ(s);
}

/* --- the actor's own ------------------------------------------------------------------------- */

void rm_stages_change(struct rm_stages *s)
{
    s->cutting = true; /* what is cut counts for neither stage */
    for (int end = 0; end < RM_STAGE_ENDS; end++) {
        RM_POKE(&s->slot->stage_episodes[end], 0);
        RM_POKE(&s->slot->stage_sums[end], 0);
        RM_POKE(&s->slot->stage_episodes_at[s->unit & 3][end], 0);
        RM_POKE(&s->slot->stage_sums_at[s->unit & 3][end], 0);
    }
    RM_RAISE(&s->slot->stage, s->wanted);
}

void rm_stages_changed(struct rm_stages *s)
{
    s->cutting = false;
}

static double value_of(const struct rm_plan_figure *figure, const struct rm_episode *episode)
{
    switch (figure->what) {
    case RM_PLAN_RETURN:
        return episode->score;
    case RM_PLAN_LENGTH:
        return episode->steps;
    case RM_PLAN_FIGURE:
        return episode->figures ? episode->figures[figure->figure] : (double)NAN;
    default:
        if (!episode->figures || isnan(episode->figures[figure->figure]))
            return NAN;
        return episode->figures[figure->figure] == figure->word;
    }
}

void rm_stages_episode(struct rm_stages *s, uint32_t agent, const struct rm_episode *episode)
{
    if (!s->count || s->cutting)
        return;
    const uint32_t stage = rm_stage_of(RM_PEEK(&s->slot->stage));
    for (int end = 0; end < RM_STAGE_ENDS && stage < s->count; end++) {
        const struct rm_plan_figure *figure = &s->figure[stage][end];
        if (!rule_of(s, stage, end)->over || figure->agent != agent)
            continue;
        const double value = value_of(figure, episode);
        if (isnan(value))
            continue;
        const double kept = value > LARGEST ? LARGEST : value < -LARGEST ? -LARGEST : value;
        RM_ADD_OWN(&s->slot->stage_episodes[end], 1);
        RM_POKE(&s->slot->stage_sums[end],
                RM_PEEK(&s->slot->stage_sums[end]) + (int64_t)llround(kept * SCALE));
        RM_POKE(&s->slot->stage_episodes_at[s->unit & 3][end],
                RM_PEEK(&s->slot->stage_episodes[end]));
        RM_POKE(&s->slot->stage_sums_at[s->unit & 3][end], RM_PEEK(&s->slot->stage_sums[end]));
    }
}

void rm_stages_state(struct rm_stages *s, struct rm_state *state)
{
    if (!s->count)
        return;
    rm_state_enter(state, "stages");
    RM_STATE(state, "planned", s->planned);
    RM_STATE(state, "since", s->since);
    RM_STATE(state, "decided", s->decided);
    for (int end = 0; end < RM_STAGE_ENDS; end++) {
        struct rm_stage_window *w = &s->window[end];
        rm_state_enter(state, end == RM_STAGE_UNTIL ? "until" : "back");
        RM_STATE(state, "first", w->first);
        RM_STATE(state, "count", w->count);
        rm_state_bytes(state, "episodes", w->episodes, w->room * sizeof *w->episodes);
        rm_state_bytes(state, "sums", w->sums, w->room * sizeof *w->sums);
        rm_state_leave(state);
        if (w->first >= w->room || w->count < 1 || w->count > w->room)
            rm_state_fail(state, -EPROTO, "curriculum: a window of %u episodes from %u", w->count,
                          w->first);
        w->first = w->first < w->room ? w->first : 0;
        w->count = w->count >= 1 && w->count <= w->room ? w->count : 1;
    }
    rm_state_leave(state);
}
