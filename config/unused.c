/* unused: keys that only some algorithms read, or only runs with actors. A key that contradicts the
 * algorithm is an error (check_learning.c); a key that the algorithm ignores is only reported. */
#include "config/findings.h"
#include "config/schema.h"
#include "config/traits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(name) (1u << RM_ALGORITHM_##name)
#define QUANTILES (BIT(QR_DQN) | BIT(IQN))
#define VALUES    (BIT(DQN) | QUANTILES | BIT(R2D2))
#define REPLAY    (VALUES | BIT(SAC))
#define VTRACE    (BIT(APPO) | BIT(VTRACE))
#define ROLLOUTS  (BIT(PPO) | VTRACE)
#define CLIPPED   (BIT(PPO) | BIT(APPO))
#define SEQUENCES (BIT(R2D2) | BIT(CLONE)) /* clone: of a recurrent network */
#define IMITATES  (BIT(CLONE) | BIT(DISTILL))
#define POLICIES  (ROLLOUTS | BIT(SAC) | IMITATES)

static const struct used {
    const char *path;    /* path of a key, or of a section for all of its keys */
    unsigned algorithms; /* algorithms that read it */
} rows[] = {
    {"actor.quantiles", BIT(IQN)},
    {"evaluation.quantiles", BIT(IQN)},
    {"evaluation.answer", POLICIES},
    {"epsilon", VALUES},
    {"ring", REPLAY},
    {"sample.batch", REPLAY | IMITATES},
    {"sample.n_step", REPLAY},
    {"sample.min_fill", REPLAY},
    {"sample.sequence", SEQUENCES},
    {"sample.burn_in", SEQUENCES},
    {"sample.period", SEQUENCES},
    {"sample.region", BIT(DISTILL)},
    {"sample.first_steps", BIT(DISTILL)},
    {"sample.held_out", BIT(DISTILL)},
    {"sample.held_out_lanes", BIT(DISTILL)},
    {"priority.max_share", BIT(R2D2)},
    {"priority", REPLAY},
    {"rollout.max_policy_lag", BIT(PPO)},
    {"rollout.staleness_max", VTRACE},
    {"rollout.queue", VTRACE},
    {"rollout", ROLLOUTS},
    {"limiter.updates_per_step", REPLAY},
    {"limiter.slack_updates", REPLAY},
    {"algorithm.double_q", VALUES},
    {"algorithm.quantiles", QUANTILES},
    {"algorithm.target_quantiles", BIT(IQN)},
    {"algorithm.kappa", VALUES},
    {"algorithm.cql", BIT(DQN) | QUANTILES},
    {"algorithm.target", REPLAY},
    {"algorithm.gae_lambda", ROLLOUTS},
    {"algorithm.clip", CLIPPED},
    {"algorithm.value_clip", ROLLOUTS},
    {"algorithm.value_clip_maximum", ROLLOUTS},
    {"algorithm.entropy_coefficient", ROLLOUTS},
    {"algorithm.value_coefficient", ROLLOUTS},
    {"algorithm.epochs", CLIPPED},
    {"algorithm.minibatches", ROLLOUTS},
    {"algorithm.normalize_advantages", ROLLOUTS},
    {"algorithm.target_kl", CLIPPED},
    {"algorithm.rho_max", VTRACE},
    {"algorithm.c_max", VTRACE},
    {"algorithm.reward_clip", ROLLOUTS},
    {"algorithm.popart_beta", ROLLOUTS},
    {"algorithm.popart_deviation", ROLLOUTS},
    {"algorithm.temperature", BIT(SAC)},
    {"algorithm.tune_temperature", BIT(SAC)},
    {"algorithm.target_entropy_ratio", BIT(SAC)},
    {"algorithm.type_weight", BIT(DISTILL)},
    {"algorithm.value_rescale", BIT(R2D2)},
    {"network.noise", VALUES},
    {"network.sigma0", VALUES},
    {"network.policy_gain", POLICIES},
    {"network.trunk", ROLLOUTS | BIT(CLONE)},
    {"network.value_layers", ROLLOUTS | BIT(CLONE)},
    {"optimizer.clip_apart", ROLLOUTS},
    {"publish", REPLAY | IMITATES},
    {"learner.feed", BIT(DQN) | QUANTILES},
};

static const struct used *row_of(const char *path)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rm_path_within(path, rows[i].path))
            return &rows[i];
    return NULL;
}

/* Keys and sections that only actors and their replay read. A run from a recording has none. */
static const char *const of_actors[] = {
    "actor.count",       "actor.worlds", "actor.pin", "actor.random_steps",
    "actor.random_hold", "epsilon",      "ring",      "sample.min_fill",
    "limiter",
};

static bool is_of_actors(const char *path)
{
    for (size_t i = 0; i < sizeof(of_actors) / sizeof(of_actors[0]); i++)
        if (rm_path_within(path, of_actors[i]))
            return true;
    return false;
}

static void report_unused(const char *path, const struct used *row, enum rm_algorithm algorithm,
                          rm_config_unused_fn each, void *user)
{
    char words[160];
    size_t used =
        (size_t)snprintf(words, sizeof(words), "has no effect with algorithm.name %s; it is for",
                         rm_algorithm_names[algorithm]);
    const char *between = " ";
    for (int a = 0; a < RM_ALGORITHM_COUNT; a++)
        if (row->algorithms >> a & 1 && used < sizeof(words)) {
            used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s", between,
                                     rm_algorithm_names[a]);
            between = ", ";
        }
    each(user, path, words);
}

static bool reads(const struct used *row, enum rm_algorithm algorithm)
{
    return !row || row->algorithms >> algorithm & 1;
}

/* A network without recurrent layers is cloned from single steps. */
static bool needs_recurrence(const struct rm_experiment *experiment, const struct used *row)
{
    return row && row->algorithms == SEQUENCES && !rm_learns_sequences(experiment);
}

bool rm_config_reads(const struct rm_experiment *experiment, const char *path)
{
    const struct used *row = row_of(path);
    return reads(row, experiment->algorithm.name) && !needs_recurrence(experiment, row) &&
           !(rm_experiment_is_offline(experiment) && is_of_actors(path));
}

int rm_config_unused(const struct rm_experiment *experiment, rm_config_unused_fn each, void *user)
{
    const enum rm_algorithm algorithm = experiment->algorithm.name;
    struct rm_experiment *defaults = malloc(sizeof(*defaults));
    int count = 0;
    if (!defaults || rm_config_defaults(defaults)) {
        free(defaults);
        return 0; /* no report without memory: it is only information */
    }
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        const struct used *row = row_of(key->path);
        if (!memcmp((const char *)experiment + key->offset, (const char *)defaults + key->offset,
                    key->bytes))
            continue;
        if (!reads(row, algorithm))
            report_unused(key->path, row, algorithm, each, user);
        else if (needs_recurrence(experiment, row))
            each(user, key->path, "has no effect without recurrent layers");
        else if (rm_experiment_is_offline(experiment) && is_of_actors(key->path))
            each(user, key->path, "has no effect with sample.from: such a run has no actors");
        else
            continue;
        count++;
    }
    free(defaults);
    return count;
}
