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
    bool dry;             /* the latest results have draws of the device that found too few rows */
    uint64_t updates;     /* made, including predecessors'; with late results: those that have
                           * arrived */
    uint64_t torn_before; /* counts already on the board */
    uint64_t age_sum_before, age_count_before;
    uint64_t blocked_since_ns; /* since when the limiter blocks the learner; 0 = it does not */
};

/* replay_open.c: sampler and feed, then the trainer. */
int rm_replay_open_sampler(struct rm_replay *r, struct rm_backend *backend, struct rm_error *error);

/* Creates the trainer for the feed's batches; if a feed chosen by `auto` leaves it too little
 * device memory, for staged batches. */
int rm_replay_open_trainer(struct rm_replay *r, struct rm_trainer_spec *spec,
                           struct rm_error *error);

/* Errors of a trained batch become priorities. */
void rm_replay_learned(struct rm_replay *r, const struct rm_batch *batch);

/* Adds the sampler's new counts to the board. */
void rm_replay_count_draws(struct rm_replay *r);

/* replay_late.c: counts results that have arrived; with `wait` waits for those of all updates. Does
 * nothing if results are not late. */
int rm_replay_poll(struct rm_replay *r, bool wait, struct rm_error *error);

/* Waits for all results, before the learner sleeps, publishes at once or is saved. */
int rm_replay_settle(struct rm_replay *r, struct rm_error *error);

#endif
