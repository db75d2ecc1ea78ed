#include "config/names.h"

#include "config/experiment.h"
#include "shm/station.h"

#include <stddef.h>

#define NAMES(name, count, ...)                                                                    \
    const char *const name[] = {__VA_ARGS__, NULL};                                                \
    _Static_assert(sizeof(name) / sizeof(name[0]) == (count) + 1, #name " has a name per value")

NAMES(rm_mode_names, RM_MODE_SEQUENTIAL + 1, "free", "lockstep", "sequential");
NAMES(rm_map_names, RM_MAP_LIST, "independent", "shared"); /* a list is written as a list */
NAMES(rm_decay_names, RM_DECAY_EXPONENTIAL + 1, "linear", "exponential");
NAMES(rm_decay_unit_names, RM_DECAY_EPISODES + 1, "steps", "episodes");
NAMES(rm_tensorboard_tags_names, RM_TENSORBOARD_ALL + 1, "off", "main", "all");
NAMES(rm_algorithm_names, RM_ALGORITHM_COUNT, "dqn", "qr-dqn", "iqn", "r2d2", "sac", "ppo", "appo",
      "vtrace", "clone", "distill");
NAMES(rm_normalise_names, RM_NORMALISE_BATCH + 1, "off", "minibatch", "batch");
NAMES(rm_deviation_names, RM_DEVIATION_STATE + 1, "auto", "parameter", "state");
NAMES(rm_bound_names, RM_BOUND_TANH + 1, "auto", "clip", "tanh");
NAMES(rm_combine_names, RM_COMBINE_COUNT, "concat", "tokens");
NAMES(rm_trunk_names, RM_TRUNK_SEPARATE + 1, "shared", "separate");
NAMES(rm_value_head_names, RM_VALUE_POPART + 1, "plain", "popart");
NAMES(rm_value_clip_maximum_names, RM_MAXIMUM_OF_MEANS + 1, "samples", "means");
NAMES(rm_popart_deviation_names, RM_POPART_AVERAGED + 1, "moments", "averaged");
NAMES(rm_priority_names, RM_PRIORITY_PROPORTIONAL + 1, "uniform", "proportional");
NAMES(rm_optimizer_names, RM_OPTIMIZER_COUNT, "adam", "adamw", "rmsprop", "muon");
NAMES(rm_schedule_names, RM_SCHEDULE_COSINE + 1, "constant", "linear", "cosine");
NAMES(rm_check_finite_names, RM_CHECK_FINITE_ALWAYS + 1, "off", "sampled", "always");
NAMES(rm_lengthen_names, RM_STATION_WORK, "world", "acting", "sampling", "update", "publishing",
      "evaluation");
NAMES(rm_learner_processes_names, RM_LEARNERS_ONE + 1, "each", "one");
NAMES(rm_feed_names, RM_FEED_COUNT, "auto", "staged", "resident");
NAMES(rm_compute_names, RM_COMPUTE_COUNT, "fp32", "tf32", "bf16", "fp16");
NAMES(rm_actor_device_names, RM_ACTOR_CUDA + 1, "cpu", "cuda");
NAMES(rm_sandbox_names, RM_SANDBOX_OFF + 1, "auto", "on", "off");
NAMES(rm_record_every_names, RM_RECORD_EPISODE + 1, "step", "episode");
NAMES(rm_answer_names, RM_ANSWER_SAMPLE + 1, "greedy", "sample");
NAMES(rm_form_names, RM_FORM_SORREL_MP + 1, "paper", "sorrel-seq", "sorrel-mp");
NAMES(rm_target_update_names, RM_TARGET_HARD + 1, "soft", "hard");
NAMES(rm_wake_kind_names, RM_WAKE_POLL + 1, "event", "poll");
NAMES(rm_noise_kind_names, RM_NOISE_INDEPENDENT + 1, "factorised", "independent");
NAMES(rm_init_names, RM_INIT_COUNT, "default", "orthogonal", "xavier_uniform", "xavier_normal",
      "kaiming_uniform", "kaiming_normal");
const char *const rm_isa_names[] = {"auto", "x86-64-v2", "x86-64-v3", "x86-64-v4", NULL};
