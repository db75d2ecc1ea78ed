/* Private to the files of learning from replay. */
#ifndef RM_LEARNER_REPLAY_PRIVATE_H
#define RM_LEARNER_REPLAY_PRIVATE_H

#include "learner/algo/guard.h"
#include "learner/algo/trainer.h"
#include "learner/feed.h"
#include "learner/method.h"
#include "learner/pace.h"
#include "learner/sampler.h"

struct rm_replay {
    struct rm_method method; /* first */
    struct rm_session *session;
    uint32_t policy;
    const struct rm_experiment *experiment;
    const struct rm_policy_plan *plan;
    struct rm_board_policy *counters;
    const struct rm_env_agent *agent;
    struct rm_publisher *publisher;
    struct rm_phase_clock *clock;

    struct rm_trainer *trainer;
    struct rm_guard *guard;
    struct rm_sampler *sampler;
    struct rm_feed *feed; /* NULL: batches are made on the host */
    struct rm_pace pace;

    bool late;            /* the trainer's results are */
    bool dry;             /* draws of the device found too little, as was just heard */
    uint64_t updates;     /* made, predecessors' included; late: as far as told */
    uint64_t torn_before; /* counts already on the board */
    uint64_t age_sum_before, age_count_before;
    uint64_t blocked_since_ns; /* when the limiter held it up; 0 = it does not */
};

/* replay_open.c: sampler and feed, then the trainer. */
int rm_replay_open_sampler(struct rm_replay *r, struct rm_backend *backend, struct rm_error *error);

/* With the feed's batches; where `auto` chose a feed that leaves the trainer too little memory of
 * the device, with batches that are staged. */
int rm_replay_open_trainer(struct rm_replay *r, struct rm_trainer_spec *spec,
                           struct rm_error *error);

/* The errors of a batch that was learned from become priorities. */
void rm_replay_learned(struct rm_replay *r, const struct rm_batch *batch);

/* What the sampler has counted since, to the board. */
void rm_replay_count_draws(struct rm_replay *r);

/* replay_late.c: hears what has been told; with `wait`, of everything that was begun. Nothing where
 * results are not late. */
int rm_replay_hear(struct rm_replay *r, bool wait, struct rm_error *error);

/* Before it rests, publishes at once or is saved: nothing is under way any more. */
int rm_replay_settle(struct rm_replay *r, struct rm_error *error);

#endif
