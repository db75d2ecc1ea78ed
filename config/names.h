/* names: the names of enum values of experiment.h in files, messages and metrics. Index = enum
 * value; every list ends with NULL.
 *
 * Read-only data; any thread. */
#ifndef RM_CONFIG_NAMES_H
#define RM_CONFIG_NAMES_H

extern const char *const rm_mode_names[];
extern const char *const rm_map_names[];
extern const char *const rm_decay_names[];
extern const char *const rm_decay_unit_names[];
extern const char *const rm_tensorboard_tags_names[];
extern const char *const rm_algorithm_names[];
extern const char *const rm_normalise_names[];
extern const char *const rm_deviation_names[];
extern const char *const rm_bound_names[];
extern const char *const rm_combine_names[];
extern const char *const rm_trunk_names[];
extern const char *const rm_value_head_names[];
extern const char *const rm_value_clip_maximum_names[];
extern const char *const rm_popart_deviation_names[];
extern const char *const rm_priority_names[];
extern const char *const rm_optimizer_names[];
extern const char *const rm_schedule_names[];
extern const char *const rm_check_finite_names[];
extern const char *const rm_lengthen_names[]; /* of enum rm_station */
extern const char *const rm_actor_device_names[];
extern const char *const rm_sandbox_names[];
extern const char *const rm_answer_names[];
extern const char *const rm_record_every_names[];
extern const char *const rm_compute_names[];
extern const char *const rm_feed_names[];
extern const char *const rm_learner_processes_names[];
extern const char *const rm_form_names[];
extern const char *const rm_target_update_names[];
extern const char *const rm_wake_kind_names[];
extern const char *const rm_noise_kind_names[];
extern const char *const rm_init_names[];
extern const char *const rm_isa_names[];

#endif
