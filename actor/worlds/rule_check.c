#include "actor/worlds/rule_check.h"

#include "actor/worlds/described.h"
#include "actor/worlds/watch.h"
#include "config/utf8.h"
#include "learner/net/features.h"
#include "shm/base/rng.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORLDS = 8,        /* of a batch */
    GUARD = 8,         /* bytes after every entry */
    NO_FLAGS = 0xe0,   /* initial value of flags: bits that no flag has */
    STEPS_LEAST = 400, /* default */
    STEPS_MOST = 3000,
    BEFORE = 57, /* steps before a reset() */
    AFTER = 120  /* steps from a saved state */
};

const char *const rm_rule_words[] = {
    [RM_RULE_RETURNS] = "reset() and step() return 0 for legal actions",
    [RM_RULE_WRITTEN] = "rows are written whole, and figures with last ones",
    [RM_RULE_BOUNDS] = "nothing is written behind an entry, or for agents of other phases",
    [RM_RULE_VALUES] = "values are finite and within the bounds of the description",
    [RM_RULE_FIRST] = "an episode begins with FIRST, without a reward, and has no other",
    [RM_RULE_LAST] = "a last row is TERMINATED or TRUNCATED, never both; VOID is TRUNCATED",
    [RM_RULE_TOGETHER] = "all agents in play get their last row in the same step",
    [RM_RULE_LENGTH] = "episodes take at most max_steps",
    [RM_RULE_MASK] = "a mask allows an action of every choice, in last rows too",
    [RM_RULE_IGNORED] = "actions after a last row have no effect",
    [RM_RULE_SEED] = "the same seed gives the same rows",
    [RM_RULE_PROCESS] = "another process, a second later, gives the same rows",
    [RM_RULE_BATCH] = "worlds behave the same in any batch",
    [RM_RULE_RESET] = "reset() begins as a new batch does",
    [RM_RULE_SAVED] = "a saved state, loaded into a new batch, continues as the saved one",
};
_Static_assert(sizeof rm_rule_words / sizeof rm_rule_words[0] == RM_RULE_COUNT, "words per rule");

/* The ways in which a batch is stepped. */
struct way {
    uint8_t poison;   /* initial value of buffers before the world writes */
    bool last_differ; /* last rows are answered with other actions, legal or not */
};

/* The state of an agent's last row, as needed for the other agents. */
enum lasts { NO_LAST = 0, LAST_NOW, LAST_BEFORE };

struct batch {
    struct rm_rule_check *check;
    const struct rm_world *world;
    struct rm_env *env;
    const struct rm_env_spec *spec;
    uint64_t first_world, step;
    uint64_t draws; /* seed of the actions */
    uint32_t worlds;
    struct way way;
    struct rm_watch watch;
    struct rm_env_buffers *out; /* [agents] */
    int32_t **actions;          /* [agents] */
    bool failed;                /* step() or reset() failed: no more rows */
    bool judged;                /* rows are checked by the rules */
    uint32_t *age;              /* (agents, worlds) rows of the episode; judged */
    uint8_t *lasts;             /* (agents, worlds) enum lasts */
};

/* --- findings -------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void broken(struct rm_rule_check *check,
                                                         enum rm_rule rule, const char *format, ...)
{
    va_list args;
    check->rule[rule].tried = true;
    if (check->rule[rule].times++)
        return;
    va_start(args, format);
    vsnprintf(check->rule[rule].text, sizeof check->rule[rule].text, format, args);
    va_end(args);
    rm_utf8_line(check->rule[rule].text); /* a world's own text may have any bytes */
}

/* "world 3, agent_0, step 17" */
struct where {
    char text[128];
};

static struct where where(const struct batch *b, uint32_t a, uint32_t w)
{
    struct where at;
    snprintf(at.text, sizeof at.text, "world %" PRIu64 ", %.63s, step %" PRIu64, b->first_world + w,
             b->spec->agent[a].name, b->step);
    return at;
}

/* --- a batch --------------------------------------------------------------------------------- */

static uint32_t choices_of(const struct rm_env_agent *agent)
{
    return agent->choices > 1 ? agent->choices : agent->actions > 0;
}

static uint32_t words_of(const struct rm_env_agent *agent)
{
    return choices_of(agent) + rm_env_reals(agent);
}

static uint32_t actions_of(const struct rm_env_agent *agent, uint32_t choice)
{
    return agent->choices > 1 ? agent->choice_actions[choice] : agent->actions;
}

static uint8_t *obs_at(const struct batch *b, uint32_t a, uint32_t w)
{
    return (uint8_t *)b->out[a].obs + (ptrdiff_t)w * b->out[a].obs_stride;
}

static uint8_t *mask_at(const struct batch *b, uint32_t a, uint32_t w)
{
    return b->out[a].mask ? b->out[a].mask + (ptrdiff_t)w * b->out[a].mask_stride : NULL;
}

static size_t obs_block(const struct batch *b, uint32_t a)
{
    return (size_t)b->out[a].obs_stride * b->worlds;
}

static size_t mask_block(const struct batch *b, uint32_t a)
{
    return b->out[a].mask ? (size_t)b->out[a].mask_stride * b->worlds : 0;
}

static size_t figure_block(const struct batch *b)
{
    return sizeof(double) * b->spec->figures * b->worlds;
}

static void poison(struct batch *b, uint32_t a)
{
    memset(b->out[a].obs, b->way.poison, obs_block(b, a));
    if (b->out[a].mask)
        memset(b->out[a].mask, b->way.poison, mask_block(b, a));
    memset(b->out[a].reward, 0xff, sizeof(float) * b->worlds); /* not a number */
    memset(b->out[a].flags, NO_FLAGS, b->worlds);
    memset(b->out[a].figures, 0xff, figure_block(b)); /* not a number, and not the usual one */
}

static void batch_close(struct batch *b)
{
    for (uint32_t a = 0; b->spec && a < b->spec->agents; a++) {
        if (b->out) {
            free(b->out[a].obs);
            free(b->out[a].mask);
            free(b->out[a].reward);
            free(b->out[a].flags);
            free(b->out[a].figures);
        }
        if (b->actions)
            free(b->actions[a]);
    }
    free(b->out);
    free(b->actions);
    free(b->age);
    free(b->lasts);
    if (b->env) {
        rm_watch_enter(&b->watch, RM_WATCH_CLOSE);
        b->world->ops->close(b->env);
        rm_watch_leave();
    }
    *b = (struct batch){0};
}

static int allocate(struct batch *b)
{
    const size_t lanes = (size_t)b->spec->agents * b->worlds;
    b->out = calloc(b->spec->agents, sizeof *b->out);
    b->actions = calloc(b->spec->agents, sizeof *b->actions);
    b->age = calloc(lanes, sizeof *b->age);
    b->lasts = calloc(lanes, sizeof *b->lasts);
    if (!b->out || !b->actions || !b->age || !b->lasts)
        return -ENOMEM;
    for (uint32_t a = 0; a < b->spec->agents; a++) {
        const struct rm_env_agent *agent = &b->spec->agent[a];
        struct rm_env_buffers *out = &b->out[a];
        out->obs_stride = (ptrdiff_t)rm_env_obs_bytes(agent) + GUARD;
        out->mask_stride = agent->has_mask ? (ptrdiff_t)agent->actions + GUARD : 0;
        out->obs = malloc(obs_block(b, a));
        out->mask = agent->has_mask ? malloc((size_t)out->mask_stride * b->worlds) : NULL;
        out->reward = malloc(sizeof(float) * b->worlds);
        out->flags = malloc(b->worlds);
        out->figures = malloc(figure_block(b) + 1);
        b->actions[a] = calloc((size_t)b->worlds * words_of(agent), sizeof(int32_t));
        if (!out->obs || (agent->has_mask && !out->mask) || !out->reward || !out->flags ||
            !out->figures || !b->actions[a])
            return -ENOMEM;
        poison(b, a);
    }
    return 0;
}

static int batch_open(struct batch *b, struct rm_rule_check *check, const struct rm_world *world,
                      const struct rm_world_config *config, uint64_t seed, uint64_t first_world,
                      uint32_t worlds, struct way way, struct rm_error *error)
{
    *b = (struct batch){.check = check,
                        .world = world,
                        .draws = seed,
                        .first_world = first_world,
                        .worlds = worlds,
                        .way = way};
    b->watch = (struct rm_watch){.world = config->name[0] ? config->name : world->ops->name,
                                 .seed = seed,
                                 .first_world = first_world,
                                 .worlds = worlds};
    int rc = rm_world_create(world, config, seed, first_world, worlds, &b->env, error);
    if (rc < 0)
        return rc;
    b->spec = world->ops->describe(b->env);
    if (b->spec && allocate(b) == 0)
        return 0;
    const bool described = b->spec;
    batch_close(b);
    if (!described) {
        rm_fail(error, -EPROTO, "world '%s': describe() returned NULL", world->ops->name);
        return -EPROTO;
    }
    rm_fail(error, -ENOMEM, "no memory to try %u worlds", worlds);
    return -ENOMEM;
}

/* --- the rules of a row ---------------------------------------------------------------------- */

static double element(const struct rm_env_observation *of, const uint8_t *obs, size_t i)
{
    int16_t i16;
    int32_t i32;
    float f32;
    switch (of->dtype) {
    case RM_ENV_I8:
        return (int8_t)obs[i];
    case RM_ENV_I16:
        memcpy(&i16, obs + i * sizeof i16, sizeof i16);
        return i16;
    case RM_ENV_I32:
        memcpy(&i32, obs + i * sizeof i32, sizeof i32);
        return i32;
    case RM_ENV_F32:
        memcpy(&f32, obs + i * sizeof f32, sizeof f32);
        return (double)f32;
    default:
        return obs[i];
    }
}

static void judge_elements(const struct batch *b, uint32_t a, uint32_t w,
                           const struct rm_env_observation *of, const uint8_t *elements)
{
    const bool codes = of->dtype == RM_ENV_CODE8;
    const size_t n = rm_observation_there(of, elements);
    const double slack = 1e-5 * (fabs(of->low) + fabs(of->high));
    const char *name = of->name ? of->name : "", *colon = of->name ? ": " : "";
    for (size_t i = 0; i < n; i++) {
        const double value = element(of, elements, i);
        if (codes && value >= of->codes)
            broken(b->check, RM_RULE_VALUES, "%s: %s%selement %zu is code %g; there are %u",
                   where(b, a, w).text, name, colon, i, value, of->codes);
        else if (!codes &&
                 (!isfinite(value) || value < of->low - slack || value > of->high + slack))
            broken(b->check, RM_RULE_VALUES,
                   "%s: %s%selement %zu of the observation is %g, not %g..%g", where(b, a, w).text,
                   name, colon, i, value, of->low, of->high);
    }
}

static void judge_observation(const struct batch *b, uint32_t a, uint32_t w)
{
    const struct rm_env_agent *agent = &b->spec->agent[a];
    for (uint32_t i = 0; i < rm_features_observations(agent); i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        const uint8_t *elements = obs_at(b, a, w) + rm_features_place(agent, 0, i).at;
        uint32_t count = 0;
        if (of.counted)
            memcpy(&count, elements - sizeof count, sizeof count);
        if (count > of.shape[0])
            broken(b->check, RM_RULE_VALUES,
                   "%s: observation %s counts %u; at most %u are possible", where(b, a, w).text,
                   of.name, count, of.shape[0]);
        judge_elements(b, a, w, &of, elements);
    }
}

static void judge_mask(const struct batch *b, uint32_t a, uint32_t w)
{
    const struct rm_env_agent *agent = &b->spec->agent[a];
    const uint8_t *mask = mask_at(b, a, w);
    for (uint32_t c = 0; mask && c < choices_of(agent); c++) {
        const uint32_t n = actions_of(agent, c);
        uint32_t legal = 0;
        for (uint32_t i = 0; i < n; i++)
            legal += mask[i] != 0;
        if (!legal)
            broken(b->check, RM_RULE_MASK, "%s: no action of choice %u is legal%s",
                   where(b, a, w).text, c,
                   b->out[a].flags[w] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED) ? ", in a last row"
                                                                               : "");
        mask += n;
    }
}

/* The figures of a last row's episode; other rows have none. */
static void judge_figures(const struct batch *b, uint32_t a, uint32_t w, bool last)
{
    const double *values = b->out[a].figures + (size_t)w * b->spec->figures;
    for (uint32_t f = 0; f < b->spec->figures; f++) {
        const char *name = b->spec->figure[f].name;
        const uint32_t words = rm_env_figure_words(&b->spec->figure[f]);
        uint64_t bits;
        memcpy(&bits, &values[f], sizeof bits);
        if ((bits == UINT64_MAX) == last)
            broken(b->check, RM_RULE_WRITTEN, "%s: figure %s is %s", where(b, a, w).text, name,
                   last ? "not written in a last row" : "written, but this is no last row");
        else if (last && words && !isnan(values[f]) &&
                 !(values[f] >= 0 && values[f] < words && values[f] == floor(values[f])))
            broken(b->check, RM_RULE_VALUES, "%s: figure %s is %g; its words are 0..%u",
                   where(b, a, w).text, name, values[f], words - 1);
        else if (last && isinf(values[f]))
            broken(b->check, RM_RULE_VALUES, "%s: figure %s is %g", where(b, a, w).text, name,
                   values[f]);
    }
}

/* The rules of one agent's row, which its world has just written. */
static void judge_row(const struct batch *b, uint32_t a, uint32_t w)
{
    const uint8_t both = RM_ENV_TERMINATED | RM_ENV_TRUNCATED, flags = b->out[a].flags[w];
    const float reward = b->out[a].reward[w];
    const size_t lane = (size_t)a * b->worlds + w;
    const bool first = (flags & RM_ENV_FIRST) != 0, last = (flags & both) != 0;
    uint32_t unwritten;

    memcpy(&unwritten, &reward, sizeof unwritten);
    if (flags == NO_FLAGS) {
        broken(b->check, RM_RULE_WRITTEN, "%s: no flags are written", where(b, a, w).text);
        return;
    }
    if (unwritten == UINT32_MAX)
        broken(b->check, RM_RULE_WRITTEN, "%s: no reward is written", where(b, a, w).text);
    else if (!isfinite(reward))
        broken(b->check, RM_RULE_VALUES, "%s: the reward is %g", where(b, a, w).text,
               (double)reward);
    else if (first && reward != 0)
        broken(b->check, RM_RULE_FIRST, "%s: FIRST with a reward of %g", where(b, a, w).text,
               (double)reward);
    if (flags & RM_ENV_DEAD) {
        if (flags != RM_ENV_DEAD || b->age[lane] != 0)
            broken(b->check, RM_RULE_LAST, "%s: DEAD %s", where(b, a, w).text,
                   flags != RM_ENV_DEAD ? "and something else too" : "without a last row before");
        return;
    }
    if (b->lasts[lane] == LAST_BEFORE)
        broken(b->check, RM_RULE_TOGETHER,
               "%s: is in play after a last row that not all agents got", where(b, a, w).text);
    if (first != (b->age[lane] == 0))
        broken(b->check, RM_RULE_FIRST, "%s: %s", where(b, a, w).text,
               first ? "FIRST in the middle of an episode" : "an episode begins without FIRST");
    if ((flags & both) == both)
        broken(b->check, RM_RULE_LAST, "%s: TERMINATED and TRUNCATED", where(b, a, w).text);
    if (first && last)
        broken(b->check, RM_RULE_LAST, "%s: FIRST in a last row", where(b, a, w).text);
    if (flags & RM_ENV_VOID && !(flags & RM_ENV_TRUNCATED))
        broken(b->check, RM_RULE_LAST, "%s: VOID without TRUNCATED", where(b, a, w).text);
    if (b->spec->max_steps && b->age[lane] > b->spec->max_steps)
        broken(b->check, RM_RULE_LENGTH, "%s: %u steps into the episode; max_steps is %u",
               where(b, a, w).text, b->age[lane], b->spec->max_steps);
    judge_observation(b, a, w);
    judge_mask(b, a, w);
    judge_figures(b, a, w, last);

    b->age[lane] = last ? 0 : b->age[lane] + 1;
    b->lasts[lane] = last ? LAST_NOW : NO_LAST;
}

/* Checks the rows of this phase. */
static void judge_phase(const struct batch *b, uint32_t phase)
{
    for (uint32_t a = 0; a < b->spec->agents; a++)
        for (uint32_t w = 0; w < b->worlds && b->spec->agent[a].phase == phase; w++)
            judge_row(b, a, w);
}

/* A world's episode is over when no agent is in play any more. */
static void judge_step(const struct batch *b)
{
    for (uint32_t w = 0; w < b->worlds; w++) {
        bool playing = false, lasts = false;
        for (uint32_t a = 0; a < b->spec->agents; a++) {
            playing |= b->age[(size_t)a * b->worlds + w] > 0;
            lasts |= b->lasts[(size_t)a * b->worlds + w] == LAST_NOW;
        }
        for (uint32_t a = 0; a < b->spec->agents; a++) {
            uint8_t *last = &b->lasts[(size_t)a * b->worlds + w];
            *last = playing && *last ? LAST_BEFORE : NO_LAST;
        }
        b->check->episodes += lasts && !playing;
    }
}

/* --- stepping -------------------------------------------------------------------------------- */

static void refused(struct batch *b, const char *call, int rc)
{
    const char *why = b->world->ops->last_error(b->env);
    broken(b->check, RM_RULE_RETURNS, "step %" PRIu64 ": %s returned %d: %s", b->step, call, rc,
           why && why[0] ? why : "last_error() gives no reason");
    b->failed = true;
}

/* A check sum of memory that a world must not change: everything of other phases, guards of this
 * one. */
static uint64_t untouched(const struct batch *b, uint32_t phase)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t a = 0; a < b->spec->agents; a++) {
        const bool other = b->spec->agent[a].phase != phase;
        const size_t obs = (size_t)b->out[a].obs_stride, mask = (size_t)b->out[a].mask_stride;
        for (uint32_t w = 0; w < b->worlds; w++) {
            for (size_t i = other ? 0 : obs - GUARD; i < obs; i++)
                hash = (hash ^ obs_at(b, a, w)[i]) * 0x100000001b3u;
            for (size_t i = other ? 0 : mask - GUARD; mask && i < mask; i++)
                hash = (hash ^ mask_at(b, a, w)[i]) * 0x100000001b3u;
        }
        for (uint32_t w = 0; other && w < b->worlds; w++)
            hash = (hash ^ b->out[a].flags[w]) * 0x100000001b3u;
    }
    return hash;
}

/* Fills the memory that will be written for `phase`, calls the world, and checks what it
 * changed. */
static void call(struct batch *b, uint32_t phase, uint32_t next, bool reset)
{
    for (uint32_t a = 0; a < b->spec->agents; a++)
        if (b->spec->agent[a].phase == next)
            poison(b, a);
    const uint64_t before = untouched(b, next);
    rm_watch_enter(&b->watch, reset ? RM_WATCH_RESET : RM_WATCH_STEP);
    const int rc =
        reset ? b->world->ops->reset(b->env, b->out)
              : b->world->ops->step(b->env, phase, (const int32_t *const *)b->actions, b->out);
    rm_watch_leave();
    if (rc)
        refused(b, reset ? "reset()" : "step()", rc);
    else if (untouched(b, next) != before)
        broken(b->check, RM_RULE_BOUNDS,
               "step %" PRIu64
               ", on writing for phase %u: bytes outside of all buffers or of agents of "
               "another phase are others now",
               b->step, next);
}

static void batch_reset(struct batch *b)
{
    b->step = 0;
    call(b, 0, 0, true);
}

/* A legal action, all equally likely; any action if none is legal. */
static int32_t draw_action(struct rm_rng *rng, uint32_t actions, const uint8_t *mask)
{
    uint32_t legal = 0;
    for (uint32_t i = 0; i < actions; i++)
        legal += !mask || mask[i];
    if (!legal)
        return (int32_t)rm_rng_below(rng, actions);
    uint32_t n = rm_rng_below(rng, legal), action = 0;
    for (;; action++)
        if ((!mask || mask[action]) && n-- == 0)
            return (int32_t)action;
}

/* Real numbers, uniform within their bounds; sometimes a bound itself. */
static void draw_reals(struct rm_rng *rng, const struct rm_env_agent *agent, int32_t *word)
{
    for (uint32_t i = 0; i < agent->boxes; i++)
        for (uint32_t v = 0; v < agent->box[i].values; v++) {
            const float low = agent->box[i].low[v], high = agent->box[i].high[v];
            const uint32_t end = rm_rng_below(rng, 16);
            const float between = low + (high - low) * rm_rng_float(rng);
            const float real = end == 0 ? low : end == 1 ? high : between;
            memcpy(word++, &real, sizeof real);
        }
}

static void draw_actions(struct batch *b, uint32_t a)
{
    const struct rm_env_agent *agent = &b->spec->agent[a];
    const uint32_t choices = choices_of(agent), words = words_of(agent);
    for (uint32_t w = 0; w < b->worlds; w++) {
        const bool last = (b->out[a].flags[w] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)) != 0;
        const bool other = last && b->way.last_differ;
        struct rm_rng rng = rm_rng_at(b->draws + other, RM_STREAM_TEST,
                                      (uint32_t)(b->first_world + w), b->step * 64 + a);
        const uint8_t *mask = other ? NULL : mask_at(b, a, w);
        for (uint32_t c = 0; c < choices; c++) {
            const uint32_t actions = actions_of(agent, c);
            b->actions[a][w * words + c] = draw_action(&rng, actions, mask);
            mask = mask ? mask + actions : NULL;
        }
        draw_reals(&rng, agent, b->actions[a] + w * words + choices);
    }
}

static uint64_t hash_bytes(uint64_t hash, const void *at, size_t bytes)
{
    for (size_t i = 0; at && i < bytes; i++)
        hash = (hash ^ ((const uint8_t *)at)[i]) * 0x100000001b3u;
    return hash;
}

/* One agent's row of a world, as a number. What is behind a count, and between observations, is
 * nothing. */
static uint64_t row_hash(const struct batch *b, uint32_t a, uint32_t w)
{
    const struct rm_env_agent *agent = &b->spec->agent[a];
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < rm_features_observations(agent); i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        const uint8_t *elements = obs_at(b, a, w) + rm_features_place(agent, 0, i).at;
        const size_t count = of.counted ? sizeof(uint32_t) : 0;
        hash = hash_bytes(hash, elements - count,
                          count + rm_observation_there(&of, elements) * rm_dtype_bytes(of.dtype));
    }
    hash = hash_bytes(hash, mask_at(b, a, w), agent->has_mask ? agent->actions : 0);
    hash = hash_bytes(hash, &b->out[a].reward[w], sizeof(float));
    hash = hash_bytes(hash, &b->out[a].flags[w], 1);
    return hash_bytes(hash, b->out[a].figures + (size_t)w * b->spec->figures,
                      sizeof(double) * b->spec->figures);
}

/* Every row of the worlds 0 .. WORLDS - 1 as the first batch had it: (steps, agents, WORLDS). */
struct record {
    uint64_t *rows;
    uint64_t steps, seen; /* length of the first batch */
    uint32_t agents;
};

static uint64_t *entry(const struct record *r, uint64_t step, uint32_t a, uint64_t world)
{
    return &r->rows[(step * r->agents + a) * WORLDS + world];
}

/* Plays until step `to`. Writes the record, or compares with it: different rows break `rule`; stops
 * at the first. */
static void play(struct batch *b, uint64_t to, const struct record *record, bool write,
                 enum rm_rule rule, const char *what)
{
    for (; b->step < to && !b->failed; b->step++) {
        for (uint32_t phase = 0; phase < b->spec->phases && !b->failed; phase++) {
            if (b->judged)
                judge_phase(b, phase);
            for (uint32_t a = 0; a < b->spec->agents; a++) {
                if (b->spec->agent[a].phase != phase)
                    continue;
                for (uint32_t w = 0; w < b->worlds; w++) {
                    uint64_t *row = entry(record, b->step, a, b->first_world + w);
                    const uint64_t hash = row_hash(b, a, w);
                    if (write) {
                        *row = hash;
                    } else if (*row != hash && b->step < record->seen) {
                        broken(b->check, rule, "%s: the row differs %s", where(b, a, w).text, what);
                        return;
                    }
                }
                draw_actions(b, a);
            }
            call(b, phase, (phase + 1) % b->spec->phases, false);
        }
        if (b->judged && !b->failed)
            judge_step(b);
    }
}

/* --- the trials ------------------------------------------------------------------------------ */

struct tried {
    struct rm_rule_check *check;
    const struct rm_world *world;
    const struct rm_world_config *config;
    uint64_t seed;
    struct record record;
};

static int open_one(const struct tried *t, struct batch *b, uint64_t first, uint32_t worlds,
                    struct way way, struct rm_error *error)
{
    return batch_open(b, t->check, t->world, t->config, t->seed, first, worlds, way, error);
}

static const struct way plain = {.poison = 0xa5};

/* Plays the same again, in one batch or several, in some way. */
static int again(const struct tried *t, const uint32_t *parts, struct way way, enum rm_rule rule,
                 const char *what, struct rm_error *error)
{
    uint64_t first = 0;
    t->check->rule[rule].tried = true;
    for (; *parts; first += *parts++) {
        struct batch b;
        const int rc = open_one(t, &b, first, *parts, way, error);
        if (rc < 0)
            return rc;
        batch_reset(&b);
        play(&b, t->record.seen, &t->record, false, rule, what);
        batch_close(&b);
    }
    return 0;
}

static uint64_t steps_before(const struct tried *t)
{
    return t->record.seen < BEFORE ? t->record.seen : BEFORE;
}

static int try_reset(const struct tried *t, struct rm_error *error)
{
    struct batch b;
    int rc = open_one(t, &b, 0, WORLDS, plain, error);
    if (rc < 0)
        return rc;
    t->check->rule[RM_RULE_RESET].tried = true;
    batch_reset(&b);
    play(&b, steps_before(t), &t->record, false, RM_RULE_SEED, "from that of the same seed before");
    batch_reset(&b);
    play(&b, t->record.seen, &t->record, false, RM_RULE_RESET, "after a reset()");
    batch_close(&b);
    return 0;
}

/* Copies phase 0's rows, which belong to the caller and not to the state. */
static void hand_over(const struct batch *from, struct batch *to)
{
    for (uint32_t a = 0; a < from->spec->agents; a++) {
        memcpy(to->out[a].obs, from->out[a].obs, obs_block(from, a));
        if (from->out[a].mask)
            memcpy(to->out[a].mask, from->out[a].mask, mask_block(from, a));
        memcpy(to->out[a].reward, from->out[a].reward, sizeof(float) * from->worlds);
        memcpy(to->out[a].flags, from->out[a].flags, from->worlds);
        memcpy(to->out[a].figures, from->out[a].figures, figure_block(from));
    }
    to->step = from->step;
}

static int state_call(struct batch *b, bool save, void *state)
{
    rm_watch_enter(&b->watch, RM_WATCH_STATE);
    const int rc =
        save ? b->world->ops->save_state(b->env, state) : b->world->ops->load_state(b->env, state);
    rm_watch_leave();
    if (rc)
        broken(b->check, RM_RULE_SAVED, "step %" PRIu64 ": %s returned %d: %s", b->step,
               save ? "save_state()" : "load_state()", rc, b->world->ops->last_error(b->env));
    return rc;
}

static void go_on(struct batch *b, struct batch *copy, const struct tried *t, size_t bytes,
                  uint8_t *state)
{
    const uint64_t end = b->step + AFTER < t->record.seen ? b->step + AFTER : t->record.seen;
    uint8_t *twice = state + bytes;
    memset(state, 0x11, bytes);
    memset(twice, 0x11, bytes);
    if (state_call(b, true, state) || state_call(copy, false, state) ||
        state_call(copy, true, twice))
        return;
    if (memcmp(state, twice, bytes) != 0)
        broken(t->check, RM_RULE_SAVED,
               "step %" PRIu64 ": the state that is saved after load_state() is another one",
               b->step);
    hand_over(b, copy);
    play(copy, end, &t->record, false, RM_RULE_SAVED, "after load_state()");
    play(b, end, &t->record, false, RM_RULE_SAVED, "after save_state()");
}

static int try_states(const struct tried *t, struct rm_error *error)
{
    static const uint64_t at[] = {0, 1, 2, 3, 7, 20, 49, 100};
    t->check->rule[RM_RULE_SAVED].tried = true;
    for (size_t i = 0; i < sizeof at / sizeof at[0] && at[i] < t->record.seen; i++) {
        struct batch b, copy;
        int rc = open_one(t, &b, 0, WORLDS, plain, error);
        if (rc < 0)
            return rc;
        if ((rc = open_one(t, &copy, 0, WORLDS, plain, error)) < 0) {
            batch_close(&b);
            return rc;
        }
        const size_t bytes = t->world->ops->state_size(b.env);
        uint8_t *state = malloc(2 * bytes + 1);
        batch_reset(&b);
        batch_reset(&copy);
        play(&b, at[i], &t->record, false, RM_RULE_SEED, "from that of the same seed before");
        if (state && !b.failed && b.step == at[i])
            go_on(&b, &copy, t, bytes, state);
        free(state);
        batch_close(&b);
        batch_close(&copy);
        if (!state)
            return rm_fail(error, -ENOMEM, "no memory for a state of %zu bytes", bytes);
    }
    return 0;
}

/* The same actions with another seed. A world in which nothing is random may give the same rows. */
static int try_another_seed(const struct tried *t, struct rm_error *error)
{
    struct rm_rule_check other = {.steps = 0};
    struct batch b;
    const int rc =
        batch_open(&b, &other, t->world, t->config, t->seed + 1, 0, WORLDS, plain, error);
    if (rc < 0)
        return rc;
    b.draws = t->seed;
    batch_reset(&b);
    play(&b, t->record.seen, &t->record, false, RM_RULE_SEED, "");
    t->check->seedless = !other.rule[RM_RULE_SEED].times && !b.failed;
    batch_close(&b);
    return 0;
}

static uint64_t enough_steps(const struct rm_env_spec *spec, uint64_t asked)
{
    uint64_t steps = spec->max_steps ? 5 * (uint64_t)spec->max_steps / 2 : 2000;
    if (asked)
        return asked;
    steps = steps < STEPS_LEAST ? STEPS_LEAST : steps;
    return steps < STEPS_MOST ? steps : STEPS_MOST;
}

/* Plays everything that should change no row at once: small batches, after a reset() in the middle
 * of an episode, with other bytes in the buffers and other answers to last rows. *same: no row
 * differs, so that a sound world is played half as often. */
static int try_at_once(const struct tried *t, bool *same, struct rm_error *error)
{
    static const uint32_t parts[] = {4, 4, 1, 2, 5, 0};
    struct rm_rule_check other = {.steps = 0};
    struct tried all = *t;
    uint64_t first = 0;
    all.check = &other;
    *same = true;
    for (const uint32_t *n = parts; *n && *same; first = (first + *n++) % WORLDS) {
        struct batch b;
        const int rc =
            open_one(&all, &b, first, *n, (struct way){.poison = 0x5a, .last_differ = true}, error);
        if (rc < 0)
            return rc;
        batch_reset(&b);
        play(&b, steps_before(t), &t->record, false, RM_RULE_SEED, "");
        batch_reset(&b);
        play(&b, t->record.seen, &t->record, false, RM_RULE_RESET, "");
        batch_close(&b);
        for (int r = 0; r < RM_RULE_COUNT; r++)
            *same &= other.rule[r].times == 0;
    }
    return 0;
}

/* Some row differs: one change after the other says by which rule. */
static int try_one_by_one(const struct tried *t, struct rm_error *error)
{
    static const uint32_t whole[] = {WORLDS, 0}, halves[] = {4, 4, 0}, pieces[] = {1, 2, 5, 0};
    const struct way filled = {.poison = 0x5a}, differ = {.poison = 0xa5, .last_differ = true};
    int rc;
    if ((rc = again(t, whole, plain, RM_RULE_SEED, "from that of the same seed before", error)) < 0)
        return rc;
    if (t->check->rule[RM_RULE_SEED].times) {
        /* The other rules are checked by comparing rows. */
        for (int r = RM_RULE_IGNORED; r < RM_RULE_COUNT; r++)
            if (!t->check->rule[r].tried)
                snprintf(t->check->rule[r].text, sizeof t->check->rule[r].text,
                         "the same seed does not give the same rows");
        return 0;
    }
    if ((rc = again(t, whole, filled, RM_RULE_WRITTEN,
                    "with what was in the buffers before: a part of the observation or of the mask "
                    "is not written",
                    error)) < 0 ||
        (rc = again(t, whole, differ, RM_RULE_IGNORED, "with the action that answered a last row",
                    error)) < 0 ||
        (rc = again(t, halves, plain, RM_RULE_BATCH, "between batches of 8 and of 4", error)) < 0 ||
        (rc = again(t, pieces, plain, RM_RULE_BATCH, "between batches of 8 and of 1, 2 and 5",
                    error)) < 0)
        return rc;
    return try_reset(t, error);
}

static int try_all(struct tried *t, struct batch *first, struct rm_error *error)
{
    static const enum rm_rule at_once[] = {RM_RULE_IGNORED, RM_RULE_SEED, RM_RULE_BATCH,
                                           RM_RULE_RESET};
    struct rm_rule_check *check = t->check;
    bool same;

    for (int r = 0; r <= RM_RULE_MASK; r++)
        check->rule[r].tried = true;
    first->judged = true;
    batch_reset(first);
    play(first, t->record.steps, &t->record, true, RM_RULE_SEED, "");
    t->record.seen = check->steps = first->step;
    check->digest = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < first->step * t->record.agents * WORLDS; i++)
        check->digest = (check->digest ^ t->record.rows[i]) * 0x100000001b3u;

    int rc = try_at_once(t, &same, error);
    for (size_t i = 0; rc == 0 && same && i < sizeof at_once / sizeof at_once[0]; i++)
        check->rule[at_once[i]].tried = true;
    if (rc == 0 && !same)
        rc = try_one_by_one(t, error);
    if (rc < 0 || check->rule[RM_RULE_SEED].times)
        return rc;
    if ((rc = try_another_seed(t, error)) < 0)
        return rc;
    if (t->world->ops->state_size(first->env))
        return try_states(t, error);
    snprintf(check->rule[RM_RULE_SAVED].text, sizeof check->rule[RM_RULE_SAVED].text,
             "state_size() is 0: runs of this world begin new episodes when they go on from a "
             "checkpoint");
    return 0;
}

int rm_rule_check_run(struct rm_rule_check *check, const struct rm_world *world,
                      const struct rm_world_config *config, uint64_t seed, uint64_t steps,
                      struct rm_error *error)
{
    struct tried t = {.check = check, .world = world, .config = config, .seed = seed};
    struct batch first; /* stays open, so that other batches have other addresses */
    memset(check, 0, sizeof *check);
    int rc = open_one(&t, &first, 0, WORLDS, plain, error);
    if (rc < 0)
        return rc;
    t.record.agents = first.spec->agents;
    t.record.steps = enough_steps(first.spec, steps);
    t.record.rows = calloc(t.record.steps * t.record.agents * WORLDS, sizeof *t.record.rows);
    rc = t.record.rows ? try_all(&t, &first, error)
                       : rm_fail(error, -ENOMEM, "no memory for %" PRIu64 " steps", t.record.steps);
    free(t.record.rows);
    batch_close(&first);
    return rc;
}

char *rm_rule_check_write(const struct rm_rule_check *check, const struct rm_world *world,
                          const struct rm_env_spec *spec)
{
    json_t *rules = json_array();
    char *described = rm_described_write(world, spec);
    char digest[17];
    snprintf(digest, sizeof digest, "%016" PRIx64, check->digest);
    for (int r = 0; r < RM_RULE_COUNT; r++)
        json_array_append_new(rules, json_pack("{s:s, s:b, s:I, s:s%}", "rule", rm_rule_words[r],
                                               "tried", check->rule[r].tried, "broken",
                                               (json_int_t)check->rule[r].times, "text",
                                               check->rule[r].text, strlen(check->rule[r].text)));
    json_t *all = json_pack("{s:s, s:s*, s:i, s:i, s:i, s:I, s:I, s:s, s:b, s:o}", "world",
                            spec->name, "description", described, "agents", (int)spec->agents,
                            "phases", (int)spec->phases, "worlds", WORLDS, "steps",
                            (json_int_t)check->steps, "episodes", (json_int_t)check->episodes,
                            "digest", digest, "seedless", check->seedless, "rules", rules);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    free(described);
    return text;
}
