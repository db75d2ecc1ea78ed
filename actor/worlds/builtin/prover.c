/* prover: proofs over a knowledge base. A state is a list of goals; an action picks one of the
 * states that one step of resolution gives, the end of a proof, or giving in. Proving a true query
 * pays 1, as does giving in on a corrupted one; each the other way round costs 1. docs/prover.md
 * has the rules and the files. */
#include "actor/worlds/builtin/prover.h"
#include "actor/worlds/builtin/prover_queries.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { COLUMNS = 3, TOKENS = 1 + RM_PROVER_ACTIONS };
enum { VARIABLES = 512, VARIABLES_COMPAT = 10000 };

_Static_assert(sizeof(struct rm_prover_world) % 8 == 0, "worlds of a batch lie side by side");

struct rm_env {
    struct rm_single single;
    struct rm_prover_kb *kb;
    struct rm_prover_engine *engine;
    struct rm_prover_asking asking;
    bool double_reset;
    uint32_t ranking; /* corruptions of each side; 0: queries are drawn */
};

static const char *const splits[] = {"train", "valid", "test", NULL};
static const char *const labels[] = {"both", "positive", "corrupted", NULL};

static const struct rm_env_option_doc options[] = {
    {.key = "data",
     .doc = "folder of a data set: facts, rules, queries; none: the synthetic family",
     .type = RM_ENV_PATH},
    {.key = "split",
     .doc = "which queries are asked",
     .type = RM_ENV_WORD,
     .words = splits,
     .fallback_text = "train"},
    {.key = "labels",
     .doc = "true queries and corrupted ones in turn, or one kind alone",
     .type = RM_ENV_WORD,
     .words = labels,
     .fallback_text = "both"},
    RM_OPTION_WHOLE("variables", 0, 0, 1 << 20,
                    "variables in an episode; 0: 512, with compat 10000"),
    RM_OPTION_WHOLE("compat", 0, 0, 1, "1: as the program that this world is modelled on"),
    RM_OPTION_WHOLE("double_reset", 0, 0, 1,
                    "with compat, 1: every end of an episode takes two turns of the labels"),
    RM_OPTION_WHOLE("ranking", 0, 0, 100000,
                    "to rank: every query in turn with so many corruptions of each side"),
    {.key = NULL},
};

/* To rank: which query of the split this world asks, and which of its candidates. All worlds of the
 * batch take candidates in turn. */
struct place {
    uint32_t query, candidate;
};

static struct place place_of(const struct rm_env *env, const struct rm_prover_world *world)
{
    const struct rm_single *single = &env->single;
    const uint64_t w = (uint64_t)((const char *)world - single->world) / single->world_bytes;
    const uint64_t number = world->head.episode * single->batch.worlds + w,
                   each = 1 + 2 * (uint64_t)env->ranking;
    const uint32_t queries = env->kb->split[env->asking.split].count;
    return (struct place){(uint32_t)(number / each % queries), (uint32_t)(number % each)};
}

static void begin(const struct rm_env *env, uint32_t w, void *of)
{
    struct rm_prover_world *world = of;
    (void)w;
    const struct place place = env->ranking ? place_of(env, world) : (struct place){0, 0};
    const struct rm_prover_question question =
        env->ranking ? rm_prover_candidate(&env->asking, env->single.batch.seed, place.query,
                                           place.candidate, env->ranking)
                     : rm_prover_ask(&env->asking, world->head.episode << env->double_reset,
                                     &world->head.rng);
    rm_prover_begin(env->engine, &world->episode, question.query, question.label);
}

static int play(struct rm_env *env, uint32_t w, void *of, int32_t action, float *reward)
{
    struct rm_prover_world *world = of;
    if ((uint32_t)action >= world->episode.successors)
        return rm_single_refuse(env, w, action);
    const int end = rm_prover_play(env->engine, &world->episode, (uint32_t)action, reward);
    return end & RM_PROVER_TERMINATED ? RM_ENV_TERMINATED : end ? RM_ENV_TRUNCATED : 0;
}

/* --- observations ----------------------------------------------------------------------------- */

/* A token is a state: GOALS rows (predicate, first, second), zeros behind the last. */
static void write_token(const struct rm_env *env, void *obs, uint32_t token,
                        const rm_prover_atom *atom, uint32_t count)
{
    const bool narrow = env->single.agent.dtype == RM_ENV_I16;
    for (uint32_t i = 0; i < count && i < RM_PROVER_GOALS; i++) {
        const uint32_t ids[COLUMNS] = {rm_prover_pred(atom[i]), rm_prover_first(atom[i]),
                                       rm_prover_second(atom[i])};
        const uint32_t at = (token * RM_PROVER_GOALS + i) * COLUMNS;
        for (uint32_t c = 0; c < COLUMNS; c++)
            if (narrow)
                ((int16_t *)obs)[at + c] = (int16_t)ids[c];
            else
                ((int32_t *)obs)[at + c] = (int32_t)ids[c];
    }
}

static void observe(const struct rm_env *env, const void *of, void *obs)
{
    const struct rm_prover_episode *episode = &((const struct rm_prover_world *)of)->episode;
    const size_t bytes = env->single.agent.dtype == RM_ENV_I16 ? 2 : 4;
    memset(obs, 0, bytes * TOKENS * RM_PROVER_GOALS * COLUMNS);
    write_token(env, obs, 0, episode->shown.atom, episode->shown.count);
    for (uint32_t i = 0; i < episode->successors; i++)
        write_token(env, obs, 1 + i, episode->successor[i], episode->size[i]);
}

static void write_mask(const struct rm_env *env, const void *of, uint8_t *mask)
{
    (void)env;
    for (uint32_t i = 0; i < RM_PROVER_ACTIONS; i++)
        mask[i] = i < ((const struct rm_prover_world *)of)->episode.successors;
}

static const struct rm_env_figure figures[] = {
    {"proved", "1: the query was proved", NULL},
    {"label", "1: the query is true, 0: it is corrupted", NULL},
    {"depth", "steps", NULL},
    /* to rank */
    {"query", "which query of the split, from 0", NULL},
    {"candidate", "0: the query; then those with another head, then those with another tail", NULL},
    {"queries", "of the split", NULL},
};
enum { FIGURES = 3, FIGURES_RANKING = sizeof figures / sizeof figures[0] };

static void write_figures(const struct rm_env *env, const void *of, double *out)
{
    const struct rm_prover_episode *episode = &((const struct rm_prover_world *)of)->episode;
    out[0] = episode->proved;
    out[1] = episode->label;
    out[2] = episode->depth;
    if (!env->ranking)
        return;
    const struct place place = place_of(env, of);
    out[3] = place.query;
    out[4] = place.candidate;
    out[5] = env->kb->split[env->asking.split].count;
}

static const struct rm_single_rules rules = {
    .begin = begin, .play = play, .observe = observe, .mask = write_mask, .figures = write_figures};

RM_SINGLE_STEPS(rules)

/* --- showing ---------------------------------------------------------------------------------- */

struct page {
    char *text;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void print(struct page *page, const char *format, ...)
{
    va_list args;
    const size_t left = page->used < page->size ? page->size - page->used : 0;
    va_start(args, format);
    const int length = vsnprintf(left ? page->text + page->used : NULL, left, format, args);
    va_end(args);
    page->used += length > 0 ? (size_t)length : 0;
}

static void print_goals(struct page *page, const struct rm_prover_kb *kb,
                        const rm_prover_atom *atom, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const size_t left = page->used < page->size ? page->size - page->used : 0;
        page->used += rm_prover_write(kb, atom[i], left ? page->text + page->used : NULL, left);
        print(page, i + 1 < count ? " " : "\n");
    }
}

static int show_text(const struct rm_env *env, uint32_t w, char *text, size_t size)
{
    const struct rm_prover_world *world = rm_single_world_at(env, w);
    const struct rm_prover_episode *episode = &world->episode;
    struct page page = {.text = text, .size = size};
    print(&page, "%s query after %u steps: ", episode->label ? "true" : "corrupted",
          episode->depth);
    print_goals(&page, env->kb, &episode->query, 1);
    print(&page, "goals: ");
    print_goals(&page, env->kb, episode->shown.atom, episode->shown.count);
    for (uint32_t i = 0; i < episode->successors; i++) {
        print(&page, "%5u: ", i);
        print_goals(&page, env->kb, episode->successor[i], episode->size[i]);
    }
    return (int)page.used;
}

/* --- a batch ---------------------------------------------------------------------------------- */

static bool atom_exists(const struct rm_prover_kb *kb, rm_prover_atom atom)
{
    const uint32_t ids = kb->constants + kb->variables, pred = rm_prover_pred(atom);
    return pred >= 1 && pred <= kb->gave_in && rm_prover_first(atom) <= ids &&
           rm_prover_second(atom) <= ids;
}

/* States are goals, or an end alone. */
static bool goals_exist(const struct rm_prover_kb *kb, const rm_prover_atom *atom, uint32_t count,
                        uint32_t most)
{
    if (count < 1 || count > most)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!atom_exists(kb, atom[i]) || (count > 1 && rm_prover_is_end(kb, atom[i])))
            return false;
    return true;
}

static const char *fault(const struct rm_env *env, const void *of)
{
    const struct rm_prover_episode *episode = &((const struct rm_prover_world *)of)->episode;
    const struct rm_prover_kb *kb = env->kb;
    if (!goals_exist(kb, &episode->query, 1, 1) ||
        !goals_exist(kb, episode->shown.atom, episode->shown.count, RM_PROVER_WIDE))
        return "its query or its goals are not of this knowledge base";
    if (episode->successors < 1 || episode->successors > RM_PROVER_ACTIONS)
        return "it has no actions, or too many";
    for (uint32_t i = 0; i < episode->successors; i++)
        if (!goals_exist(kb, episode->successor[i], episode->size[i], RM_PROVER_GOALS - 1))
            return "one of its successors is not of this knowledge base";
    if (episode->label > 1 || episode->proved > 1 || episode->gave_up > 1 ||
        episode->depth > RM_PROVER_STEPS)
        return "its flags or its depth are impossible";
    if (episode->visits >
            RM_PROVER_VISITS - (RM_PROVER_STEPS - episode->depth) * (RM_PROVER_FOLLOW + 2) ||
        episode->next_variable <= kb->constants)
        return "it has visited more states than its steps allow";
    return NULL;
}

static void prover_close(struct rm_env *env)
{
    rm_prover_engine_destroy(env->engine);
    rm_prover_kb_close(env->kb);
    rm_single_close(env);
}

static const char *text_option(const struct rm_env_config *config, const char *key)
{
    const struct rm_env_option *option = rm_env_find_option(config, key);
    return option ? option->text : NULL;
}

/* The place of a word that is one of those allowed; the first by default. */
static uint32_t word_option(const struct rm_env_config *config, const char *key,
                            const char *const *words)
{
    const char *word = text_option(config, key);
    uint32_t i = 0;
    while (word && words[i] && strcmp(words[i], word) != 0)
        i++;
    return word && words[i] ? i : 0;
}

static void describe(struct rm_env *env, const char *data)
{
    const struct rm_prover_kb *kb = env->kb;
    const uint32_t ids = kb->constants + kb->variables;
    /* compat: as many ids again as there are predicates, for what never occurs. */
    const uint32_t preds = kb->predicates + 4 + (env->asking.compat ? kb->predicates : 0);
    struct rm_single *single = &env->single;
    struct rm_env_spec *spec = &single->batch.spec;
    single->max_steps = RM_PROVER_STEPS;
    single->fault = fault;
    single->agent.high = ids > preds ? ids : preds;
    single->agent.dtype = single->agent.high <= INT16_MAX ? RM_ENV_I16 : RM_ENV_I32;
    single->agent.dims = 3;
    single->agent.shape[0] = TOKENS;
    single->agent.shape[1] = RM_PROVER_GOALS;
    single->agent.shape[2] = COLUMNS;
    single->agent.actions = RM_PROVER_ACTIONS;
    single->agent.has_mask = 1;
    spec->name = "prover";
    spec->doc = "prove queries to a knowledge base, or give in where they are wrong";
    spec->max_steps = RM_PROVER_STEPS;
    spec->figures = env->ranking ? FIGURES_RANKING : FIGURES;
    spec->figure = figures;
    spec->score_low = -1;
    spec->score_high = 1;
    /* Random: simulated, two million steps. */
    const bool standard = !data && !env->asking.compat && env->asking.split == RM_PROVER_TRAIN &&
                          env->asking.labels == RM_PROVER_BOTH;
    spec->score_random = standard ? 0.388 : NAN;
    spec->score_solved = NAN;
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    const char *data = text_option(config, "data");
    const bool compat = rm_env_option_u32(config, options, "compat") != 0;
    uint32_t variables = rm_env_option_u32(config, options, "variables");
    if (!variables)
        variables = compat ? VARIABLES_COMPAT : VARIABLES;
    struct rm_env *env =
        rm_single_create(config, sizeof(*env), sizeof(struct rm_prover_world), error, error_size);
    if (!env)
        return NULL;
    env->double_reset = compat && rm_env_option_u32(config, options, "double_reset");
    env->ranking = rm_env_option_u32(config, options, "ranking");
    env->kb = rm_prover_kb_open(data, variables, error, error_size);
    if (!env->kb) {
        prover_close(env);
        return NULL;
    }
    env->asking = (struct rm_prover_asking){
        .kb = env->kb,
        .split = (enum rm_prover_split)word_option(config, "split", splits),
        .labels = (enum rm_prover_labels)word_option(config, "labels", labels),
        .compat = compat,
    };
    const char *missing = rm_prover_nothing_to_ask(&env->asking);
    env->engine = missing ? NULL : rm_prover_engine_create(env->kb, compat);
    if (!env->engine) {
        if (missing)
            snprintf(error, error_size, "the split %s of %s %s", splits[env->asking.split],
                     data ? data : "the family", missing);
        else
            rm_env_batch_no_memory(config, error, error_size);
        prover_close(env);
        return NULL;
    }
    describe(env, data);
    return env;
}

extern const struct rm_env_ops rm_prover_ops;
const struct rm_env_ops rm_prover_ops = {
    RM_ENV_BATCH_OPS,
    .name = "prover",
    .options = options,
    .create = create,
    .reset = reset,
    .step = step,
    .state_size = rm_single_state_size,
    .save_state = rm_single_save_state,
    .load_state = rm_single_load_state,
    .close = prover_close,
    .show_text = show_text,
};
