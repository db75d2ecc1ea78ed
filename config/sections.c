#include "config/schema.h"

#include <string.h>

const struct rm_section rm_sections[] = {
    {"run", "Length of the run, and the folder of its files."},
    {"world", "The environment of the agents."},
    {"actor", "The processes that step worlds and act."},
    {"epsilon", "Exploration: how often an agent acts at random. For dqn, qr-dqn, iqn and r2d2; "
                "other algorithms draw their actions from the policy."},
    {"policy", "Which agents share a policy. Every policy has its own learner process."},
    {"ring", "The experience kept in shared memory."},
    {"sample", "The contents of a batch."},
    {"priority", "Which transitions are drawn from replay more often."},
    {"rollout", "Rollouts, from which actor-critic algorithms learn."},
    {"limiter", "Keeps acting and learning from replay in proportion."},
    {"algorithm", "The loss and its targets."},
    {"algorithm.target", "How the target network follows the online network."},
    {"network", "The network of every policy."},
    {"network.head", "The last layers of the network."},
    {"optimizer", "How a gradient changes the weights."},
    {"optimizer.schedule", "How the learning rate changes."},
    {"publish", "When the learner publishes new weights to the actors."},
    {"learner", "How a learner process runs."},
    {"evaluation", "Greedy episodes, played by a separate process."},
    {"record", "Rows of the run, written to disk during the run ([histories.md](histories.md))."},
    {"supervisor", "Restarting workers that die or hang."},
    {"control", "The control socket."},
    {"metrics", "Recorded time series."},
    {"checkpoint", "Checkpoints, from which a run is resumed."},
    {"debug", "Checks for non-finite numbers, and rollbacks."},
};
const size_t rm_section_count = sizeof(rm_sections) / sizeof(rm_sections[0]);

const struct rm_key *rm_key_find(const char *path)
{
    for (size_t i = 0; i < rm_key_count; i++)
        if (!strcmp(rm_keys[i].path, path))
            return &rm_keys[i];
    return NULL;
}

bool rm_key_is_section(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < rm_key_count; i++)
        if (!strncmp(rm_keys[i].path, path, n) && rm_keys[i].path[n] == '.')
            return true;
    return false;
}

bool rm_key_is_comment(const char *name)
{
    return !strcmp(name, "//") || !strcmp(name, "comment");
}
