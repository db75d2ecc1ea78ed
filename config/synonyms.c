#include "config/synonyms.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define RAINBOW                                                                                    \
    "with network.head.dueling, network.head.noisy, priority.kind \"proportional\" and "           \
    "sample.n_step 3, as config/cartpole-rainbow.json has it"
#define PARTS  "into how many parts a rollout is cut, not how large they are"
#define LAYERS "a list of objects such as {\"type\": \"linear\", \"units\": 64}"
#define RATIO  "updates per step of an agent: 0.25 is one update every 4 steps"

const struct rm_synonym rm_key_synonyms[] = {
    /* the run */
    {"total_timesteps", "run.steps", "of each agent, over all worlds"},
    {"timesteps_total", "run.steps", "of each agent, over all worlds"},
    {"num_env_steps_sampled_lifetime", "run.steps", "of each agent, over all worlds"},
    {"total_steps", "run.steps", "of each agent, over all worlds"},
    {"exp_name", "name", NULL},
    {"torch_deterministic", "mode", "\"lockstep\" gives the same bits every time"},
    {"log_dir", "run.directory", NULL},
    {"data_dir", "run.directory", NULL},

    /* worlds and actors */
    {"env", "world.name", NULL},
    {"env_id", "world.name", NULL},
    {"env_name", "world.name", NULL},
    {"env_config", "world.options", NULL},
    {"env_kwargs", "world.options", NULL},
    {"n_envs", "actor.worlds", "of all actors together"},
    {"num_envs", "actor.worlds", "of all actors together"},
    {"num_envs_per_worker", "actor.worlds", "of all actors together"},
    {"num_envs_per_env_runner", "actor.worlds", "of all actors together"},
    {"num_workers", "actor.count", NULL},
    {"num_rollout_workers", "actor.count", NULL},
    {"num_env_runners", "actor.count", NULL},
    {"n_stack", "sample.frame_stack", NULL},
    {"num_stack", "sample.frame_stack", NULL},
    {"framestack", "sample.frame_stack", NULL},

    /* exploring */
    {"exploration_fraction", "epsilon.span", "in steps of an agent, not a fraction of the run"},
    {"epsilon_timesteps", "epsilon.span", NULL},
    {"exploration_initial_eps", "epsilon.start", NULL},
    {"initial_epsilon", "epsilon.start", NULL},
    {"start_e", "epsilon.start", NULL},
    {"exploration_final_eps", "epsilon.end", NULL},
    {"final_epsilon", "epsilon.end", NULL},
    {"end_e", "epsilon.end", NULL},

    /* experience */
    {"batch_size", "sample.batch",
     "for ppo, appo and vtrace algorithm.minibatches says into how many parts a rollout is cut"},
    {"train_batch_size", "sample.batch", "for ppo, appo and vtrace it is rollout.steps"},
    {"discount", "sample.gamma", NULL},
    {"discount_factor", "sample.gamma", NULL},
    {"buffer_size", "ring.capacity", NULL},
    {"replay_size", "ring.capacity", NULL},
    {"replay_buffer_config", "ring.capacity", NULL},
    {"learning_starts", "sample.min_fill", NULL},
    {"num_steps_sampled_before_learning_starts", "sample.min_fill", NULL},
    {"train_freq", "limiter.updates_per_step", RATIO},
    {"train_frequency", "limiter.updates_per_step", RATIO},
    {"gradient_steps", "limiter.updates_per_step", RATIO},
    {"training_intensity", "limiter.updates_per_step", RATIO},
    {"utd_ratio", "limiter.updates_per_step", RATIO},
    {"prioritized_replay", "priority.kind", NULL},
    {"per", "priority.kind", NULL},
    {"prioritized_replay_alpha", "priority.alpha", NULL},
    {"per_alpha", "priority.alpha", NULL},
    {"prioritized_replay_beta", "priority.beta_start", NULL},
    {"per_beta", "priority.beta_start", NULL},
    {"prioritized_replay_eps", "priority.epsilon", NULL},
    {"n_steps", "rollout.steps", "for replay, rewards summed before bootstrapping: sample.n_step"},
    {"num_steps", "rollout.steps", "vector steps"},
    {"rollout_fragment_length", "rollout.steps", "vector steps"},
    {"bptt_horizon", "rollout.steps", "vector steps"},

    /* algorithms */
    {"algo", "algorithm.name", NULL},
    {"rainbow", "algorithm.name", "\"qr-dqn\" " RAINBOW},
    {"double_dqn", "algorithm.double_q", NULL},
    {"num_atoms", "algorithm.quantiles", NULL},
    {"n_atoms", "algorithm.quantiles", NULL},
    {"n_quantiles", "algorithm.quantiles", NULL},
    {"target_update_interval", "algorithm.target.interval", "in updates"},
    {"target_network_frequency", "algorithm.target.interval", "in updates"},
    {"target_network_update_freq", "algorithm.target.interval", "in updates"},
    {"polyak", "algorithm.target.tau", "the fraction that moves"},
    {"lambda", "algorithm.gae_lambda", NULL},
    {"lambda_", "algorithm.gae_lambda", NULL},
    {"clip_range", "algorithm.clip", NULL},
    {"clip_coef", "algorithm.clip", NULL},
    {"clip_param", "algorithm.clip", NULL},
    {"clip_range_vf", "algorithm.value_clip", NULL},
    {"vf_clip_param", "algorithm.value_clip", NULL},
    {"vf_clip_coef", "algorithm.value_clip", NULL},
    {"ent_coef", "algorithm.entropy_coefficient", "for sac it is algorithm.temperature"},
    {"entropy_coeff", "algorithm.entropy_coefficient", NULL},
    {"vf_coef", "algorithm.value_coefficient", "the value loss has a factor 1/2 of its own"},
    {"vf_loss_coeff", "algorithm.value_coefficient", "the value loss has a factor 1/2 of its own"},
    {"n_epochs", "algorithm.epochs", NULL},
    {"num_epochs", "algorithm.epochs", NULL},
    {"update_epochs", "algorithm.epochs", NULL},
    {"num_sgd_iter", "algorithm.epochs", NULL},
    {"num_minibatches", "algorithm.minibatches", NULL},
    {"minibatch_size", "algorithm.minibatches", PARTS},
    {"sgd_minibatch_size", "algorithm.minibatches", PARTS},
    {"norm_adv", "algorithm.normalize_advantages", NULL},
    {"normalize_advantage", "algorithm.normalize_advantages", NULL},
    {"kl_target", "algorithm.target_kl", NULL},
    {"vtrace_clip_rho_threshold", "algorithm.rho_max", NULL},
    {"vtrace_rho_clip", "algorithm.rho_max", NULL},
    {"vtrace_c_clip", "algorithm.c_max", NULL},
    {"norm_reward", "algorithm.normalize_rewards", NULL},
    {"autotune", "algorithm.tune_temperature", NULL},
    {"target_entropy", "algorithm.target_entropy_ratio", "a fraction of the uniform policy's"},
    {"initial_alpha", "algorithm.temperature", NULL},

    /* networks and optimizers */
    {"net_arch", "network.layers", LAYERS},
    {"policy_kwargs", "network.layers", LAYERS},
    {"fcnet_hiddens", "network.layers", LAYERS},
    {"hidden_size", "network.layers", LAYERS},
    {"hidden_sizes", "network.layers", LAYERS},
    {"hidden_dim", "network.layers", LAYERS},
    {"use_lstm", "network.layers", "with a layer of type \"lstm\""},
    {"use_rnn", "network.layers", "with a layer of type \"lstm\" or \"gru\""},
    {"vf_share_layers", "network.trunk", "\"shared\" or \"separate\""},
    {"norm_obs", "network.normalize_observations", NULL},
    {"normalize_observation", "network.normalize_observations", NULL},
    {"observation_filter", "network.normalize_observations", NULL},
    {"lr", "optimizer.learning_rate", NULL},
    {"step_size", "optimizer.learning_rate", NULL},
    {"lr_schedule", "optimizer.schedule.kind", NULL},
    {"anneal_lr", "optimizer.schedule.kind", "\"linear\""},
    {"max_grad_norm", "optimizer.grad_clip", NULL},
    {"adam_eps", "optimizer.epsilon", NULL},
    {"adam_epsilon", "optimizer.epsilon", NULL},
    {"adam_beta1", "optimizer.beta1", NULL},
    {"adam_beta2", "optimizer.beta2", NULL},

    /* machines, evaluations, what is written */
    {"device", "learner.device", NULL},
    {"cuda", "learner.device", NULL},
    {"num_gpus", "learner.devices", NULL},
    {"num_gpus_per_learner", "learner.devices", NULL},
    {"num_threads", "learner.threads", NULL},
    {"precision", "learner.compute", NULL},
    {"eval_freq", "evaluation.interval", "in steps of an agent"},
    {"evaluation_interval", "evaluation.interval", "in steps of an agent"},
    {"n_eval_episodes", "evaluation.episodes", NULL},
    {"eval_episodes", "evaluation.episodes", NULL},
    {"evaluation_duration", "evaluation.episodes", NULL},
    {"deterministic", "evaluation.answer", "\"greedy\" or \"sample\""},
    {"log_interval", "metrics.interval_s", "in seconds"},
    {"tensorboard_log", "metrics.tensorboard", NULL},
    {"save_freq", "checkpoint.interval_s", "in seconds"},
    {"checkpoint_freq", "checkpoint.interval_s", "in seconds"},
    {"checkpoint_frequency", "checkpoint.interval_s", "in seconds"},
    {"checkpoint_interval", "checkpoint.interval_s", "in seconds"},
    {"num_to_keep", "checkpoint.keep", NULL},
    {NULL, NULL, NULL},
};

const struct rm_synonym rm_name_synonyms[] = {
    {"rainbow", "qr-dqn", RAINBOW},
    {"c51", "qr-dqn", "quantiles of returns, where c51 has probabilities of fixed ones"},
    {"double_dqn", "dqn", "algorithm.double_q is true unless it is set"},
    {"ddqn", "dqn", "algorithm.double_q is true unless it is set"},
    {"dueling_dqn", "dqn", "with network.head.dueling"},
    {"qrdqn", "qr-dqn", NULL},
    {"recurrent_ppo", "ppo", "with a layer of type \"lstm\" or \"gru\""},
    {"recurrentppo", "ppo", "with a layer of type \"lstm\" or \"gru\""},
    {"a2c", "vtrace", "with one actor and current weights this is A2C's gradient"},
    {"a3c", "vtrace", NULL},
    {"impala", "vtrace", NULL},
    {"impact", "appo", NULL},
    {"dense", "linear", NULL},
    {"fc", "linear", NULL},
    {"mlp", "linear", NULL},
    {"conv", "conv2d", NULL},
    {"cnn", "conv2d", NULL},
    {"layernorm", "layer_norm", NULL},
    {"transformer", "attention", NULL},
    {"swish", "silu", NULL},
    {"prioritized", "proportional", NULL},
    {"per", "proportional", NULL},
    {NULL, NULL, NULL},
};

/* Ignores case; '-' and '_' are equal. */
static bool same_word(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        const int x = *a == '-' ? '_' : tolower((unsigned char)*a);
        const int y = *b == '-' ? '_' : tolower((unsigned char)*b);
        if (x != y)
            return false;
    }
    return *a == *b;
}

const struct rm_synonym *rm_synonym_of_key(const char *leaf)
{
    for (const struct rm_synonym *s = rm_key_synonyms; s->theirs; s++)
        if (same_word(s->theirs, leaf))
            return s;
    return NULL;
}

const struct rm_synonym *rm_synonym_of_name(const char *name, const char *const *names)
{
    for (const struct rm_synonym *s = rm_name_synonyms; s->theirs; s++)
        for (size_t i = 0; names[i] && same_word(s->theirs, name); i++)
            if (!strcmp(names[i], s->ours))
                return s;
    return NULL;
}
