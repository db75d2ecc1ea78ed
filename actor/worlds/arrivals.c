#include "actor/worlds/arrivals.h"

#include "actor/worlds/scan.h"
#include "learner/net/features.h"
#include "shm/base/state.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST        (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)
#define KNOWN       (RM_ENV_FIRST | LAST | RM_ENV_VOID | RM_ENV_DEAD)
#define ALL_PLAYING UINT64_C(0x0101010101010101)

int rm_arrivals_create(struct rm_arrivals *arrivals, const struct rm_env_spec *spec,
                       uint64_t first_world, uint32_t worlds, struct rm_episode_sink sink,
                       struct rm_error *error)
{
    size_t lanes = (size_t)spec->agents * worlds;

    *arrivals = (struct rm_arrivals){
        .spec = spec, .sink = sink, .first_world = first_world, .worlds = worlds};
    arrivals->playing = calloc(lanes, sizeof *arrivals->playing);
    arrivals->score = calloc(lanes, sizeof *arrivals->score);
    arrivals->age = calloc(lanes, sizeof *arrivals->age);
    arrivals->live = calloc(worlds, sizeof *arrivals->live);
    arrivals->total = calloc(worlds, sizeof *arrivals->total);
    arrivals->episodes = calloc(worlds, sizeof *arrivals->episodes);
    arrivals->began = calloc(worlds, sizeof *arrivals->began);
    if (!arrivals->playing || !arrivals->score || !arrivals->age || !arrivals->live ||
        !arrivals->total || !arrivals->episodes || !arrivals->began) {
        rm_arrivals_destroy(arrivals);
        return rm_fail(error, -ENOMEM, "no memory to follow %u worlds of %u agents", worlds,
                       spec->agents);
    }
    return 0;
}

void rm_arrivals_destroy(struct rm_arrivals *arrivals)
{
    free(arrivals->playing);
    free(arrivals->score);
    free(arrivals->age);
    free(arrivals->live);
    free(arrivals->total);
    free(arrivals->episodes);
    free(arrivals->began);
    *arrivals = (struct rm_arrivals){0};
}

void rm_arrivals_reset(struct rm_arrivals *arrivals)
{
    size_t lanes = (size_t)arrivals->spec->agents * arrivals->worlds;

    memset(arrivals->playing, 0, lanes * sizeof *arrivals->playing);
    memset(arrivals->score, 0, lanes * sizeof *arrivals->score);
    memset(arrivals->age, 0, lanes * sizeof *arrivals->age);
    memset(arrivals->live, 0, arrivals->worlds * sizeof *arrivals->live);
    memset(arrivals->total, 0, arrivals->worlds * sizeof *arrivals->total);
}

void rm_arrivals_place(const struct rm_arrivals *arrivals, uint32_t agent, uint32_t world,
                       uint64_t step, char *text, size_t size)
{
    snprintf(text, size, "world %" PRIu64 " (%s), %s, episode %" PRIu64 ", step %" PRIu64,
             arrivals->first_world + world, arrivals->spec->name, arrivals->spec->agent[agent].name,
             arrivals->episodes[world], step - arrivals->began[world]);
}

static int refuse(const struct rm_arrivals *arrivals, uint32_t agent, uint32_t world, uint64_t step,
                  struct rm_error *error, const char *what)
{
    char place[256];

    rm_arrivals_place(arrivals, agent, world, step, place, sizeof place);
    return rm_fail(error, -EBADMSG, "%s: %s", place, what);
}

/* Why these flags are impossible; NULL if they are possible. */
static const char *nonsense(uint8_t flags, bool playing)
{
    if (flags & ~KNOWN)
        return "unknown flag";
    if (flags & RM_ENV_DEAD)
        return flags != RM_ENV_DEAD ? "DEAD together with another flag" : NULL;
    if ((flags & RM_ENV_VOID) && !(flags & RM_ENV_TRUNCATED))
        return "VOID without TRUNCATED";
    if ((flags & RM_ENV_FIRST) && (flags & LAST))
        return "FIRST together with TERMINATED or TRUNCATED";
    if ((flags & RM_ENV_FIRST) && playing)
        return "FIRST in the middle of an episode";
    if (!(flags & RM_ENV_FIRST) && !playing)
        return "a new episode without FIRST";
    return NULL;
}

/* Words by their places, numbers that can be summed up. */
static int check_figures(const struct rm_arrivals *a, uint32_t agent, uint32_t w, uint64_t step,
                         const double *figures, struct rm_error *error)
{
    for (uint32_t f = 0; f < a->spec->figures; f++) {
        const struct rm_env_figure *figure = &a->spec->figure[f];
        const double value = figures[f];
        uint32_t words = 0;
        char text[128];
        while (figure->words && figure->words[words])
            words++;
        if (isnan(value) ||
            (words ? value >= 0 && value < words && value == floor(value) : isfinite(value)))
            continue;
        if (words)
            snprintf(text, sizeof text, "figure %s is %g; its words are 0..%u", figure->name, value,
                     words - 1);
        else
            snprintf(text, sizeof text, "figure %s is %f", figure->name, value);
        return refuse(a, agent, w, step, error, text);
    }
    return 0;
}

/* An episode begins or ends, or something is wrong. */
static int turn_lane(struct rm_arrivals *a, uint32_t agent, uint32_t w, uint64_t step,
                     const struct rm_arrival *in, uint32_t *uncounted, struct rm_error *error)
{
    size_t lane = (size_t)agent * a->worlds + w;
    uint8_t flags = in->flags[w];
    const char *wrong = nonsense(flags, a->playing[lane]);

    if (wrong) {
        char text[128];
        snprintf(text, sizeof text, "flags %#x: %s", flags, wrong);
        return refuse(a, agent, w, step, error, text);
    }
    if (flags & RM_ENV_DEAD) {
        a->score[lane] -= (double)in->reward[w]; /* the agent was not in play to receive it */
        (*uncounted)++;
    } else if (flags & RM_ENV_FIRST) {
        a->playing[lane] = 1;
        a->age[lane] = 0;
        a->score[lane] = 0; /* the reward of a first row is meaningless */
        if (a->live[w]++ == 0)
            a->began[w] = step;
    } else if (flags & LAST) {
        const struct rm_episode episode = {
            .score = a->score[lane],
            .steps = a->age[lane],
            .figures = in->figures ? in->figures + (size_t)w * a->spec->figures : NULL,
        };
        int rc = episode.figures ? check_figures(a, agent, w, step, episode.figures, error) : 0;
        if (rc < 0)
            return rc;
        (*uncounted)++;
        a->playing[lane] = 0;
        a->total[w] += episode.score;
        a->sink.agent(a->sink.self, agent, w, &episode);
        if (--a->live[w] == 0) {
            double total = a->total[w];
            a->total[w] = 0;
            a->episodes[w]++;
            a->finished++;
            a->sink.world(a->sink.self, w, total, step - a->began[w]);
        }
    }
    return 0;
}

static int check_reward(const struct rm_arrivals *a, uint32_t agent, uint64_t step,
                        const struct rm_arrival *in, struct rm_error *error)
{
    size_t w = in->first + rm_scan_nonfinite(in->reward + in->first, in->worlds);

    if (w == in->first + in->worlds)
        return 0;
    char text[64];
    snprintf(text, sizeof text, "reward is %f", (double)in->reward[w]);
    return refuse(a, agent, (uint32_t)w, step, error, text);
}

/* Of n elements the first that cannot be, described; n: all can. */
static size_t wrong_element(const struct rm_env_observation *of, const uint8_t *elements, size_t n,
                            size_t per_lane, char *text, size_t size)
{
    size_t at = n;

    if (of->dtype == RM_ENV_F32) {
        at = rm_scan_nonfinite((const float *)(const void *)elements, n);
        if (at < n)
            snprintf(text, size, "element %zu of the observation%s%s is %f", at % per_lane,
                     of->name ? " " : "", of->name ? of->name : "",
                     (double)((const float *)(const void *)elements)[at]);
    } else if (of->dtype == RM_ENV_CODE8 && of->codes < 256) {
        at = rm_scan_above(elements, n, (uint8_t)(of->codes - 1));
        if (at < n)
            snprintf(text, size, "element %zu of the observation%s%s is code %u; codes are 0..%u",
                     at % per_lane, of->name ? " " : "", of->name ? of->name : "", elements[at],
                     of->codes - 1);
    }
    return at;
}

/* One of several observations, world by world; the first world where it is wrong. */
static uint32_t wrong_world(const struct rm_env_agent *spec, uint32_t i,
                            const struct rm_arrival *in, char *text, size_t size)
{
    const struct rm_env_observation of = rm_features_observation(spec, i);
    const size_t at = rm_features_place(spec, 0, i).at, bytes = rm_features_bytes(spec);
    const uint32_t end = in->first + in->worlds;

    for (uint32_t w = in->first; w < end; w++) {
        const uint8_t *elements = in->obs + w * bytes + at;
        const size_t n = rm_observation_there(&of, elements);
        uint32_t count = 0;
        if (of.counted)
            memcpy(&count, elements - sizeof count, sizeof count);
        if (count > of.shape[0]) {
            snprintf(text, size, "observation %s counts %u; at most %u are possible", of.name,
                     count, of.shape[0]);
            return w;
        }
        if (wrong_element(&of, elements, n, n + 1, text, size) < n)
            return w;
    }
    return end;
}

static int check_obs(const struct rm_arrivals *a, uint32_t agent, uint64_t step,
                     const struct rm_arrival *in, struct rm_error *error)
{
    const struct rm_env_agent *spec = &a->spec->agent[agent];
    char text[192];

    if (spec->observations) {
        for (uint32_t i = 0; i < spec->observations; i++) {
            const uint32_t w = wrong_world(spec, i, in, text, sizeof text);
            if (w < in->first + in->worlds)
                return refuse(a, agent, w, step, error, text);
        }
        return 0;
    }
    const struct rm_env_observation of = rm_features_observation(spec, 0);
    const size_t elements = rm_observation_elements(&of), n = elements * in->worlds;
    const uint8_t *obs = in->obs + in->first * rm_features_bytes(spec);
    const size_t at = wrong_element(&of, obs, n, elements, text, sizeof text);
    return at < n ? refuse(a, agent, in->first + (uint32_t)(at / elements), step, error, text) : 0;
}

static bool any_of(const uint8_t *mask, uint32_t actions)
{
    uint8_t any = 0;

    for (uint32_t i = 0; i < actions; i++)
        any |= mask[i];
    return any != 0;
}

/* The first of an agent's choices of which nothing is legal; `choices` when all have something. */
static uint32_t barred_choice(const struct rm_env_agent *agent, uint32_t choices,
                              const uint8_t *mask)
{
    for (uint32_t c = 0; c < choices; mask += agent->choice_actions[c++])
        if (!any_of(mask, agent->choice_actions[c]))
            return c;
    return choices;
}

static int check_mask(const struct rm_arrivals *a, uint32_t agent, uint64_t step,
                      const struct rm_arrival *in, struct rm_error *error)
{
    const struct rm_env_agent *spec = &a->spec->agent[agent];
    uint32_t choices = spec->choices > 1 ? spec->choices : 0, barred = 0;

    for (uint32_t w = in->first; w < in->first + in->worlds; w++) {
        const uint8_t *mask = in->mask + (size_t)w * spec->actions;
        bool good = choices ? (barred = barred_choice(spec, choices, mask)) == choices
                            : any_of(mask, spec->actions);
        if (good || in->flags[w] & (LAST | RM_ENV_DEAD))
            continue;
        char text[80] = "the action mask leaves no legal action";
        if (choices)
            snprintf(text, sizeof text, "the action mask leaves no legal action of choice %u",
                     barred);
        return refuse(a, agent, w, step, error, text);
    }
    return 0;
}

int rm_arrivals_count(struct rm_arrivals *arrivals, uint32_t agent, uint64_t step,
                      const struct rm_arrival *in, uint32_t *counted, struct rm_error *error)
{
    struct rm_arrivals *a = arrivals;
    size_t lane = (size_t)agent * a->worlds;
    uint8_t *playing = a->playing + lane;
    double *score = a->score + lane;
    uint32_t *age = a->age + lane;
    const uint32_t end = in->first + in->worlds;
    uint32_t uncounted = 0;
    int rc;

    if ((rc = check_reward(a, agent, step, in, error)) < 0 ||
        (rc = check_obs(a, agent, step, in, error)) < 0 ||
        (in->mask && (rc = check_mask(a, agent, step, in, error)) < 0))
        return rc;
    rm_scan_add(score + in->first, age + in->first, in->reward + in->first, in->worlds);
    for (uint32_t w = in->first; w < end; w += 8) {
        uint32_t some = end - w < 8 ? end - w : 8;
        if (some == 8) {
            uint64_t flags, play;
            memcpy(&flags, in->flags + w, 8);
            memcpy(&play, playing + w, 8);
            if (!(flags | (play ^ ALL_PLAYING)))
                continue;
        }
        for (uint32_t i = w; i < w + some; i++)
            if ((in->flags[i] | !playing[i]) &&
                (rc = turn_lane(a, agent, i, step, in, &uncounted, error)) < 0)
                return rc;
    }
    *counted = in->worlds - uncounted;
    return 0;
}

void rm_arrivals_state(struct rm_arrivals *a, struct rm_state *state)
{
    const size_t lanes = (size_t)a->spec->agents * a->worlds;
    rm_state_bytes(state, "playing", a->playing, lanes * sizeof *a->playing);
    rm_state_bytes(state, "score", a->score, lanes * sizeof *a->score);
    rm_state_bytes(state, "age", a->age, lanes * sizeof *a->age);
    rm_state_bytes(state, "live", a->live, a->worlds * sizeof *a->live);
    rm_state_bytes(state, "total", a->total, a->worlds * sizeof *a->total);
    rm_state_bytes(state, "episodes", a->episodes, a->worlds * sizeof *a->episodes);
    rm_state_bytes(state, "began", a->began, a->worlds * sizeof *a->began);
    RM_STATE(state, "finished", a->finished);
}
