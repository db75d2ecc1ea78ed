#include "config/schema.h"

#include <string.h>

const struct rm_section rm_sections[] = {
    {"run", "How long, and where it leaves its files."},
    {"world", "What the agents live in."},
    {"actor", "The processes that step worlds and act."},
    {"epsilon",
     "Exploration: how often an agent acts at random. dqn, qr-dqn, iqn, r2d2; the others draw "
     "their actions from the policy."},
    {"policy", "Which agents share a policy. Every policy has a learner process of its own."},
    {"ring", "The experience kept in shared memory."},
    {"sample", "What a batch is made of."},
    {"priority", "Which transitions are drawn from replay more often."},
    {"rollout", "What actor-critic algorithms learn from."},
    {"limiter", "Holds acting and learning from replay in proportion."},
    {"algorithm", "The loss and its targets."},
    {"algorithm.target", "How the target network follows the online network."},
    {"network", "The network of every policy."},
    {"network.head", "Its last layers."},
    {"optimizer", "How a gradient becomes a change of weights."},
    {"optimizer.schedule", "How the learning rate changes."},
    {"publish", "When new weights go to the actors."},
    {"learner", "How a learner process runs."},
    {"evaluation", "Greedy episodes, played by a process of their own."},
    {"supervisor", "What happens to workers that die or hang."},
    {"control", "The control socket."},
    {"metrics", "What is recorded."},
    {"checkpoint", "What is kept on disk to go on from."},
    {"debug", "For finding faults."},
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
