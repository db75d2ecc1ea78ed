/* Messages for keys that contradict each other: they name both keys and what would be right. */
#include "tests/support/refusals.h"
#include "tests/support/unit.h"

#define WITH RM_REFUSAL_WITH
#define SET  RM_REFUSAL_SET
#define IQN                                                                                        \
    "\"algorithm\": {\"name\": \"iqn\"}, \"network\": {\"layers\": [{\"type\": "                   \
    "\"cosine_embedding\"}]}"
/* The sorrel form in one world, sound but for what a case changes. */
#define SORREL(form, ring, actor)                                                                  \
    "\"algorithm\": {\"name\": \"iqn\"," form "},"                                                 \
    "\"network\": {\"layers\": [{\"type\": \"cosine_embedding\"}]},"                               \
    "\"ring\": {" ring "}, \"sample\": {\"min_fill\": 64}, \"actor\": {" actor "}"

static const struct rm_refusal cases[] = {
    {"{\"world\": {\"python\": \"gymnasium:CartPole-v1\", \"library\": \"x.so\"}}",
     {"world.python: \"gymnasium:CartPole-v1\", but world.library is \"x.so\" too; set only one of "
      "them"}},
    {"{\"world\": {\"python\": \"CartPole-v1\"}}",
     {"t.json:1:22: world.python: \"CartPole-v1\" does not name a Python world; use "
      "\"gymnasium:ID\" or"}},
    {"{\"world\": {\"python\": \"games:\"}}",
     {"world.python: \"games:\" does not name a Python world"}},
    {"{\"world\": {\"python\": \"a:b\"}, \"actor\": {\"device\": \"cuda\"},"
     " \"algorithm\": {\"name\": \"ppo\"}}",
     {"actor.device: \"cuda\": a Python world (world.python) is stepped by Python"}},
    {"{\"world\": {\"prolog\": \"a.pl\", \"python\": \"a:b\"}}",
     {"world.prolog: \"a.pl\", but world.python is \"a:b\" too; set only one of them"}},
    {"{\"world\": {\"prolog\": \"a.pl\", \"library\": \"x.so\"}}",
     {"world.prolog: \"a.pl\", but world.library is \"x.so\" too; set only one of them"}},
    {"{\"world\": {\"prolog\": \"a.pl\"}, \"actor\": {\"device\": \"cuda\"},"
     " \"algorithm\": {\"name\": \"ppo\"}}",
     {"actor.device: \"cuda\": a Prolog world (world.prolog) is stepped by SWI-Prolog"}},
    {WITH("\"optimizer\": {\"name\": \"muon\", \"sparse\": true}"),
     {"optimizer.sparse: only adam and adamw can skip rows without a gradient; optimizer.name is "
      "muon"}},
    {WITH("\"actor\": {\"count\": 4, \"worlds\": 3}"),
     {"t.json:2:33: actor.worlds: 3 worlds for 4 actors (actor.count)"}},
    {WITH("\"ring\": {\"capacity\": 100}, \"sample\": {\"batch\": 128, \"min_fill\": 100}"),
     {"t.json:2:22: ring.capacity: 100 transitions are fewer than one batch (sample.batch 128)"}},
    {WITH("\"ring\": {\"capacity\": 100}, \"sample\": {\"frame_stack\": 8, \"n_step\": 6, "
          "\"min_fill\": 64}"),
     {"t.json:2:22: ring.capacity: ", "needs 14 rows", "at least 112"}},
    {WITH("\"ring\": {\"capacity\": 500}"),
     {"sample.min_fill: 1000 transitions do not fit: ring.capacity is 500"}},
    {WITH("\"sample\": {\"min_fill\": 32}"),
     {"t.json:2:24: sample.min_fill: 32 transitions are fewer than one batch (sample.batch 64)"}},
    {WITH("\"algorithm\": {\"name\": \"ppo\",\n\"minibatches\": 1025}"),
     {"t.json:3:16: algorithm.minibatches: 1025 parts of a rollout of 1024 rows"}},
    {WITH("\"run\": {\"steps\": 500}, \"algorithm\": {\"name\": \"r2d2\"}, \"sample\": "
          "{\"min_fill\": 500}, \"mode\": \"lockstep\""),
     {"t.json:2:18: run.steps: 500 steps are 64 rows of 8 worlds", "at least 640"}},
    {WITH("\"run\": {\"steps\": 900}"), {"sample.min_fill: 1000", "the run ends after 900 steps"}},
    {WITH("\"ring\": {\"mode\": \"rollout\"}"), {"t.json:2:10: ring.mode: unknown key"}},
    {WITH(IQN
          ", \"sample\": {\"batch\": 65536, \"min_fill\": 65536}, \"ring\": {\"capacity\": 65536},"
          "\"run\": {\"steps\": 0}, \"actor\": {\"quantiles\": 8}"),
     {"sample.batch: 65536 transitions with 128 quantiles", "at most 4194304",
      SET "algorithm.quantiles=128"}},
    {WITH("\"limiter\": {\"slack_updates\": 0.5, \"updates_per_step\": 0.01}"),
     {"t.json:2:30: limiter.slack_updates: 0.5 updates are less than one batch"}},
    {WITH("\"limiter\": {\"slack_updates\": 4, \"updates_per_step\": 1}"),
     {"t.json:2:30: limiter.slack_updates: 4 updates are fewer than one vector step", "8 worlds",
      "at least 8"}},
    {WITH("\"mode\": \"lockstep\", \"limiter\": {\"updates_per_step\": 0}"),
     {"t.json:2:53: limiter.updates_per_step: 0 is free running, but in mode lockstep"}},
    {WITH("\"mode\": \"sequential\", \"limiter\": {\"wake\": \"poll\"}"),
     {"t.json:2:43: limiter.wake: \"poll\" is for mode free"}},
    {WITH("\"epsilon\": {\"start\": 0.1, \"end\": 0.2}"),
     {"t.json:2:34: epsilon.end: 0.2 is above epsilon.start (0.1)"}},
    {WITH("\"algorithm\": {\"name\": \"iqn\"}"),
     {"network.layers: algorithm.name iqn needs a layer of type cosine_embedding"}},
    {WITH("\"algorithm\": {\"name\": \"iqn\"}, \"network\": {\"layers\": [{\"type\": "
          "\"cosine_embedding\"}, "
          "{\"type\": \"cosine_embedding\"}]}"),
     {"network.layers: 2 layers of type cosine_embedding; allowed is one"}},
    {WITH("\"network\": {\"layers\": [{\"type\": \"cosine_embedding\"}]}"),
     {"t.json:2:23: network.layers: ", "needs algorithm.name iqn, but it is dqn"}},
    {WITH("\"network\": {\"head\": {\"noisy\": true}, \"sigma0\": 0}"),
     {"t.json:2:48: network.sigma0: 0 removes the noise of noisy layers"}},
    {WITH("\"network\": {\"layers\": [{\"type\": \"noisy_linear\", \"units\": 4}], \"sigma0\": 0}"),
     {"network.sigma0: 0 removes the noise of noisy layers"}},
    {WITH("\"algorithm\": {\"form\": \"sorrel-seq\"}, \"actor\": {\"worlds\": 1}, \"ring\": "
          "{\"capacity\": 1024}"),
     {"t.json:2:23: algorithm.form: sorrel-seq is a form of iqn, but algorithm.name is dqn"}},
    {WITH("\"algorithm\": {\"name\": \"ppo\"}, \"priority\": {\"kind\": \"proportional\"}"),
     {"priority.kind: \"proportional\" draws by the errors of action values", "ppo"}},
    {WITH(SORREL("\"form\": \"sorrel-mp\"", "\"capacity\": 1024",
                 "\"worlds\": 1") ", \"priority\": {\"kind\": \"proportional\"}"),
     {"priority.kind: \"proportional\": algorithm.form sorrel-mp draws uniformly"}},
    {WITH("\"algorithm\": {\"name\": \"sac\"}, \"network\": {\"head\": {\"noisy\": true}}"),
     {"network.layers: noisy layers are for", "sac draws its actions"}},
    {WITH("\"algorithm\": {\"name\": \"ppo\"}, \"network\": {\"layers\": [{\"type\": "
          "\"noisy_linear\", \"units\": 4}]}"),
     {"network.layers: noisy layers are for", "ppo draws its actions"}},
    {WITH("\"algorithm\": {\"name\": \"vtrace\"}, \"network\": {\"value_layers\": [{\"type\": "
          "\"noisy_linear\", \"units\": 4}]}"),
     {"network.layers: noisy layers are for", "vtrace draws its actions"}},
    {WITH("\"network\": {\"layers\": [{\"type\": \"gru\", \"units\": 8}]}"),
     {"network.layers: recurrent layers learn from sequences", "dqn"}},
    {WITH("\"algorithm\": {\"name\": \"clone\"}"),
     {"algorithm.name: clone learns from a recording; name one in sample.from"}},
    {WITH("\"algorithm\": {\"name\": \"distill\"}"),
     {"algorithm.name: distill learns from a recording; name one in sample.from"}},
    {WITH("\"algorithm\": {\"name\": \"distill\"}, \"sample\": {\"from\": \"r\", \"region\": 9, "
          "\"first_steps\": 8, \"frame_stack\": 3}"),
     {"sample.first_steps: 8 steps are fewer than one region (sample.region 9)",
      "sample.frame_stack: 3 frames, but a history has each observation once; use 1"}},
    {WITH("\"algorithm\": {\"name\": \"ppo\"}, \"sample\": {\"from\": \"r\"}"),
     {"sample.from: algorithm.name ppo learns from rollouts of its own policy", "dqn, qr-dqn"}},
    {WITH("\"algorithm\": {\"name\": \"r2d2\"}, \"sample\": {\"from\": \"r\"}"),
     {"sample.from: algorithm.name r2d2 learns from recurrent states, which are not recorded"}},
    {WITH("\"record\": {\"directory\": \"x\"}, \"sample\": {\"from\": \"r\"}"),
     {"record.directory: \"x\", but with a recording (sample.from) there are no actors"}},
    {WITH("\"curriculum\": [{\"options\": {}, \"until\": {\"figure\": \"return\", "
          "\"at_least\": 1}}, {\"options\": {}}], \"sample\": {\"from\": \"r\"}"),
     {"curriculum: 2 stages, but with a recording (sample.from) no actors step worlds"}},
    {WITH("\"policy\": {\"map\": [0, 1], \"frozen\": [{\"policy\": 1, \"of\": 0, \"every\": 9, "
          "\"keep\": 2}]}, \"sample\": {\"from\": \"r\"}"),
     {"policy.frozen: 1 opponents, but with a recording (sample.from) no policy acts"}},
    {WITH("\"algorithm\": {\"name\": \"r2d2\"}, \"sample\": {\"frame_stack\": 2}"),
     {"sample.frame_stack: 2 frames", "r2d2"}},
    {WITH("\"algorithm\": {\"name\": \"r2d2\"}, \"ring\": {\"capacity\": 600}, "
          "\"sample\": {\"min_fill\": 600}"),
     {"ring.capacity: 600 transitions are 75 rows of 8 worlds", "needs 121 ",
      "sample.sequence + sample.n_step + sample.period", "at least 968"}},
    {WITH("\"algorithm\": {\"name\": \"r2d2\"}, \"sample\": {\"min_fill\": 640}"),
     {"t.json:2:55: sample.min_fill: deadlock: actors would stop after 80 rows of 8",
      "81 rows of a sample (sample.sequence + sample.n_step); use at least 641"}},
    /* Actors would wait for an update that waits for rows. */
    {WITH("\"actor\": {\"worlds\": 128}, \"sample\": {\"n_step\": 10},"
          "\"limiter\": {\"updates_per_step\": 0.25, \"slack_updates\": 32}"),
     {"sample.min_fill: deadlock", "after 8 rows of 128 worlds", "11 rows", "at least 1281"}},
    {WITH("\"actor\": {\"worlds\": 16}, \"ring\": {\"capacity\": 16}, \"sample\": {\"batch\": 16, "
          "\"min_fill\": 16}"),
     {"ring.capacity: 16 transitions are 1 row of 16 worlds (actor.worlds)", "at least 48"}},
    {WITH("\"priority\": {\"beta_start\": 0.5, \"beta_end\": 0.4}"),
     {"priority.beta_end: 0.4 is below priority.beta_start (0.5)"}},
    {WITH(SORREL("\"form\": \"sorrel-mp\"", "\"capacity\": 1024", "\"worlds\": 2")),
     {"actor.worlds: 2 worlds; algorithm.form sorrel-mp"}},
    {WITH(SORREL("\"form\": \"sorrel-seq\"", "\"capacity\": 1000", "\"worlds\": 1")),
     {"ring.capacity: 1000 is not a power of two", "1024"}},
    {WITH(SORREL("\"form\": \"sorrel-seq\"", "\"capacity\": 64", "\"worlds\": 1")),
     {"ring.capacity: 64 slots", "at least 66"}},
    {WITH(SORREL("\"form\": \"sorrel-seq\", \"double_q\": false", "\"capacity\": 1024",
                 "\"worlds\": 1")),
     {"algorithm.double_q: algorithm.form sorrel-seq is double Q-learning"}},
    {WITH(SORREL("\"form\": \"sorrel-seq\"", "\"capacity\": 1024",
                 "\"worlds\": 1") ", \"policy\": {\"map\": \"shared\"}"),
     {"policy.map: algorithm.form sorrel-seq has a ring per agent"}},
    {WITH("\"algorithm\": {\"value_head\": \"popart\"}"),
     {"algorithm.value_head: popart is for the state value", "algorithm.name is dqn"}},
    {WITH("\"algorithm\": {\"name\": \"ppo\", \"value_clip_maximum\": \"means\"}"),
     {"algorithm.value_clip_maximum: \"means\" compares clipped values",
      "algorithm.value_clip is 0"}},
    {WITH("\"algorithm\": {\"name\": \"ppo\", \"value_clip\": 0.2, \"value_clip_maximum\": "
          "\"means\"}, \"learner\": {\"devices\": 2}"),
     {"algorithm.value_clip_maximum: \"means\" works with one GPU only", "learner.devices is 2"}},
    /* --- worlds on a device --- */
    {WITH("\"actor\": {\"device\": \"cuda\"}"), {"actor.device: \"cuda\"", "\"ppo\""}},
    {WITH("\"actor\": {\"device\": \"gpu\"}"), {"actor.device: \"gpu\" is not one of cpu, cuda"}},
    {WITH("\"actor\": {\"device\": \"cuda\"}, \"algorithm\": {\"name\": \"ppo\"}, \"learner\": "
          "{\"device\": \"cpu\"}"),
     {"actor.device: \"cuda\"", "learner.device is \"cpu\""}},
    {WITH("\"actor\": {\"device\": \"cuda\"}, \"algorithm\": {\"name\": \"ppo\"}, \"sample\": "
          "{\"frame_stack\": 2}"),
     {"sample.frame_stack: 2 frames", "actor.device"}},
    {WITH("\"actor\": {\"device\": \"cuda\"}, \"algorithm\": {\"name\": \"ppo\", "
          "\"normalize_rewards\": true}"),
     {"algorithm.normalize_rewards: true", "actor.device"}},
    {WITH("\"actor\": {\"device\": \"cuda\"}, \"algorithm\": {\"name\": \"ppo\"}, \"network\": "
          "{\"normalize_observations\": true}"),
     {"network.normalize_observations: true", "actor.device"}},
    /* --- several devices --- */
    {WITH("\"algorithm\": {\"name\": \"r2d2\"}, \"learner\": {\"devices\": 2}"),
     {"learner.devices: 2 GPUs", "\"r2d2\" learns on one GPU"}},
    {WITH("\"algorithm\": {\"name\": \"clone\"}, \"sample\": {\"from\": \"recording\"}, "
          "\"network\": "
          "{\"layers\": [{\"type\": \"gru\", \"units\": 8}]}, \"learner\": {\"devices\": 2}"),
     {"learner.devices: 2 GPUs", "\"clone\" learns a recurrent network on one GPU"}},
    {WITH("\"algorithm\": {\"name\": \"clone\"}, \"sample\": {\"from\": \"recording\", "
          "\"frame_stack\": 2}, \"network\": {\"layers\": [{\"type\": \"lstm\", \"units\": 8}]}"),
     {"sample.frame_stack: 2 frames", "clone has a recurrent state and takes no stacks"}},
    {WITH("\"algorithm\": {\"name\": \"ppo\"}, \"actor\": {\"device\": \"cuda\", \"worlds\": "
          "2}, \"learner\": {\"devices\": 3}"),
     {"actor.worlds: 2 worlds on 3 GPUs"}},
    {WITH("\"learner\": {\"device\": \"cuda:00\"}"),
     {"learner.device: \"cuda:00\" is not a device"}},
    {WITH("\"learner\": {\"device\": \"cpu\", \"devices\": 2}"),
     {"learner.devices: 2 GPUs", "\"cpu\" does not choose several"}},
    {WITH("\"sample\": {\"batch\": 64}, \"learner\": {\"devices\": 3}"),
     {"sample.batch: 64 rows cannot be divided equally among 3 GPUs"}},
    {WITH("\"debug\": {\"check_finite\": \"always\"}, \"learner\": {\"devices\": 2}"),
     {"debug.check_finite: \"always\"", "learner.devices is 2"}},
    {WITH("\"network\": {\"normalize_observations\": true}, \"learner\": {\"devices\": 2}"),
     {"network.normalize_observations: true", "learner.devices is 2"}},
    {WITH("\"learner\": {\"devices\": 2, \"processes\": \"one\"}"),
     {"learner.processes: \"one\"", "2 GPUs (learner.devices)"}},
    {WITH("\"algorithm\": {\"normalize_rewards\": true}"),
     {"algorithm.normalize_rewards: only rewards of rollouts"}},
    {WITH("\"run\": {\"steps\": 0}, \"optimizer\": {\"schedule\": {\"kind\": \"cosine\"}}"),
     {"optimizer.schedule.span: 0 lets the rate fall over the run, which has no end"}},
    {WITH("\"policy\": {\"map\": \"shared\", \"frozen\": [{\"policy\": 1, \"of\": 0}]}"),
     {"policy.frozen: policy.map \"shared\" has one policy"}},
    {WITH("\"policy\": {\"map\": [0, 1], \"frozen\": [{\"policy\": 1, \"of\": 0}, {\"policy\": 1, "
          "\"of\": 0}]}"),
     {"policy.frozen: policy 1 is listed twice"}},
    {WITH("\"policy\": {\"map\": [0, 1], \"frozen\": [{\"policy\": 1, \"of\": 1}]}"),
     {"policy.frozen: policy 1 cannot take snapshots of itself"}},
    {WITH("\"policy\": {\"map\": [0, 1, 2], \"frozen\": [{\"policy\": 1, \"of\": 2}, {\"policy\": "
          "2, \"of\": 0}]}"),
     {"policy.frozen: policy 1 takes snapshots of policy 2, which is frozen too"}},
    {WITH("\"policy\": {\"map\": [0, 1], \"frozen\": [{\"policy\": 2, \"of\": 0}]}"),
     {"policy.frozen: names policy 2; policy.map has 0 to 1"}},
    {WITH("\"evaluation\": {\"worlds\": 101}"),
     {"t.json:2:26: evaluation.worlds: 101 worlds, but no evaluation has more than 100 episodes"}},
    {WITH("\"supervisor\": {\"backoff_max_s\": 0.1}"),
     {"t.json:2:33: supervisor.backoff_max_s: 0.1 s is below supervisor.respawn_floor_s"}},
    {WITH("\"supervisor\": {\"deaths_max\": 1000}"),
     {"supervisor.deaths_max: 1000 deaths cannot occur"}},
};

static void contradictions_are_refused(void **state)
{
    (void)state;
    rm_test_refused(cases, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contradictions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
