/* tabular: worlds whose rules are a table of transitions over numbered states, like Gymnasium's toy
 * problems. A world fills the table; stepping, masks, and the exact scores of the spec follow from
 * the table. An observation is the number of the state, for an embedding layer. A state may have a
 * twin, which has the same observation and other transitions: a hidden part of the state.
 *
 * Scores are computed by backward induction over max_steps steps and averaged over the first
 * states: the score of a policy that chooses each legal action with equal probability, the score of
 * the best policy, and the extremes over all sequences of actions and outcomes. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_TABULAR_H
#define RM_ACTOR_WORLDS_BUILTIN_TABULAR_H

#include "actor/worlds/builtin/grid.h"

#define RM_TABULAR_STATES   1000
#define RM_TABULAR_ACTIONS  6
#define RM_TABULAR_OUTCOMES 9

struct rm_tabular_outcome {
    double probability;
    float reward;
    uint16_t next;
    uint8_t terminated;
};

/* Outcomes of an action in a state; their probabilities add up to 1. */
struct rm_tabular_move {
    uint32_t outcomes;
    struct rm_tabular_outcome outcome[RM_TABULAR_OUTCOMES];
};

struct rm_tabular {
    uint32_t states, actions; /* states without twins: the twin of s is s + states */
    double twins;             /* probability that an episode begins in its first state's twin; 0:
                                 there are no twins */
    uint32_t starts;          /* first states, equally likely */
    uint16_t start[RM_TABULAR_STATES];
    struct rm_tabular_move move[RM_TABULAR_STATES][RM_TABULAR_ACTIONS];
    uint32_t has_mask;
    uint8_t legal[RM_TABULAR_STATES][RM_TABULAR_ACTIONS]; /* all 1 without masks */
    const struct rm_env_figure *end; /* the end of an episode; its last word is the time limit */
    uint8_t end_word[RM_TABULAR_STATES]; /* word of an episode that terminates in this state */
    /* Shows a state: the look of a cell, and a line below the cells (NULL: none). */
    uint32_t rows, columns;
    const struct rm_grid_look *(*look)(const struct rm_tabular *table, uint32_t state, uint32_t row,
                                       uint32_t column);
    void (*below)(uint32_t state, char *text, size_t size);
    char tile[RM_TABULAR_STATES]; /* for the world's look() */
};

struct rm_tabular_scores {
    double low, high, random;
    double best; /* mean of a policy that knows the table */
};

/* Appends an outcome to a move. */
void rm_tabular_add(struct rm_tabular_move *move, double probability, uint32_t next, double reward,
                    int terminated);

void rm_tabular_solve(const struct rm_tabular *table, uint32_t max_steps,
                      struct rm_tabular_scores *scores);

/* An empty table, freed by the caller; NULL with a message. */
struct rm_tabular *rm_tabular_alloc(char *error, size_t error_size);

/* A batch over `table`, which is copied. The observation is RM_ENV_U8 if the states fit a byte,
 * else RM_ENV_I16. */
struct rm_env *rm_tabular_create(const struct rm_env_config *config, const char *name,
                                 const char *doc, const struct rm_tabular *table,
                                 uint32_t max_steps, double score_solved, char *error,
                                 size_t error_size);

int rm_tabular_reset(struct rm_env *env, const struct rm_env_buffers *out);
int rm_tabular_step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                    const struct rm_env_buffers *out);
int rm_tabular_show_text(const struct rm_env *env, uint32_t w, char *text, size_t size);
int rm_tabular_show_picture(const struct rm_env *env, uint32_t w, uint8_t *rgb);

/* All operations of such a world except its name, options and create(). */
#define RM_TABULAR_OPS                                                                             \
    RM_SINGLE_OPS, .reset = rm_tabular_reset, .step = rm_tabular_step,                             \
                   .show_text = rm_tabular_show_text, .show_picture = rm_tabular_show_picture

#endif
