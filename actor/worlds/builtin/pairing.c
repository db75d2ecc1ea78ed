/* pairing: what to do is in two observations together, and either alone says nothing: a `board` of
 * 3 x 3 cells, one of them marked, and a `hand` of one to five cards, numbered 1 to 9. The right
 * action is the column of the mark, or, with a seven in hand, the next one (cyclically); it pays 1.
 * After each action mark and hand are drawn again. A third observation, `left`, is the share of the
 * episode that is left.
 *
 * The world with several named observations: of fixed and of variable length, of three types. */
#include "actor/worlds/builtin/single.h"

#include <stdbool.h>

enum { SIDE = 3, CELLS = SIDE * SIDE, CARDS = 5, HIGHEST = 9, SEVEN = 7 };

struct pairing_world {
    struct rm_single_world head;
    uint8_t mark, count, card[CARDS];
    uint8_t zero[1];
};

struct rm_env {
    struct rm_single single;
};

/* An entry of the buffer: struct rm_env_observation. */
struct entry {
    uint8_t board[CELLS], zero[3];
    uint32_t count;
    int16_t hand[CARDS], zero_too;
    float left;
};
_Static_assert(sizeof(struct entry) == 32, "observations stand at multiples of 4 bytes");

static const struct rm_env_observation observations[] = {
    {.name = "board", .dtype = RM_ENV_U8, .dims = 2, .shape = {SIDE, SIDE}, .high = 1},
    {.name = "hand",
     .dtype = RM_ENV_I16,
     .dims = 1,
     .shape = {CARDS},
     .low = 1,
     .high = HIGHEST,
     .counted = 1},
    {.name = "left", .dtype = RM_ENV_F32, .dims = 1, .shape = {1}, .high = 1},
};

static const struct rm_env_option_doc options[] = {
    RM_OPTION_WHOLE("max_steps", 16, 1, 1e6, "steps in an episode"),
    {.key = NULL},
};

static void deal(struct pairing_world *world)
{
    struct rm_rng *rng = &world->head.rng;
    world->mark = (uint8_t)rm_rng_below(rng, CELLS);
    world->count = (uint8_t)(1 + rm_rng_below(rng, CARDS));
    for (uint32_t i = 0; i < CARDS; i++)
        world->card[i] = i < world->count ? (uint8_t)(1 + rm_rng_below(rng, HIGHEST)) : 0;
    if (rm_rng_below(rng, 2)) /* so that a seven is in hand about every other time */
        world->card[rm_rng_below(rng, world->count)] = SEVEN;
}

static int32_t right_action(const struct pairing_world *world)
{
    const bool seven = memchr(world->card, SEVEN, world->count) != NULL;
    return (world->mark + seven) % SIDE;
}

static void begin(const struct rm_env *env, uint32_t w, void *of)
{
    (void)env, (void)w;
    deal(of);
}

static int play(struct rm_env *env, uint32_t w, void *of, int32_t action, float *reward)
{
    struct pairing_world *world = of;
    (void)w;
    *reward = action == right_action(world) ? 1.0f : 0.0f;
    deal(world);
    return world->head.step + 1 >= env->single.max_steps ? RM_ENV_TERMINATED : 0;
}

static void observe(const struct rm_env *env, const void *of, void *obs)
{
    const struct pairing_world *world = of;
    struct entry entry = {.count = world->count};
    entry.board[world->mark] = 1;
    for (uint32_t i = 0; i < CARDS; i++)
        entry.hand[i] = world->card[i];
    entry.left = 1.0f - (float)world->head.step / (float)env->single.max_steps;
    memcpy(obs, &entry, sizeof entry);
}

static const struct rm_single_rules rules = {.begin = begin, .play = play, .observe = observe};

RM_SINGLE_STEPS(rules)

static const char *fault(const struct rm_env *env, const void *of)
{
    const struct pairing_world *world = of;
    bool sound = world->mark < CELLS && world->count >= 1 && world->count <= CARDS;
    (void)env;
    for (uint32_t i = 0; sound && i < CARDS; i++)
        sound = world->card[i] <= HIGHEST && (world->card[i] >= 1) == (i < world->count);
    return sound ? NULL : "a mark beyond the board, or a hand of no such cards";
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    struct rm_env *env =
        rm_single_create(config, sizeof(*env), sizeof(struct pairing_world), error, error_size);
    if (!env)
        return NULL;
    struct rm_single *single = &env->single;
    single->max_steps = rm_env_option_u32(config, options, "max_steps");
    single->fault = fault;
    single->agent.actions = SIDE;
    single->agent.observations = sizeof observations / sizeof observations[0];
    single->agent.observation = observations;
    single->batch.spec.name = "pairing";
    single->batch.spec.doc = "act by what a board and a hand of cards say together";
    single->batch.spec.max_steps = single->max_steps;
    single->batch.spec.score_low = 0;
    single->batch.spec.score_high = single->max_steps;
    single->batch.spec.score_random = single->max_steps / (double)SIDE;
    single->batch.spec.score_solved = 0.95 * single->max_steps;
    return env;
}

extern const struct rm_env_ops rm_pairing_ops;
const struct rm_env_ops rm_pairing_ops = {
    RM_SINGLE_OPS,    .name = "pairing", .options = options,
    .create = create, .reset = reset,    .step = step,
};
