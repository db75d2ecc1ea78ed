#include "actor/worlds/builtin/tabular.h"
#include "actor/worlds/builtin/single.h"

#include <stdbool.h>
#include <stdlib.h>

struct world {
    struct rm_single_world head;
    uint16_t state;
    uint16_t zero[3];
};

struct rm_env {
    struct rm_single single;
    bool wide; /* observations of two bytes */
    struct rm_tabular table;
};

void rm_tabular_add(struct rm_tabular_move *move, double probability, uint32_t next, double reward,
                    int terminated)
{
    move->outcome[move->outcomes++] = (struct rm_tabular_outcome){
        .probability = probability,
        .reward = (float)reward,
        .next = (uint16_t)next,
        .terminated = terminated != 0,
    };
}

struct rm_tabular *rm_tabular_alloc(char *error, size_t error_size)
{
    struct rm_tabular *table = calloc(1, sizeof(*table));
    if (!table)
        snprintf(error, error_size, "no memory for a table");
    return table;
}

static uint32_t all_states(const struct rm_tabular *table)
{
    return table->twins > 0 ? 2 * table->states : table->states;
}

/* --- scores ----------------------------------------------------------------------------------- */

struct value {
    double low, high, random, best;
};

/* The best return from state s, given that from each state a step later. */
static struct value look_ahead(const struct rm_tabular *table, uint32_t s, const struct value *next)
{
    struct value value = {.low = 1e300, .high = -1e300, .best = -1e300};
    uint32_t legal = 0;
    for (uint32_t a = 0; a < table->actions; a++) {
        const struct rm_tabular_move *move = &table->move[s][a];
        if (!table->legal[s][a])
            continue;
        legal++;
        double expected = 0;
        for (uint32_t o = 0; o < move->outcomes; o++) {
            const struct rm_tabular_outcome *out = &move->outcome[o];
            struct value then = {0};
            if (out->probability == 0)
                continue;
            if (!out->terminated)
                then = next[out->next];
            value.random += out->probability * (out->reward + then.random);
            expected += out->probability * (out->reward + then.best);
            if (out->reward + then.low < value.low)
                value.low = out->reward + then.low;
            if (out->reward + then.high > value.high)
                value.high = out->reward + then.high;
        }
        if (expected > value.best)
            value.best = expected;
    }
    value.random /= legal;
    return value;
}

void rm_tabular_solve(const struct rm_tabular *table, uint32_t max_steps,
                      struct rm_tabular_scores *scores)
{
    struct value buffers[2][RM_TABULAR_STATES] = {{{0}}}, *next = buffers[0], *now = buffers[1];
    for (uint32_t t = 0; t < max_steps; t++) {
        for (uint32_t s = 0; s < all_states(table); s++)
            now[s] = look_ahead(table, s, next);
        struct value *swap = now;
        now = next;
        next = swap;
    }
    *scores = (struct rm_tabular_scores){.low = 1e300, .high = -1e300};
    for (uint32_t i = 0; i < 2 * table->starts; i++) {
        const bool twin = i >= table->starts;
        const double share = (twin ? table->twins : 1 - table->twins) / table->starts;
        if (share <= 0)
            continue;
        const struct value *value =
            &next[twin ? table->states + table->start[i - table->starts] : table->start[i]];
        scores->random += value->random * share;
        scores->best += value->best * share;
        scores->low = value->low < scores->low ? value->low : scores->low;
        scores->high = value->high > scores->high ? value->high : scores->high;
    }
}

/* --- the rules -------------------------------------------------------------------------------- */

static void begin(const struct rm_env *env, uint32_t w, void *of)
{
    struct world *world = of;
    (void)w;
    uint32_t pick = env->table.starts > 1 ? rm_rng_below(&world->head.rng, env->table.starts) : 0;
    world->state = env->table.start[pick];
    if (env->table.twins > 0 && rm_rng_double(&world->head.rng) < env->table.twins)
        world->state = (uint16_t)(world->state + env->table.states);
}

static int play(struct rm_env *env, uint32_t w, void *of, int32_t action, float *reward)
{
    struct world *world = of;
    const struct rm_tabular_move *move = &env->table.move[world->state][action];
    if (!env->table.legal[world->state][action])
        return rm_single_refuse(env, w, action);
    const struct rm_tabular_outcome *out = move->outcome;
    if (move->outcomes > 1) {
        /* The first outcome whose cumulated probability is above the draw. */
        double draw = rm_rng_double(&world->head.rng), sum = out->probability;
        while (draw >= sum && out < &move->outcome[move->outcomes - 1])
            sum += (++out)->probability;
    }
    *reward = out->reward;
    world->state = out->next;
    return out->terminated ? RM_ENV_TERMINATED : 0;
}

static void observe(const struct rm_env *env, const void *of, void *obs)
{
    uint16_t state = (uint16_t)(((const struct world *)of)->state % env->table.states);
    if (env->wide)
        memcpy(obs, &state, sizeof(state));
    else
        *(uint8_t *)obs = (uint8_t)state;
}

static void write_mask(const struct rm_env *env, const void *of, uint8_t *mask)
{
    memcpy(mask, env->table.legal[((const struct world *)of)->state], env->table.actions);
}

static void write_figures(const struct rm_env *env, const void *of, double *out)
{
    const struct world *world = of;
    uint32_t word = env->table.end_word[world->state % env->table.states];
    if (world->head.last == RM_ENV_TRUNCATED)
        for (word = 0; env->table.end->words[word + 1];)
            word++;
    out[0] = word;
}

static const struct rm_single_rules rules = {
    .begin = begin, .play = play, .observe = observe, .mask = write_mask, .figures = write_figures};

int rm_tabular_reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    return rm_single_reset(env, out, &rules);
}

int rm_tabular_step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                    const struct rm_env_buffers *out)
{
    return rm_single_step(env, phase, actions, out, &rules);
}

/* --- showing ---------------------------------------------------------------------------------- */

static uint32_t shown_state(const struct rm_env *env, const void *world)
{
    return ((const struct world *)world)->state % env->table.states;
}

static const struct rm_grid_look *look(const struct rm_env *env, const void *world, uint32_t row,
                                       uint32_t column)
{
    return env->table.look(&env->table, shown_state(env, world), row, column);
}

static struct rm_grid grid_of(const struct rm_env *env, uint32_t w)
{
    return (struct rm_grid){.rows = env->table.rows,
                            .columns = env->table.columns,
                            .look = look,
                            .env = env,
                            .world = rm_single_world_at(env, w)};
}

int rm_tabular_show_text(const struct rm_env *env, uint32_t w, char *text, size_t size)
{
    const struct rm_grid grid = grid_of(env, w);
    char below[80];
    if (env->table.below)
        env->table.below(shown_state(env, grid.world), below, sizeof(below));
    return rm_grid_text(&grid, env->table.below ? below : NULL, text, size);
}

int rm_tabular_show_picture(const struct rm_env *env, uint32_t w, uint8_t *rgb)
{
    const struct rm_grid grid = grid_of(env, w);
    return rm_grid_picture(&grid, rgb);
}

/* --- a batch ---------------------------------------------------------------------------------- */

static const char *fault(const struct rm_env *env, const void *of)
{
    return ((const struct world *)of)->state < all_states(&env->table) ? NULL
                                                                       : "there is no such state";
}

struct rm_env *rm_tabular_create(const struct rm_env_config *config, const char *name,
                                 const char *doc, const struct rm_tabular *table,
                                 uint32_t max_steps, double score_solved, char *error,
                                 size_t error_size)
{
    struct rm_env *env =
        rm_single_create(config, sizeof(*env), sizeof(struct world), error, error_size);
    if (!env)
        return NULL;
    struct rm_single *single = &env->single;
    struct rm_tabular_scores scores;
    rm_tabular_solve(table, max_steps, &scores);
    env->table = *table;
    env->wide = table->states > 256;
    single->max_steps = max_steps;
    single->fault = fault;
    single->agent.dtype = env->wide ? RM_ENV_I16 : RM_ENV_U8;
    single->agent.dims = 1;
    single->agent.shape[0] = 1;
    single->agent.high = table->states - 1;
    single->agent.actions = table->actions;
    single->agent.has_mask = table->has_mask;
    single->batch.spec.name = name;
    single->batch.spec.doc = doc;
    single->batch.spec.max_steps = max_steps;
    single->batch.spec.figures = 1;
    single->batch.spec.figure = table->end;
    const struct rm_grid grid = grid_of(env, 0);
    rm_grid_describe(&grid, &single->batch.spec);
    single->batch.spec.score_low = scores.low;
    single->batch.spec.score_high = scores.high;
    single->batch.spec.score_random = scores.random;
    single->batch.spec.score_solved = score_solved;
    return env;
}
