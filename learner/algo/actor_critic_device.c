#include "learner/algo/actor_critic_private.h"
const struct rm_actor_critic_ops rm_device_actor_critic = {.bytes = sizeof(struct rm_actor_critic)};
