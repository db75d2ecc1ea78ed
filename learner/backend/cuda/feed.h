/* feed: the table of device_feed.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_FEED_H
#define RM_LEARNER_BACKEND_CUDA_FEED_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/device_feed.h"
}

extern const struct rm_device_feed_ops rm_cuda_feed;

#endif
